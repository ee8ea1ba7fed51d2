//! Questions to the projections.

use bivouac_core::checkpoint::Trigger;
use bivouac_core::event::{CheckpointTaken, Event};
use bivouac_core::id::{CheckpointId, ObjectId, OperationId, SessionId};
use bivouac_core::operation::{Operation, Outcome};
use bivouac_core::path::WorkspacePath;
use bivouac_core::retention::{Candidate, Promise};
use bivouac_core::session::{Session, Status};
use bivouac_core::text::Note;
use bivouac_core::time::Timestamp;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Params, Row, params_from_iter};

use crate::projection::{last_number, workspace_value};
use crate::stored::parse;
use crate::{Error, Journal, Result};

/// Which sessions to list.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    pub workspace: Option<WorkspacePath>,
    pub status: Option<Status>,
}

/// Which checkpoints to list.
#[derive(Clone, Debug, Default)]
pub struct CheckpointFilter {
    pub session: Option<SessionId>,
    pub workspace: Option<WorkspacePath>,
    pub taken_before: Option<Timestamp>,
    pub trigger: Option<Trigger>,
}

/// A checkpoint that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptCheckpoint {
    pub taken: CheckpointTaken,
    pub is_pinned: bool,
    pub sequence: i64,
}

/// A line of a session's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub sequence: i64,
    pub level: String,
    pub message: String,
    pub created_at: Timestamp,
}

/// Saves that failed one after the other, up to now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    pub number: u64,
    pub last_error: Option<Note>,
    /// The number of the last one among the session's events.
    pub session_sequence: i64,
}

/// An operation and how it ended, if it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptOperation {
    pub session_id: SessionId,
    pub operation: Operation,
    pub outcome: Option<Outcome>,
}

pub(crate) const SESSION_COLUMNS: &str = "id, handle, name, agent_type, task_description, status, reason, workspace, created_at, updated_at, metadata, status_at, until";
pub(crate) const CHECKPOINT_COLUMNS: &str = "checkpoint_data, is_pinned, sequence";

impl Journal {
    /// Sessions, oldest first.
    pub fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Session>> {
        let mut wheres = Where::default();
        wheres.and("workspace = ?", filter.workspace.as_ref().map(workspace_value));
        wheres.and("status = ?", filter.status.map(|status| status.as_str().to_owned().into()));
        let sql = format!(
            "SELECT {SESSION_COLUMNS} FROM sessions {} ORDER BY created_at, id",
            wheres.sql()
        );
        self.rows(&sql, params_from_iter(wheres.values), read_session)
    }

    pub fn session(&self, id: SessionId) -> Result<Option<Session>> {
        let sql = format!("SELECT {SESSION_COLUMNS} FROM sessions WHERE id = ?");
        Ok(self.rows(&sql, [id.to_string()], read_session)?.pop())
    }

    /// The session of a workspace with the newest event, among those in one of these statuses.
    pub fn newest_session(
        &self,
        workspace: &WorkspacePath,
        statuses: &[Status],
    ) -> Result<Option<Session>> {
        let list =
            statuses.iter().map(|status| format!("'{status}'")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT {SESSION_COLUMNS} FROM sessions WHERE workspace = ? AND status IN ({list}) ORDER BY sequence DESC LIMIT 1"
        );
        Ok(self.rows(&sql, [workspace_value(workspace)], read_session)?.pop())
    }

    /// The workspaces that were worked in last, the newest first.
    pub fn newest_workspaces(&self, most: u32) -> Result<Vec<WorkspacePath>> {
        let sql =
            "SELECT workspace FROM sessions GROUP BY workspace ORDER BY max(sequence) DESC LIMIT ?";
        self.rows(sql, [most], |row| read_workspace(row, 0))
    }

    /// A workspace's open sessions that were worked on last, the newest first.
    pub fn open_sessions(&self, workspace: &WorkspacePath, most: u32) -> Result<Vec<Session>> {
        let sql = format!(
            "SELECT {SESSION_COLUMNS} FROM sessions WHERE workspace = ? AND status IN ('active', 'paused', 'interrupted')
             ORDER BY sequence DESC LIMIT ?"
        );
        self.rows(&sql, (workspace_value(workspace), most), read_session)
    }

    /// Checkpoints, oldest first.
    pub fn checkpoints(&self, filter: &CheckpointFilter) -> Result<Vec<KeptCheckpoint>> {
        let mut wheres = Where::default();
        wheres.and("session_id = ?", filter.session.map(|id| id.to_string().into()));
        wheres.and("workspace = ?", filter.workspace.as_ref().map(workspace_value));
        wheres.and("created_at < ?", filter.taken_before.map(|moment| moment.to_string().into()));
        wheres.and(
            "\"trigger\" = ?",
            filter.trigger.map(|trigger| trigger.as_str().to_owned().into()),
        );
        let sql = format!(
            "SELECT {CHECKPOINT_COLUMNS} FROM session_checkpoints {} ORDER BY sequence",
            wheres.sql()
        );
        self.rows(&sql, params_from_iter(wheres.values), read_checkpoint)
    }

