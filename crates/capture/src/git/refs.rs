//! HEAD, refs, stashes and work trees, read from their files.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bivouac_core::git::{InProgress, Stash, Worktree};
use bivouac_core::path::WorkspacePath;

use super::Repository;
use crate::process::Program;

/// What HEAD names: a branch, a commit, or a branch without commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) branch: Option<String>,
    pub(super) commit: Option<String>,
}

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
        let text = fs::read_to_string(git_dir.join("HEAD")).unwrap_or_default();
        match text.trim_end().strip_prefix("ref: ") {
            // A repository whose refs are in tables shows a ref that cannot be.
            Some("refs/heads/.invalid") => self.head_by_asking(),
            Some(name) => Head {
                branch: Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
                commit: self.resolve(name),
            },
            None => Head {
                branch: None,
                commit: Some(text.trim_end().to_owned()).filter(|text| is_hash(text)),
            },
        }
    }

    fn head_by_asking(&self) -> Head {
        let ask = |args: &[&str]| {
            let output = Program::git(&self.top).args(args).output().ok()?;
            Some(String::from_utf8_lossy(&output).trim_end().to_owned())
                .filter(|text| !text.is_empty())
        };
        Head {
            branch: ask(&["symbolic-ref", "--short", "-q", "HEAD"]),
            commit: ask(&["rev-parse", "-q", "--verify", "HEAD"]),
        }
    }

    /// The commit a ref names.
    pub(super) fn resolve(&self, name: &str) -> Option<String> {
        let mut name = name.to_owned();
        for _ in 0..5 {
            let loose = [&self.git_dir, &self.common_dir]
                .into_iter()
                .find_map(|dir| fs::read_to_string(dir.join(&name)).ok());
            let Some(text) = loose else {
                return self.resolve_packed(&name);
            };
            match text.trim_end().strip_prefix("ref: ") {
                Some(next) => name = next.to_owned(),
                None => return Some(text.trim_end().to_owned()).filter(|text| is_hash(text)),
            }
        }
        None
    }

    fn resolve_packed(&self, name: &str) -> Option<String> {
        let packed = fs::read_to_string(self.common_dir.join("packed-refs")).ok()?;
        let lines = packed.lines().filter_map(|line| line.split_once(' '));
        lines
            .into_iter()
            .find(|(_, own)| *own == name)
            .map(|(hash, _)| hash.to_owned())
            .filter(|hash| is_hash(hash))
    }

    /// The stash, newest first, as its log tells it.
    pub(super) fn stashes(&self) -> Vec<Stash> {
        let log = fs::read(self.common_dir.join("logs/refs/stash")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let entries = log.lines().rev().filter_map(|line| {
            let (facts, message) = line.split_once('\t')?;
            let commit = facts.split(' ').nth(1)?.to_owned();
            Some(Stash { commit, message: message.to_owned() })
        });
        entries.collect()
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
        for dir in dirs {
            let Ok(text) = fs::read(dir.join("gitdir")) else {
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

fn is_hash(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
