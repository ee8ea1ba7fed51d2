//! All facts together, read as cheaply as what changed allows.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bivouac_core::git::{GitChange, GitFacts, Submodule};
use bivouac_core::path::RelPath;
use serde::{Deserialize, Serialize};

use super::status::{Status, status};
use super::{PATIENCE, Repository, index, short};
use crate::Error;

/// Facts as they were read, with a signature of what they depend on besides the files themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    pub signature: [u8; 8],
    pub facts: GitFacts,
    /// Changed files that go through a filter, so that they may be unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unsure: Vec<RelPath>,
}

impl Reading {
    /// Was all of it read, and could only the files themselves have changed what git would say?
    pub fn is_current(&self, repository: &Repository) -> bool {
        // What filters hide stays hidden; anything else may be readable by now.
        let is_complete = self.facts.unread.len() == usize::from(!self.unsure.is_empty());
        is_complete && self.signature == signature(repository, &self.facts)
    }
}

/// What happened to the files since the last reading.
pub enum Changed<'c> {
    Nothing,
    /// These paths, relative to the workspace.
    Paths(&'c [RelPath]),
    /// Anything may have.
    Unknown,
}

/// Beyond so many paths a full status is cheaper.
const FEW: usize = 200;

/// Reads the facts about a workspace in a repository.
pub fn read(
    repository: &Repository,
    workspace: &Path,
    previous: Option<&Reading>,
    changed: &Changed<'_>,
) -> Reading {
    let current = previous.filter(|it| it.is_current(repository));
    let known = match (current, changed) {
        (Some(previous), Changed::Nothing) => Some(Status::of(previous)),
        (Some(previous), Changed::Paths(paths)) if paths.len() <= FEW => {
            status_of_few(repository, workspace, previous, paths)
        }
        _ => None,
    };
    let mut unread = repository.unreadable_files();
    let status = known.map_or_else(|| status(repository, workspace, &[]), Ok);
    let status = status.unwrap_or_else(|error| {
        unread.push(format!("status: {}", with_cause(&error)));
        Status::default()
    });
    unread.extend(unsure(&status.unsure));
    let head = repository.head();
    let mut facts = GitFacts {
        branch: head.branch,
        head: head.commit,
        upstream: status.upstream,
        staged: status.staged,
        unstaged: status.unstaged,
        untracked: status.untracked,
        conflicted: status.conflicted,
        stashes: repository.stashes(),
        worktrees: repository.worktrees(),
        submodules: submodules(repository),
        in_progress: repository.in_progress(),
        unread,
    };
    if repository.is_out_of_time() {
        let seconds = PATIENCE.as_secs();
        facts.unread.push(format!("git was asked nothing more after {seconds} seconds"));
    }
    if let Some(upstream) = &mut facts.upstream {
        upstream.head = resolve_upstream(repository, &upstream.name);
    }
    Reading { signature: signature(repository, &facts), facts, unsure: status.unsure }
}

