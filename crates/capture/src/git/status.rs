//! Asking git for its status, and reading the answer.

use std::path::Path;

use bivouac_core::git::{GitChange, Upstream};
use bivouac_core::path::RelPath;

use super::Repository;
use crate::process::{NO_REASON, Program};
use crate::{Error, Result};

/// What `git status` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) upstream: Option<Upstream>,
    pub(super) staged: Vec<GitChange>,
    pub(super) unstaged: Vec<GitChange>,
    pub(super) untracked: Vec<RelPath>,
    pub(super) conflicted: Vec<RelPath>,
}

impl Status {
    pub(super) fn has_renames(&self) -> bool {
        self.staged.iter().chain(&self.unstaged).any(|change| change.from.is_some())
    }
}

/// The status of a folder, or of some paths in it.
pub(super) fn status(folder: &Path, paths: &[RelPath]) -> Result<Status> {
    use std::os::unix::ffi::OsStrExt;
    let git = Program::git(folder).args([
        "status",
        "--porcelain=v2",
        "-z",
        "--branch",
        "--untracked-files=all",
        "--",
    ]);
    let output = match paths {
        [] => git.args(["."]).output()?,
        paths => git
            .args(paths.iter().map(|path| std::ffi::OsStr::from_bytes(path.as_bytes())))
            .output()?,
    };
    parse(&output).ok_or(Error::Unexpected { program: "git".to_owned(), what: "its status" })
}

fn parse(output: &[u8]) -> Option<Status> {
    let mut status = Status::default();
    let mut lines = output.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        let (tag, rest) = (line[0], line.get(2..)?);
        match tag {
            b'#' => read_header(rest, &mut status),
            b'1' => {
                let (letters, path) = fields(rest, 7)?;
                status.add(letters, &RelPath::new(path).ok()?, None);
            }
            b'2' => {
                let (letters, path) = fields(rest, 8)?;
                let from = RelPath::new(lines.next()?).ok()?;
                status.add(letters, &RelPath::new(path).ok()?, Some(&from));
            }
            b'u' => status.conflicted.push(RelPath::new(fields(rest, 9)?.1).ok()?),
            // A nested repository ends in a slash.
            b'?' => {
                status.untracked.push(RelPath::new(rest.strip_suffix(b"/").unwrap_or(rest)).ok()?);
            }
            _ => {}
        }
    }
    Some(status)
}

/// The two status letters and the path, which stands after so many fields.
fn fields(line: &[u8], n_before: usize) -> Option<([u8; 2], &[u8])> {
    let letters = line.first_chunk::<2>()?;
    let path = line.splitn(n_before + 1, |byte| *byte == b' ').nth(n_before)?;
    Some((*letters, path))
}

impl Status {
    fn add(&mut self, letters: [u8; 2], path: &RelPath, from: Option<&RelPath>) {
        let sides = [(letters[0], &mut self.staged), (letters[1], &mut self.unstaged)];
        for (letter, list) in sides.into_iter().filter(|(letter, _)| *letter != b'.') {
            let from = from.filter(|_| matches!(letter, b'R' | b'C')).cloned();
            list.push(GitChange { status: char::from(letter), path: path.clone(), from });
        }
    }
}

fn read_header(line: &[u8], status: &mut Status) {
    let text = String::from_utf8_lossy(line);
    if let Some(name) = text.strip_prefix("branch.upstream ") {
        status.upstream =
            Some(Upstream { name: name.to_owned(), head: None, ahead: None, behind: None });
    } else if let (Some(counts), Some(upstream)) =
        (text.strip_prefix("branch.ab "), &mut status.upstream)
    {
        let mut counts =
            counts.split(' ').map(|count| count.trim_start_matches(['+', '-']).parse().ok());
        upstream.ahead = counts.next().flatten();
        upstream.behind = counts.next().flatten();
    }
}

/// Makes a stash entry of what is uncommitted without touching the work tree or the index. Only ever
/// done because a person asked for it. `None` when there is nothing to stash.
pub fn stash(repository: &Repository, message: &str) -> Result<Option<String>> {
    let created = Program::git(&repository.top).args(["stash", "create", message]).output();
    let created = match created {
        // Files were touched and are as they were: git finds out too late, and says nothing.
        Err(Error::Failed { message, .. }) if message == NO_REASON => return Ok(None),
        created => created?,
    };
    let commit = String::from_utf8_lossy(&created).trim().to_owned();
    if commit.is_empty() {
        return Ok(None);
    }
    Program::git(&repository.top).args(["stash", "store", "-m", message, &commit]).output()?;
    Ok(Some(commit))
}

/// The commits that one has and another has not, newest first: the short hash and the first line.
pub fn commits_between(folder: &Path, then: &str, now: &str) -> Option<Vec<String>> {
    let range = format!("{then}..{now}");
    let args = ["log", "--no-show-signature", "--format=%h %s", &range];
    let output = Program::git(folder).args(args).output().ok()?;
    Some(String::from_utf8_lossy(&output).lines().map(str::to_owned).collect())
}

/// Is everything on a branch in HEAD, too?
pub fn is_merged(folder: &Path, branch: &str) -> bool {
    let args = ["merge-base", "--is-ancestor", branch, "HEAD"];
    Program::git(folder).args(args).output().is_ok()
}

/// Branches and commits that are not in the repository a folder is in.
pub fn missing_names(folder: &Path, names: &[String]) -> Vec<String> {
    if names.is_empty() {
        return Vec::new();
    }
    let is_there = |name: &&String| {
        let commit = format!("{name}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
        Program::git(folder).args(args).output().is_ok()
    };
    names.iter().filter(|name| !is_there(name)).cloned().collect()
}

/// Gives a folder of plain files the history of a repository, with HEAD at a commit. The repository
/// itself is only read. `false` when there is no commit to go by.
pub fn clone_history(
    repository: &Repository,
    folder: &Path,
    branch: Option<&str>,
    head: Option<&str>,
) -> Result<bool> {
    let Some(head) = head else {
        return Ok(false);
    };
    let new = folder.join(".git");
    let args = ["clone", "--quiet", "--bare", "--no-hardlinks"].map(std::ffi::OsString::from);
    let paths = [repository.top.clone().into_os_string(), new.clone().into_os_string()];
    Program::git(folder).args(args.into_iter().chain(paths)).output()?;
    let git = |args: &[&str]| Program::git(folder).args(args).output();
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
    git(&["reset", "--quiet"])?;
    Ok(true)
}
