//! Tables that follow from the events: sessions, checkpoints, logs, operations. Written in the
//! transaction that records the event, and never anywhere else.

use bivouac_core::event::{
    CheckpointDeleted, CheckpointTaken, Event, Level, OperationFinished, StatusChange,
};
use bivouac_core::id::{CheckpointId, SessionId};
use bivouac_core::operation::Operation;
use bivouac_core::path::WorkspacePath;
use bivouac_core::redact::Redactor;
use bivouac_core::session::{NewSession, Status};
use bivouac_core::text::Note;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params};

use crate::stored::StoredEvent;
use crate::{Error, Result};

/// The tables a reconciliation compares, with the order that makes their rows comparable.
pub(crate) const TABLES: &[(&str, &str)] = &[
    ("sessions", "id"),
    ("session_checkpoints", "id"),
    ("handle_days", "prefix"),
    ("session_logs", "id"),
    ("operations", "id"),
    ("runs", "session_id"),
    ("conversations", "agent, id"),
    ("progress", "session_id, noun, key"),
    ("key_numbers", "session_id, noun"),
    ("touched_files", "session_id, path"),
    ("approvals", "sequence"),
];

/// Makes the tables anew, empty.
pub(crate) fn create(connection: &Connection) -> Result<()> {
    Ok(connection.execute_batch(include_str!("schema/projections.sql"))?)
}

/// A checkpoint's handle may have been given out since it was asked for: then the next one is taken.
pub(crate) fn settle_handle(connection: &Connection, event: &mut Event) -> Result<()> {
    let Event::CheckpointTaken(taken) = event else {
        return Ok(());
    };
    let handle = &taken.checkpoint.handle;
    let last = last_number(connection, handle.prefix())?;
    if handle.number().is_some_and(|number| number <= last) {
        taken.checkpoint.handle = handle.renumbered(last + 1);
    }
    Ok(())
}

/// A checkpoint that was found again keeps its handle and its name, unless another has them.
pub(crate) fn settle_found(connection: &Connection, event: &mut Event) -> Result<()> {
    let Event::CheckpointTaken(taken) = event else {
        return Ok(());
    };
    let checkpoint = &mut taken.checkpoint;
    let is_taken = "SELECT 1 FROM session_checkpoints WHERE handle = ?";
    if connection.prepare_cached(is_taken)?.exists([checkpoint.handle.as_str()])? {
        let last = last_number(connection, checkpoint.handle.prefix())?;
        checkpoint.handle = checkpoint.handle.renumbered(last + 1);
    }
    if let Some(name) = &checkpoint.name {
        let is_taken = "SELECT 1 FROM session_checkpoints WHERE session_id = ? AND name = ?";
        let session = checkpoint.session_id.to_string();
        if connection.prepare_cached(is_taken)?.exists([session.as_str(), name.as_str()])? {
            checkpoint.name = None;
        }
    }
    Ok(())
}