fn with_cause(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Says which files may be unchanged although they are listed as changed.
fn unsure(paths: &[RelPath]) -> Option<String> {
    const TOLD: usize = 3;
    let names: Vec<String> = paths.iter().take(TOLD).map(ToString::to_string).collect();
    let more = match paths.len().saturating_sub(TOLD) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let text = format!(
        "status: filters are not run, so these may be unchanged: {}{more}",
        names.join(", ")
    );
    (!paths.is_empty()).then_some(text)
}

impl Status {
    fn of(reading: &Reading) -> Self {
        let facts = &reading.facts;
        Self {
            upstream: facts.upstream.clone(),
            staged: facts.staged.clone(),
            unstaged: facts.unstaged.clone(),
            untracked: facts.untracked.clone(),
            conflicted: facts.conflicted.clone(),
            unsure: reading.unsure.clone(),
        }
    }
}

/// The last status, with the answer for a few paths put in. `None` where only a full one is safe.
fn status_of_few(
    repository: &Repository,
    workspace: &Path,
    reading: &Reading,
    paths: &[RelPath],
) -> Option<Status> {
    let previous = &reading.facts;
    let prefix = workspace.strip_prefix(&repository.top).ok()?.as_os_str().as_bytes();
    let in_repository = |path: &RelPath| match prefix {
        b"" => Some(path.clone()),
        prefix => RelPath::new([prefix, b"/", path.as_bytes()].concat()).ok(),
    };
    let paths_there: Vec<RelPath> = paths.iter().filter_map(in_repository).collect();
    let in_submodule =
        |path: &RelPath| previous.submodules.iter().any(|it| path.is_within(&it.path));
    let in_nested = |path: &RelPath| nested_repository(repository, path);
    if paths_there.iter().any(|path| in_submodule(path) || in_nested(path)) {
        return None;
    }
    let was_renamed =
        previous.staged.iter().chain(&previous.unstaged).any(|change| change.from.is_some());
    if was_renamed {
        return None;
    }
    let few = status(repository, workspace, paths).ok().filter(|few| !few.has_renames())?;
    let is_asked = |path: &RelPath| paths_there.iter().any(|asked| path.is_within(asked));
    Some(Status {
        upstream: few.upstream,
        staged: merge(&previous.staged, few.staged, |change: &GitChange| &change.path, &is_asked),
        unstaged: merge(&previous.unstaged, few.unstaged, |change| &change.path, &is_asked),
        untracked: merge(&previous.untracked, few.untracked, |path| path, &is_asked),
        conflicted: merge(&previous.conflicted, few.conflicted, |path| path, &is_asked),
        unsure: merge(&reading.unsure, few.unsure, |path| path, &is_asked),
    })
}

fn merge<T: Clone>(
    old: &[T],
    new: Vec<T>,
    path: impl Fn(&T) -> &RelPath,
    is_asked: &impl Fn(&RelPath) -> bool,
) -> Vec<T> {
    let mut merged: Vec<T> = old.iter().filter(|it| !is_asked(path(it))).cloned().collect();
    merged.extend(new);
    merged.sort_by(|one, other| path(one).cmp(path(other)));
    merged
}

fn nested_repository(repository: &Repository, path: &RelPath) -> bool {
    let folders = std::iter::successors(path.parent(), RelPath::parent);
    folders.into_iter().any(|folder| {
        let folder = repository.top.join(std::ffi::OsStr::from_bytes(folder.as_bytes()));
        folder.join(".git").exists()
    })
}

fn resolve_upstream(repository: &Repository, name: &str) -> Option<String> {
    let places = ["refs/remotes/", "refs/heads/", ""];
    let commit = |place: &&str| repository.resolve(&format!("{place}{name}")).ok().flatten();
    places.iter().find_map(commit)
}

fn submodules(repository: &Repository) -> Vec<Submodule> {
    if !repository.top.join(".gitmodules").exists() {
        return Vec::new();
    }
    let tracked =
        index::tracked(repository).into_iter().flatten().filter(|entry| entry.is_submodule);
    let paths = tracked.filter_map(|entry| RelPath::new(entry.path).ok());
    paths.map(|path| Submodule { head: submodule_head(repository, &path), path }).collect()
}

fn submodule_head(repository: &Repository, path: &RelPath) -> Option<String> {
    let folder = repository.top.join(std::ffi::OsStr::from_bytes(path.as_bytes()));
    Repository::at(&folder)?.head().commit
}

/// Stands for all that a status depends on besides the files of the work tree. `known` tells which
/// upstream and submodules to look at.
fn signature(repository: &Repository, known: &GitFacts) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(format!(
        "{:?} {:?} {}",
        repository.head(),
        repository.in_progress(),
        known.unread.is_empty()
    )
    .as_bytes());
    add(&repository.index_fingerprint());
    if let Some(upstream) = &known.upstream {
        add(resolve_upstream(repository, &upstream.name).unwrap_or_default().as_bytes());
    }
    for submodule in &known.submodules {
        add(submodule_head(repository, &submodule.path).unwrap_or_default().as_bytes());
    }
    let worktree = repository.git_dir.join("config.worktree");
    let shared = ["config", "info/exclude"].map(|name| repository.common_dir.join(name));
    for path in shared.into_iter().chain([worktree]) {
        let stat = std::fs::metadata(path)
            .map(|meta| (meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()));
        add(format!("{:?}", stat.ok()).as_bytes());
    }
    short(&hasher)
}
