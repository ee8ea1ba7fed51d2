//! What git says about a workspace. Nothing here writes to a repository unless a person asked for it (`change`),
//! not even its index, and nothing that a repository's configuration names is run.
//!
//! Most facts are small files, read directly; only a status, the history and refs in tables need git itself,
//! which is then shown a `view`. What it said last time is kept with a signature of everything it depends on,
//! so that an unchanged repository costs no process at all and a few changed files cost a question about just
//! those.

mod change;
mod config;
mod facts;
mod history;
mod ignore;
mod index;
mod refs;
mod status;
mod upstream;
mod view;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use change::{clone_history, stash};
pub use facts::{Changed, Reading, read};
pub use history::{commits_between, is_merged, missing_names};
pub use ignore::{global_ignore, ignore_files_above};

use crate::{Error, Result, bounded};

/// No path and no ref is longer than this.
const MOST_LINE_BYTES: u64 = 64 << 10;
/// A list of patterns, or of stashes.
const MOST_LIST_BYTES: u64 = 16 << 20;
/// Enough for millions of files.
const MOST_INDEX_BYTES: u64 = 512 << 20;

/// A repository with a work tree.
#[derive(Clone, Debug)]
pub struct Repository {
    /// The top of the work tree.
    pub top: PathBuf,
    /// Where HEAD and the index are.
    git_dir: PathBuf,
    /// Where refs and objects are; another place for a linked work tree.
    common_dir: PathBuf,
    /// Where git may be shown a view of it.
    views: Option<PathBuf>,
    /// When nothing more is asked of git. A repository can make every single answer slow, and a hook has to save
    /// within its own time all the same.
    until: Instant,
}

/// How long all questions about a repository may take together.
const PATIENCE: Duration = Duration::from_secs(10);

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
        let common_dir = match bounded::read_text(&git_dir.join("commondir"), MOST_LINE_BYTES) {
            Ok(text) => git_dir.join(text.trim_end()),
            Err(_) => git_dir.clone(),
        };
        let until = Instant::now() + PATIENCE;
        Some(Self { top: folder.to_owned(), git_dir, common_dir, views: None, until })
    }

    /// With a folder of ours for what git has to be shown, whose parent exists.
    pub fn with_views(self, folder: PathBuf) -> Self {
        Self { views: Some(folder), ..self }
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
        self.read_below("info/exclude", MOST_LIST_BYTES).unwrap_or_default()
    }

    /// A file that all work trees share. Empty where there is none.
    fn read_below(&self, name: &str, most: u64) -> Result<Vec<u8>> {
        let path = self.common_dir.join(name);
        match bounded::read(&path, most) {
            Err(error) if bounded::is_absent(&error) => Ok(Vec::new()),
            bytes => bytes.map_err(Error::io(path)),
        }
    }

    /// Files that are there and cannot be read as what they should be, and why.
    fn unreadable_files(&self) -> Vec<String> {
        let (own, shared) = (&self.git_dir, &self.common_dir);
        let files = [
            (own.join("HEAD"), MOST_LINE_BYTES),
            (own.join("commondir"), MOST_LINE_BYTES),
            (own.join("index"), MOST_INDEX_BYTES),
            (shared.join("config"), MOST_LIST_BYTES),
            (shared.join("packed-refs"), MOST_INDEX_BYTES),
            (shared.join("info/exclude"), MOST_LIST_BYTES),
            (shared.join("logs/refs/stash"), MOST_LIST_BYTES),
        ];
        let problem = |(path, most): (PathBuf, u64)| {
            let meta = fs::metadata(&path).ok()?;
            let what = match (meta.is_file(), meta.len() <= most) {
                (true, true) => return None,
                (true, false) => "it is too large",
                (false, _) => "it is not a regular file",
            };
            Some(format!("{}: {what}", path.display()))
        };
        let link = self.linked_log().map(|path| format!("{}: it is a link", path.display()));
        files.into_iter().filter_map(problem).chain(link).collect()
    }

    /// Is nothing more asked of git?
    fn is_out_of_time(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Every path the index tracks, relative to the top.
    pub fn tracked(&self) -> Result<Vec<Box<[u8]>>> {
        Ok(index::tracked(self)?.into_iter().map(|entry| entry.path).collect())
    }

    /// The folders git writes to, wherever they are. A `.git` file or a `commondir` can name any folder, for example
    /// `src`, and what is named here is in no checkpoint. So only a folder that git itself would accept counts.
    pub fn own_folders(&self) -> impl Iterator<Item = &Path> {
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_own = move |it: &&Path| {
            // Git keeps what belongs to a linked work tree in the repository's own folder.
            let is_linked = || whole(&self.git_dir).starts_with(whole(it).join("worktrees"));
            is_git_folder(it) && (*it == self.git_dir || is_linked())
        };
        [self.git_dir.as_path(), &self.common_dir].into_iter().filter(is_own)
    }
}

/// Git's own criterion for a folder that it keeps a repository in.
fn is_git_folder(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

/// The first bytes of a hash: enough to tell one state of something from another.
fn short(hasher: &blake3::Hasher) -> [u8; 8] {
    let mut short = [0; 8];
    short.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    short
}

/// What a `.git` file points to, in a linked work tree or a submodule.
fn linked_dir(folder: &Path, file: &Path) -> Option<PathBuf> {
    let text = bounded::read_text(file, MOST_LINE_BYTES).ok()?;
    let target = text.trim_end().strip_prefix("gitdir: ")?;
    Some(folder.join(target))
}
