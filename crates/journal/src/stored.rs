//! An event as it is stored. Its hash covers every column and the hash of the session's event
//! before it, so that a changed bit is found and nothing can be taken out unseen.

use bivouac_core::event::Event;
use bivouac_core::id::{EventId, SessionId};
use bivouac_core::time::Timestamp;
use rusqlite::Row;

use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// The order of all events in this store. Time is only told, never sorted by.
    pub sequence: i64,
    pub id: EventId,
    pub session_id: SessionId,
    pub session_sequence: i64,
    pub kind: String,
    pub recorded_at: Timestamp,
    pub data: String,
    pub previous_hash: Vec<u8>,
    pub hash: Vec<u8>,
}

pub(crate) const COLUMNS: &str =
    "sequence, id, session_id, session_sequence, kind, recorded_at, data, previous_hash, hash";

/// What the first event of a session carries instead of a hash before it.
pub(crate) const NO_HASH: [u8; 32] = [0; 32];

impl StoredEvent {
    pub(crate) fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            sequence: row.get(0)?,
            id: parse(row, 1, "events")?,
            session_id: parse(row, 2, "events")?,
            session_sequence: row.get(3)?,
            kind: row.get(4)?,
            recorded_at: parse(row, 5, "events")?,
            data: row.get(6)?,
            previous_hash: row.get(7)?,
            hash: row.get(8)?,
        })
    }

    pub fn event(&self) -> Result<Event> {
        let sequence = self.sequence;
        Event::parse(&self.kind, &self.data).map_err(|source| Error::BadEvent { sequence, source })
    }

    /// The hash this event ought to have.
    pub(crate) fn expected_hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let (id, session_id) = (self.id.uuid(), self.session_id.uuid());
        let columns: [&[u8]; 8] = [
            &self.sequence.to_le_bytes(),
            id.as_bytes(),
            session_id.as_bytes(),
            &self.session_sequence.to_le_bytes(),
            self.kind.as_bytes(),
            &self.recorded_at.as_millis().to_le_bytes(),
            self.data.as_bytes(),
            &self.previous_hash,
        ];
        for column in columns {
            hasher.update(&(column.len() as u64).to_le_bytes());
            hasher.update(column);
        }
        *hasher.finalize().as_bytes()
    }
}

/// Reads a text column as one of our own types.
pub(crate) fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
    row: &Row<'_>,
    column: usize,
    table: &'static str,
) -> Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error: T::Err| Error::BadRow { table, what: error.to_string() })
}
