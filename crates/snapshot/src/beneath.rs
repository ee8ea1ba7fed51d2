//! The only way we touch a workspace: through a descriptor of its root. Every path is relative to
//! it, no link is followed in any component, and nothing outside can be reached.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use bivouac_core::sabotage::{self, Fault};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::retry_on_intr;

/// A folder we may work in.
pub struct Root {
    fd: OwnedFd,
    device: u64,
    keeps_folder_times: bool,
}

/// What `lstat` says, as far as it can show a change.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    pub kind: Kind,
    /// The permission bits, set-id and sticky bits included.
    pub mode: u16,
    pub size: u64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    pub inode: u64,
    /// How many names the file has. Only remembered as one or more.
    pub n_links: u64,
    /// Not remembered: it may have another number after the next start of the machine.
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

/// The user and group something belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    user: Uid,
    group: Gid,
}

/// Paths longer than this are opened in stretches; the system allows 4096 bytes.
const MAX_STRETCH: usize = 3_000;

impl Root {
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let device = stat_of(&rustix::fs::fstat(&fd)?).device;
        let keeps_folder_times = keeps_folder_times(&fd);
        Ok(Self { fd, device, keeps_folder_times })
    }

    /// Does a folder's change time tell, beyond doubt, whether its list of names changed?
    pub fn tells_folder_changes(&self, folder: &Stat) -> bool {
        self.keeps_folder_times && folder.device == self.device
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
        // Whoever may not list a folder may still pass it.
        #[cfg(target_os = "linux")]
        let way = OFlags::PATH;
        #[cfg(not(target_os = "linux"))]
        let way = OFlags::RDONLY;
        let flags = way | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = self.open_beneath(&path[..slash], flags)?;
        let name = &path[slash + 1..];
        Ok(stat_of(&rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Who owns what is at `path`; the empty path is the root.
    pub fn owner(&self, path: &[u8]) -> io::Result<Owner> {
        let stat = if path.is_empty() {
            rustix::fs::fstat(&self.fd)?
        } else {
            let (folder, name) = self.folder_of(path)?;
            rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?
        };
        Ok(Owner { user: Uid::from_raw(stat.st_uid), group: Gid::from_raw(stat.st_gid) })
    }

    /// Only root can give things away, and only root needs to.
    pub fn set_owner(&self, path: &[u8], owner: Owner) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        let (user, group) = (Some(owner.user), Some(owner.group));
        Ok(rustix::fs::chownat(folder, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?)
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
    pub fn read_small(&self, path: &[u8], limit: u64) -> Option<Vec<u8>> {
        let file = self.open_file(path).ok()?;
        let stat = stat_of(&rustix::fs::fstat(&file).ok()?);
        if stat.kind != Kind::File || stat.size > limit {
            return None;
        }
        let mut bytes = Vec::with_capacity(stat.size as usize);
        file.take(limit).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    pub fn create_folder(&self, path: &[u8], mode: u16) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        Ok(rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(mode.into()))?)
    }

    /// Creates a file that must not be there yet.
    pub fn create_file(&self, path: &[u8]) -> io::Result<File> {
        let (folder, name) = self.folder_of(path)?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o600))?.into())
    }

    pub fn create_link(&self, path: &[u8], target: &[u8]) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        Ok(rustix::fs::symlinkat(target, folder, name)?)
    }

    /// Moves `from` to `to`, where nothing may be.
    pub fn move_to_free(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        match self.rename(from, to, RenameFlags::NOREPLACE) {
            Err(error) if is_unsupported(&error) => match self.stat_beneath(to) {
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                Err(error) if is_gone(&error) => self.rename(from, to, RenameFlags::empty()),
                Err(error) => Err(error),
            },
            other => other,
        }
    }

    /// Swaps two things in one step: there is no moment in which either is missing. Where the file
    /// system cannot, `theirs` is missing for a moment, and found at `ours` afterwards all the same.
    pub fn exchange(&self, ours: &[u8], theirs: &[u8]) -> io::Result<()> {
        match self.rename(ours, theirs, RenameFlags::EXCHANGE) {
            Err(error) if is_unsupported(&error) => {
                let aside = [ours, b".aside"].concat();
                self.move_to_free(theirs, &aside)?;
                self.move_to_free(ours, theirs)?;
                self.move_to_free(&aside, ours)
            }
            other => other,
        }
    }

    fn rename(&self, from: &[u8], to: &[u8], flags: RenameFlags) -> io::Result<()> {
        let (from_folder, from_name) = self.folder_of(from)?;
        let (to_folder, to_name) = self.folder_of(to)?;
        Ok(rustix::fs::renameat_with(from_folder, from_name, to_folder, to_name, flags)?)
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

    /// Sets the permission bits of a file or folder, also of one we may not read.
    #[cfg(target_os = "linux")]
    pub fn set_mode(&self, path: &[u8], mode: u16) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let fd = self.open_beneath(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        let by_descriptor = format!("/proc/self/fd/{}", fd.as_raw_fd());
        Ok(rustix::fs::chmod(by_descriptor, Mode::from_raw_mode(mode.into()))?)
    }

    #[cfg(not(target_os = "linux"))]
    pub fn set_mode(&self, path: &[u8], mode: u16) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        let mode = Mode::from_raw_mode(mode.into());
        Ok(rustix::fs::chmodat(folder, name, mode, AtFlags::SYMLINK_NOFOLLOW)?)
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
    fn folder_of<'p>(&self, path: &'p [u8]) -> io::Result<(OwnedFd, &'p [u8])> {
        match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => Ok((self.open_folder(&path[..slash])?, &path[slash + 1..])),
            None => Ok((self.fd.try_clone()?, path)),
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

    fn open_beneath(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
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

/// Some file systems know no renames with flags.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
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

/// Sets the permission bits of an open file.
pub fn set_mode_open(file: &File, mode: u16) -> io::Result<()> {
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode.into()))?)
}

