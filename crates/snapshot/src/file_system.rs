//! Which file system a folder is on, and what its times prove.
//!
//! The stat cache skips a file whose stat is the same as before. That is only safe where the kernel of this
//! machine stamps every change with its own clock. Read-only images carry the times their maker chose, FUSE and
//! network file systems report whatever their server says, by the server's clock, and FAT lets anyone set the
//! change time. There, every file is read and hashed by every scan. See decision 0030.
//!
//! All of this is asked once for each mount that a scan meets, never for each file.

use std::os::fd::AsFd;

use crate::beneath::Stat;
use crate::scope::fingerprint;
use crate::stat_cache::Fingerprint;

/// The file system that a folder, and what is in it, belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileSystem {
    /// Its number now. It may have another one after the next start of the machine.
    device: u64,
    /// Differs between two file systems that are mounted at the same place one after the other.
    pub(crate) identity: Fingerprint,
    times: Times,
    is_overlay: bool,
}

/// What a change time proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Times {
    /// A file or folder with the same change time is the same.
    Real,
    /// So is a file. A folder may get and lose names without being stamped.
    #[cfg_attr(target_os = "linux", expect(dead_code, reason = "Linux tells file systems apart"))]
    FilesOnly,
    /// Nothing.
    Untrusted,
}

impl FileSystem {
    /// Asks about the file system of an open folder. `stat` is the folder's own.
    pub(crate) fn of(folder: &impl AsFd, stat: &Stat) -> Self {
        let kind = system::kind(folder);
        let mut id = rustix::fs::fstatvfs(folder).map_or(0, |it| it.f_fsid);
        if id == 0 {
            id = stat.device;
        }
        let mount =
            if system::may_be_swapped(kind, stat.device) { system::mount(folder) } else { vec![] };
        let parts = [&kind.to_le_bytes()[..], &id.to_le_bytes()[..], &mount];
        Self {
            device: stat.device,
            identity: fingerprint(parts),
            times: system::times(kind),
            is_overlay: system::is_overlay(kind),
        }
    }

    /// Is a folder on the same file system as the one above it?
    pub(crate) fn holds_folder(&self, folder: &Stat) -> bool {
        folder.device == self.device
    }

    /// Does the change time of a folder prove that its list of names is the same?
    pub(crate) fn proves_lists(&self) -> bool {
        self.times == Times::Real
    }

    /// Does the change time of a file or link prove that its content is the same? Not if another file
    /// system provides it: a single file can be mounted over. Overlays show the device numbers of
    /// their layers, so there the number says nothing.
    pub(crate) fn proves_contents(&self, stat: &Stat) -> bool {
        self.times != Times::Untrusted && (stat.device == self.device || self.is_overlay)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::os::fd::AsFd;

    use rustix::fs::{AtFlags, StatxFlags};

    use super::Times;

    const OVERLAY: u64 = 0x794C_7630;
    /// Local file systems whose change times only the kernel sets, and sets at every change. Whatever is not
    /// in this list is read each time.
    const REAL: [u64; 8] = [
        0xEF53,      // ext2, ext3, ext4
        0x5846_5342, // XFS
        0x9123_683E, // btrfs
        0x0102_1994, // tmpfs
        0xF2F5_2010, // F2FS
        0x2FC1_2FC1, // ZFS
        0xCA45_1A4E, // bcachefs
        OVERLAY,
    ];
    const LOOP_DEVICE: u32 = 7;

    /// The magic number of the kind of file system; 0 if the kernel does not say.
    pub(super) fn kind(folder: &impl AsFd) -> u64 {
        rustix::fs::fstatfs(folder).map_or(0, |it| it.f_type as u64 & 0xFFFF_FFFF)
    }

    pub(super) fn times(kind: u64) -> Times {
        if REAL.contains(&kind) { Times::Real } else { Times::Untrusted }
    }

    pub(super) fn is_overlay(kind: u64) -> bool {
        kind == OVERLAY
    }

    /// Can the contents change while it is not mounted, with times that someone chose? An image behind a loop
    /// device can be edited or exchanged, and so can the lower layers of an overlay. Then every mount is a file
    /// system of its own.
    pub(super) fn may_be_swapped(kind: u64, device: u64) -> bool {
        is_overlay(kind) || rustix::fs::major(device) == LOOP_DEVICE
    }

    /// Names one mount: no other has the same name, at least since the machine was started.
    pub(super) fn mount(folder: &impl AsFd) -> Vec<u8> {
        // Since Linux 6.8 there are numbers that are never used twice; older kernels know the first bit only.
        let wanted = StatxFlags::MNT_ID.union(StatxFlags::from_bits_retain(0x4000));
        let number = rustix::fs::statx(folder, "", AtFlags::EMPTY_PATH, wanted)
            .map_or(0, |stat| stat.stx_mnt_id);
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        [&number.to_le_bytes()[..], &boot].concat()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::os::fd::AsFd;

    use super::Times;

    pub(super) fn kind(_folder: &impl AsFd) -> u64 {
        0
    }

    pub(super) fn times(_kind: u64) -> Times {
        Times::FilesOnly
    }

    pub(super) fn is_overlay(_kind: u64) -> bool {
        false
    }

    pub(super) fn may_be_swapped(_kind: u64, _device: u64) -> bool {
        false
    }

    pub(super) fn mount(_folder: &impl AsFd) -> Vec<u8> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn only_local_file_systems_are_believed() {
        let check = |kind: u64, times: Times| assert_eq!(system::times(kind), times, "{kind:x}");
        check(0xEF53, Times::Real);
        check(0x0102_1994, Times::Real);
        check(0x7371_7368, Times::Untrusted); // squashfs
        check(0xE0F5_E1E2, Times::Untrusted); // erofs
        check(0x6573_5546, Times::Untrusted); // FUSE
        check(0x6969, Times::Untrusted); // NFS
        check(0x4d44, Times::Untrusted); // FAT
        check(0, Times::Untrusted); // not told
    }

    #[test]
    fn a_file_that_is_mounted_over_proves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = crate::beneath::Root::open(folder.path()).unwrap();
        let stat = root.stat(b"").unwrap();
        let here = FileSystem::of(&std::fs::File::open(folder.path()).unwrap(), &stat);
        let elsewhere = Stat { device: stat.device + 1, ..stat };
        assert!(!here.proves_contents(&elsewhere) || here.is_overlay);
        assert!(!here.holds_folder(&elsewhere) && here.holds_folder(&stat));
    }
}
