//! The files of our own store. A store can lie inside a project that was cloned from somebody else, so it is
//! touched as carefully as a workspace: each file is reached through a descriptor of its folder, a link is
//! never followed (neither the file nor its folder may be one), and only regular files are opened.
//!
//! Whatever the umask is, what is made here is private to the user.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

const FILE: Mode = Mode::RUSR.union(Mode::WUSR);
const FOLDER: Mode = Mode::RWXU;

/// What to do with a file that may not be there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    Read,
    /// To read and write. The file must be there.
    Write,
    /// To read and write. A missing file is created, empty.
    WriteOrCreate,
    /// To write at the end. A missing file is created, empty.
    Append,
    /// To read and write. The file must not be there yet.
    CreateNew,
}

/// Opens a file of the store.
pub fn open(path: &Path, how: Open) -> io::Result<File> {
    let (folder, name) = folder_of(path)?;
    let usual = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let access = match how {
        Open::Read => OFlags::RDONLY,
        Open::Write | Open::WriteOrCreate | Open::CreateNew => OFlags::RDWR,
        Open::Append => OFlags::WRONLY | OFlags::APPEND,
    };
    let open_there = || rustix::fs::openat(&folder, name, usual | access, Mode::empty());
    let create = || {
        let flags = usual | access | OFlags::CREATE | OFlags::EXCL;
        let file = rustix::fs::openat(&folder, name, flags, FILE)?;
        // The umask may have taken away bits that we need ourselves.
        rustix::fs::fchmod(&file, FILE)?;
        Ok(file)
    };
    let opened = match how {
        Open::Read | Open::Write => open_there(),
        Open::CreateNew => create(),
        Open::WriteOrCreate | Open::Append => loop {
            match open_there() {
                Err(Errno::NOENT) => match create() {
                    // Another process created it between the two calls.
                    Err(Errno::EXIST) => {}
                    created => break created,
                },
                opened => break opened,
            }
        },
    };
    let file = File::from(opened.map_err(no_link)?);
    let stat = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        // A file of the store has one name. With a second one, somebody's own file would be written to.
        FileType::RegularFile if how != Open::Read && stat.st_nlink > 1 => {
            Err(invalid("a hard link, which is never part of a store"))
        }
        FileType::RegularFile => Ok(file),
        _ => Err(invalid("not a regular file")),
    }
}

/// The whole of a file of the store.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, Open::Read)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file that may be lost at any time: not made durable, and half written after a crash.
pub fn write_disposable(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open(path, Open::WriteOrCreate)?;
    file.set_len(0)?;
    file.write_all(bytes)
}

/// The names in a folder of the store.
pub fn list(folder: &Path) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, folder, flags, Mode::empty()).map_err(no_link)?;
    let mut names = Vec::new();
    let mut entries = rustix::fs::Dir::new(opened)?;
    while let Some(entry) = entries.read() {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

/// What `lstat` says about a file or folder of the store.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub is_file: bool,
    pub is_folder: bool,
    pub size_bytes: u64,
    pub modified: SystemTime,
    /// Does it belong to the user we run as?
    pub is_ours: bool,
    pub inode: u64,
}

pub fn facts(path: &Path) -> io::Result<Facts> {
    let (folder, name) = folder_of(path)?;
    let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let since_epoch = Duration::new(stat.st_mtime.max(0) as u64, stat.st_mtime_nsec as u32);
    Ok(Facts {
        is_file: kind == FileType::RegularFile,
        is_folder: kind == FileType::Directory,
        size_bytes: stat.st_size.max(0) as u64,
        modified: SystemTime::UNIX_EPOCH + since_epoch,
        is_ours: stat.st_uid == rustix::process::geteuid().as_raw(),
        inode: stat.st_ino,
    })
}

/// Renames within the store. What is at `to` is replaced.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    rename_with(from, to, RenameFlags::empty())
}

/// Swaps two files of the store in one step.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    rename_with(one, other, RenameFlags::EXCHANGE)
}

fn rename_with(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    let (from_folder, from_name) = folder_of(from)?;
    let (to_folder, to_name) = folder_of(to)?;
    let renamed = rustix::fs::renameat_with(&from_folder, from_name, &to_folder, to_name, flags);
    Ok(renamed?)
}

/// Removes a file, or a link itself.
pub fn remove_file(path: &Path) -> io::Result<()> {
    let (folder, name) = folder_of(path)?;
    Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
}

/// Removes a folder with all that is in it. Links in it are removed, not followed.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    folder_of(path)?;
    // The standard library removes folders through descriptors and refuses a link in their place.
    match facts(path)?.is_folder {
        true => std::fs::remove_dir_all(path),
        false => Err(invalid("not a folder")),
    }
}

