//! Whose a file is, and its permissions: asked and changed on descriptors only.
//!
//! In a workspace that another user can write to, a name may lead to something else from one system
//! call to the next. A descriptor cannot. Whatever gives an owner or a mode therefore takes a
//! descriptor, and whatever is renamed by name is first compared with what the descriptor said.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use bivouac_core::path::RelPath;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};

use crate::beneath::{Kind, Root, Stat, stat_of};

/// The set-user-id and set-group-id bits.
pub const SET_ID: u16 = 0o6000;

/// The user and group something belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    user: u32,
    group: u32,
}

/// What tells one file from every other, and what it is worth to an attacker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    owner: Owner,
    mode: u16,
}

/// A file or folder, whoever owns it and whatever its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    device: u64,
    number: u64,
}

impl Inode {
    pub(crate) const fn of(stat: &Stat) -> Self {
        Self { device: stat.device, number: stat.inode }
    }

    pub(crate) const fn is_on_device_of(&self, stat: &Stat) -> bool {
        self.device == stat.device
    }
}

/// Who can replace what lies in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Only the caller, and the groups the caller let in.
    Private,
    /// Its owner, who is not the caller.
    OwnedBy { user: u32, caller: u32 },
    /// Every user of the machine.
    WritableByAll,
}

impl Identity {
    fn new(stat: &rustix::fs::Stat) -> Self {
        let owner = Owner { user: stat.st_uid, group: stat.st_gid };
        let Stat { device, inode, mode, .. } = stat_of(stat);
        Self { device, inode, owner, mode }
    }

    pub(crate) const fn owner(&self) -> Owner {
        self.owner
    }

    pub(crate) const fn mode(&self) -> u16 {
        self.mode
    }

    pub(crate) fn is_callers(&self) -> bool {
        self.owner.user == rustix::process::geteuid().as_raw()
    }

    pub(crate) const fn inode(&self) -> Inode {
        Inode { device: self.device, number: self.inode }
    }

    fn sharing(&self) -> Sharing {
        let caller = rustix::process::geteuid().as_raw();
        match self.mode & 0o1002 {
            _ if self.owner.user != caller => Sharing::OwnedBy { user: self.owner.user, caller },
            0o0002 => Sharing::WritableByAll,
            _ => Sharing::Private,
        }
    }
}

impl Identity {
    /// Can nobody but the caller put anything into this folder? A sticky bit does not help: others can still add names.
    fn is_callers_alone(&self) -> bool {
        self.is_callers() && self.mode & 0o022 == 0
    }
}

impl Root {
    /// Can nobody but the caller put anything into the top folder?
    pub fn is_callers_alone(&self) -> bool {
        identity_of(&self.fd).is_ok_and(|it| it.is_callers_alone())
    }

    /// Who can replace what lies in the top folder. A sticky folder that everyone can write to
    /// protects what is in it, and a group that can write is one the owner chose.
    pub fn sharing(&self) -> io::Result<Sharing> {
        Ok(identity_of(&self.fd)?.sharing())
    }

    /// Can nobody but the caller put anything at this path, or into a folder on the way to it?
    pub(crate) fn is_way_private(&self, path: &RelPath) -> bool {
        let is_private = |folder: RelPath| match self.identity(folder.as_bytes()) {
            Ok(identity) => identity.is_callers_alone(),
            // The restore makes it, in the nearest folder that is there.
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        std::iter::successors(path.parent(), RelPath::parent).all(is_private)
            && self.is_callers_alone()
    }

    /// What stands at a path, not followed if it is a link; the empty path is the root.
    pub(crate) fn identity(&self, path: &[u8]) -> io::Result<Identity> {
        if path.is_empty() {
            return identity_of(&self.fd);
        }
        let (folder, name) = self.folder_of(path)?;
        Ok(Identity::new(&rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Gives a link in this very folder to someone. A link has no descriptor to write through, so one
    /// that only names it is opened.
    #[cfg(target_os = "linux")]
    pub(crate) fn set_owner_of_link(&self, name: &[u8], owner: Owner) -> io::Result<()> {
        let link = self.open_beneath(name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        let (user, group) = owner.as_ids();
        Ok(rustix::fs::chownat(link, "", user, group, AtFlags::EMPTY_PATH)?)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn set_owner_of_link(&self, name: &[u8], owner: Owner) -> io::Result<()> {
        let (user, group) = owner.as_ids();
        Ok(rustix::fs::chownat(&self.fd, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Sets the permission bits of a file or folder, also of one we may not read. `false` when
    /// something else than expected stands at the path: then nothing is changed.
    #[cfg(target_os = "linux")]
    pub(crate) fn set_mode_if(
        &self,
        path: &[u8],
        mode: u16,
        is_expected: impl FnOnce(&Stat) -> bool,
    ) -> io::Result<bool> {
        use std::os::fd::AsRawFd;
        let fd = self.open_beneath(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        if !is_expected(&stat_of(&rustix::fs::fstat(&fd)?)) {
            return Ok(false);
        }
        // `fchmod` refuses a descriptor that only names a file; through `/proc`, it is the same file still.
        let by_descriptor = format!("/proc/self/fd/{}", fd.as_raw_fd());
        rustix::fs::chmod(by_descriptor, Mode::from_raw_mode(mode.into()))?;
        Ok(true)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn set_mode_if(
        &self,
        path: &[u8],
        mode: u16,
        is_expected: impl FnOnce(&Stat) -> bool,
    ) -> io::Result<bool> {
        if !is_expected(&self.stat_beneath(path)?) {
            return Ok(false);
        }
        let (folder, name) = self.folder_of(path)?;
        let mode = Mode::from_raw_mode(mode.into());
        rustix::fs::chmodat(folder, name, mode, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(true)
    }

    /// The same for a folder, which has to be this one.
    pub(crate) fn set_folder_mode(
        &self,
        path: &[u8],
        folder: Inode,
        mode: u16,
    ) -> io::Result<bool> {
        self.set_mode_if(path, mode, |now| now.kind == Kind::Folder && Inode::of(now) == folder)
    }
}

impl Owner {
    pub(crate) const fn is_same_user(&self, other: &Self) -> bool {
        self.user == other.user
    }

    /// Owners come from the system, so they are never the one number that means "no change".
    fn as_ids(self) -> (Option<Uid>, Option<Gid>) {
        (Some(Uid::from_raw(self.user)), Some(Gid::from_raw(self.group)))
    }
}

/// What a descriptor says about what it holds.
pub(crate) fn identity_of(fd: impl AsFd) -> io::Result<Identity> {
    Ok(Identity::new(&rustix::fs::fstat(fd)?))
}

/// Gives what a descriptor holds to someone. The system takes the set-id bits away, so the mode comes after.
pub(crate) fn set_owner_open(fd: impl AsFd, owner: Owner) -> io::Result<()> {
    let (user, group) = owner.as_ids();
    Ok(rustix::fs::fchown(fd, user, group)?)
}

/// Sets the permission bits of an open file.
pub(crate) fn set_mode_open(file: &File, mode: u16) -> io::Result<()> {
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode.into()))?)
}

pub(crate) fn we_are_root() -> bool {
    rustix::process::geteuid().is_root()
}
