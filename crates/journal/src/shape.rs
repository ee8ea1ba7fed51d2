//! Is the database made as this version makes it, and was all of its log understood? SQLite asks neither: a flipped
//! bit in the name of a column is another name to it, and one in the log is the log's end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::{Access, Error, Journal, Result, migrate, projection};

/// Tables, indexes and triggers that are not as they should be.
#[derive(Debug, Default)]
pub struct Misshapen {
    pub names: BTreeSet<String>,
    /// They cannot be made anew where they are.
    pub is_damage: bool,
}

/// What follows the end of the journal's log: commits that were not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogTail {
    Whole,
    /// The very last one. A power cut leaves this behind as well, before anything was acknowledged.
    Torn,
    /// What came before others that were written later.
    Damaged,
}

impl Journal {
    pub fn misshapen(&self) -> Result<Misshapen> {
        // What another version made is its own affair.
        if matches!(self.access, Access::Newer { .. })
            || migrate::version(&self.connection)? != migrate::known_version()
        {
            return Ok(Misshapen::default());
        }
        let fresh = Connection::open_in_memory()?;
        migrate::create_truth(&fresh)?;
        let truth = shape(&fresh)?;
        projection::create(&fresh)?;
        let (expected, found) = (shape(&fresh)?, shape(&self.connection)?);
        let names = expected.keys().chain(found.keys());
        let wrong = names.filter(|name| expected.get(*name) != found.get(*name));
        let names: BTreeSet<String> = wrong.cloned().collect();
        // What only follows from the truth and is gone can be made anew. What became something else is in the way.
        let is_made_anew = |name: &String| !found.contains_key(name) && !truth.contains_key(name);
        Ok(Misshapen { is_damage: !names.iter().all(is_made_anew), names })
    }

