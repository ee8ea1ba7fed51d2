//! The only way we touch a workspace: through a descriptor of its root. Every path is relative to
//! it, no link is followed in any component, and nothing outside can be reached.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use bivouac_core::sabotage::{self, Fault};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::retry_on_intr;

use crate::file_system::FileSystem;
use crate::ownership::SET_ID;

/// A folder we may work in.
pub struct Root {
    pub(crate) fd: OwnedFd,
}

/// What `lstat` says, as far as it can show a change.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    pub kind: Kind,
    /// The permission bits, set-id and sticky bits included; without the set-id bits of another user's file.
    pub mode: u16,
    pub size: u64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    pub inode: u64,
    /// How many names the file has. Only remembered as one or more.
    pub n_links: u64,
    /// Not remembered: it may have another number after the next start of the machine. The cache holds
    /// the identity of each mount instead.
    pub device: u64,
}

impl Stat {
    /// Does nothing show a change?
    pub fn is_same(&self, other: &Self) -> bool {
        let essence = |it: &Self| (it.kind, it.mode, it.size, it.mtime_ns, it.ctime_ns, it.inode);
        essence(self) == essence(other)
    }

    /// Was the last change so long before `now_ns` that any later one must have another time? Times
    /// are as fine as the kernel's tick; a file system that keeps whole seconds only shows zeros.
    pub fn is_settled(&self, now_ns: i64) -> bool {
        const TICK_NS: i64 = 50_000_000;
        const COARSE_NS: i64 = 2_000_000_000;
        let granule = if self.ctime_ns % 1_000_000_000 == 0 { COARSE_NS } else { TICK_NS };
        self.ctime_ns.saturating_add(granule) < now_ns
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Link,
    Folder,
    /// A fifo, socket or device.
    Special,
}

/// A name in a folder.
#[derive(Clone, Debug)]
pub struct Named {
    pub name: Box<[u8]>,
    /// `None` where the file system does not say.
    pub kind: Option<Kind>,
}

/// A folder that is held open: the root itself, or one opened on the way.
pub(crate) enum Held<'r> {
    Root(BorrowedFd<'r>),
    Opened(OwnedFd),
}

impl AsFd for Held<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(fd) => *fd,
            Self::Opened(fd) => fd.as_fd(),
        }
    }
}

/// Opens a folder to reach what is in it. Whoever may not list a folder may still pass it.
#[cfg(target_os = "linux")]
const TO_PASS: OFlags = OFlags::PATH.union(FOLDER_FLAGS);
#[cfg(not(target_os = "linux"))]
const TO_PASS: OFlags = OFlags::RDONLY.union(FOLDER_FLAGS);
const FOLDER_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Paths longer than this are opened in stretches; the system allows 4096 bytes.
const MAX_STRETCH: usize = 3_000;

