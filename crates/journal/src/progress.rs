//! How far the work is, in tables: one row for each thing that progress is made of, folded by `core::work`.

use bivouac_core::event::{Event, Level};
use bivouac_core::id::SessionId;
use bivouac_core::work::{Item, Noun, Task, Work, key_of, told};
use rusqlite::{Connection, OptionalExtension, params};

use crate::projection::Writer;
use crate::stored::{COLUMNS, StoredEvent};
use crate::{Error, Journal, Result};

/// Of things that are past, so many of one noun are asked for at once, the newest of them.
const MOST: u32 = 1_000;

/// A thing whose key nobody chose gets the next free number.
pub(crate) fn settle_key(
    connection: &Connection,
    session: SessionId,
    event: &mut Event,
) -> Result<()> {
    let same_listed = match event {
        Event::TaskChanged(task) if task.task.is_empty() => listed_as(connection, session, task)?,
        _ => None,
    };
    let Some((noun, set_key)) = key_of(event) else {
        return Ok(());
    };
    if matches!(noun, Noun::Outline | Noun::Phase) {
        return Ok(());
    }
    if let Some(key) = same_listed {
        set_key(key);
        return Ok(());
    }
    let sql = "SELECT last FROM key_numbers WHERE session_id = ? AND noun = ?";
    let last: Option<i64> = connection
        .prepare_cached(sql)?
        .query_row([session.to_string().as_str(), noun.as_str()], |row| row.get(0))
        .optional()?;
    set_key(noun.numbered_key(last.unwrap_or(0) as u64 + 1));
    Ok(())
}

/// The key of a task in an agent's list that has no id there: that of the one which says the same.
fn listed_as(connection: &Connection, session: SessionId, task: &Task) -> Result<Option<String>> {
    let Some(subject) = task.subject.as_ref().filter(|_| task.listed == Some(true)) else {
        return Ok(None);
    };
    let sql = "SELECT key FROM progress WHERE session_id = ? AND noun = 'task'
               AND json_extract(data, '$.listed') AND json_extract(data, '$.subject') = ?
               ORDER BY sequence DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement
        .query_row([session.to_string().as_str(), subject.as_str()], |row| row.get(0))
        .optional()?;
    Ok(found)
}

/// Refuses a key that something else has.
pub(crate) fn check_free(connection: &Connection, session: SessionId, event: &Event) -> Result<()> {
    let sql = "SELECT 1 FROM progress WHERE session_id = ? AND noun = ? AND key = ?";
    let mut statement = connection.prepare_cached(sql)?;
    for item in Item::all_of(event) {
        let (noun, key) = (item.noun(), item.key());
        if statement.exists([session.to_string().as_str(), noun.as_str(), key])? {
            return Err(Error::KeyTaken { noun: noun.as_str(), key: key.to_owned() });
        }
    }
    Ok(())
}

pub(crate) fn apply(connection: &Connection, stored: &StoredEvent, event: &Event) -> Result<()> {
    if let Event::ToolUsed(used) = event {
        for path in &used.files {
            touch(connection, stored, path)?;
        }
    }
    let is_said = bivouac_core::work::is_progress(event);
    for item in Item::all_of(event) {
        if let Some(now) = put(connection, stored, item.clone())?
            && is_said
        {
            Writer { connection, stored }.log(Level::Info, &told(&item, now.title()))?;
        }
    }
    Ok(())
}

/// Answers the thing as it is now; none when nothing about it is new.
fn put(connection: &Connection, stored: &StoredEvent, item: Item) -> Result<Option<Item>> {
    let session = stored.session_id.to_string();
    let (noun, key) = (item.noun(), item.key().to_owned());
    let sql = "SELECT data FROM progress WHERE session_id = ? AND noun = ? AND key = ?";
    let before: Option<String> = connection
        .prepare_cached(sql)?
        .query_row([session.as_str(), noun.as_str(), key.as_str()], |row| row.get(0))
        .optional()?;
    let Some((item, data)) =
        item.onto(before.as_deref(), stored.recorded_at).map_err(|error| bad_row(&error))?
    else {
        return Ok(None);
    };
    let sql = "INSERT INTO progress (session_id, noun, key, data, is_past, sequence) VALUES (?, ?, ?, ?, ?, ?)
               ON CONFLICT (session_id, noun, key) DO UPDATE SET data = excluded.data, is_past = excluded.is_past";
    connection.prepare_cached(sql)?.execute(params![
        session,
        noun.as_str(),
        key,
        data,
        item.is_past(),
        stored.sequence
    ])?;
    if let (None, Some(number)) = (before, noun.number_in(&key)) {
        let sql = "INSERT INTO key_numbers VALUES (?, ?, ?)
                   ON CONFLICT (session_id, noun) DO UPDATE SET last = max(last, excluded.last)";
        let number = i64::try_from(number).unwrap_or(0);
        connection.prepare_cached(sql)?.execute(params![session, noun.as_str(), number])?;
    }
    Ok(Some(item))
}

