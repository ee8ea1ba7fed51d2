//! Ignore files outside the workspace: the user's global one, and those above it in the repository.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::config::{Config, expand, user_folder};
use super::{MOST_LIST_BYTES, Repository};
use crate::bounded;
use crate::process::Program;

/// The contents of `core.excludesFile`. git is only asked where the user's configuration has conditions in it.
pub fn global_ignore(folder: &Path, repository: Option<&Repository>) -> Vec<u8> {
    let user = Config::read(None).unwrap_or_default();
    let own = repository.and_then(|repository| Config::of_repository(repository).ok());
    let own = own.as_ref().and_then(|config| config.last("core.excludesfile"));
    let path = match (own, user.last("core.excludesfile")) {
        (Some(path), _) => Some(expand(path)),
        (None, _) if user.has_conditions => ask(folder),
        (None, Some(path)) => Some(expand(path)),
        (None, None) => None,
    };
    let path = path.or_else(|| user_folder().map(|folder| folder.join("ignore")));
    path.and_then(|path| bounded::read(&path, MOST_LIST_BYTES).ok()).unwrap_or_default()
}

/// What the user's own configuration says for this folder. The repository's is not looked at.
fn ask(folder: &Path) -> Option<PathBuf> {
    let args =
        ["config", "--global", "--includes", "--type=path", "-z", "--get", "core.excludesFile"];
    let output = Program::git(folder).only_reads().args(args).output().ok()?;
    let path = output.strip_suffix(b"\0")?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

/// The ignore files from a repository's top down to just above a folder in it, outermost first: each
/// with the folder it stands in, relative to the top.
pub fn ignore_files_above(repository: &Repository, folder: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Ok(way) = folder.strip_prefix(&repository.top) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut at = PathBuf::new();
    for name in way.components() {
        let file = repository.top.join(&at).join(".gitignore");
        if let Ok(text) = bounded::read(&file, MOST_LIST_BYTES) {
            found.push((at.as_os_str().as_bytes().to_vec(), text));
        }
        at.push(name);
    }
    found
}
