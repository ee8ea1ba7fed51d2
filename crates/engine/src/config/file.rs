//! Reading configuration files. The workspace's file may be anything that somebody put into a repository: a
//! device without an end, a FIFO that nobody writes to, a link to a secret, gigabytes. So a file is opened
//! without waiting, must be a regular file of at most 1 MiB, and a link must not lead out of the workspace.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::BadConfig;

/// A configuration file is a few kilobytes; more than this is not one.
const MAX_BYTES: u64 = 1 << 20;

/// What is at the path, or `None` if nothing is.
pub(super) type Contents = Result<Option<Vec<u8>>, BadConfig>;

const FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Reads the user's own file. It may be a link to wherever its owner keeps it.
pub(super) fn read_own(path: &Path) -> Contents {
    // The usual way to say that there is none.
    if path == Path::new("/dev/null") {
        return Ok(None);
    }
    let opened = rustix::fs::openat(CWD, path, FLAGS, Mode::empty());
    read(opened.map(File::from), path)
}

/// Reads a file of the workspace. A link is followed as long as it stays inside.
pub(super) fn read_in_workspace(workspace: &Path, name: &str) -> Contents {
    let path = workspace.join(name);
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, workspace, folder, Mode::empty())
        .and_then(|root| open_beneath(&root, name));
    read(opened.map(File::from), &path)
}

fn open_beneath(root: &rustix::fd::OwnedFd, name: &str) -> Result<rustix::fd::OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(root, name, FLAGS, Mode::empty(), resolve) {
            // An old kernel, a sandbox, or a rename at the same moment: then no link is followed at all.
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::AGAIN) => {}
            opened => return opened,
        }
    }
    rustix::fs::openat(root, name, FLAGS | OFlags::NOFOLLOW, Mode::empty())
}

/// Reads a file of ours that nobody else may have written, through no link.
pub(super) fn read_private(path: &Path) -> Option<Vec<u8>> {
    let opened = rustix::fs::openat(CWD, path, FLAGS | OFlags::NOFOLLOW, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&opened).ok()?;
    let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
    let is_shared = Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH);
    match is_ours && !is_shared {
        true => read(Ok(File::from(opened)), path).ok()?,
        false => None,
    }
}

fn read(opened: Result<File, Errno>, path: &Path) -> Contents {
    let unread = |source| BadConfig::Read { path: path.to_owned(), source };
    let file = match opened {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::XDEV | Errno::LOOP) => {
            return Err(BadConfig::LeadsOutside { path: path.to_owned() });
        }
        // What opening a socket, or a device without a driver, answers.
        Err(Errno::NXIO) => return Err(BadConfig::NotAFile { path: path.to_owned() }),
        Err(error) => return Err(unread(error.into())),
    };
    let stat = rustix::fs::fstat(&file).map_err(|error| unread(error.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(BadConfig::NotAFile { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    let n_read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unread)?;
    match n_read as u64 > MAX_BYTES {
        true => Err(BadConfig::TooLarge { path: path.to_owned() }),
        false => Ok(Some(bytes)),
    }
}
