//! Bytes of a file as they were at one moment, while programs may be writing to it.
//!
//! A stat before and one after the read show most changes. Three they do not show: a second change within the
//! same tick of the kernel's clock, the rest of a `write` that had stamped the file before the first stat, and
//! stores through a mapping, which the kernel stamps once per page until it writes the page out. All three only
//! happen to files that changed a short while ago. Those are read twice: if both reads give the same bytes,
//! then the file held exactly these bytes at the moment between them.

use std::fs::File;
use std::os::unix::fs::FileExt;

use bivouac_core::id::ObjectId;
use rayon::prelude::*;
use rustix::fs::SeekFrom;

use crate::beneath::Stat;
use crate::chunks::ChunkList;

/// Does every change show in the stat of a file? The kernel writes pages out within half a minute, and only
/// then stamps the next store to them.
fn is_written_out(stat: &Stat, now_ns: i64) -> bool {
    const WRITTEN_OUT_NS: i64 = 60_000_000_000;
    stat.is_settled(now_ns - WRITTEN_OUT_NS)
}

/// Were these the chunks of a large file at one moment? The second read is on all cores.
pub(crate) fn is_sure_of_chunks(file: &File, before: &Stat, list: &ChunkList, now_ns: i64) -> bool {
    if is_written_out(before, now_ns) {
        return true;
    }
    wait_for_writer(file);
    let starts = list.chunks.iter().scan(0, |next, (_, length)| {
        let start = *next;
        *next += length;
        Some(start)
    });
    let chunks: Vec<_> = starts.zip(&list.chunks).collect();
    chunks.par_iter().all(|(start, (id, length))| {
        let mut bytes = vec![0; usize::try_from(*length).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, *start).is_ok() && ObjectId::of(&bytes) == *id
    })
}

/// Were these the bytes of a small file at one moment?
pub(crate) fn is_sure(file: &File, before: &Stat, bytes: &[u8], now_ns: i64) -> bool {
    if is_written_out(before, now_ns) {
        return true;
    }
    if !before.is_settled(now_ns) {
        wait_for_writer(file);
    }
    still_holds(file, bytes)
}

/// Does the file hold exactly these bytes, read a second time?
fn still_holds(file: &File, bytes: &[u8]) -> bool {
    let mut buffer = vec![0; (64 << 10).min(bytes.len() + 1)];
    let mut at = 0;
    loop {
        match file.read_at(&mut buffer, at as u64) {
            Ok(0) => return at == bytes.len(),
            Ok(n) if bytes.get(at..at + n) == Some(&buffer[..n]) => at += n,
            Ok(_) | Err(_) => return false,
        }
    }
}

/// Waits until a `write` that is under way has written all its bytes. Local file systems hold a file's lock
/// during a `write`, and take the same lock to look for data in it. Elsewhere this does nothing.
fn wait_for_writer(file: &File) {
    let _position = rustix::fs::seek(file, SeekFrom::Data(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_bytes_only_if_all_of_them_are_the_same() {
        let check = |now: &[u8], bytes: &[u8], holds: bool| {
            let path = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(path.path(), now).unwrap();
            let file = File::open(path.path()).unwrap();
            assert_eq!(still_holds(&file, bytes), holds, "{} and {}", now.len(), bytes.len());
        };
        let long = vec![7; 200_000];
        let other = [&long[..150_000], &[8], &long[150_001..]].concat();
        check(b"", b"", true);
        check(b"abc", b"abc", true);
        check(b"abcd", b"abc", false);
        check(b"ab", b"abc", false);
        check(&long, &long, true);
        check(&long, &other, false);
        check(&long, &long[..150_000], false);
    }
}