fn bad_row(error: &serde_json::Error) -> Error {
    Error::BadRow { table: "progress", what: error.to_string() }
}

fn touch(connection: &Connection, stored: &StoredEvent, path: &str) -> Result<()> {
    let sql = "INSERT INTO touched_files VALUES (?1, ?2, 1, ?3)
               ON CONFLICT (session_id, path) DO UPDATE SET n_times = n_times + 1, sequence = ?3";
    let session = stored.session_id.to_string();
    connection.prepare_cached(sql)?.execute(params![session, path, stored.sequence])?;
    Ok(())
}

impl Journal {
    /// All progress of a session.
    pub fn work(&self, session: SessionId) -> Result<Work> {
        let mut work = Work::default();
        Noun::ALL.iter().try_for_each(|noun| self.add_things(&mut work, session, *noun, MOST))?;
        Ok(work)
    }

    /// The same, however much is past.
    pub fn whole_work(&self, session: SessionId) -> Result<Work> {
        let mut work = Work::default();
        let all = u32::MAX;
        Noun::ALL.iter().try_for_each(|noun| self.add_things(&mut work, session, *noun, all))?;
        Ok(work)
    }

    /// The things of one noun, and nothing else.
    pub fn things(&self, session: SessionId, noun: Noun) -> Result<Work> {
        let mut work = Work::default();
        self.add_things(&mut work, session, noun, u32::MAX)?;
        Ok(work)
    }

    fn add_things(&self, work: &mut Work, session: SessionId, noun: Noun, most: u32) -> Result<()> {
        let sql = "SELECT data FROM (
                       SELECT data, sequence, key FROM progress WHERE session_id = ?1 AND noun = ?2 AND is_past = 0
                       UNION ALL SELECT data, sequence, key FROM (
                           SELECT data, sequence, key FROM progress WHERE session_id = ?1 AND noun = ?2 AND is_past = 1
                           ORDER BY sequence DESC, key DESC LIMIT ?3))
                   ORDER BY sequence, key";
        let rows = self.rows(sql, params![session.to_string(), noun.as_str(), most], |row| {
            Ok(row.get::<_, String>(0)?)
        })?;
        rows.iter()
            .try_for_each(|data| work.add_stored(noun, data))
            .map_err(|error| bad_row(&error))?;
        Ok(())
    }

    /// One thing as it is now.
    pub fn thing(&self, session: SessionId, noun: Noun, key: &str) -> Result<Option<Item>> {
        let sql = "SELECT data FROM progress WHERE session_id = ? AND noun = ? AND key = ?";
        let mut work = Work::default();
        let rows = self.rows(sql, [session.to_string().as_str(), noun.as_str(), key], |row| {
            Ok(row.get::<_, String>(0)?)
        })?;
        rows.iter()
            .try_for_each(|data| work.add_stored(noun, data))
            .map_err(|error| bad_row(&error))?;
        Ok(work.items().pop())
    }

    /// The session's last event.
    pub fn session_sequence(&self, session: SessionId) -> Result<i64> {
        let sql = "SELECT coalesce(max(session_sequence), 0) FROM events WHERE session_id = ?";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([session.to_string()], |row| row.get(0))?)
    }

    /// The newest events about progress, oldest first.
    pub fn recent_progress(&self, session: SessionId, most: u32) -> Result<Vec<Event>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM events WHERE session_id = ? AND {OF_PROGRESS} ORDER BY session_sequence DESC LIMIT ?"
        );
        let stored = self.rows(&sql, params![session.to_string(), most], StoredEvent::read)?;
        Ok(stored.iter().rev().filter_map(|stored| stored.event().ok()).collect())
    }

    /// Files that tools were seen to change, the newest first, with how often.
    pub fn touched_files(&self, session: SessionId, most: u32) -> Result<Vec<(String, u64)>> {
        let sql = "SELECT path, n_times FROM touched_files WHERE session_id = ? ORDER BY sequence DESC, path LIMIT ?";
        self.rows(sql, params![session.to_string(), most], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
        })
    }
}

/// As the index of these events has it, to the letter.
const OF_PROGRESS: &str =
    "kind IN ('task.changed', 'session.described', 'phase.changed', 'artifact.changed', 'decision.made',
                   'blocker.changed', 'approval.changed', 'gate.executed', 'step.changed', 'delegation.changed',
                   'fork_point.changed', 'partition.changed', 'worktree.changed', 'note.added', 'commit.seen',
                   'tests.run')";
