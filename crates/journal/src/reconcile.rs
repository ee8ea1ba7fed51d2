//! Rebuilding the tables from the events, and telling what was wrong with them.

use std::collections::HashSet;
use std::path::Path;

use bivouac_core::id::{CheckpointId, SessionId};
use bivouac_core::redact::Redactor;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::projection::{self, Applied, TABLES};
use crate::shape;
use crate::stored::{COLUMNS, StoredEvent};
use crate::{Error, Journal, Result, append, read};

/// What a rebuild found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    pub n_events: u64,
    /// Tables whose rows were not what the events say, with how many differed.
    pub mended: Vec<(&'static str, u64)>,
    /// Events that could not be used, by sequence.
    pub unusable: Vec<i64>,
}

impl Journal {
    /// Drops all projections and makes them anew.
    pub fn reconcile(&mut self) -> Result<Rebuilt> {
        let redactor = self.redactor.clone();
        let transaction =
            self.writable()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let before = dump(&transaction);
        projection::create(&transaction)?;
        let mut rebuilt =
            Rebuilt { unusable: replay(&transaction, &redactor)?, ..Rebuilt::default() };
        let after = dump(&transaction);
        rebuilt.n_events = transaction
            .query_row("SELECT count(*) FROM events", [], |row| row.get::<_, i64>(0))?
            as u64;
        for ((table, _), (before, after)) in TABLES.iter().zip(before.iter().zip(&after)) {
            let n_different = difference(before, after);
            if n_different > 0 {
                rebuilt.mended.push((table, n_different));
            }
        }
        transaction.commit()?;
        Ok(rebuilt)
    }

    /// Are the tables what the events say? Answers the names of those that are not.
    pub fn drifted_tables(&self) -> Result<Vec<&'static str>> {
        let memory = Connection::open_in_memory()?;
        memory.execute_batch(include_str!("schema/0001_journal.sql"))?;
        projection::create(&memory)?;
        for stored in read::all(&self.connection)? {
            match projection::apply(&memory, &stored, &self.redactor) {
                Err(Error::BadEvent { .. }) | Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        let (ours, expected) = (dump(&self.connection), dump(&memory));
        let rows = ours.iter().zip(&expected);
        Ok(TABLES
            .iter()
            .zip(rows)
            .filter(|(_, (ours, expected))| ours != expected)
            .map(|((table, _), _)| *table)
            .collect())
    }

    /// Does the database answer at all, from its first page to its last?
    pub fn check_usable(&self) -> Result<()> {
        self.connection.query_row(
            "SELECT count(*), coalesce(sum(length(data)), 0) FROM events",
            [],
            |_| Ok(()),
        )?;
        let faults = self.integrity()?;
        match faults.first() {
            None => Ok(()),
            Some(fault) => {
                let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
                Err(Error::Damaged(rusqlite::Error::SqliteFailure(code, Some(fault.clone()))))
            }
        }
    }

    /// Reads what can still be read of a damaged journal: every event that is what was written.
    pub fn salvage(path: &Path) -> Vec<StoredEvent> {
        let Ok(connection) = crate::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE) else {
            return Vec::new();
        };
        let _kept_where_it_can_be = shape::keep_log(&connection);
        let newest = connection
            .query_row("SELECT max(sequence) FROM events", [], |row| row.get(0))
            .unwrap_or(0);
        let sql = format!("SELECT {COLUMNS} FROM events WHERE sequence = ?");
        let Ok(mut statement) = connection.prepare(&sql) else {
            return Vec::new();
        };
        let mut events = Vec::new();
        for sequence in 1..=newest {
            let read = statement.query_row([sequence], |row| Ok(StoredEvent::read(row)));
            if let Ok(Ok(stored)) = read
                && stored.hash == stored.expected_hash()
            {
                events.push(stored);
            }
        }
        events
    }

    /// Takes in salvaged events. Where one before them is gone, the chain is closed over the gap.
    /// Answers how many there were.
    pub fn import(&mut self, events: Vec<StoredEvent>) -> Result<u64> {
        let transaction =
            self.writable()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let count = events.len() as u64;
        for mut stored in events {
            let (sequence, previous_hash) = append::head(&transaction, stored.session_id)?;
            stored.session_sequence = sequence + 1;
            stored.previous_hash = previous_hash;
            stored.hash = stored.expected_hash().to_vec();
            append::insert(&transaction, &stored)?;
        }
        transaction.commit()?;
        Ok(count)
    }

    pub fn has_session(&self, id: SessionId) -> Result<bool> {
        projection::has_session(&self.connection, id)
    }

    /// Every checkpoint that was ever recorded, deleted or not. One whose session is gone is of no use to anybody.
    pub fn known_checkpoints(&self) -> Result<HashSet<CheckpointId>> {
        let sql =
            "SELECT coalesce(json_extract(data, '$.checkpoint.id'), json_extract(data, '$.id'))
                   FROM events WHERE kind = 'checkpoint.deleted'
                       OR kind = 'checkpoint.taken' AND session_id IN (SELECT id FROM sessions)";
        let ids = self.rows(sql, [], |row| crate::stored::parse(row, 0, "events"))?;
        Ok(ids.into_iter().collect())
    }
}

fn replay(connection: &Connection, redactor: &Redactor) -> Result<Vec<i64>> {
    let mut unusable = Vec::new();
    for stored in read::all(connection)? {
        match projection::apply(connection, &stored, redactor) {
            Ok(Applied::Yes) => {}
            Ok(Applied::NoSession) | Err(Error::BadEvent { .. }) => unusable.push(stored.sequence),
            Err(error) => return Err(error),
        }
    }
    Ok(unusable)
}

/// All rows of all projections as text, sorted. A table that is missing or misshapen has none.
fn dump(connection: &Connection) -> Vec<Vec<String>> {
    TABLES
        .iter()
        .map(|(table, key)| dump_table(connection, table, key).unwrap_or_default())
        .collect()
}

fn dump_table(connection: &Connection, table: &str, key: &str) -> Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY {key}"))?;
    let n_columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let mut line = String::new();
        for column in 0..n_columns {
            let value = row.get_ref(column)?;
            let text = match value {
                ValueRef::Null => "-".to_owned(),
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Real(number) => number.to_string(),
                ValueRef::Text(bytes) => format!("t{}", bytes.escape_ascii()),
                ValueRef::Blob(bytes) => format!("b{}", bytes.escape_ascii()),
            };
            line.push_str(&text);
            line.push('|');
        }
        lines.push(line);
    }
    Ok(lines)
}

/// How many rows are in one and not in the other.
fn difference(before: &[String], after: &[String]) -> u64 {
    let (before, after): (HashSet<&String>, HashSet<&String>) =
        (before.iter().collect(), after.iter().collect());
    after.difference(&before).count().max(before.difference(&after).count()) as u64
}
