//! The bytes of all files of a database at one moment, taken without stopping the program that writes them
//! for longer than a copy in memory takes.
//!
//! **With a write-ahead log** no lock is needed. Between two restarts of the log, every page that a checkpoint
//! copies into `X` stands in `X-wal`, and the log only grows. So `X` is read first and then all that `X-wal` has by
//! then; if the header of the log (its salts change with every restart) is the same before and after, then replaying the
//! log gives a committed state, whatever was copied into `X` meanwhile. A last transaction that is only half
//! in the log fails its checksum, and SQLite ignores it.
//!
//! **Without one**, a writer changes `X` in place and `X-journal` holds what was there. A database whose files
//! did not change for a while is read without a lock, and the files are looked at again afterwards. One that
//! is being written is read under SQLite's own shared lock, which every reader takes: it waits for the
//! transaction that runs, and holds up the next one until the files are in memory. The lock is on the whole
//! file, which covers the bytes SQLite locks, because only that can be had without `unsafe`. It belongs to the
//! process and goes with the first descriptor of `X` that is closed, so `X` is read through the descriptor
//! that holds it.
//!
//! `X-shm` is an index that SQLite can rebuild from the log. It is kept so that a restore can remove it and an
//! undo can bring it back, and nothing depends on its bytes.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use bivouac_core::checkpoint::Gap;
use rustix::fs::FlockOperation;

use crate::Result;
use crate::beneath::{Kind, Root, Stat, is_gone, stat_open};
use crate::database::{JOURNAL, MAIN, N_MEMBERS, SHM, WAL, members, wal_header};
use crate::take::Sink;
use crate::tree::Content;

/// Up to this size, the files of a database that is being written are read into memory before they are stored, so
/// that the moment in which nothing may change is short.
const IN_MEMORY: u64 = 256 << 20;
/// Up to this size, a lock is taken: copying as much takes some hundredths of a second.
const LOCKED: u64 = 64 << 20;
/// How long to try, and how often at least.
const PATIENCE: Duration = Duration::from_millis(250);
const ATTEMPTS: u32 = 3;
/// A program that writes all the time leaves only short moments between two transactions.
const PAUSE: Duration = Duration::from_micros(100);

pub(crate) struct DatabaseReader<'a> {
    pub(crate) root: &'a Root,
    pub(crate) max_file_size: u64,
    /// When the scan began, by the file system's clock, and by ours.
    pub(crate) now_ns: i64,
    pub(crate) began: Instant,
}

/// One file of a database.
#[derive(Clone, Copy)]
pub(crate) struct Member {
    pub(crate) stat: Stat,
    pub(crate) content: Content,
}

pub(crate) type Members = [Option<Member>; N_MEMBERS];

/// How reading a database ended.
pub(crate) enum Reading {
    /// All files that are there, as they were at one moment.
    Whole(Box<Members>),
    /// None of them.
    Gap(Gap),
    /// There is no database any more.
    Gone,
}

/// A file of a database, opened.
struct Opened {
    file: File,
    before: Stat,
}

type AllOpened = [Option<Opened>; N_MEMBERS];

/// Where the bytes go first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Into memory, to be stored later.
    Memory,
    /// To where they are stored, which takes longer.
    Sink,
}

/// What was read of a file.
enum Part {
    Known(Content),
    Bytes(Vec<u8>),
    Stored(Content),
}

