//! What runs under supervision, or did last.

use bivouac_core::event::{Event, Level};
use bivouac_core::id::SessionId;
use bivouac_core::run::{Ending, RunEnded, RunStarted};
use bivouac_core::text::Note;
use bivouac_core::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::projection::Writer;
use crate::stored::{StoredEvent, parse};
use crate::{Error, Journal, Result};

/// The last run of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRun {
    pub session_id: SessionId,
    pub started: RunStarted,
    pub started_at: Timestamp,
    /// `None` while nobody said that it ended.
    pub ending: Option<Ending>,
}

pub(crate) fn apply(connection: &Connection, stored: &StoredEvent, event: &Event) -> Result<()> {
    let writer = Writer { connection, stored };
    let session = stored.session_id.to_string();
    match event {
        Event::RunStarted(started) => {
            let sql = "INSERT OR REPLACE INTO runs (session_id, data, started_at) VALUES (?, ?, ?)";
            let at = stored.recorded_at.to_string();
            connection.prepare_cached(sql)?.execute(params![session, stored.data, at])?;
            let command = Note::cut(&started.command.join(" "));
            writer.log(Level::Info, &format!("running `{}`", command.headline()))
        }
        Event::RunEnded(ended) => {
            let sql = "UPDATE runs SET ending = ? WHERE session_id = ?";
            connection.prepare_cached(sql)?.execute(params![stored.data, session])?;
            // The status of the session tells of the trouble.
            let how = ended.ending.reason();
            writer.log(Level::Info, how.as_deref().unwrap_or("the command ended well"))
        }
        _ => Ok(()),
    }
}

const COLUMNS: &str = "session_id, data, started_at, ending";

impl Journal {
    /// The last run of a session.
    pub fn run(&self, session: SessionId) -> Result<Option<KnownRun>> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE session_id = ?");
        Ok(self.rows(&sql, [session.to_string()], read_run)?.pop())
    }

    /// Runs that nobody said ended.
    pub fn open_runs(&self) -> Result<Vec<KnownRun>> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE ending IS NULL ORDER BY started_at");
        self.rows(&sql, [], read_run)
    }
}

fn read_run(row: &Row<'_>) -> Result<KnownRun> {
    let bad = |error: serde_json::Error| Error::BadRow { table: "runs", what: error.to_string() };
    let started: String = row.get(1)?;
    let ended: Option<String> = row.get(3)?;
    let ended: Option<RunEnded> =
        ended.map(|text| serde_json::from_str(&text)).transpose().map_err(bad)?;
    Ok(KnownRun {
        session_id: parse(row, 0, "runs")?,
        started: serde_json::from_str(&started).map_err(bad)?,
        started_at: parse(row, 2, "runs")?,
        ending: ended.map(|it| it.ending),
    })
}
