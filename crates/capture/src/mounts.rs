//! Which file systems are mounted where, and when that changes. Linux says so in `/proc/self/mountinfo`; elsewhere
//! nothing is known.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The mounts that this process sees.
pub struct MountTable {
    file: File,
}

/// A file system at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Unique as long as it is mounted.
    id: u64,
    /// Device number, and which folder of the file system is shown.
    source: Vec<u8>,
    place: PathBuf,
    kind: Vec<u8>,
}

impl MountTable {
    pub fn open() -> io::Result<Self> {
        Ok(Self { file: File::open("/proc/self/mountinfo")? })
    }

    /// Was anything mounted or unmounted since this was last asked, or waited for by `poll`?
    pub fn has_changed(&self) -> bool {
        let mut waits = [PollFd::new(&self.file, PollFlags::PRI)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Where that cannot be asked, it may have.
        poll(&mut waits, Some(&at_once)).is_err() || !waits[0].revents().is_empty()
    }

    /// The mounts that decide what is seen in a folder: those on the way to it, and those below it.
    pub fn around(&self, folder: &Path) -> io::Result<Vec<Mount>> {
        let mut text = Vec::new();
        let mut file = &self.file;
        file.rewind()?;
        file.read_to_end(&mut text)?;
        Ok(parse(&text, folder))
    }
}

impl AsFd for MountTable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Does inotify report everything that changes below a folder? What others change on a shared disk it does not.
/// `mounts` are those around the folder.
pub fn reports_all(mounts: &[Mount], folder: &Path) -> bool {
    const SHARED: [&[u8]; 16] = [
        b"9p",
        b"afs",
        b"beegfs",
        b"ceph",
        b"cifs",
        b"gfs2",
        b"glusterfs",
        b"gpfs",
        b"lustre",
        b"nfs",
        b"nfs4",
        b"ocfs2",
        b"smb3",
        b"smbfs",
        b"vboxsf",
        b"virtiofs",
    ];
    let is_shared =
        |it: &Mount| SHARED.contains(&it.kind.as_slice()) || it.kind.starts_with(b"fuse");
    // The last one mounted at the longest path above is the one we see.
    let above = mounts.iter().filter(|it| folder.starts_with(&it.place));
    let own = above.max_by_key(|it| it.place.components().count());
    let mut below = mounts.iter().filter(|it| it.place.starts_with(folder));
    !own.is_some_and(is_shared) && !below.any(is_shared)
}

fn parse(text: &[u8], folder: &Path) -> Vec<Mount> {
    let mounts = text.split(|byte| *byte == b'\n').filter_map(parse_line);
    mounts.filter(|it| it.place.starts_with(folder) || folder.starts_with(&it.place)).collect()
}

/// `36 35 98:0 /root /place options [more options …] - kind source options`
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let (device, root) = (words.nth(1)?, words.next()?);
    let place = PathBuf::from(OsString::from_vec(unescape(words.next()?)));
    words.find(|word| *word == b"-")?;
    let kind = words.next()?.to_vec();
    Some(Mount { id, source: [device, b" ", root].concat(), place, kind })
}

/// Blanks, line ends and backslashes are written as three octal digits.
fn unescape(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| *first == b'\\');
        let code = digits.and_then(|it| u8::from_str_radix(std::str::from_utf8(it).ok()?, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &behind[3..] } else { behind };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        40 22 0:50 / /net/my\\040data rw - nfs4 host:/x rw\n\
        41 22 0:51 / /w/shared rw shared:2 master:3 - 9p box rw\n\
        not a line\n\
        42 22 7:0 /part /w/image\\134 ro - squashfs /dev/loop0 ro\n";

    #[test]
    fn disks_that_others_write_to_do_not_report_all() {
        let check = |folder: &str, expected: bool| {
            let folder = Path::new(folder);
            assert_eq!(reports_all(&parse(TABLE, folder), folder), expected, "{folder:?}");
        };
        check("/home/me", true);
        check("/net/my data/project", false);
        check("/net/my", true);
        check("/w", false);
        check("/w/shared/deep", false);
        check("/w/other", true);
    }

    #[test]
    fn mounts_above_and_below_a_folder_are_around_it() {
        let check = |folder: &str, expected: &[u64]| {
            let around = parse(TABLE, Path::new(folder));
            assert_eq!(around.iter().map(|it| it.id).collect::<Vec<_>>(), expected, "{folder}");
        };
        check("/home", &[22]);
        check("/w", &[22, 41, 42]);
        check("/w/image\\/a", &[22, 42]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_table_that_nobody_touches_is_not_reported_again() {
        let table = MountTable::open().unwrap();
        // Other tests may mount something at the same time.
        while table.has_changed() {}
        assert!(!table.around(Path::new("/")).unwrap().is_empty());
    }
}