impl DatabaseReader<'_> {
    /// Reads a database. What is `known` is not read again as long as its stat is the same.
    pub(crate) fn read(
        &self,
        main: &[u8],
        known: &Members,
        sink: &mut Sink<'_>,
    ) -> Result<Reading> {
        let began = Instant::now();
        let mut n_attempts = 0;
        loop {
            if let Some(reading) = self.attempt(&members(main), known, sink)? {
                return Ok(reading);
            }
            n_attempts += 1;
            if n_attempts >= ATTEMPTS && began.elapsed() >= PATIENCE {
                return Ok(Reading::Gap(Gap::ChangedWhileRead));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// `None` when the files changed while they were read, or are in the middle of a transaction.
    fn attempt(
        &self,
        paths: &[Vec<u8>; N_MEMBERS],
        known: &Members,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Reading>> {
        let mut opened = match self.open_all(paths) {
            Ok(opened) => opened,
            Err(reading) => return Ok(Some(reading)),
        };
        let generation = generation(&opened);
        let size: u64 = opened.iter().flatten().map(|it| it.before.size).sum();
        let is_at_rest = self.is_at_rest(&opened);
        if generation.is_none() && !is_at_rest {
            if size > LOCKED || !lock_shared(&opened) {
                return Ok(None);
            }
            // Only what is seen under the lock counts.
            if let Err(reading) = self.open_again(paths, &mut opened) {
                return Ok(Some(reading));
            }
        }
        let by_way_of = if is_at_rest || size > IN_MEMORY { Way::Sink } else { Way::Memory };
        let mut parts: [Option<Part>; N_MEMBERS] = Default::default();
        // The write-ahead log is the last one: it has to hold whatever was copied into the others.
        for at in [MAIN, JOURNAL, SHM, WAL] {
            let Some(it) = &mut opened[at] else { continue };
            if at == WAL && generation.is_some() {
                let Ok(now) = stat_open(&it.file) else { return Ok(None) };
                it.before = now;
            }
            let part = match known[at].filter(|known| known.stat.is_same(&it.before)) {
                Some(known) => Part::Known(known.content),
                None => match read_part(it, by_way_of, sink)? {
                    Some(part) => part,
                    None => return Ok(None),
                },
            };
            parts[at] = Some(part);
        }
        if generation != self::generation(&opened) || !self.is_still(paths, &opened) {
            return Ok(None);
        }
        let stats = opened.each_ref().map(|it| it.as_ref().map(|it| it.before));
        drop(opened); // and the lock with it
        store(parts, stats, sink)
    }

    fn open_all(&self, paths: &[Vec<u8>; N_MEMBERS]) -> Result<AllOpened, Reading> {
        let mut opened: AllOpened = Default::default();
        for (at, path) in paths.iter().enumerate() {
            opened[at] = self.open(path)?;
        }
        if opened[MAIN].is_none() {
            return Err(Reading::Gone);
        }
        Ok(opened)
    }

    /// Opens the siblings anew, and looks at `X` anew through the descriptor that holds the lock.
    fn open_again(
        &self,
        paths: &[Vec<u8>; N_MEMBERS],
        opened: &mut AllOpened,
    ) -> Result<(), Reading> {
        if let Some(main) = &mut opened[MAIN] {
            main.before = stat_open(&main.file).map_err(|_| Reading::Gap(Gap::Unreadable))?;
        }
        for at in [JOURNAL, SHM, WAL] {
            opened[at] = self.open(&paths[at])?;
        }
        Ok(())
    }

    /// `None` for what is not there, or is no file.
    fn open(&self, path: &[u8]) -> Result<Option<Opened>, Reading> {
        let file = match self.root.open_file(path) {
            Ok(file) => file,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(_) => return Err(Reading::Gap(Gap::Unreadable)),
        };
        match stat_open(&file) {
            Ok(before) if before.kind != Kind::File => Ok(None),
            Ok(before) if before.size > self.max_file_size => Err(Reading::Gap(Gap::TooLarge)),
            Ok(before) => Ok(Some(Opened { file, before })),
            Err(_) => Err(Reading::Gap(Gap::Unreadable)),
        }
    }

    /// Must any change from here on show in a stat?
    fn is_at_rest(&self, opened: &AllOpened) -> bool {
        let elapsed = i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let now_ns = self.now_ns.saturating_add(elapsed);
        opened.iter().flatten().all(|it| it.before.is_settled(now_ns))
    }

    /// Are the same files at the same paths, and unchanged? With a write-ahead log that was not started anew,
    /// `X` may have changed and the log may have grown. Nothing depends on the index.
    fn is_still(&self, paths: &[Vec<u8>; N_MEMBERS], opened: &AllOpened) -> bool {
        let has_log = generation(opened).is_some();
        let is_logged = has_log && opened[MAIN].as_ref().is_some_and(|it| writes_to_log(&it.file));
        [MAIN, JOURNAL, WAL].into_iter().all(|at| {
            let named = self.root.stat_beneath(&paths[at]).ok();
            let may_change = (at == MAIN && is_logged) || (at == WAL && has_log);
            match (&opened[at], named) {
                (None, named) => named.is_none_or(|it| it.kind != Kind::File),
                (Some(it), Some(named)) if may_change => named.inode == it.before.inode,
                (Some(it), Some(named)) => named.is_same(&it.before),
                (Some(_), None) => false,
            }
        })
    }
}

/// Does the database's own header say that its writers use a write-ahead log?
fn writes_to_log(main: &File) -> bool {
    const WRITE_VERSION_AT: u64 = 18;
    let mut version = [0];
    main.read_exact_at(&mut version, WRITE_VERSION_AT).is_ok() && version == [2]
}

/// Which run of its write-ahead log a database is in.
fn generation(opened: &AllOpened) -> Option<[u8; 32]> {
    opened[WAL].as_ref().and_then(|wal| wal_header(&wal.file))
}

fn lock_shared(opened: &AllOpened) -> bool {
    let lock = |it: &Opened| {
        rustix::fs::fcntl_lock(&it.file, FlockOperation::NonBlockingLockShared).is_ok()
    };
    opened[MAIN].as_ref().is_some_and(lock)
}

/// Reads as much of a file as it had when it was opened. `None` if there is less by now, or no memory for it.
fn read_part(it: &Opened, by_way_of: Way, sink: &mut Sink<'_>) -> Result<Option<Part>> {
    let mut from = (&it.file).take(it.before.size);
    if by_way_of == Way::Sink {
        return Ok(sink.put_stream(from, it.before.size)?.map(Part::Stored));
    }
    let mut bytes = Vec::new();
    let is_read = bytes.try_reserve_exact(it.before.size as usize).is_ok()
        && from.read_to_end(&mut bytes).is_ok()
        && bytes.len() as u64 == it.before.size;
    Ok(is_read.then_some(Part::Bytes(bytes)))
}

fn store(
    parts: [Option<Part>; N_MEMBERS],
    stats: [Option<Stat>; N_MEMBERS],
    sink: &mut Sink<'_>,
) -> Result<Option<Reading>> {
    let mut whole: Members = [None; N_MEMBERS];
    for (at, part) in parts.into_iter().enumerate() {
        let (Some(part), Some(stat)) = (part, stats[at]) else { continue };
        let content = match part {
            Part::Known(content) | Part::Stored(content) => Some(content),
            Part::Bytes(bytes) => sink.put_stream(bytes.as_slice(), stat.size)?,
        };
        let Some(content) = content else { return Ok(None) };
        whole[at] = Some(Member { stat, content });
    }
    Ok(Some(Reading::Whole(Box::new(whole))))
}
