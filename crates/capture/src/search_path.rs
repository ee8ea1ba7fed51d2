//! Where programs are found that are called by their name.
//!
//! An empty or relative entry of the `PATH` stands for the current folder, which is often a workspace, and a
//! workspace may hold a program called `git`. Only absolute entries count here.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The file that is run for a name. A name with a slash in it is a path.
pub fn find_program(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let name = name.as_ref();
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if is_path(name) {
        return Some(PathBuf::from(name)).filter(is_program);
    }
    folders().into_iter().map(|folder| folder.join(name)).find(is_program)
}

/// Is it a path, as opposed to a name that is looked up?
pub(crate) fn is_path(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'/')
}

/// A `PATH` of the absolute entries alone.
pub(crate) fn search_path() -> OsString {
    env::join_paths(folders()).ok().filter(|path| !path.is_empty()).unwrap_or_else(usual)
}

fn folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_else(usual);
    env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
}

/// Without a `PATH`, and for many programs with an empty one, the current folder would be searched.
fn usual() -> OsString {
    "/usr/local/bin:/usr/bin:/bin".into()
}
