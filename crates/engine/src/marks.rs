//! The highest checkpoint number that each day has given out, kept outside the store: when an older copy of the
//! store is put back, the numbers that people have seen since are still not used twice.
//!
//! One small file per store in the user's state folder, named after the store's path. It is written without waiting
//! for the disk, and where it cannot be read or written, numbers follow from the store alone.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bivouac_capture::folder;
use bivouac_core::id::CheckpointHandle;
use bivouac_core::path::WorkspacePath;
use bivouac_snapshot::private::{self, Open};

use crate::home::{Home, state_folder};
use crate::{Engine, Result};

/// So many days are remembered: a clock can be set back by some.
const MANY_DAYS: usize = 8;
/// A file with more than this is not ours, and neither is a higher number.
const MAX_BYTES: u64 = 4 << 10;
const MAX_NUMBER: u32 = 1_000_000;

impl Engine {
    /// The next handle of a day, which no checkpoint of this store ever had.
    pub(crate) fn next_handle(&self, day: jiff::civil::Date) -> Result<CheckpointHandle> {
        let prefix = CheckpointHandle::day_prefix(day);
        let next = self.journal.next_number(&prefix)?;
        let seen = marks_file(&self.home).map_or(0, |path| last(&path, &prefix));
        Ok(CheckpointHandle::new(day, next.max(seen + 1)))
    }

    /// A handle was given out. Losing this costs nothing as long as nobody puts an older store back.
    pub(crate) fn remember_handle(&self, handle: &CheckpointHandle) {
        if let (Some(path), Some(number)) = (marks_file(&self.home), handle.number()) {
            let _numbers_follow_from_the_store = raise(&path, handle.prefix(), number);
        }
    }
}

fn marks_file(home: &Home) -> Option<PathBuf> {
    let store = home.store.canonicalize().ok()?;
    let key = WorkspacePath::new(store.as_os_str().as_bytes()).key();
    Some(state_folder()?.join("handles").join(key))
}

fn last(path: &Path, prefix: &str) -> u32 {
    let file = private::open(path, Open::Read);
    let marks = file.and_then(|mut file| read(&mut file)).unwrap_or_default();
    marks.iter().find(|(known, _)| known == prefix).map_or(0, |(_, number)| *number)
}

/// Under a lock, so that the lower of two numbers never takes the place of the higher one.
fn raise(path: &Path, prefix: &str, number: u32) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        folder::make(folder)?;
    }
    let mut file = private::open(path, Open::WriteOrCreate)?;
    lock(&file)?;
    let mut marks = read(&mut file)?;
    match marks.iter_mut().find(|(known, _)| known == prefix) {
        Some((_, known)) if *known >= number => return Ok(()),
        Some((_, known)) => *known = number,
        None => marks.push((prefix.to_owned(), number)),
    }
    // The oldest day goes first: prefixes sort by their dates.
    marks.sort();
    let first = marks.len().saturating_sub(MANY_DAYS);
    let lines = marks[first..].iter().map(|(prefix, number)| format!("{prefix}{number:03}\n"));
    let text: String = lines.collect();
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

/// Whoever has it holds it for moments.
fn lock(file: &File) -> io::Result<()> {
    for _ in 0..20 {
        match file.try_lock() {
            Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
            Ok(()) => return Ok(()),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

fn read(file: &mut File) -> io::Result<Vec<(String, u32)>> {
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    let mark = |line: &str| {
        let (prefix, number) = line.split_at(line.rfind('-')? + 1);
        let number = number.parse().ok().filter(|number| *number <= MAX_NUMBER)?;
        Some((prefix.to_owned(), number))
    };
    Ok(text.lines().filter_map(mark).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_higher_number_counts_and_the_oldest_days_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/marks");
        for (prefix, number, then) in [("a-", 3, 3), ("a-", 2, 3), ("a-", 7, 7), ("b-", 1, 1)] {
            raise(&path, prefix, number).unwrap();
            assert_eq!(last(&path, prefix), then);
        }
        (0..MANY_DAYS).for_each(|day| raise(&path, &format!("c{day}-"), 1).unwrap());
        assert_eq!((last(&path, "a-"), last(&path, "c7-")), (0, 1));
    }

    #[test]
    fn what_is_not_ours_counts_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("marks");
        std::fs::write(&path, "a-4294967295\nb-\nc--1\n\n").unwrap();
        assert_eq!(["a-", "b-", "c-"].map(|prefix| last(&path, prefix)), [0, 0, 0]);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(raise(&path, "a", 1).is_err());
    }
}
