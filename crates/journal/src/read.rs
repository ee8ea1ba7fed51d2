//! Events as they are stored, and whether their chain holds.

use std::collections::HashMap;

use bivouac_core::id::SessionId;
use bivouac_core::sabotage::{self, Fault};
use rusqlite::Connection;

use crate::stored::{COLUMNS, NO_HASH, StoredEvent};
use crate::{Journal, Result};

/// As long as this lives, every question is answered from the same moment, and many cost little more than
/// one. Nothing can be recorded meanwhile.
pub struct Moment<'j> {
    _transaction: rusqlite::Transaction<'j>,
}

impl Journal {
    pub fn moment(&self) -> Result<Moment<'_>> {
        Ok(Moment { _transaction: self.connection.unchecked_transaction()? })
    }

    /// A session's events, oldest first.
    pub fn events(&self, session: SessionId) -> Result<Vec<StoredEvent>> {
        self.events_after(session, 0)
    }

    /// The same, behind one of them.
    pub fn events_after(&self, session: SessionId, sequence: i64) -> Result<Vec<StoredEvent>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM events WHERE session_id = ? AND session_sequence > ? ORDER BY session_sequence"
        );
        self.rows(&sql, rusqlite::params![session.to_string(), sequence], StoredEvent::read)
    }

    /// A session's last events, oldest first.
    pub fn last_events(&self, session: SessionId, most: u32) -> Result<Vec<StoredEvent>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM events WHERE session_id = ? ORDER BY session_sequence DESC LIMIT ?"
        );
        let params = rusqlite::params![session.to_string(), most];
        let mut events = self.rows(&sql, params, StoredEvent::read)?;
        events.reverse();
        Ok(events)
    }

    /// From now until the answer is dropped, every question is answered as of this moment.
    pub fn freeze(&self) -> Result<Frozen<'_>> {
        let transaction = self.connection.unchecked_transaction()?;
        // A transaction that only reads begins with its first question.
        transaction.query_row("SELECT count(*) FROM packs", [], |_| Ok(()))?;
        Ok(Frozen { _transaction: transaction })
    }

    pub fn n_events(&self) -> Result<u64> {
        let count: i64 =
            self.connection.query_row("SELECT count(*) FROM events", [], |row| row.get(0))?;
        Ok(count as u64)
    }

    /// The last event of all: what came after it is what happened since.
    pub fn last_sequence(&self) -> Result<i64> {
        Ok(self.connection.query_row(
            "SELECT coalesce(max(sequence), 0) FROM events",
            [],
            |row| row.get(0),
        )?)
    }

    /// Checks every event against its hash and the one before it. Answers those that do not fit.
    pub fn broken_events(&self) -> Result<Vec<BrokenEvent>> {
        let mut heads: HashMap<SessionId, (i64, Vec<u8>)> = HashMap::new();
        let mut broken = Vec::new();
        for stored in all(&self.connection)? {
            let (sequence, hash) =
                heads.get(&stored.session_id).cloned().unwrap_or((0, NO_HASH.to_vec()));
            let fits = stored.session_sequence == sequence + 1
                && stored.previous_hash == hash
                && stored.hash == stored.expected_hash();
            if !fits && !sabotage::is(Fault::ChainNotChecked) {
                broken.push(BrokenEvent {
                    sequence: stored.sequence,
                    kind: stored.kind.clone(),
                    session_id: stored.session_id,
                });
            }
            heads.insert(stored.session_id, (stored.session_sequence, stored.hash));
        }
        Ok(broken)
    }

    /// What SQLite itself finds wrong with its file.
    pub fn integrity(&self) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare("PRAGMA integrity_check(20)")?;
        let mut rows = statement.query([])?;
        let mut faults = Vec::new();
        while let Some(row) = rows.next()? {
            let line: String = row.get(0)?;
            if line != "ok" {
                faults.push(line);
            }
        }
        Ok(faults)
    }
}

/// The journal as it was at one moment.
pub struct Frozen<'j> {
    _transaction: rusqlite::Transaction<'j>,
}

/// An event that is not what was written, or whose predecessor is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenEvent {
    pub sequence: i64,
    pub kind: String,
    pub session_id: SessionId,
}

/// Every event, oldest first.
pub(crate) fn all(connection: &Connection) -> Result<Vec<StoredEvent>> {
    let mut statement =
        connection.prepare(&format!("SELECT {COLUMNS} FROM events ORDER BY sequence"))?;
    let mut rows = statement.query([])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(StoredEvent::read(row)?);
    }
    Ok(events)
}
