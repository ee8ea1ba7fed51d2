//! The only way in. Events, what follows from them and the places of new objects are written in one
//! transaction; once it returns, they are durable.

use bivouac_core::event::Event;
use bivouac_core::id::{EventId, ObjectId, PackId, SessionId};
use bivouac_core::redact::Redactor;
use bivouac_core::time::Timestamp;
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};

use crate::stored::{COLUMNS, NO_HASH, StoredEvent};
use crate::{Error, Journal, Result, catalog, progress, projection};

/// An event on its way in.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub id: EventId,
    pub session_id: SessionId,
    pub event: Event,
}

/// Under which circumstances something is to be recorded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// The number the session's last event must have.
    pub expected: Option<i64>,
    /// Must what it speaks of be new?
    pub is_new: bool,
}

/// A durable pack, with the objects in it and the blocks they are in.
#[derive(Clone, Debug)]
pub struct PackRow {
    pub id: PackId,
    pub size_bytes: u64,
    pub objects: Vec<(ObjectId, u64)>,
}

impl Journal {
    /// Records events, and with them the packs they speak of. Answers them as recorded: a checkpoint's
    /// handle may have been taken meanwhile and is then the next free one.
    pub fn append(
        &mut self,
        now: Timestamp,
        events: Vec<NewEvent>,
        packs: &[PackRow],
    ) -> Result<Vec<Event>> {
        let redactor = self.redactor.clone();
        let transaction =
            self.writable()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for pack in packs {
            catalog::add_pack(&transaction, pack)?;
        }
        let mut recorded = Vec::with_capacity(events.len());
        for mut new in events {
            projection::settle_handle(&transaction, &mut new.event)?;
            progress::settle_key(&transaction, new.session_id, &mut new.event)?;
            recorded.push(append_one(&transaction, now, new, &redactor)?);
        }
        transaction.commit()?;
        Ok(recorded)
    }

    /// Records what someone says about the work, on their terms. An event that is there already is not
    /// recorded again.
    pub fn append_once(
        &mut self,
        now: Timestamp,
        events: Vec<NewEvent>,
        terms: &Terms,
    ) -> Result<Vec<Event>> {
        let redactor = self.redactor.clone();
        let transaction =
            self.writable()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut recorded = Vec::with_capacity(events.len());
        for mut new in events {
            if let Some(known) = find(&transaction, new.id)? {
                recorded.push(known);
                continue;
            }
            if let (Some(expected), true) = (terms.expected, recorded.is_empty()) {
                let (found, _) = head(&transaction, new.session_id)?;
                if found != expected {
                    return Err(Error::Moved { expected, found });
                }
            }
            progress::settle_key(&transaction, new.session_id, &mut new.event)?;
            if terms.is_new {
                progress::check_free(&transaction, new.session_id, &new.event)?;
            }
            recorded.push(append_one(&transaction, now, new, &redactor)?);
        }
        transaction.commit()?;
        Ok(recorded)
    }

    /// Records events about checkpoints that were found again. They keep their handles and their names
    /// unless someone else has them.
    pub fn adopt(&mut self, now: Timestamp, events: Vec<NewEvent>) -> Result<()> {
        let redactor = self.redactor.clone();
        let transaction =
            self.writable()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for mut new in events {
            projection::settle_found(&transaction, &mut new.event)?;
            append_one(&transaction, now, new, &redactor)?;
        }
        transaction.commit()?;
        Ok(())
    }
}

fn append_one(
    transaction: &Transaction<'_>,
    now: Timestamp,
    new: NewEvent,
    redactor: &Redactor,
) -> Result<Event> {
    let (session_sequence, previous_hash) = head(transaction, new.session_id)?;
    let mut stored = StoredEvent {
        sequence: next_sequence(transaction)?,
        id: new.id,
        session_id: new.session_id,
        session_sequence: session_sequence + 1,
        kind: new.event.kind().to_owned(),
        recorded_at: now,
        data: new.event.data(),
        previous_hash,
        hash: Vec::new(),
    };
    stored.hash = stored.expected_hash().to_vec();
    insert(transaction, &stored)?;
    projection::apply(transaction, &stored, redactor)?;
    Ok(new.event)
}

pub(crate) fn insert(transaction: &Transaction<'_>, stored: &StoredEvent) -> Result<()> {
    let sql = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    transaction.prepare_cached(sql)?.execute(params![
        stored.sequence,
        stored.id.to_string(),
        stored.session_id.to_string(),
        stored.session_sequence,
        stored.kind,
        stored.recorded_at.to_string(),
        stored.data,
        stored.previous_hash,
        stored.hash,
    ])?;
    Ok(())
}

/// An event that was recorded before.
fn find(transaction: &Transaction<'_>, id: EventId) -> Result<Option<Event>> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE id = ?");
    let mut statement = transaction.prepare_cached(&sql)?;
    let mut rows = statement.query([id.to_string()])?;
    match rows.next()? {
        Some(row) => StoredEvent::read(row)?.event().map(Some),
        None => Ok(None),
    }
}

/// The session's last event: its number and its hash.
pub(crate) fn head(transaction: &Transaction<'_>, session: SessionId) -> Result<(i64, Vec<u8>)> {
    let sql = "SELECT session_sequence, hash FROM events WHERE session_id = ? ORDER BY session_sequence DESC LIMIT 1";
    let mut statement = transaction.prepare_cached(sql)?;
    let found = statement
        .query_row([session.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.unwrap_or((0, NO_HASH.to_vec())))
}

/// Numbers are never used twice, not even after someone removed the last rows by hand.
fn next_sequence(transaction: &Transaction<'_>) -> Result<i64> {
    let sql = "SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0),
                          coalesce((SELECT max(sequence) FROM events), 0)) + 1";
    Ok(transaction.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}
