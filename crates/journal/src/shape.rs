//! Is the database made as this version makes it, and was all of its log understood? SQLite asks neither: a flipped
//! bit in the name of a column is another name to it, and one in the log is the log's end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::{Access, Journal, Result, migrate, projection};

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
        const PATIENCE: u32 = 20;
        let Some(path) = self.connection.path().filter(|path| !path.is_empty()) else {
            return Ok(LogTail::Whole);
        };
        let path = format!("{path}-wal");
        let page_size: u32 =
            self.connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let mut n_behind = 0;
        let mut is_certain = self.access != Access::Write;
        for _ in 0..PATIENCE {
            let Ok(log) = std::fs::read(&path) else { return Ok(LogTail::Whole) };
            let n_known = self.n_known_frames()?;
            // What was read before it began anew says nothing about what is known since.
            if !begins_with(&path, log.get(..HEADER)) {
                continue;
            }
            n_behind = n_commits_behind(&log, n_known, page_size as usize);
            if n_behind == 0 {
                return Ok(LogTail::Whole);
            }
            // Somebody may be writing it just now. Whoever does has done so before another gets a turn.
            let had_turn = self.connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok();
            if had_turn && self.n_known_frames()? == n_known {
                is_certain = true;
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        match n_behind {
            0 => Ok(LogTail::Whole),
            1 if !is_certain => Ok(LogTail::Whole),
            1 => Ok(LogTail::Torn),
            _ => {
                keep_log(&self.connection)?;
                Ok(LogTail::Damaged)
            }
        }
    }

    fn n_known_frames(&self) -> Result<usize> {
        let known: i64 =
            self.connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))?;
        Ok(usize::try_from(known).unwrap_or(0))
    }
}

/// The length of what the log begins with. It is another one each time that the log begins anew.
const HEADER: usize = 32;

fn begins_with(path: &str, header: Option<&[u8]>) -> bool {
    let mut now = [0; HEADER];
    let read = std::fs::File::open(path).and_then(|mut log| log.read_exact(&mut now));
    read.is_ok() && header == Some(&now)
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

/// How many commits, one upon the other, lie behind the first `n_known` frames of the log. Every commit is durable
/// before the next one begins, so that of two the first was whole once. What an earlier round left behind has other
/// salts and does not continue what is before it; nor does what a killed writer left behind.
fn n_commits_behind(log: &[u8], n_known: usize, page_size: usize) -> usize {
    let Some((header, frames)) = log.split_at_checked(HEADER) else { return 0 };
    let is_reversed = header[3] & 1 == 1;
    let frames: Vec<&[u8]> = frames.chunks_exact(24 + page_size).collect();
    let (Some(first), Some(behind)) = (frames.first(), frames.get(n_known..)) else { return 0 };
    let is_header_sound = sum([0, 0], &header[..24], is_reversed) == numbers(&header[24..]);
    let is_from_header = n_known == 0 && is_header_sound;
    let salts = if is_from_header { &header[16..24] } else { &first[8..16] };
    let is_commit = |frame: &[u8]| frame[4..8] != [0; 4];
    let continues = |frame: &[u8], before: &[u8]| {
        let head = sum(numbers(before), &frame[..8], is_reversed);
        sum(head, &frame[24..], is_reversed) == numbers(&frame[16..24])
    };
    let last_known = n_known.checked_sub(1).map(|last| frames[last]);
    // It has grown since it was read, and behind that is what an earlier round left.
    if last_known.is_some_and(|frame| &frame[8..16] != salts) {
        return 0;
    }
    let last_known = last_known.map_or(&header[24..32], |frame| &frame[16..24]);
    let (mut most, mut run, mut is_chained) = (0, 0, true);
    let mut is_understood = is_from_header;
    for (n, frame) in behind.iter().enumerate() {
        let before = if n == 0 { last_known } else { &behind[n - 1][16..24] };
        let is_next = continues(frame, before);
        // SQLite knows of every commit that continues a sound beginning. Where it knows of none, all of them are in
        // the database, and whoever was about to begin the log anew has not come to that.
        is_understood &= is_next && &frame[8..16] == salts;
        if is_understood && is_commit(frame) {
            return 0;
        }
        if n > 0 && !is_next {
            run = 0;
        }
        // What an earlier round left behind continues itself, and not what is known.
        is_chained &= is_next;
        let is_of_this_round = &frame[8..16] == salts || is_chained;
        run += usize::from(is_commit(frame) && is_of_this_round);
        most = most.max(run);
    }
    most
}

fn numbers(bytes: &[u8]) -> [u32; 2] {
    let number =
        |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [number(0), number(4)]
}

/// SQLite's sum over pairs of numbers, which are in the order of whoever began the log.
fn sum([mut one, mut two]: [u32; 2], bytes: &[u8], is_reversed: bool) -> [u32; 2] {
    for pair in bytes.chunks_exact(8) {
        let [x, y] = numbers(pair);
        let [x, y] = if is_reversed { [x, y] } else { [x.swap_bytes(), y.swap_bytes()] };
        one = one.wrapping_add(x).wrapping_add(two);
        two = two.wrapping_add(y).wrapping_add(one);
    }
    [one, two]
}

#[cfg(test)]
mod tests {
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

    fn check(what: &str, log: &[u8], n_known: usize, expected: usize) {
        assert_eq!(n_commits_behind(log, n_known, PAGE), expected, "{what}");
    }

    #[test]
    fn commits_behind_the_end_of_a_log_are_counted() {
        let (log, n_first, anew) = log();
        let n_frames = (log.len() - HEADER) / FRAME;
        let flipped = |at: usize| {
            let mut log = log.clone();
            log[at] ^= 1;
            log
        };
        check("all of it is known", &log, n_frames, 0);
        check("it is about to begin anew", &log, 0, 0);
        check("the first commit was changed", &flipped(HEADER + 24), 0, 3);
        check("its salt was changed", &flipped(HEADER + 8), 0, 3);
        check("the header was changed", &flipped(16), 0, 3);
        let second = HEADER + n_first * FRAME;
        check("the second commit was changed", &flipped(second + 24), n_first, 2);
        check("the last commit was changed", &flipped(log.len() - 1), n_frames - 1, 1);
        check("it began anew", &anew, 1, 0);
        check("it began anew and has grown since it was read", &anew, 2, 0);
    }
}
