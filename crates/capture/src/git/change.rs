//! What is changed in a repository because a person asked for it: an entry in the stash, and a second repository
//! with the same history.
//!
//! Here git works with the repository's configuration, but for hooks, monitors and connections, which
//! `Program::git` turns off.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::index::Tracked;
use super::refs::is_hash;
use super::{Repository, index};
use crate::process::{NO_REASON, Program};
use crate::{Error, Result};

/// Makes a stash entry of what is uncommitted without touching the work tree or the index. Only ever
/// done because a person asked for it. `None` when there is nothing to stash.
pub fn stash(repository: &Repository, message: &str) -> Result<Option<String>> {
    check_filters(repository)?;
    check_submodules(repository)?;
    let git = || Program::git(&repository.top).env("GIT_WORK_TREE", &repository.top);
    let created = match git().args(["stash", "create", message]).output() {
        // Files were touched and are as they were: git finds out too late, and says nothing.
        Err(Error::Failed { message, .. }) if message == NO_REASON => return Ok(None),
        created => created?,
    };
    let commit = String::from_utf8_lossy(&created).trim().to_owned();
    if commit.is_empty() {
        return Ok(None);
    }
    git().args(["stash", "store", "-m", message, &commit]).output()?;
    Ok(Some(commit))
}

/// A stash holds files as their filters make them, so these have to run. Those of the user are the user's choice;
/// those that came with the repository are not, and leaving them out would stash something else.
fn check_filters(repository: &Repository) -> Result<()> {
    let args =
        ["config", "--includes", "--show-scope", "-z", "--name-only", "--get-regexp", r"^filter\."];
    let listed = match Program::git(&repository.top).args(args).output() {
        // There are none.
        Err(Error::Failed { message, .. }) if message == NO_REASON => return Ok(()),
        listed => listed?,
    };
    let words: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
    let is_own = |pair: &&[&[u8]]| matches!(pair[0], b"local" | b"worktree");
    match words.chunks_exact(2).find(is_own) {
        None => Ok(()),
        Some(pair) => {
            Err(Error::RepositoryFilter { name: String::from_utf8_lossy(pair[1]).into_owned() })
        }
    }
}

/// In a submodule that is checked out, git asks for a status by that repository's configuration, whatever this one's
/// says.
fn check_submodules(repository: &Repository) -> Result<()> {
    let is_there = |it: &&Tracked| {
        let folder = repository.top.join(OsStr::from_bytes(&it.path));
        it.is_submodule && folder.join(".git").symlink_metadata().is_ok()
    };
    match index::tracked(repository)?.iter().find(is_there) {
        None => Ok(()),
        Some(it) => {
            Err(Error::SubmoduleStash { path: String::from_utf8_lossy(&it.path).into_owned() })
        }
    }
}

/// Gives a folder of plain files the history of a repository, with HEAD at a commit. The repository
/// itself is only read. `false` when there is no commit to go by.
pub fn clone_history(
    repository: &Repository,
    folder: &Path,
    branch: Option<&str>,
    head: Option<&str>,
) -> Result<bool> {
    let Some(head) = head.filter(|head| is_hash(head)) else {
        return Ok(false);
    };
    let new = folder.join(".git");
    let new = std::path::absolute(&new).map_err(Error::io(&new))?;
    let made = make_repository(repository, &new, (branch, head));
    if made.is_err() {
        // Half a repository is worse than none.
        let _was_never_there = std::fs::remove_dir_all(&new);
    }
    made.map(|()| true)
}

fn make_repository(
    repository: &Repository,
    new: &Path,
    (branch, head): (Option<&str>, &str),
) -> Result<()> {
    let args = ["clone", "--quiet", "--bare", "--no-hardlinks", "--"].map(OsString::from);
    let paths = [repository.top.clone().into_os_string(), new.into()];
    // From a folder that is in no repository, so that no configuration but the user's counts.
    let clone = Program::git(Path::new("/")).env("GIT_ALLOW_PROTOCOL", "file");
    clone.args(args.into_iter().chain(paths)).output()?;
    let git = |args: &[&str]| Program::git(Path::new("/")).env("GIT_DIR", new).args(args).output();
    git(&["config", "core.bare", "false"])?;
    match branch {
        Some(branch) => {
            let name = format!("refs/heads/{branch}");
            git(&["update-ref", &name, head])?;
            git(&["symbolic-ref", "HEAD", &name])?;
        }
        None => {
            git(&["update-ref", "--no-deref", "HEAD", head])?;
        }
    }
    // Unlike `reset`, this compares no files, so no filter runs.
    git(&["read-tree", head])?;
    Ok(())
}
