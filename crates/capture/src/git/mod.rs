//! What git says about a workspace. Nothing here writes to a repository, not even its index.
//!
//! Most facts are small files, read directly; only `status` needs git itself. What it said last time
//! is kept with a signature of everything it depends on, so that an unchanged repository costs no
//! process at all and a few changed files cost a question about just those.

mod facts;
mod ignore;
mod index;
mod refs;
mod status;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use facts::{Changed, Reading, read};
pub use ignore::{global_ignore, ignore_files_above};
pub use status::{clone_history, commits_between, is_merged, missing_names, stash};

use crate::Result;

/// A repository with a work tree.
#[derive(Clone, Debug)]
pub struct Repository {
    /// The top of the work tree.
    pub top: PathBuf,
    /// Where HEAD and the index are.
    git_dir: PathBuf,
    /// Where refs and objects are; another place for a linked work tree.
    common_dir: PathBuf,
}

impl Repository {
    /// The repository a folder is in.
    pub fn discover(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(Self::at)
    }

    /// The repository whose top this folder is.
    pub fn at(folder: &Path) -> Option<Self> {
        let dot_git = folder.join(".git");
        let meta = fs::metadata(&dot_git).ok()?;
        let git_dir = if meta.is_dir() { dot_git } else { linked_dir(folder, &dot_git)? };
        if !git_dir.join("HEAD").exists() {
            return None;
        }
        let common_dir = match fs::read_to_string(git_dir.join("commondir")) {
            Ok(text) => git_dir.join(text.trim_end()),
            Err(_) => git_dir.clone(),
        };
        Some(Self { top: folder.to_owned(), git_dir, common_dir })
    }

    /// Changes whenever the index does: what is tracked, and with which content.
    pub fn index_fingerprint(&self) -> [u8; 8] {
        let path = self.git_dir.join("index");
        let mut hasher = blake3::Hasher::new();
        if let Ok(meta) = fs::metadata(&path) {
            for number in [
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ctime(),
                meta.ctime_nsec(),
                meta.size() as i64,
                meta.ino() as i64,
            ] {
                hasher.update(&number.to_le_bytes());
            }
            hasher.update(&index::trailer(&path).unwrap_or_default());
        }
        short(&hasher)
    }

    /// The patterns in `info/exclude`.
    pub fn exclude_file(&self) -> Vec<u8> {
        fs::read(self.common_dir.join("info/exclude")).unwrap_or_default()
    }

    /// Every path the index tracks, relative to the top.
    pub fn tracked(&self) -> Result<Vec<Box<[u8]>>> {
        Ok(index::tracked(self)?.into_iter().map(|entry| entry.path).collect())
    }

    /// The folders git writes to, wherever they are.
    pub fn own_folders(&self) -> [&Path; 2] {
        [&self.git_dir, &self.common_dir]
    }
}

/// The first bytes of a hash: enough to tell one state of something from another.
fn short(hasher: &blake3::Hasher) -> [u8; 8] {
    let mut short = [0; 8];
    short.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    short
}

/// What a `.git` file points to, in a linked work tree or a submodule.
fn linked_dir(folder: &Path, file: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(file).ok()?;
    let target = text.trim_end().strip_prefix("gitdir: ")?;
    Some(folder.join(target))
}