/// Makes a folder of the store in a folder that is there, durable. One that is there already is fine, a link is not.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let (above, name) = folder_of(path)?;
    match rustix::fs::mkdirat(&above, name, FOLDER) {
        Ok(()) => {
            let made = open_folder(&above, name)?;
            rustix::fs::fchmod(made, FOLDER)?;
            Ok(rustix::fs::fsync(open_folder(&above, OsStr::new("."))?)?)
        }
        Err(Errno::EXIST) => open_folder(&above, name).map(drop),
        Err(error) => Err(error.into()),
    }
}

/// Makes the names in a folder of the store durable.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let (above, name) = folder_of(path)?;
    Ok(rustix::fs::fsync(open_folder(&above, name)?)?)
}

/// Takes away what the umask left to others, as a socket has no descriptor to do that with.
pub fn make_private(socket: &Path) -> io::Result<()> {
    let (folder, name) = folder_of(socket)?;
    match FileType::from_raw_mode(
        rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode,
    ) {
        FileType::Symlink => Err(no_link(Errno::LOOP)),
        _ => Ok(rustix::fs::chmodat(folder, name, FILE, AtFlags::empty())?),
    }
}

/// A descriptor of the folder a path is in, and the name there. The folder itself may not be a link.
pub fn folder_of(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let name = path.file_name().ok_or_else(|| invalid("a path without a name"))?;
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A folder that may only be passed, not listed, is enough.
    #[cfg(target_os = "linux")]
    let way = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let way = OFlags::RDONLY;
    let flags = way | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, folder, flags, Mode::empty());
    let opened = opened.map_err(|error| match (error, std::fs::symlink_metadata(folder)) {
        // A link where a folder is wanted is "not a directory" to the system.
        (Errno::NOTDIR, Ok(meta)) if meta.is_symlink() => no_link(Errno::LOOP),
        _ => no_link(error),
    })?;
    Ok((opened, name))
}

fn open_folder(above: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(above, name.as_bytes(), flags, Mode::empty()).map_err(no_link)
}

fn no_link(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => invalid("a symbolic link, which is never part of a store"),
        error => error.into(),
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn no_link_is_followed_neither_at_the_end_nor_on_the_way() {
        let place = tempfile::tempdir().unwrap();
        let (inside, outside) = (place.path().join("store"), place.path().join("outside"));
        std::fs::create_dir_all(inside.join("real")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("notes"), "mine").unwrap();
        symlink(&outside, inside.join("folder")).unwrap();
        symlink(outside.join("notes"), inside.join("real/file")).unwrap();
        for path in [inside.join("folder/notes"), inside.join("real/file")] {
            for how in [Open::Read, Open::Write, Open::WriteOrCreate, Open::Append] {
                let error = open(&path, how).unwrap_err().to_string();
                assert_eq!(error, "a symbolic link, which is never part of a store", "{how:?}");
            }
            assert!(write_disposable(&path, b"theirs").is_err());
        }
        assert!(list(&inside.join("folder")).is_err());
        assert!(make_folder(&inside.join("folder")).is_err());
        assert!(make_folder(&inside.join("folder/more")).is_err());
        assert!(remove_file(&inside.join("folder/notes")).is_err());
        assert!(remove_folder(&inside.join("folder")).is_err());
        assert!(rename(&inside.join("folder/notes"), &inside.join("real/taken")).is_err());
        assert_eq!(std::fs::read(outside.join("notes")).unwrap(), b"mine");
        // The link itself can go.
        remove_file(&inside.join("real/file")).unwrap();
        assert!(outside.join("notes").exists());
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, FILE, 0).unwrap();
        assert_eq!(read(&fifo).unwrap_err().to_string(), "not a regular file");
        assert!(open(&fifo, Open::WriteOrCreate).is_err());
    }

    #[test]
    fn a_file_with_a_second_name_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (own, stamp) = (folder.path().join("own"), folder.path().join("swept"));
        std::fs::write(&own, "mine").unwrap();
        std::fs::hard_link(&own, &stamp).unwrap();
        for how in [Open::Write, Open::WriteOrCreate, Open::Append] {
            let error = open(&stamp, how).unwrap_err().to_string();
            assert_eq!(error, "a hard link, which is never part of a store", "{how:?}");
        }
        assert!(write_disposable(&stamp, b"theirs").is_err());
        assert_eq!(std::fs::read(own).unwrap(), b"mine");
    }

    #[test]
    fn files_and_folders_are_private() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        make_folder(&folder).unwrap();
        make_folder(&folder).unwrap();
        for (name, how) in [("a", Open::CreateNew), ("b", Open::WriteOrCreate), ("c", Open::Append)]
        {
            drop(open(&folder.join(name), how).unwrap());
            let mode = std::fs::metadata(folder.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
