//! Files that programs rewrite all the time while checkpoints are taken. A checkpoint holds such a file as it was
//! at one moment, or says that it changed while it was read.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::env;

const SAVES: usize = 8;
/// So many bytes are written at once. A reader that is not careful overtakes the writer, or is overtaken.
const WRITE: usize = 512 << 10;

/// Bytes that show whether they were written at once: one number, over and over.
fn stamped(n: u64) -> Vec<u8> {
    n.to_le_bytes().repeat(WRITE / 8)
}

/// Is it all of one write, and nothing of another? A log is one write after the other.
fn is_whole(name: &str, bytes: &[u8]) -> bool {
    let is_one = |bytes: &[u8]| bytes.chunks(8).all(|part| *part == bytes[..8]);
    let is_complete = !bytes.is_empty() && bytes.len().is_multiple_of(WRITE);
    is_complete && if name == "log.bin" { bytes.chunks(WRITE).all(is_one) } else { is_one(bytes) }
}

/// A file of several chunks: much that is written while it is read.
fn rewrite_large(path: &Path, n: u64) {
    let bytes = stamped(n).repeat(8);
    File::options().write(true).open(path).unwrap().write_all_at(&bytes, 0).unwrap();
}

fn rewrite_in_place(path: &Path, n: u64) {
    File::options().write(true).open(path).unwrap().write_all_at(&stamped(n), 0).unwrap();
}

fn append(path: &Path, n: u64) {
    let mut file = File::options().append(true).open(path).unwrap();
    // A log that is turned over, so that it does not grow without limit.
    if n.is_multiple_of(8) {
        let next = path.with_extension("next");
        fs::write(&next, stamped(n)).unwrap();
        fs::rename(&next, path).unwrap();
        return;
    }
    file.write_all(&stamped(n)).unwrap();
}

fn rename_over(path: &Path, n: u64) {
    let next = path.with_extension("next");
    fs::write(&next, stamped(n)).unwrap();
    fs::rename(&next, path).unwrap();
}

/// Writes in a loop until told to stop, and answers how often it wrote.
fn start(
    path: PathBuf,
    write: fn(&Path, u64),
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<u64> {
    fs::write(&path, stamped(0)).unwrap();
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let mut n = 1;
        while !stop.load(Ordering::Relaxed) {
            write(&path, n);
            n += 1;
        }
        n
    })
}

#[test]
fn a_file_that_is_rewritten_all_the_time_is_never_captured_torn() {
    let env = env();
    let stop = Arc::new(AtomicBool::new(false));
    let writers = [
        start(env.path("in_place.bin"), rewrite_in_place, &stop),
        start(env.path("large.bin"), rewrite_large, &stop),
        start(env.path("log.bin"), append, &stop),
        start(env.path("renamed.bin"), rename_over, &stop),
    ];
    for _ in 0..SAVES {
        env.biv(&["checkpoint", "create"]).ok();
    }
    stop.store(true, Ordering::Relaxed);
    let n_writes: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
    let (mut n_whole, mut n_torn, mut n_gaps) = (0, 0, 0);
    for n in 1..=SAVES {
        let into = env.root().join(format!("out/{n}"));
        let handle = format!("cp-{n:03}");
        env.biv(&["checkpoint", "restore", &handle, "--into", into.to_str().unwrap()]).ok();
        for name in ["in_place.bin", "large.bin", "log.bin", "renamed.bin"] {
            match fs::read(into.join(name)) {
                Ok(bytes) if is_whole(name, &bytes) => n_whole += 1,
                Ok(_) => n_torn += 1,
                Err(_) => {
                    let coverage = env.run(&format!("checkpoint show {handle} --coverage"));
                    assert!(coverage.contains(name), "a gap that is not told: {coverage}");
                    n_gaps += 1;
                }
            }
        }
    }
    let measured = format!("{n_whole} whole, {n_gaps} gaps beside {n_writes} writes");
    assert_eq!(n_torn, 0, "{measured}");
    assert!(n_whole > 0, "{measured}");
}
