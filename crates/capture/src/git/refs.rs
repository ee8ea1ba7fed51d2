//! HEAD, refs, stashes and work trees, read from their files.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bivouac_core::git::{InProgress, Stash, Worktree};
use bivouac_core::path::WorkspacePath;

use super::view::View;
use super::{MOST_INDEX_BYTES, MOST_LINE_BYTES, MOST_LIST_BYTES, Repository};
use crate::bounded;

/// What HEAD names: a branch, a commit, or a branch without commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) branch: Option<String>,
    pub(super) commit: Option<String>,
    /// Why the commit is not known, if there should be one.
    pub(super) problem: Option<String>,
}

/// What HEAD says in a repository that keeps its refs in tables.
const IN_TABLES: &str = "refs/heads/.invalid";
/// More work trees than anyone has.
const MOST_WORKTREES: usize = 1000;

impl Repository {
    /// The branch HEAD is on.
    pub fn branch(&self) -> Option<String> {
        self.head().branch
    }

    /// The commit HEAD is at.
    pub fn commit(&self) -> Option<String> {
        self.head().commit
    }

    pub(super) fn head(&self) -> Head {
        self.head_in(&self.git_dir)
    }

    fn head_in(&self, git_dir: &Path) -> Head {
        let text = match bounded::read_text(&git_dir.join("HEAD"), MOST_LINE_BYTES) {
            Ok(text) => text,
            Err(error) => return Head { problem: Some(error.to_string()), ..Head::default() },
        };
        match text.trim_end().strip_prefix("ref: ") {
            Some(IN_TABLES) => self.head_in_tables(git_dir),
            Some(name) => self.head_at(name),
            None => {
                let commit = Some(text.trim_end().to_owned()).filter(|text| is_hash(text));
                let problem =
                    commit.is_none().then(|| "it names no branch and no commit".to_owned());
                Head { branch: None, commit, problem }
            }
        }
    }