pub fn we_are_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[expect(clippy::unnecessary_cast, reason = "the field types differ between systems")]
fn stat_of(stat: &rustix::fs::Stat) -> Stat {
    let nanoseconds =
        |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Stat {
        kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
        mode: (stat.st_mode & 0o7777) as u16,
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

/// Local file systems that are known to touch a folder whenever a name in it comes or goes. Network,
/// FUSE and shared folders may not; there we list every folder every time.
#[cfg(target_os = "linux")]
fn keeps_folder_times(fd: &OwnedFd) -> bool {
    const EXT: i64 = 0xEF53;
    const XFS: i64 = 0x5846_5342;
    const BTRFS: i64 = 0x9123_683E;
    const TMPFS: i64 = 0x0102_1994;
    const F2FS: i64 = 0xF2F5_2010;
    const ZFS: i64 = 0x2FC1_2FC1;
    const OVERLAY: i64 = 0x794C_7630;
    const BCACHEFS: i64 = 0xCA45_1A4E;
    let kind = rustix::fs::fstatfs(fd).map(|stat| stat.f_type);
    matches!(kind, Ok(EXT | XFS | BTRFS | TMPFS | F2FS | ZFS | OVERLAY | BCACHEFS))
}

#[cfg(not(target_os = "linux"))]
fn keeps_folder_times(_fd: &OwnedFd) -> bool {
    false
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

    #[test]
    fn an_exchange_leaves_both() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("one"), "1").unwrap();
        std::fs::write(folder.path().join("two"), "2").unwrap();
        let root = Root::open(folder.path()).unwrap();
        root.exchange(b"one", b"two").unwrap();
        assert_eq!(std::fs::read(folder.path().join("one")).unwrap(), b"2");
        assert!(root.move_to_free(b"one", b"two").is_err());
        assert_eq!(std::fs::read(folder.path().join("two")).unwrap(), b"1");
    }
}