impl Root {
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Self { fd })
    }

    /// Opens a folder in this one and holds it. Whatever happens to its name, the descriptor stays with it.
    pub(crate) fn enter(&self, path: &[u8]) -> io::Result<Self> {
        Ok(Self { fd: self.open_folder(path)? })
    }

    /// Is the whole workspace mounted read-only?
    pub(crate) fn is_read_only(&self) -> bool {
        rustix::fs::fstatvfs(&self.fd)
            .is_ok_and(|it| it.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
    }

    /// The file system that a folder is on. `stat` is the folder's own.
    pub(crate) fn file_system(&self, folder: &[u8], stat: &Stat) -> io::Result<FileSystem> {
        if folder.is_empty() {
            return Ok(FileSystem::of(&self.fd, stat));
        }
        Ok(FileSystem::of(&self.open_beneath(folder, TO_PASS)?, stat))
    }

    /// Looks at `path` itself, not at what a link there points to. The empty path is the root. Only for whoever comes
    /// from above and has seen every folder on the way.
    pub fn stat(&self, path: &[u8]) -> io::Result<Stat> {
        if path.is_empty() {
            return Ok(stat_of(&rustix::fs::fstat(&self.fd)?));
        }
        if path.len() > MAX_STRETCH {
            let (folder, name) = self.folder_of(path)?;
            return Ok(stat_of(&rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?));
        }
        let flags = match sabotage::is(Fault::LinksFollowed) {
            true => AtFlags::empty(),
            false => AtFlags::SYMLINK_NOFOLLOW,
        };
        Ok(stat_of(&rustix::fs::statat(&self.fd, path, flags)?))
    }

    /// The same, where no folder on the way may be a link: what lies behind one is not at this path.
    pub fn stat_beneath(&self, path: &[u8]) -> io::Result<Stat> {
        let Some(slash) = path.iter().rposition(|byte| *byte == b'/') else {
            return self.stat(path);
        };
        let folder = self.open_beneath(&path[..slash], TO_PASS)?;
        let name = &path[slash + 1..];
        Ok(stat_of(&rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Opens a file for reading. Never blocks on a fifo that took the file's place.
    pub fn open_file(&self, path: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.open_beneath(path, flags).map(File::from)
    }

    /// The names in a folder, sorted, without `.` and `..`.
    pub fn list(&self, path: &[u8]) -> io::Result<Vec<Named>> {
        let mut names: Vec<Named> = Vec::new();
        let mut folder = rustix::fs::Dir::new(self.open_folder(path)?)?;
        while let Some(entry) = folder.read() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => None,
                known => Some(kind_of(known)),
            };
            names.push(Named { name: name.into(), kind });
        }
        names.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(names)
    }

    pub fn read_link(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let (folder, name) = self.folder_of(path)?;
        Ok(rustix::fs::readlinkat(folder, name, Vec::new())?.into_bytes())
    }

    /// The whole of a small file, or `None` when it is absent, not a regular file, or over `limit`.
    ///
    /// What stands there is looked at before it is opened, because opening alone already acts on some devices
    /// and lets a program go on that waits at the other end of a pipe. It is looked at again once it is open:
    /// something else may have taken its place, which `open_file` neither follows nor waits for.
    pub fn read_small(&self, path: &[u8], limit: u64) -> Option<Vec<u8>> {
        let is_small = |stat: Stat| stat.kind == Kind::File && stat.size <= limit;
        self.stat(path).ok().filter(|stat| is_small(*stat))?;
        let file = self.open_file(path).ok()?;
        let stat = stat_open(&file).ok().filter(|stat| is_small(*stat))?;
        let mut bytes = Vec::with_capacity(stat.size as usize);
        file.take(limit + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= limit).then_some(bytes)
    }

    pub fn create_folder(&self, path: &[u8], mode: u16) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        Ok(rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(mode.into()))?)
    }

    /// Creates a private file that must not be there yet.
    pub fn create_file(&self, path: &[u8]) -> io::Result<File> {
        self.create_file_as(path, 0o600)
    }

    /// The same with these permissions, less what the umask takes away.
    pub fn create_file_as(&self, path: &[u8], mode: u16) -> io::Result<File> {
        let (folder, name) = self.folder_of(path)?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode.into()))?.into())
    }

    pub fn create_link(&self, path: &[u8], target: &[u8]) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        Ok(rustix::fs::symlinkat(target, folder, name)?)
    }

    pub fn remove_file(&self, path: &[u8]) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, path: &[u8]) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
    }

    /// Makes the names in a folder durable, the contents of a file, and the mode of either.
    pub fn sync(&self, path: &[u8]) -> io::Result<()> {
        let fd =
            if path.is_empty() { self.open_folder(path)? } else { self.open_file(path)?.into() };
        Ok(rustix::fs::fsync(fd)?)
    }

    /// Makes everything on this file system durable: cheaper than many single calls.
    pub fn sync_all(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(&self.fd)?;
        #[cfg(not(target_os = "linux"))]
        rustix::fs::sync();
        Ok(())
    }

    /// The folder that holds `path`, opened, and the last name.
    pub(crate) fn folder_of<'p>(&self, path: &'p [u8]) -> io::Result<(Held<'_>, &'p [u8])> {
        match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => {
                Ok((Held::Opened(self.open_folder(&path[..slash])?), &path[slash + 1..]))
            }
            None => Ok((Held::Root(self.fd.as_fd()), path)),
        }
    }

    fn open_folder(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if path.is_empty() {
            // A second descriptor of its own, so that reading it does not move the first one's position.
            return Ok(rustix::fs::openat(&self.fd, ".", flags, Mode::empty())?);
        }
        self.open_beneath(path, flags)
    }

    pub(crate) fn open_beneath(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        if path.len() <= MAX_STRETCH {
            return open_beneath(&self.fd, path, flags);
        }
        let folder_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = self.fd.try_clone()?;
        let mut rest = path;
        while rest.len() > MAX_STRETCH {
            let slash = rest[..MAX_STRETCH].iter().rposition(|byte| *byte == b'/');
            let slash = slash.ok_or(io::ErrorKind::InvalidFilename)?;
            at = open_beneath(&at, &rest[..slash], folder_flags)?;
            rest = &rest[slash + 1..];
        }
        open_beneath(&at, rest, flags)
    }
}

/// Is there nothing at the path any more: it, or a folder on the way, is gone or became something else?
pub fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Set once the kernel (or a sandbox around us) has refused `openat2`.
static ONE_BY_ONE: AtomicBool = AtomicBool::new(!cfg!(target_os = "linux"));

