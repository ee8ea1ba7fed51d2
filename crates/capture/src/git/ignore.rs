//! Ignore files outside the workspace: the user's global one, and those above it in the repository.

use std::env;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Repository;
use crate::process::Program;

/// The contents of `core.excludesFile`. git is only asked where some configuration speaks of it.
pub fn global_ignore(folder: &Path, repository: Option<&Repository>) -> Vec<u8> {
    let home = env::var_os("HOME").map(PathBuf::from);
    let config_home = match env::var_os("XDG_CONFIG_HOME").filter(|value| !value.is_empty()) {
        Some(folder) => Some(PathBuf::from(folder)),
        None => home.as_ref().map(|home| home.join(".config")),
    };
    let configs = [
        Some(PathBuf::from("/etc/gitconfig")),
        home.map(|home| home.join(".gitconfig")),
        config_home.as_ref().map(|folder| folder.join("git/config")),
        repository.map(|repository| repository.common_dir.join("config")),
    ];
    let path = if configs.into_iter().flatten().any(|path| may_set_ignore_file(&path)) {
        ask(folder)
    } else {
        config_home.map(|folder| folder.join("git/ignore"))
    };
    path.and_then(|path| fs::read(path).ok()).unwrap_or_default()
}

fn may_set_ignore_file(config: &Path) -> bool {
    let text = fs::read(config).unwrap_or_default().to_ascii_lowercase();
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    has(b"excludesfile") || has(b"[include")
}

fn ask(folder: &Path) -> Option<PathBuf> {
    let args = ["config", "--type=path", "-z", "--get", "core.excludesFile"];
    let output = Program::git(folder).args(args).output().ok()?;
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
        if let Ok(text) = fs::read(repository.top.join(&at).join(".gitignore")) {
            found.push((at.as_os_str().as_bytes().to_vec(), text));
        }
        at.push(name);
    }
    found
}
