//! A workspace twice: on the disk, and as plain data. What is done to one is done to the other.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use bivouac_testkit::{TestEnv, Tree, bytes};

use super::act::{Act, PATHS, TARGETS};
use crate::prove::dice::Dice;

/// What git ignores here.
pub(super) const IGNORED: &[u8] = b"ignored";

pub(super) struct Files {
    pub(super) tree: Tree,
    work: PathBuf,
}

impl Files {
    pub(super) fn new(env: &TestEnv) -> Self {
        env.write(".gitignore", "/ignored/\n")
            .write("ignored/keep", "mine\n")
            .write("a", "the first\n");
        Self { tree: env.tree(), work: env.work() }
    }

    /// Changes both, where the act is about files at all.
    pub(super) fn edit(&mut self, act: &Act) -> io::Result<()> {
        match act {
            Act::Write { path, contents, length } => {
                self.write(PATHS[*path], Dice::new(*contents, 0).bytes(*length))
            }
            Act::Ignored { contents } => {
                self.write(b"ignored/keep", contents.to_string().into_bytes())
            }
            Act::Append { path } => match self.tree.get(PATHS[*path]) {
                Some(('f', _, contents)) => {
                    let longer = [contents, &b"\none more line\n"[..]].concat();
                    self.write(PATHS[*path], longer)
                }
                _ => Ok(()),
            },
            Act::Remove { path } => self.remove(PATHS[*path]),
            Act::Rename { from, to } => self.rename(PATHS[*from], PATHS[*to]),
            Act::Link { path, target } => {
                self.make_way(PATHS[*path])?;
                self.remove(PATHS[*path])?;
                symlink(TARGETS[*target], self.place(PATHS[*path]))?;
                self.tree.insert(PATHS[*path].to_vec(), ('l', 0, TARGETS[*target].into()));
                Ok(())
            }
            Act::Folder { path } => {
                self.make_way(PATHS[*path])?;
                self.folder(PATHS[*path])
            }
            Act::Mode { path, mode } => self.mode(PATHS[*path], *mode),
            _ => Ok(()),
        }
    }

    fn place(&self, path: &[u8]) -> PathBuf {
        self.work.join(bytes(path))
    }

    fn write(&mut self, path: &[u8], contents: Vec<u8>) -> io::Result<()> {
        self.make_way(path)?;
        let mode = match self.tree.get(path) {
            Some(('f', mode, _)) => *mode,
            _ => {
                self.remove(path)?;
                0o644
            }
        };
        fs::write(self.place(path), &contents)?;
        fs::set_permissions(self.place(path), Permissions::from_mode(mode))?;
        self.tree.insert(path.to_vec(), ('f', mode, contents));
        Ok(())
    }

    /// Every folder on the way to a path; what is in the way goes.
    fn make_way(&mut self, path: &[u8]) -> io::Result<()> {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.map(|(at, _)| at).try_for_each(|at| self.folder(&path[..at]))
    }

    fn folder(&mut self, path: &[u8]) -> io::Result<()> {
        if self.tree.get(path).is_some_and(|it| it.0 == 'd') {
            return Ok(());
        }
        self.remove(path)?;
        fs::create_dir(self.place(path))?;
        fs::set_permissions(self.place(path), Permissions::from_mode(0o755))?;
        self.tree.insert(path.to_vec(), ('d', 0o755, Vec::new()));
        Ok(())
    }

    fn remove(&mut self, path: &[u8]) -> io::Result<()> {
        match self.tree.get(path) {
            None => return Ok(()),
            Some(('d', ..)) => fs::remove_dir_all(self.place(path))?,
            Some(_) => fs::remove_file(self.place(path))?,
        }
        self.tree.retain(|key, _| !is_within(key, path));
        Ok(())
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> io::Result<()> {
        if !self.tree.contains_key(from) || is_within(to, from) || is_within(from, to) {
            return Ok(());
        }
        self.make_way(to)?;
        // On the way there, it may itself have gone.
        if !self.tree.contains_key(from) {
            return Ok(());
        }
        self.remove(to)?;
        fs::rename(self.place(from), self.place(to))?;
        let moved: Vec<Vec<u8>> =
            self.tree.keys().filter(|key| is_within(key, from)).cloned().collect();
        for key in moved {
            let value = self.tree.remove(&key).expect("it was there a moment ago");
            self.tree.insert([to, &key[from.len()..]].concat(), value);
        }
        Ok(())
    }

    fn mode(&mut self, path: &[u8], mode: u32) -> io::Result<()> {
        match self.tree.get_mut(path) {
            Some((kind, bits, _)) if *kind != 'l' => *bits = mode,
            _ => return Ok(()),
        }
        fs::set_permissions(self.place(path), Permissions::from_mode(mode))
    }
}

/// Is it the path, or below it?
pub(super) fn is_within(key: &[u8], path: &[u8]) -> bool {
    key.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// What a checkpoint has of it.
pub(super) fn captured(tree: &Tree) -> Tree {
    let seen = tree.iter().filter(|(key, _)| !is_within(key, IGNORED));
    seen.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// What a rollback to a checkpoint makes of it: all that was captured, and what is ignored as it is.
pub(super) fn rolled_back(current: &Tree, target: &Tree) -> Tree {
    let mut tree = target.clone();
    let ignored = current.iter().filter(|(key, _)| is_within(key, IGNORED));
    tree.extend(ignored.map(|(key, value)| (key.clone(), value.clone())));
    tree
}

/// The same for everything at or below one path. `None` where a file of one stands on the way to the path in the
/// other: then what a partial rollback does is not this simple.
pub(super) fn spliced(current: &Tree, target: &Tree, path: &[u8]) -> Option<Tree> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let parents: Vec<&[u8]> = slashes.map(|(at, _)| &path[..at]).collect();
    let blocks = |tree: &Tree| parents.iter().any(|it| tree.get(*it).is_some_and(|it| it.0 != 'd'));
    if blocks(current) || blocks(target) {
        return None;
    }
    let mut tree = current.clone();
    tree.retain(|key, _| !is_within(key, path));
    let mut taken = target.iter().filter(|(key, _)| is_within(key, path)).peekable();
    if taken.peek().is_some() {
        for parent in parents {
            let folder = target.get(parent).cloned();
            folder.map(|folder| tree.entry(parent.to_vec()).or_insert(folder));
        }
    }
    tree.extend(taken.map(|(key, value)| (key.clone(), value.clone())));
    Some(tree)
}

/// The paths in which two trees differ, readably. Empty is the same.
pub(super) fn difference(found: &Tree, expected: &Tree) -> String {
    let show = |value: Option<&(char, u32, Vec<u8>)>| match value {
        Some((kind, mode, bytes)) => format!("{kind} {mode:o} {} bytes", bytes.len()),
        None => "absent".to_owned(),
    };
    let mut keys: Vec<&Vec<u8>> = found.keys().chain(expected.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let differing = keys.into_iter().filter(|key| found.get(*key) != expected.get(*key));
    let lines = differing.map(|key| {
        let name = key.escape_ascii();
        format!("{name}: found {}, expected {}\n", show(found.get(key)), show(expected.get(key)))
    });
    lines.collect()
}
