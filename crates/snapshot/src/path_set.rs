//! A set of paths that can also be asked about folders: the files git tracks, or what changed.

use bivouac_core::path::RelPath;

#[derive(Debug, Default)]
pub struct PathSet {
    sorted: Vec<Box<[u8]>>,
}

impl PathSet {
    pub fn contains(&self, path: &[u8]) -> bool {
        self.sorted.binary_search_by(|own| own.as_ref().cmp(path)).is_ok()
    }

    /// Is any path of the set inside this folder? The empty path is the workspace.
    pub fn has_below(&self, folder: &[u8]) -> bool {
        if folder.is_empty() {
            return !self.is_empty();
        }
        let prefix = [folder, b"/"].concat();
        let first = self.sorted.partition_point(|own| own.as_ref() < prefix.as_slice());
        self.sorted.get(first).is_some_and(|own| own.starts_with(&prefix))
    }

    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}

impl FromIterator<Box<[u8]>> for PathSet {
    fn from_iter<I: IntoIterator<Item = Box<[u8]>>>(paths: I) -> Self {
        let mut sorted: Vec<Box<[u8]>> = paths.into_iter().collect();
        sorted.sort_unstable();
        Self { sorted }
    }
}

impl FromIterator<RelPath> for PathSet {
    fn from_iter<I: IntoIterator<Item = RelPath>>(paths: I) -> Self {
        paths.into_iter().map(|path| Box::from(path.as_bytes())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_told_from_names_that_start_alike() {
        let set: PathSet = ["build/out.txt", "build.rs", "src/main.rs"]
            .map(|path| Box::from(path.as_bytes()))
            .into_iter()
            .collect();
        assert!(set.contains(b"build.rs") && !set.contains(b"build"));
        assert!(set.has_below(b"build") && set.has_below(b"src"));
        assert!(!set.has_below(b"buil") && !set.has_below(b"build.rs"));
    }
}
