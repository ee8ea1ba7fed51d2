//! Folders that outlive a power cut: what is put into one is no safer than the names that lead there.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes a folder that is private to the user, with all above it that are missing, each durable before anything is in it.
pub fn make(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().filter(|it| !it.as_os_str().is_empty());
    above.map_or(Ok(()), make)?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if !folder.is_dir() => Err(error),
        _ => above.map_or(Ok(()), sync),
    }
}

/// Makes the names in a folder durable.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