/// The highest number a day has given out.
pub(crate) fn last_number(connection: &Connection, prefix: &str) -> Result<u32> {
    let mut statement =
        connection.prepare_cached("SELECT last FROM handle_days WHERE prefix = ?")?;
    Ok(statement.query_row([prefix], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// Did the event find the session it speaks of?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    Yes,
    NoSession,
}

/// Brings the tables up to an event.
pub(crate) fn apply(
    connection: &Connection,
    stored: &StoredEvent,
    redactor: &Redactor,
) -> Result<Applied> {
    let event = stored.event()?;
    let writer = Writer { connection, stored };
    if let Event::SessionCreated(session) = &event {
        writer.create_session(session)?;
    } else if !writer.touch_session()? {
        return Ok(Applied::NoSession);
    }
    match &event {
        Event::SessionCreated(session) => {
            let task =
                session.task_description.as_ref().map(|task| format!(": {}", task.headline()));
            writer.log(
                Level::Info,
                &format!("session created for {}{}", session.agent_type, task.unwrap_or_default()),
            )?;
        }
        Event::SessionRenamed(renamed) => {
            writer.set_session("name", renamed.name.as_str())?;
            writer.log(Level::Info, &format!("renamed to {}", renamed.name))?;
        }
        Event::SessionMoved(moved) => writer.move_session(&moved.to)?,
        Event::SessionPaused(change) => writer.change_status(Status::Paused, change)?,
        Event::SessionResumed(change) => writer.change_status(Status::Active, change)?,
        Event::SessionInterrupted(change) => writer.change_status(Status::Interrupted, change)?,
        Event::SessionCompleted(change) => writer.change_status(Status::Completed, change)?,
        Event::SessionFailed(change) => writer.change_status(Status::Failed, change)?,
        Event::CheckpointTaken(taken) => writer.add_checkpoint(taken)?,
        Event::CheckpointSkipped(skipped) => {
            let line = format!("no {} checkpoint: {}", skipped.trigger, skipped.reason.headline());
            writer.log(Level::Warning, &line)?;
        }
        Event::CheckpointFailed(failed) => {
            let line =
                format!("a {} checkpoint failed: {}", failed.trigger, failed.error.headline());
            writer.log(Level::Error, &line)?;
        }
        Event::CheckpointDeleted(deleted) => writer.delete_checkpoint(deleted)?,
        Event::CheckpointPinned(pinned) => writer.pin(pinned.id, Pin::On)?,
        Event::CheckpointUnpinned(unpinned) => writer.pin(unpinned.id, Pin::Off)?,
        Event::OperationStarted(operation) => writer.start_operation(operation)?,
        Event::OperationFinished(finished) => writer.finish_operation(finished)?,
        Event::Noted(noted) => writer.log(noted.level, &noted.message.to_string())?,
        Event::RunStarted(_) | Event::RunEnded(_) => {
            crate::runs::apply(connection, stored, &event)?;
        }
        Event::Unknown { .. } => {}
        of_agents => crate::agents::apply(connection, stored, of_agents)?,
    }
    crate::progress::apply(connection, stored, &event)?;
    crate::search::index(connection, stored, &event, redactor)?;
    Ok(Applied::Yes)
}

#[derive(Clone, Copy)]
enum Pin {
    On,
    Off,
}

pub(crate) struct Writer<'w> {
    pub(crate) connection: &'w Connection,
    pub(crate) stored: &'w StoredEvent,
}

impl Writer<'_> {
    fn create_session(&self, session: &NewSession) -> Result<()> {
        let sql = "INSERT INTO sessions (id, handle, name, agent_type, task_description, workspace,
                                         created_at, updated_at, status_at, metadata, sequence)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        self.connection.prepare_cached(sql)?.execute(params![
            session.id.to_string(),
            session.handle.as_str(),
            session.name.as_ref().map(|name| name.as_str()),
            session.agent_type,
            session.task_description.as_ref().map(Note::as_str),
            workspace_value(&session.workspace),
            session.created_at.to_string(),
            self.stored.recorded_at.to_string(),
            self.stored.recorded_at.to_string(),
            session.metadata.as_ref().map(|metadata| metadata.as_json()),
            self.stored.sequence,
        ])?;
        Ok(())
    }

    /// Every event is news of its session. `false` when there is no such session.
    fn touch_session(&self) -> Result<bool> {
        let sql = "UPDATE sessions SET updated_at = ?, sequence = ? WHERE id = ?";
        let updated = self.connection.prepare_cached(sql)?.execute(params![
            self.stored.recorded_at.to_string(),
            self.stored.sequence,
            self.stored.session_id.to_string(),
        ])?;
        Ok(updated > 0)
    }

    fn set_session(&self, column: &'static str, value: &str) -> Result<()> {
        let sql = format!("UPDATE sessions SET {column} = ? WHERE id = ?");
        self.connection
            .prepare_cached(&sql)?
            .execute(params![value, self.stored.session_id.to_string()])?;
        Ok(())
    }

    /// Everything of the session belongs to the new path from here on.
    fn move_session(&self, to: &WorkspacePath) -> Result<()> {
        let session = self.stored.session_id.to_string();
        for (table, key) in [
            ("sessions", "id"),
            ("session_checkpoints", "session_id"),
            ("operations", "session_id"),
        ] {
            let sql = format!("UPDATE {table} SET workspace = ? WHERE {key} = ?");
            self.connection.prepare_cached(&sql)?.execute(params![workspace_value(to), session])?;
        }
        self.log(Level::Info, &format!("its folder was moved to {to}"))
    }

    fn change_status(&self, status: Status, change: &StatusChange) -> Result<()> {
        let sql =
            "UPDATE sessions SET status = ?, reason = ?, status_at = ?, until = ? WHERE id = ?";
        let reason = change.reason.as_ref();
        let session = self.stored.session_id.to_string();
        self.connection.prepare_cached(sql)?.execute(params![
            status.as_str(),
            reason.map(Note::as_str),
            self.stored.recorded_at.to_string(),
            change.until.map(|until| until.to_string()),
            session
        ])?;
        let because = reason.map(|reason| format!(": {}", reason.headline())).unwrap_or_default();
        let level = match status {
            Status::Failed => Level::Error,
            Status::Interrupted => Level::Warning,
            _ => Level::Info,
        };
        let word = if status == Status::Active { "resumed" } else { status.as_str() };
        self.log(level, &format!("session {word}{because}"))
    }

    fn add_checkpoint(&self, taken: &CheckpointTaken) -> Result<()> {
        let checkpoint = &taken.checkpoint;
        let name =
            checkpoint.name.as_ref().map_or(checkpoint.handle.as_str(), |name| name.as_str());
        let sql = "INSERT INTO session_checkpoints (id, handle, session_id, name, is_named, \"trigger\", message,
                       checkpoint_data, git_branch, git_uncommitted, workspace, created_at, sequence)
                   SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, workspace, ?11, ?12 FROM sessions WHERE id = ?3";
        let inserted = self.connection.prepare_cached(sql)?.execute(params![
            checkpoint.id.to_string(),
            checkpoint.handle.as_str(),
            self.stored.session_id.to_string(),
            name,
            checkpoint.name.is_some(),
            checkpoint.trigger.as_str(),
            checkpoint.message.as_ref().map(Note::as_str),
            self.stored.data,
            checkpoint.git.as_ref().and_then(|git| git.branch.as_deref()),
            checkpoint.git.as_ref().map_or(0, |git| git.uncommitted as i64),
            checkpoint.taken_at.to_string(),
            self.stored.sequence,
        ]);
        match (inserted, &checkpoint.name) {
            (Err(error), Some(name)) if is_name_conflict(&error) => {
                return Err(Error::NameTaken { name: name.clone() });
            }
            (inserted, _) => inserted?,
        };
        let sql = "INSERT INTO handle_days VALUES (?, ?)
                   ON CONFLICT (prefix) DO UPDATE SET last = max(last, excluded.last)";
        let number = checkpoint.handle.number().unwrap_or(0);
        self.connection
            .prepare_cached(sql)?
            .execute(params![checkpoint.handle.prefix(), number])?;
        let about = checkpoint
            .message
            .as_ref()
            .map(|message| format!(": {}", message.headline()))
            .unwrap_or_default();
        self.log(
            Level::Info,
            &format!("saved {} ({}){about}", checkpoint.handle, checkpoint.trigger),
        )
    }

    fn delete_checkpoint(&self, deleted: &CheckpointDeleted) -> Result<()> {
        let called = self.handle_of(deleted.id)?;
        let sql = "DELETE FROM session_checkpoints WHERE id = ?";
        self.connection.prepare_cached(sql)?.execute([deleted.id.to_string()])?;
        let why = serde_json::to_string(&deleted.reason).unwrap_or_default();
        self.log(Level::Info, &format!("deleted {called} ({})", why.trim_matches('"')))
    }

    fn pin(&self, id: CheckpointId, pin: Pin) -> Result<()> {
        let (is_pinned, word) = match pin {
            Pin::On => (true, "pinned"),
            Pin::Off => (false, "unpinned"),
        };
        let sql = "UPDATE session_checkpoints SET is_pinned = ? WHERE id = ?";
        self.connection.prepare_cached(sql)?.execute(params![is_pinned, id.to_string()])?;
        let called = self.handle_of(id)?;
        self.log(Level::Info, &format!("{word} {called}"))
    }

    fn start_operation(&self, operation: &Operation) -> Result<()> {
        let sql = "INSERT INTO operations (id, session_id, workspace, data, sequence) VALUES (?, ?, ?, ?, ?)";
        self.connection.prepare_cached(sql)?.execute(params![
            operation.id.to_string(),
            self.stored.session_id.to_string(),
            workspace_value(&operation.workspace),
            self.stored.data,
            self.stored.sequence,
        ])?;
        let target = match operation.target {
            Some(target) => format!(" to {}", self.handle_of(target)?),
            None => String::new(),
        };
        self.log(Level::Info, &format!("{}{target} started", operation.kind))
    }

    fn finish_operation(&self, finished: &OperationFinished) -> Result<()> {
        let outcome = &finished.outcome;
        let json = serde_json::to_string(outcome)
            .map_err(|error| Error::BadRow { table: "operations", what: error.to_string() })?;
        let sql = "UPDATE operations SET outcome = ? WHERE id = ?";
        self.connection.prepare_cached(sql)?.execute(params![json, finished.id.to_string()])?;
        let (level, line) = match (outcome.reverted, outcome.finished_later) {
            (true, _) => (Level::Error, "operation failed and was taken back".to_owned()),
            (false, later) => {
                let later = if later { "interrupted operation " } else { "operation " };
                let (written, removed, left) =
                    (outcome.n_written, outcome.n_removed, outcome.left_alone.len());
                (
                    Level::Info,
                    format!(
                        "{later}finished: {written} written, {removed} removed, {left} left alone"
                    ),
                )
            }
        };
        self.log(level, &line)
    }

    fn handle_of(&self, id: CheckpointId) -> Result<String> {
        let sql = "SELECT handle FROM session_checkpoints WHERE id = ?";
        let found = self
            .connection
            .prepare_cached(sql)?
            .query_row([id.to_string()], |row| row.get(0))
            .optional()?;
        Ok(found.unwrap_or_else(|| id.to_string()))
    }

    pub(crate) fn log(&self, level: Level, message: &str) -> Result<()> {
        let sql = "INSERT INTO session_logs VALUES (?, ?, ?, ?, ?)";
        self.connection.prepare_cached(sql)?.execute(params![
            self.stored.sequence,
            self.stored.session_id.to_string(),
            level.as_str(),
            message,
            self.stored.recorded_at.to_string(),
        ])?;
        Ok(())
    }
}

fn is_name_conflict(error: &rusqlite::Error) -> bool {
    error.to_string().contains("session_checkpoints.name")
}

/// A workspace's path as a column: text where it is text.
pub(crate) fn workspace_value(workspace: &WorkspacePath) -> Value {
    match std::str::from_utf8(workspace.as_bytes()) {
        Ok(text) => Value::Text(text.to_owned()),
        Err(_) => Value::Blob(workspace.as_bytes().to_vec()),
    }
}

/// Is there such a session?
pub(crate) fn has_session(connection: &Connection, id: SessionId) -> Result<bool> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM sessions WHERE id = ?")?;
    Ok(statement.exists([id.to_string()])?)
}
