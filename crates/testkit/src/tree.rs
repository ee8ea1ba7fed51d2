//! A folder as plain data, to compare with.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Every path with what it is: kind, permission bits, contents.
pub type Tree = BTreeMap<Vec<u8>, (char, u32, Vec<u8>)>;

/// Reads everything below a folder but `.git`.
pub fn read_tree(root: &Path) -> Tree {
    try_read_tree(root).unwrap()
}

/// The same while others may write there; then something can go before it is read.
pub fn try_read_tree(root: &Path) -> io::Result<Tree> {
    let mut tree = Tree::new();
    read_into(root, root, &mut tree)?;
    Ok(tree)
}

fn read_into(root: &Path, folder: &Path, tree: &mut Tree) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.ends_with(".git") {
            continue;
        }
        let meta = fs::symlink_metadata(&path)?;
        let key = path.strip_prefix(root).expect("it is below").as_os_str().as_bytes().to_vec();
        let mode = meta.mode() & 0o7777;
        let value = if meta.is_dir() {
            read_into(root, &path, tree)?;
            ('d', mode, Vec::new())
        } else if meta.is_symlink() {
            ('l', 0, fs::read_link(&path)?.as_os_str().as_bytes().to_vec())
        } else if meta.is_file() {
            ('f', mode, fs::read(&path)?)
        } else {
            ('s', mode, Vec::new())
        };
        tree.insert(key, value);
    }
    Ok(())
}

/// Every file below a folder with all that a change to it would show: times, inode, size, mode.
pub fn read_stats(folder: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut stats = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
        let facts = format!("{times:?} {} {} {:o}", meta.ino(), meta.size(), meta.mode());
        stats.insert(path.as_os_str().as_bytes().to_vec(), facts);
    }
    stats
}
