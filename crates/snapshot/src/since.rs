//! What is known about changes since the last scan. A scan that knows costs as much as what changed.

use crate::path_set::PathSet;

/// What is known about changes since the stat cache was written.
#[derive(Clone, Copy, Debug)]
pub enum Since<'a> {
    /// Everything is looked at.
    Unknown,
    /// Nothing else changed.
    Only(&'a Changed),
}

impl Since<'_> {
    /// Is it certain that nothing happened at a path, below it, or to a folder above it as a whole?
    pub(crate) fn is_quiet(&self, path: &[u8]) -> bool {
        match self {
            Self::Unknown => false,
            Self::Only(changed) => changed.is_quiet(path),
        }
    }
}

/// All that changed, as somebody saw who watched every folder the cache holds.
///
/// inotify does not report bytes written through a memory map or by asynchronous I/O before the file is closed,
/// through a second name that no snapshot holds, or by a loop device. Only a scan that looks at everything
/// finds them.
#[derive(Debug, Default)]
pub struct Changed {
    paths: PathSet,
    trees: PathSet,
}

impl Changed {
    /// `paths` were created, written, removed or renamed, or got another mode, owner or time. Of `trees`,
    /// and of all below them, nothing is known: folders that came, or that nobody watched for a while.
    /// The empty path is the workspace.
    pub fn new(paths: PathSet, trees: PathSet) -> Self {
        Self { paths, trees }
    }

    /// Neither it nor anything below changed, and no folder above is one of which nothing is known.
    pub fn is_quiet(&self, path: &[u8]) -> bool {
        let is_named = |set: &PathSet| set.contains(path) || set.has_below(path);
        !is_named(&self.paths) && !is_named(&self.trees) && !self.is_in_tree(path)
    }

    fn is_in_tree(&self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut above = slashes.map(|(at, _)| &path[..at]);
        !self.trees.is_empty()
            && (self.trees.contains(b"") || above.any(|folder| self.trees.contains(folder)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: &[&str]) -> PathSet {
        paths.iter().map(|path| Box::from(path.as_bytes())).collect()
    }

    #[test]
    fn a_path_is_quiet_if_nothing_at_below_or_above_it_changed() {
        let check = |path: &str, quiet: bool| {
            let changed = Changed::new(set(&["a/b/file", "c"]), set(&["d/e"]));
            assert_eq!(changed.is_quiet(path.as_bytes()), quiet, "{path}");
        };
        check("a/b/file", false);
        check("a/b", false);
        check("a", false);
        check("", false);
        check("a/b/other", true);
        check("a/c", true);
        // The folder's own mode changed, which says nothing about what is in it.
        check("c", false);
        check("c/file", true);
        check("d", false);
        check("d/e", false);
        check("d/e/f/g", false);
        check("d/ef", true);
    }

    #[test]
    fn nothing_is_quiet_once_the_whole_workspace_is_unknown() {
        let changed = Changed::new(set(&[]), set(&[""]));
        assert!(!changed.is_quiet(b"") && !changed.is_quiet(b"a") && !changed.is_quiet(b"a/b"));
        assert!(Changed::default().is_quiet(b"") && Changed::default().is_quiet(b"a/b"));
    }
}
