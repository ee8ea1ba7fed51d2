//! Asking git for its status, and reading the answer.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bivouac_core::git::{GitChange, Upstream};
use bivouac_core::path::RelPath;

use super::Repository;
use super::view::View;
use crate::{Error, Result};

/// What `git status` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) upstream: Option<Upstream>,
    pub(super) staged: Vec<GitChange>,
    pub(super) unstaged: Vec<GitChange>,
    pub(super) untracked: Vec<RelPath>,
    pub(super) conflicted: Vec<RelPath>,
    /// Files that seem to have changed and go through a filter. It is not run, so they may be unchanged.
    pub(super) unsure: Vec<RelPath>,
}

impl Status {
    pub(super) fn has_renames(&self) -> bool {
        self.staged.iter().chain(&self.unstaged).any(|change| change.from.is_some())
    }
}

/// The status of a folder, or of some paths in it.
pub(super) fn status(repository: &Repository, folder: &Path, paths: &[RelPath]) -> Result<Status> {
    let view = View::for_status(repository)?;
    let output = match ask(&view, folder, paths, &[]) {
        // To tell a renamed file from a new one, git compares contents, and some may not be here.
        Err(Error::Failed { .. }) if view.is_partial => {
            ask(&view, folder, paths, &["--no-renames"])?
        }
        output => output?,
    };
    let unexpected = Error::Unexpected { program: "git".to_owned(), what: "its status" };
    let mut status = parse(&output).ok_or(unexpected)?;
    if let (Some(upstream), Some(name)) = (&mut status.upstream, &view.upstream) {
        upstream.name.clone_from(name);
    }
    let is_attributes = |path: &RelPath| path.as_bytes().ends_with(b".gitattributes");
    if view.has_attributes || status.untracked.iter().any(is_attributes) {
        status.unsure = filtered(&view, &repository.top, &status.unstaged)?;
    }
    Ok(status)
}

fn ask(view: &View, folder: &Path, paths: &[RelPath], also: &[&str]) -> Result<Vec<u8>> {
    let args = [
        "status",
        "--porcelain=v2",
        "-z",
        "--branch",
        "--untracked-files=all",
        // Whether a submodule is at another commit is still told. For more, git would run in it, with its
        // configuration.
        "--ignore-submodules=dirty",
    ];
    let git = view.git(folder).args(args).args(also).args(["--"]);
    match paths {
        [] => git.args(["."]).output(),
        paths => git.args(paths.iter().map(|path| OsStr::from_bytes(path.as_bytes()))).output(),
    }
}

/// Those changed files whose contents go through a filter that is configured.
fn filtered(view: &View, top: &Path, changes: &[GitChange]) -> Result<Vec<RelPath>> {
    let changed = changes.iter().filter(|change| change.status == 'M').map(|change| &change.path);
    let question: Vec<u8> = changed.flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
    if view.filters.is_empty() || question.is_empty() {
        return Ok(Vec::new());
    }
    let git = view.git(top).args(["check-attr", "-z", "--stdin", "filter"]);
    let answer = git.with_input(question).output()?;
    // A path, the attribute and its value, each with its end.
    let fields: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
    let is_filter = |value: &[u8]| view.filters.iter().any(|it| it.as_bytes() == value);
    let found = fields.chunks_exact(3).filter(|triple| is_filter(triple[2]));
    Ok(found.filter_map(|triple| RelPath::new(triple[0]).ok()).collect())
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