    /// Looks behind what SQLite takes for the end of its log. Not while a moment is held.
    pub fn log_tail(&self) -> Result<LogTail> {
        const N_LOOKS: u32 = 5;
        let Some(path) = self.connection.path().filter(|path| !path.is_empty()) else {
            return Ok(LogTail::Whole);
        };
        let path = format!("{path}-wal");
        let page_size: u32 =
            self.connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let look = || match File::open(&path) {
            Ok(log) => n_commits_behind(BufReader::new(log), page_size as usize),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        };
        let look = || look().map_err(Error::UnreadableLog);
        // Somebody may be writing it just now, or beginning it anew.
        for _ in 0..N_LOOKS {
            if look()? == 0 {
                return Ok(LogTail::Whole);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // Whoever does has done so before another gets a turn.
        let turn = match self.access {
            Access::ReadOnly => None,
            Access::Write | Access::Newer { .. } => {
                Some(Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?)
            }
        };
        let n_behind = look()?;
        drop(turn);
        match n_behind {
            0 => Ok(LogTail::Whole),
            1 => Ok(LogTail::Torn),
            _ => {
                keep_log(&self.connection)?;
                Ok(LogTail::Damaged)
            }
        }
    }
}

/// Whoever closes a database last removes its log. One that is damaged has to stay.
pub(crate) fn keep_log(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(())
}

/// How every table, index and trigger is made, by name.
fn shape(connection: &Connection) -> Result<BTreeMap<String, String>> {
    let sql = "SELECT name, type || ' ' || tbl_name || ' ' || coalesce(sql, '') FROM sqlite_schema";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

const HEADER: usize = 32;

/// How many commits, one upon the other, lie behind the end of the log: the first frame that does not continue a sound
/// beginning. Every commit is durable before the next one begins, so that of two the first was whole once. What an
/// earlier round left behind has other salts and does not continue what is before it; nor does what a killed writer
/// left behind.
fn n_commits_behind(mut log: impl Read, page_size: usize) -> io::Result<usize> {
    let mut header = [0; HEADER];
    if !fill(&mut log, &mut header)? {
        return Ok(0);
    }
    let mut before = numbers(&header[24..]);
    let says_big_endian = header[3] & 1 == 1;
    let is_header_sound = sum([0; 2], &header[..24], says_big_endian) == before;
    let is_big_endian = if is_header_sound { says_big_endian } else { cfg!(target_endian = "big") };
    let mut salts = is_header_sound.then(|| header[16..24].to_vec());
    let (mut is_understood, mut is_chained) = (is_header_sound, true);
    let (mut most, mut run) = (0, 0);
    let mut frame = vec![0; 24 + page_size];
    while fill(&mut log, &mut frame)? {
        let (head, page) = frame.split_at(24);
        let is_of_this_round = salts.get_or_insert_with(|| head[8..16].to_vec()) == &head[8..16];
        let is_commit = head[4..8] != [0; 4];
        let own = numbers(&head[16..24]);
        let is_next = sum(sum(before, &head[..8], is_big_endian), page, is_big_endian) == own;
        before = own;
        is_understood &= is_next && is_of_this_round;
        // What an earlier round left behind continues itself, and not this one.
        is_chained &= is_next;
        if !is_next {
            run = 0;
        }
        let is_lost = is_commit && !is_understood && (is_of_this_round || is_chained);
        run += usize::from(is_lost);
        most = most.max(run);
    }
    Ok(most)
}

/// Is there as much as that?
fn fill(log: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

fn numbers(bytes: &[u8]) -> [u32; 2] {
    let number =
        |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [number(0), number(4)]
}

/// SQLite's sum over pairs of numbers, which are in the order of whoever began the log.
fn sum([mut one, mut two]: [u32; 2], bytes: &[u8], is_big_endian: bool) -> [u32; 2] {
    for pair in bytes.chunks_exact(8) {
        let [x, y] = numbers(pair);
        let [x, y] = if is_big_endian { [x, y] } else { [x.swap_bytes(), y.swap_bytes()] };
        one = one.wrapping_add(x).wrapping_add(two);
        two = two.wrapping_add(y).wrapping_add(one);
    }
    [one, two]
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const PAGE: usize = 4096;
    const FRAME: usize = 24 + PAGE;

    /// The log of three commits, and how many frames the first of them has; and the log after a fourth one, with
    /// which it began anew.
    fn log() -> (Vec<u8>, usize, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("db")).unwrap();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        let read = || std::fs::read(folder.path().join("db-wal")).unwrap();
        connection.execute_batch("CREATE TABLE it (word TEXT)").unwrap();
        let n_first = (read().len() - HEADER) / FRAME;
        let add = || connection.execute_batch("INSERT INTO it VALUES ('a')").unwrap();
        add();
        add();
        let log = read();
        connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        add();
        (log, n_first, read())
    }

    fn check(what: &str, log: &[u8], expected: usize) {
        assert_eq!(n_commits_behind(log, PAGE).unwrap(), expected, "{what}");
    }

    #[test]
    fn commits_behind_the_end_of_a_log_are_counted() {
        let (log, n_first, anew) = log();
        let flipped = |at: usize| {
            let mut log = log.clone();
            log[at] ^= 1;
            log
        };
        check("all of it is known", &log, 0);
        check("there is none", &[], 0);
        check("its last frame is being written", &log[..log.len() - 1], 0);
        check("the first commit was changed", &flipped(HEADER + 24), 3);
        check("its salt was changed", &flipped(HEADER + 8), 3);
        check("the header was changed", &flipped(16), 3);
        check("the order of its numbers was changed", &flipped(3), 3);
        let second = HEADER + n_first * FRAME;
        check("the second commit was changed", &flipped(second + 24), 2);
        check("the last commit was changed", &flipped(log.len() - 1), 1);
        check("it began anew", &anew, 0);
        let begun = [&anew[..HEADER], &log[HEADER..]].concat();
        check("it is just beginning anew", &begun, 0);
    }

    #[test]
    fn a_log_is_looked_at_where_nothing_may_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let writer = Journal::open(&path).unwrap().connection;
        keep_log(&writer).unwrap();
        writer.execute_batch("CREATE TABLE it (word TEXT)").unwrap();
        drop(writer);
        let tail = || Journal::open_read_only(&path).unwrap().log_tail().unwrap();
        assert_eq!(tail(), LogTail::Whole);
        let log_path = folder.path().join("sessions.db-wal");
        let mut log = std::fs::read(&log_path).unwrap();
        log[HEADER] ^= 1;
        std::fs::write(&log_path, log).unwrap();
        assert_eq!(tail(), LogTail::Damaged);
    }

    /// However often the log begins anew while it is looked at.
    #[test]
    fn a_log_in_use_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let journal = Journal::open(&path).unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let writer = Journal::open(&path).unwrap().connection;
                writer.execute_batch("CREATE TABLE it (word TEXT)").unwrap();
                while !is_done.load(Ordering::Relaxed) {
                    for _ in 0..5 {
                        writer.execute_batch("INSERT INTO it VALUES ('a')").unwrap();
                    }
                    writer.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
                }
            });
            let looks: Vec<Result<LogTail>> = (0..200).map(|_| journal.log_tail()).collect();
            is_done.store(true, Ordering::Relaxed);
            let is_whole = |look: &Result<LogTail>| matches!(look, Ok(LogTail::Whole));
            assert!(looks.iter().all(is_whole), "{looks:?}");
        });
    }
}
