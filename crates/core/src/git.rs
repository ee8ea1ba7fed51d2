//! What git says about a workspace. Read by `capture::git`, kept with every checkpoint.

use serde::{Deserialize, Serialize};

use crate::id::ObjectId;
use crate::path::{RelPath, WorkspacePath};

/// Everything about the repository that is needed to come back to a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitFacts {
    /// `None` when HEAD is detached.
    pub branch: Option<String>,
    /// The commit HEAD names; `None` before the first commit.
    pub head: Option<String>,
    pub upstream: Option<Upstream>,
    pub staged: Vec<GitChange>,
    pub unstaged: Vec<GitChange>,
    pub untracked: Vec<RelPath>,
    pub conflicted: Vec<RelPath>,
    pub stashes: Vec<Stash>,
    pub worktrees: Vec<Worktree>,
    pub submodules: Vec<Submodule>,
    /// What was begun and not finished: a merge, a rebase, a bisection.
    pub in_progress: Option<InProgress>,
    /// What could not be read, and why. Empty when all is well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

impl GitFacts {
    /// How many paths differ from HEAD, counting each once.
    pub fn uncommitted(&self) -> u64 {
        let mut paths: Vec<&RelPath> = Vec::new();
        paths.extend(self.staged.iter().map(|change| &change.path));
        paths.extend(self.unstaged.iter().map(|change| &change.path));
        paths.extend(&self.untracked);
        paths.extend(&self.conflicted);
        paths.sort_unstable();
        paths.dedup();
        paths.len() as u64
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upstream {
    pub name: String,
    /// `None` when the upstream branch is gone.
    pub head: Option<String>,
    pub ahead: Option<u64>,
    pub behind: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitChange {
    /// git's letter: `M`, `A`, `D`, `R`, `C` or `T`.
    pub status: char,
    pub path: RelPath,
    /// Where a renamed or copied file came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<RelPath>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stash {
    pub commit: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    pub path: WorkspacePath,
    pub head: Option<String>,
    pub branch: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submodule {
    pub path: RelPath,
    /// What is checked out there; `None` when it was never initialised.
    pub head: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InProgress {
    Merge,
    Rebase,
    CherryPick,
    Revert,
    Bisect,
    ApplyMailbox,
}

/// What every listing shows without opening the full facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitSummary {
    pub branch: Option<String>,
    pub head: Option<String>,
    pub uncommitted: u64,
    /// The stored [`GitFacts`].
    pub facts: ObjectId,
}

impl GitSummary {
    pub fn new(git: &GitFacts, facts: ObjectId) -> Self {
        Self {
            branch: git.branch.clone(),
            head: git.head.clone(),
            uncommitted: git.uncommitted(),
            facts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_staged_and_changed_again_counts_once() {
        let change =
            |path: &str| GitChange { status: 'M', path: path.parse().unwrap(), from: None };
        let facts = GitFacts {
            staged: vec![change("a"), change("b")],
            unstaged: vec![change("a")],
            untracked: vec!["c".parse().unwrap()],
            ..GitFacts::default()
        };
        assert_eq!(facts.uncommitted(), 3);
    }
}
