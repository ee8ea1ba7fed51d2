//! A FUSE file system with one file, whose times never change: what a server may do whose author did not care.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::Mounted;

/// The file system as long as the test has it. The file is called `file`.
pub struct FixedTimes {
    content: Arc<Mutex<Vec<u8>>>,
    _mounted: Mounted,
}

impl FixedTimes {
    /// `None` where this machine, or this user, cannot.
    pub fn mount(place: &Path, content: &str) -> Option<Self> {
        let device = File::options().read(true).write(true).open("/dev/fuse").ok()?;
        // `mount` has to inherit it.
        rustix::io::fcntl_setfd(&device, rustix::io::FdFlags::empty()).ok()?;
        let options =
            format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device.as_raw_fd());
        let content = Arc::new(Mutex::new(content.as_bytes().to_vec()));
        let mounted = Mounted::at(place, &["-i", "-t", "fuse", "-o", &options, "biv-test"])?;
        rustix::io::fcntl_setfd(&device, rustix::io::FdFlags::CLOEXEC).ok()?;
        let served = Arc::clone(&content);
        thread::spawn(move || serve(&device, &served));
        Some(Self { content, _mounted: mounted })
    }

    /// Changes the content, and nothing else.
    pub fn set(&self, content: &str) {
        *self.content.lock().unwrap() = content.as_bytes().to_vec();
    }
}

const ROOT: u64 = 1;
const FILE: u64 = 2;
const NOT_FOUND: i32 = -2;
const NOT_KNOWN: i32 = -38;

/// Answers until the file system is unmounted.
fn serve(mut device: &File, content: &Mutex<Vec<u8>>) {
    let mut buffer = vec![0; 256 << 10];
    while let Ok(length) = device.read(&mut buffer) {
        let Some(question) = Question::read(&buffer[..length]) else { return };
        let Some(answer) = question.answer(&content.lock().unwrap()) else { continue };
        let (error, body) = answer.map_or_else(|error| (error, Vec::new()), |body| (0, body));
        let mut bytes = u32::try_from(16 + body.len()).unwrap().to_le_bytes().to_vec();
        bytes.extend(error.to_le_bytes());
        bytes.extend(question.unique.to_le_bytes());
        bytes.extend(body);
        let _interrupted_meanwhile = device.write_all(&bytes);
    }
}

struct Question<'q> {
    code: u32,
    unique: u64,
    node: u64,
    body: &'q [u8],
}

impl<'q> Question<'q> {
    fn read(bytes: &'q [u8]) -> Option<Self> {
        let (code, unique, node) = (u32_at(bytes, 4)?, u64_at(bytes, 8)?, u64_at(bytes, 16)?);
        Some(Self { code, unique, node, body: bytes.get(40..)? })
    }

    /// `None` for what expects no answer.
    fn answer(&self, content: &[u8]) -> Option<Result<Vec<u8>, i32>> {
        const NAME: &[u8] = b"file\0";
        Some(match self.code {
            1 if self.node == ROOT && self.body == NAME => {
                Ok(words(&[FILE, 0, 0, 0, 0]).chain(attributes(FILE, content.len())).collect())
            }
            1 => Err(NOT_FOUND),
            2 | 42 => return None,
            3 => Ok(words(&[0, 0]).chain(attributes(self.node, content.len())).collect()),
            14 | 27 => Ok(words(&[0, 1]).collect()), // not cached
            15 => {
                let (offset, size) = self.range();
                let end = content.len().min(offset + size);
                Ok(content.get(offset..end).unwrap_or_default().to_vec())
            }
            17 => Ok(vec![0; 80]),
            18 | 25 | 29 => Ok(Vec::new()),
            26 => Ok(hello()),
            28 => Ok(if self.range().0 == 0 { listing() } else { Vec::new() }),
            _ => Err(NOT_KNOWN),
        })
    }

    fn range(&self) -> (usize, usize) {
        let offset = u64_at(self.body, 8).unwrap_or(0);
        (usize::try_from(offset).unwrap(), u32_at(self.body, 16).unwrap_or(0) as usize)
    }
}

/// We speak version 7.31, with nothing special.
fn hello() -> Vec<u8> {
    let mut bytes: Vec<u8> =
        [7u32, 31, 0, 0, 0, 4096, 1].iter().flat_map(|it| it.to_le_bytes()).collect();
    bytes.resize(64, 0);
    bytes
}

fn attributes(node: u64, size: usize) -> Vec<u8> {
    const LONG_AGO: u64 = 1_600_000_000;
    let (mode, size) = if node == ROOT { (0o40_755, 0) } else { (0o100_644, size as u64) };
    let small: [u32; 10] = [1, 1, 1, mode, 1, 0, 0, 0, 4096, 0];
    let large = [node, size, 0, LONG_AGO, LONG_AGO, LONG_AGO];
    words(&large).chain(small.iter().flat_map(|it| it.to_le_bytes())).collect()
}

/// The one name there is, behind which the folder ends.
fn listing() -> Vec<u8> {
    let mut bytes: Vec<u8> = words(&[FILE, 1]).collect();
    bytes.extend(4u32.to_le_bytes());
    bytes.extend(8u32.to_le_bytes()); // a regular file
    bytes.extend(b"file\0\0\0\0");
    bytes
}

fn words(words: &[u64]) -> impl Iterator<Item = u8> {
    words.iter().flat_map(|it| it.to_le_bytes())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