    pub fn checkpoint(&self, id: CheckpointId) -> Result<Option<KeptCheckpoint>> {
        let sql = format!("SELECT {CHECKPOINT_COLUMNS} FROM session_checkpoints WHERE id = ?");
        Ok(self.rows(&sql, [id.to_string()], read_checkpoint)?.pop())
    }

    pub fn has_checkpoint(&self, id: CheckpointId) -> Result<bool> {
        let mut statement =
            self.connection.prepare_cached("SELECT 1 FROM session_checkpoints WHERE id = ?")?;
        Ok(statement.exists([id.to_string()])?)
    }

    /// The newest checkpoint of a session.
    pub fn last_checkpoint(&self, session: SessionId) -> Result<Option<KeptCheckpoint>> {
        let sql = format!(
            "SELECT {CHECKPOINT_COLUMNS} FROM session_checkpoints WHERE session_id = ? ORDER BY sequence DESC LIMIT 1"
        );
        Ok(self.rows(&sql, [session.to_string()], read_checkpoint)?.pop())
    }

    pub fn is_name_taken(&self, session: SessionId, name: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM session_checkpoints WHERE session_id = ? AND name = ?";
        Ok(self.connection.prepare_cached(sql)?.exists([session.to_string().as_str(), name])?)
    }

    /// The number after the last one a day has given out.
    pub fn next_number(&self, prefix: &str) -> Result<u32> {
        Ok(last_number(&self.connection, prefix)? + 1)
    }

    pub fn logs(&self, session: SessionId) -> Result<Vec<LogLine>> {
        let sql = "SELECT id, level, message, created_at FROM session_logs WHERE session_id = ? ORDER BY id";
        self.rows(sql, [session.to_string()], |row| {
            Ok(LogLine {
                sequence: row.get(0)?,
                level: row.get(1)?,
                message: row.get(2)?,
                created_at: parse(row, 3, "session_logs")?,
            })
        })
    }

    /// A workspace's operations, oldest first.
    pub fn operations(&self, workspace: &WorkspacePath) -> Result<Vec<KeptOperation>> {
        let sql = "SELECT session_id, data, outcome FROM operations WHERE workspace = ? ORDER BY sequence";
        self.rows(sql, [workspace_value(workspace)], read_operation)
    }

    /// Operations that began in a workspace and never ended.
    pub fn unfinished_operations(&self, workspace: &WorkspacePath) -> Result<Vec<KeptOperation>> {
        let sql = "SELECT session_id, data, outcome FROM operations WHERE workspace = ? AND outcome IS NULL ORDER BY sequence";
        self.rows(sql, [workspace_value(workspace)], read_operation)
    }

    pub fn operation(&self, id: OperationId) -> Result<Option<KeptOperation>> {
        let sql = "SELECT session_id, data, outcome FROM operations WHERE id = ?";
        Ok(self.rows(sql, [id.to_string()], read_operation)?.pop())
    }

    /// The stored plans of all operations that can still be undone: their safety checkpoint is there.
    pub fn living_plans(&self) -> Result<Vec<ObjectId>> {
        let sql = "SELECT session_id, data, outcome FROM operations
                   WHERE EXISTS (SELECT 1 FROM session_checkpoints WHERE id = json_extract(data, '$.safety'))";
        let operations = self.rows(sql, [], read_operation)?;
        Ok(operations.into_iter().map(|it| it.operation.plan).collect())
    }

    /// A session's checkpoints as retention judges them, oldest first: those nobody asked for, and the
    /// last one, whatever it is.
    pub fn candidates(&self, session: SessionId) -> Result<Vec<Candidate>> {
        let sql = "WITH last AS (SELECT max(sequence) FROM session_checkpoints WHERE session_id = ?1)
                   SELECT id, \"trigger\", is_named, is_pinned, created_at, sequence,
                          CASE WHEN json_valid(checkpoint_data) THEN json_extract(checkpoint_data, '$.checkpoint.promise') END
                   FROM session_checkpoints
                   WHERE session_id = ?1 AND \"trigger\" NOT IN ('MANUAL', 'SAFETY')
                   UNION
                   SELECT id, \"trigger\", is_named, is_pinned, created_at, sequence,
                          CASE WHEN json_valid(checkpoint_data) THEN json_extract(checkpoint_data, '$.checkpoint.promise') END
                   FROM session_checkpoints WHERE session_id = ?1 AND sequence = (SELECT * FROM last)
                   ORDER BY sequence";
        self.rows(sql, [session.to_string()], |row| {
            Ok(Candidate {
                id: parse(row, 0, "session_checkpoints")?,
                trigger: parse(row, 1, "session_checkpoints")?,
                is_named: row.get(2)?,
                is_pinned: row.get(3)?,
                taken_at: parse(row, 4, "session_checkpoints")?,
                promise: read_promise(row, 6)?,
            })
        })
    }

    /// How many checkpoints a session has.
    pub fn n_checkpoints(&self, session: SessionId) -> Result<u64> {
        let sql = "SELECT count(*) FROM session_checkpoints WHERE session_id = ?";
        let count: i64 = self
            .connection
            .prepare_cached(sql)?
            .query_row([session.to_string()], |row| row.get(0))?;
        Ok(count as u64)
    }