fn open_beneath(root: &impl AsFd, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    if !ONE_BY_ONE.load(Ordering::Relaxed) {
        use rustix::fs::ResolveFlags;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let open = || rustix::fs::openat2(root, path, flags, Mode::empty(), resolve);
        match retry_on_intr(open) {
            // Resolution raced with a rename elsewhere: the careful way has no such moment.
            Err(rustix::io::Errno::AGAIN) => {}
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
                ONE_BY_ONE.store(true, Ordering::Relaxed);
            }
            other => return Ok(other?),
        }
    }
    let folder_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut names = path.split(|byte| *byte == b'/').peekable();
    let mut at: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let flags = if names.peek().is_some() { folder_flags } else { flags };
        let folder = at.as_ref().map_or(root.as_fd(), AsFd::as_fd);
        at = Some(retry_on_intr(|| rustix::fs::openat(folder, name, flags, Mode::empty()))?);
    }
    at.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// `fstat` of an open file.
pub fn stat_open(file: &File) -> io::Result<Stat> {
    Ok(stat_of(&rustix::fs::fstat(file)?))
}

/// The permission bits, without the set-id bits of a file that belongs to another user. A checkpoint holds no
/// owners, and what is restored can belong to the caller: with these bits, root would make that user's program one
/// that runs as root.
fn own_mode(stat: &rustix::fs::Stat) -> u16 {
    let mode = (stat.st_mode & 0o7777) as u16;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let has_set_id = is_file && mode & SET_ID != 0;
    match has_set_id && stat.st_uid != rustix::process::geteuid().as_raw() {
        true => mode & !SET_ID,
        false => mode,
    }
}

#[expect(clippy::unnecessary_cast, reason = "the field types differ between systems")]
pub(crate) fn stat_of(stat: &rustix::fs::Stat) -> Stat {
    let nanoseconds =
        |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Stat {
        kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
        mode: own_mode(stat),
        size: stat.st_size as u64,
        mtime_ns: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        ctime_ns: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        inode: stat.st_ino as u64,
        n_links: stat.st_nlink as u64,
        device: stat.st_dev as u64,
    }
}

fn kind_of(kind: FileType) -> Kind {
    match kind {
        FileType::RegularFile => Kind::File,
        FileType::Symlink => Kind::Link,
        FileType::Directory => Kind::Folder,
        _ => Kind::Special,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_never_followed() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let inside = tempfile::tempdir().unwrap();
        symlink(outside.path(), inside.path().join("way_out")).unwrap();
        symlink(outside.path().join("secret"), inside.path().join("secret")).unwrap();
        let root = Root::open(inside.path()).unwrap();

        assert!(root.open_file(b"way_out/secret").is_err());
        assert!(root.open_file(b"secret").is_err());
        assert!(root.list(b"way_out").is_err());
        assert!(root.create_file(b"way_out/new").is_err());
        assert!(root.create_folder(b"way_out/new", 0o755).is_err());
        assert!(root.remove_file(b"way_out/secret").is_err());
        assert!(root.open_file(b"../secret").is_err());
        assert!(outside.path().join("secret").exists());
    }

    #[test]
    fn the_careful_way_gives_the_same_answers() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::write(folder.path().join("a/b/c"), "x").unwrap();
        symlink("a", folder.path().join("link")).unwrap();
        let root = Root::open(folder.path()).unwrap();
        let check = |path: &[u8], good: bool| {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            assert_eq!(
                open_beneath(&root.fd, path, flags).is_ok(),
                good,
                "{}",
                path.escape_ascii()
            );
        };
        for one_by_one in [false, true] {
            ONE_BY_ONE.store(one_by_one, Ordering::Relaxed);
            check(b"a/b/c", true);
            check(b"a/b", true);
            check(b"link/b/c", false);
            check(b"link", false);
            check(b"a/x", false);
        }
        ONE_BY_ONE.store(false, Ordering::Relaxed);
    }

    #[test]
    fn paths_longer_than_the_system_allows_are_reached() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let mut path = Vec::new();
        for _ in 0..40 {
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(&[b'd'; 200]);
            root.create_folder(&path, 0o755).unwrap();
        }
        assert!(path.len() > 4096);
        let file = [path.as_slice(), b"/file"].concat();
        root.create_file(&file).unwrap();
        assert_eq!(root.stat(&file).unwrap().kind, Kind::File);
        assert_eq!(root.list(&path).unwrap().len(), 1);
        root.remove_file(&file).unwrap();
    }

    #[test]
    fn a_change_too_close_to_the_scan_proves_nothing() {
        let second = 1_000_000_000;
        let check = |ctime_ns: i64, now_ns: i64, settled: bool| {
            let folder = tempfile::tempdir().unwrap();
            let stat = Stat { ctime_ns, ..Root::open(folder.path()).unwrap().stat(b"").unwrap() };
            assert_eq!(stat.is_settled(now_ns), settled, "changed at {ctime_ns}, seen at {now_ns}");
        };
        check(10 * second + 5, 11 * second, true);
        check(10 * second + 5, 10 * second + 40_000_000, false);
        check(12 * second + 5, 11 * second, false); // the clock went backwards
        check(10 * second, 11 * second, false); // whole seconds only
        check(10 * second, 13 * second, true);
    }
}
