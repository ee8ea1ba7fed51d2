//! File systems that a test mounts for itself, and that go with it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A mount that ends with the test.
pub struct Mounted {
    place: PathBuf,
}

impl Mounted {
    /// Runs `mount` with these words, at a folder that is made if need be. `None` where this machine, or this user,
    /// cannot: a test then says that it was left out.
    pub fn at(place: &Path, words: &[&str]) -> Option<Self> {
        std::fs::create_dir_all(place).unwrap();
        let is_done = tool("mount").args(words).arg(place).status().is_ok_and(|it| it.success());
        is_done.then(|| Self { place: place.to_owned() })
    }

    /// An image behind a loop device.
    pub fn image(place: &Path, image: &Path, options: &str) -> Option<Self> {
        Self::at(place, &["-o", &format!("loop,{options}"), image.to_str().unwrap()])
    }

    pub fn unmount(self) {
        drop(self);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let is_done = |words: &[&str]| {
            tool("umount").args(words).arg(&self.place).status().is_ok_and(|it| it.success())
        };
        // A program may still have a file open for a moment.
        let _gone_with_the_machine_at_the_latest = is_done(&[]) || is_done(&["-l"]);
    }
}

/// A program of the system, without a word from it.
fn tool(program: &str) -> Command {
    #[expect(clippy::disallowed_methods, reason = "tests mount what they need")]
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Makes an ext4 image of 2 MiB that holds a folder. `false` without `mkfs.ext4`.
pub fn make_ext4(image: &Path, folder: &Path) -> bool {
    let mut command = tool("mkfs.ext4");
    command.args(["-q", "-F", "-d"]).arg(folder).arg(image).arg("2M");
    command.status().is_ok_and(|it| it.success())
}

/// Makes a file of an ext4 image old: nobody can do that to a file that is mounted.
pub fn make_old(image: &Path, file: &str) {
    for time in ["ctime", "mtime"] {
        let order = format!("set_inode_field {file} {time} 20200101000001");
        let is_done = tool("debugfs").args(["-w", "-R", &order]).arg(image).status();
        assert!(is_done.unwrap().success());
    }
}

/// An erofs image that holds one file: as read-only images are, with one time for everything. It is put together
/// here because few machines have the tool for it.
pub fn erofs(name: &str, content: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 4096;
    assert!(content.len() <= BLOCK && name.len() < 100);
    let mut image = vec![0u8; 4 * BLOCK];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    // The superblock: magic, block size, root inode, number of inodes, one time for all, where inodes begin.
    let head = 1024;
    put(head, &0xE0F5_E1E2u32.to_le_bytes());
    put(head + 12, &[12]);
    put(head + 14, &1u16.to_le_bytes());
    put(head + 16, &2u64.to_le_bytes());
    put(head + 24, &1_600_000_000u64.to_le_bytes());
    put(head + 36, &4u32.to_le_bytes());
    put(head + 40, &1u32.to_le_bytes());
    // Two inodes in the second block, each with its data in a block of its own.
    let mut inode = |number: usize, mode: u16, size: usize, block: u32| {
        let at = BLOCK + 32 * number;
        put(at + 4, &mode.to_le_bytes());
        put(at + 6, &1u16.to_le_bytes());
        put(at + 8, &u32::try_from(size).unwrap().to_le_bytes());
        put(at + 16, &block.to_le_bytes());
        put(at + 20, &u32::try_from(number).unwrap().to_le_bytes());
    };
    let mut names: Vec<(&[u8], u64, u8)> =
        vec![(b".", 1, 2), (b"..", 1, 2), (name.as_bytes(), 2, 1)];
    names.sort_unstable();
    let listed = 12 * names.len() + names.iter().map(|(name, ..)| name.len()).sum::<usize>();
    inode(1, 0o40755, listed, 2);
    inode(2, 0o100_644, content.len(), 3);
    let mut name_at = 12 * names.len();
    for (number, (name, inode, kind)) in names.iter().enumerate() {
        let at = 2 * BLOCK + 12 * number;
        put(at, &inode.to_le_bytes());
        put(at + 8, &u16::try_from(name_at).unwrap().to_le_bytes());
        put(at + 10, &[*kind]);
        put(2 * BLOCK + name_at, name);
        name_at += name.len();
    }
    put(3 * BLOCK, content);
    image
}