    /// The newest failures and skipped checkpoints of a workspace's sessions, newest first.
    pub fn troubles(&self, workspace: &WorkspacePath, most: u32) -> Result<Vec<LogLine>> {
        let sql = "SELECT session_logs.id, level, message, session_logs.created_at
                   FROM session_logs JOIN sessions ON sessions.id = session_id
                   WHERE workspace = ? AND level IN ('warning', 'error') ORDER BY session_logs.id DESC LIMIT ?";
        self.rows(sql, (workspace_value(workspace), most), |row| {
            Ok(LogLine {
                sequence: row.get(0)?,
                level: row.get(1)?,
                message: row.get(2)?,
                created_at: parse(row, 3, "session_logs")?,
            })
        })
    }

    /// The saves of a session that failed since the last one that did not.
    pub fn failures(&self, session: SessionId) -> Result<Failures> {
        let sql = "SELECT kind, data, session_sequence FROM events WHERE session_id = ?
                   AND kind IN ('checkpoint.taken', 'checkpoint.failed')
                   ORDER BY session_sequence DESC LIMIT 1000";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([session.to_string()])?;
        let mut failures = Failures::default();
        while let Some(row) = rows.next()? {
            let kind: String = row.get(0)?;
            if kind == "checkpoint.taken" {
                break;
            }
            if failures.number == 0 {
                let data: String = row.get(1)?;
                if let Ok(Event::CheckpointFailed(failed)) = Event::parse(&kind, &data) {
                    failures.last_error = Some(failed.error);
                }
                failures.session_sequence = row.get(2)?;
            }
            failures.number += 1;
        }
        Ok(failures)
    }

    /// The number of the last prompt of a session.
    pub fn last_prompt(&self, session: SessionId) -> Result<Option<i64>> {
        let sql = "SELECT session_sequence FROM events WHERE session_id = ?
                   AND kind IN ('prompt.given', 'turn.ended') AND kind = 'prompt.given'
                   ORDER BY session_sequence DESC LIMIT 1";
        Ok(self.rows(sql, [session.to_string()], |row| Ok(row.get(0)?))?.pop())
    }

    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }
}

/// A list of conditions that grew.
#[derive(Default)]
struct Where {
    conditions: Vec<&'static str>,
    values: Vec<Value>,
}

impl Where {
    fn and(&mut self, condition: &'static str, value: Option<Value>) {
        if let Some(value) = value {
            self.conditions.push(condition);
            self.values.push(value);
        }
    }

    fn sql(&self) -> String {
        match self.conditions.is_empty() {
            true => String::new(),
            false => format!("WHERE {}", self.conditions.join(" AND ")),
        }
    }
}

pub(crate) fn read_session(row: &Row<'_>) -> Result<Session> {
    const TABLE: &str = "sessions";
    Ok(Session {
        id: parse(row, 0, TABLE)?,
        handle: row.get::<_, String>(1)?.into(),
        name: parse_some(row, 2, TABLE)?,
        agent_type: row.get(3)?,
        task_description: parse_some(row, 4, TABLE)?,
        status: parse(row, 5, TABLE)?,
        reason: parse_some(row, 6, TABLE)?,
        workspace: read_workspace(row, 7)?,
        created_at: parse(row, 8, TABLE)?,
        updated_at: parse(row, 9, TABLE)?,
        metadata: parse_some(row, 10, TABLE)?,
        status_at: parse(row, 11, TABLE)?,
        until: parse_some(row, 12, TABLE)?,
    })
}

/// A promise that cannot be read is none.
fn read_promise(row: &Row<'_>, column: usize) -> Result<Option<Promise>> {
    let text: Option<String> = row.get(column)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

pub(crate) fn read_checkpoint(row: &Row<'_>) -> Result<KeptCheckpoint> {
    let taken = from_json(row, 0, "session_checkpoints")?;
    Ok(KeptCheckpoint { taken, is_pinned: row.get(1)?, sequence: row.get(2)? })
}

fn read_operation(row: &Row<'_>) -> Result<KeptOperation> {
    let outcome: Option<String> = row.get(2)?;
    Ok(KeptOperation {
        session_id: parse(row, 0, "operations")?,
        operation: from_json(row, 1, "operations")?,
        outcome: outcome.map(|_| from_json(row, 2, "operations")).transpose()?,
    })
}

fn read_workspace(row: &Row<'_>, column: usize) -> Result<WorkspacePath> {
    match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(WorkspacePath::new(bytes)),
        _ => {
            Err(Error::BadRow { table: "sessions", what: "the workspace is not a path".to_owned() })
        }
    }
}

fn parse_some<T: std::str::FromStr<Err: std::fmt::Display>>(
    row: &Row<'_>,
    column: usize,
    table: &'static str,
) -> Result<Option<T>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => parse(row, column, table).map(Some),
    }
}

fn from_json<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
    table: &'static str,
) -> Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| Error::BadRow { table, what: error.to_string() })
}