    fn head_at(&self, name: &str) -> Head {
        let branch = Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned());
        match self.resolve(name) {
            Ok(commit) => Head { branch, commit, problem: None },
            Err(error) => Head { branch, commit: None, problem: Some(format!("{name}: {error}")) },
        }
    }

    /// A work tree has its HEAD in tables of its own; branches are in those of the repository.
    fn head_in_tables(&self, git_dir: &Path) -> Head {
        match self.ask_tables(git_dir, &["symbolic-ref", "-q", "HEAD"]) {
            Some(name) => self.head_at(&name),
            None => Head {
                branch: None,
                commit: self.ask_tables(git_dir, &["rev-parse", "-q", "--verify", "HEAD"]),
                problem: None,
            },
        }
    }

    fn ask_tables(&self, git_dir: &Path, args: &[&str]) -> Option<String> {
        let view = View::of_tables(self, git_dir).ok()?;
        let output = view.git(&self.top).args(args).output().ok()?;
        Some(String::from_utf8_lossy(&output).trim_end().to_owned()).filter(|it| !it.is_empty())
    }

    fn has_tables(&self) -> bool {
        let head = bounded::read_text(&self.common_dir.join("HEAD"), MOST_LINE_BYTES);
        head.is_ok_and(|text| text.trim_end().strip_prefix("ref: ") == Some(IN_TABLES))
    }

    /// The commit a ref names. `None` if there is no such ref.
    pub(super) fn resolve(&self, name: &str) -> io::Result<Option<String>> {
        let mut name = name.to_owned();
        for _ in 0..5 {
            if !is_ref(&name) {
                return Ok(None);
            }
            let Some(text) = self.loose(&name)? else {
                return self.resolve_packed(&name);
            };
            match text.trim_end().strip_prefix("ref: ") {
                Some(next) => name = next.to_owned(),
                None => return Ok(Some(text.trim_end().to_owned()).filter(|text| is_hash(text))),
            }
        }
        Ok(None)
    }

    /// A ref in a file of its own.
    fn loose(&self, name: &str) -> io::Result<Option<String>> {
        for dir in [&self.git_dir, &self.common_dir] {
            let path = dir.join(name);
            match bounded::read_text(&path, MOST_LINE_BYTES) {
                Ok(text) => return Ok(Some(text)),
                // A folder of refs whose names begin with this one's.
                Err(error) if bounded::is_absent(&error) || path.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn resolve_packed(&self, name: &str) -> io::Result<Option<String>> {
        let file = match bounded::open(&self.common_dir.join("packed-refs")) {
            Err(error) if bounded::is_absent(&error) && self.has_tables() => {
                let args = ["rev-parse", "-q", "--verify", "--end-of-options", name];
                return Ok(self.ask_tables(&self.common_dir, &args).filter(|it| is_hash(it)));
            }
            Err(error) if bounded::is_absent(&error) => return Ok(None),
            file => file?.take(MOST_INDEX_BYTES),
        };
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        while (&mut lines).take(MOST_LINE_BYTES).read_until(b'\n', &mut line)? > 0 {
            let own = line.trim_ascii_end().strip_suffix(name.as_bytes());
            let hash = own.and_then(|rest| rest.strip_suffix(b" ")).map(String::from_utf8_lossy);
            if let Some(hash) = hash.filter(|hash| is_hash(hash)) {
                return Ok(Some(hash.into_owned()));
            }
            line.clear();
        }
        Ok(None)
    }

    /// The stash, newest first, as its log tells it.
    pub(super) fn stashes(&self) -> Vec<Stash> {
        if self.linked_log().is_some() {
            return Vec::new();
        }
        let log = self.read_below("logs/refs/stash", MOST_LIST_BYTES).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let entries = log.lines().rev().filter_map(|line| {
            let (facts, message) = line.split_once('\t')?;
            let commit = facts.split(' ').nth(1)?.to_owned();
            Some(Stash { commit, message: message.to_owned() })
        });
        entries.collect()
    }

    /// The link on the way to the log of stashes, if there is one. What the log says is shown, and behind a link it
    /// could be anybody's file.
    pub(super) fn linked_log(&self) -> Option<PathBuf> {
        let ways = ["logs", "logs/refs", "logs/refs/stash"].map(|name| self.common_dir.join(name));
        ways.into_iter().find(|path| path.is_symlink())
    }

    /// All work trees of the repository, the main one first.
    pub(super) fn worktrees(&self) -> Vec<Worktree> {
        let mut worktrees = Vec::new();
        if let Some(main) = self
            .common_dir
            .canonicalize()
            .ok()
            .filter(|dir| dir.ends_with(".git"))
            .and_then(|dir| dir.parent().map(Path::to_owned))
        {
            worktrees.push(self.worktree(&main, &self.common_dir));
        }
        let Ok(linked) = fs::read_dir(self.common_dir.join("worktrees")) else {
            return worktrees;
        };
        let mut dirs: Vec<_> = linked.filter_map(|entry| Some(entry.ok()?.path())).collect();
        dirs.sort_unstable();
        for dir in dirs.into_iter().take(MOST_WORKTREES) {
            if self.is_out_of_time() {
                break;
            }
            let Ok(text) = bounded::read(&dir.join("gitdir"), MOST_LINE_BYTES) else {
                continue;
            };
            let dot_git = dir.join(OsStr::from_bytes(text.trim_ascii_end()));
            if let Some(path) = dot_git.parent() {
                worktrees.push(self.worktree(path, &dir));
            }
        }
        worktrees
    }

    fn worktree(&self, path: &Path, git_dir: &Path) -> Worktree {
        let head = self.head_in(git_dir);
        Worktree {
            path: WorkspacePath::new(path.as_os_str().as_bytes()),
            head: head.commit,
            branch: head.branch,
        }
    }

    pub(super) fn in_progress(&self) -> Option<InProgress> {
        let has = |name: &str| self.git_dir.join(name).exists();
        if has("rebase-merge") || (has("rebase-apply") && !has("rebase-apply/applying")) {
            return Some(InProgress::Rebase);
        }
        let marks = [
            ("rebase-apply", InProgress::ApplyMailbox),
            ("MERGE_HEAD", InProgress::Merge),
            ("CHERRY_PICK_HEAD", InProgress::CherryPick),
            ("REVERT_HEAD", InProgress::Revert),
            ("BISECT_LOG", InProgress::Bisect),
        ];
        marks.into_iter().find(|(name, _)| has(name)).map(|(_, what)| what)
    }
}

/// The name of a commit in full.
pub(super) fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A name that is a path below a repository's folder, and stays there.
fn is_ref(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.');
    name.split('/').all(is_part) && !name.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ref_stays_in_its_folder() {
        for name in ["refs/heads/main", "HEAD", "refs/heads/a.b/c"] {
            assert!(is_ref(name), "{name}");
        }
        for name in ["", "../x", "refs/heads/../../config", "/etc/passwd", "refs//x", "refs/.x"] {
            assert!(!is_ref(name), "{name}");
        }
    }
}
