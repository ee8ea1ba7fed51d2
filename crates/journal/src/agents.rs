//! What agents did, in tables: which conversations a session has, and what waits for a person.

use bivouac_core::agent::{AgentKind, ConversationStarted, ProcessId, Source, TurnEnded};
use bivouac_core::briefing::{Said, Who};
use bivouac_core::conversation::NativeId;
use bivouac_core::event::{Event, Level};
use bivouac_core::id::SessionId;
use bivouac_core::text::Note;
use bivouac_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::projection::Writer;
use crate::query::{CHECKPOINT_COLUMNS, KeptCheckpoint, read_checkpoint};
use crate::stored::{StoredEvent, parse};
use crate::{Error, Journal, Result};

/// The newest conversation of an active session, which nobody ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenConversation {
    pub session_id: SessionId,
    pub started: ConversationStarted,
    /// Was something asked that was not answered?
    pub is_turn_open: bool,
    /// The number of the session's last event.
    pub session_sequence: i64,
}

/// A conversation as the journal knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownConversation {
    pub session_id: SessionId,
    pub started: ConversationStarted,
    /// What the model has not been told yet.
    pub untold: Option<Source>,
    pub has_ended: bool,
}

pub(crate) fn apply(connection: &Connection, stored: &StoredEvent, event: &Event) -> Result<()> {
    let it = Book { connection, stored };
    match event {
        Event::ConversationStarted(started) => it.start(started),
        Event::ConversationEnded(ended) => {
            it.set("ended_at", Some(&stored.recorded_at.to_string()), &ended.conversation)?;
            let reason = ended.reason.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
            it.log(Level::Info, &format!("conversation ended{reason}"))
        }
        Event::ConversationCompacted(compacted) => {
            it.set("untold", Some(&word(Source::Compact)), &compacted.conversation)?;
            it.log(Level::Info, "conversation compacted")
        }
        Event::ConversationRewound(rewound) => it.log(
            Level::Info,
            &format!(
                "conversation went back from turn {} to {}",
                rewound.n_turns_before, rewound.n_turns_after
            ),
        ),
        Event::PromptGiven(prompt) => {
            it.set("untold", None, &prompt.conversation)?;
            it.forget_approvals(None)
        }
        Event::TurnEnded(turn) => {
            it.forget_approvals(None)?;
            match &turn.error {
                Some(error) => {
                    it.log(Level::Warning, &format!("the turn failed: {}", error.headline()))
                }
                None => Ok(()),
            }
        }
        Event::ToolUsed(used) => it.forget_approvals(Some(&used.tool)),
        Event::SubagentStarted(subagent) => {
            let role = subagent.role.as_deref().unwrap_or("sub-agent");
            it.log(Level::Info, &format!("{role} {} started", subagent.subagent))
        }
        Event::SubagentStopped(subagent) => {
            it.log(Level::Info, &format!("sub-agent {} stopped", subagent.subagent))
        }
        Event::ApprovalAsked(asked) => {
            let sql =
                "INSERT INTO approvals (sequence, session_id, tool, what) VALUES (?, ?, ?, ?)";
            let what = asked.what.as_ref().map(Note::as_str);
            connection.prepare_cached(sql)?.execute(params![
                stored.sequence,
                stored.session_id.to_string(),
                asked.tool,
                what
            ])?;
            Ok(())
        }
        _ => Ok(()),
    }
}

struct Book<'b> {
    connection: &'b Connection,
    stored: &'b StoredEvent,
}

impl Book<'_> {
    fn log(&self, level: Level, message: &str) -> Result<()> {
        Writer { connection: self.connection, stored: self.stored }.log(level, message)
    }

    fn start(&self, started: &ConversationStarted) -> Result<()> {
        let sql = "INSERT INTO conversations (agent, id, session_id, data, pid, untold, sequence)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                   ON CONFLICT (agent, id) DO UPDATE SET session_id = ?3, data = ?4, pid = ?5, untold = ?6,
                       ended_at = NULL, sequence = ?7";
        self.connection.prepare_cached(sql)?.execute(params![
            started.agent.as_str(),
            started.conversation.as_str(),
            self.stored.session_id.to_string(),
            self.stored.data,
            started.process.as_ref().map(|process| process.pid),
            word(started.source),
            self.stored.sequence,
        ])?;
        let agent = started.agent.title();
        self.log(
            Level::Info,
            &format!("{agent} conversation {} ({})", started.conversation, word(started.source)),
        )
    }

    fn set(
        &self,
        column: &'static str,
        value: Option<&str>,
        conversation: &NativeId,
    ) -> Result<()> {
        let sql = format!("UPDATE conversations SET {column} = ? WHERE session_id = ? AND id = ?");
        self.connection.prepare_cached(&sql)?.execute(params![
            value,
            self.stored.session_id.to_string(),
            conversation.as_str()
        ])?;
        Ok(())
    }

    /// A tool that ran was allowed to; a turn that ended waits for nothing.
    fn forget_approvals(&self, tool: Option<&str>) -> Result<()> {
        let sql = "DELETE FROM approvals WHERE session_id = ?1 AND (?2 IS NULL OR tool = ?2)";
        self.connection
            .prepare_cached(sql)?
            .execute(params![self.stored.session_id.to_string(), tool])?;
        Ok(())
    }
}

impl Journal {
    pub fn conversation(
        &self,
        agent: AgentKind,
        id: &NativeId,
    ) -> Result<Option<KnownConversation>> {
        let sql = format!("SELECT {COLUMNS} FROM conversations WHERE agent = ? AND id = ?");
        Ok(self.rows(&sql, [agent.as_str(), id.as_str()], read_conversation)?.pop())
    }

    /// A session's conversations, oldest first.
    pub fn conversations(&self, session: SessionId) -> Result<Vec<KnownConversation>> {
        let sql =
            format!("SELECT {COLUMNS} FROM conversations WHERE session_id = ? ORDER BY sequence");
        self.rows(&sql, [session.to_string()], read_conversation)
    }

    /// The conversations that a process had, newest first.
    pub fn conversations_of(&self, process: &ProcessId) -> Result<Vec<KnownConversation>> {
        let sql =
            format!("SELECT {COLUMNS} FROM conversations WHERE pid = ? ORDER BY sequence DESC");
        let mut found = self.rows(&sql, [process.pid], read_conversation)?;
        found.retain(|it| it.started.process.as_ref() == Some(process));
        Ok(found)
    }

    /// When the newest conversation with an agent began.
    pub fn last_conversation_of(&self, agent: AgentKind) -> Result<Option<Timestamp>> {
        let sql = "SELECT recorded_at FROM events WHERE sequence =
                   (SELECT max(sequence) FROM conversations WHERE agent = ?)";
        let found = self.rows(sql, [agent.as_str()], |row| Ok(row.get::<_, String>(0)?))?;
        found.first().map(|at| at.parse().map_err(|_| bad_row("events"))).transpose()
    }

    /// The newest checkpoint of a session that holds a conversation.
    pub fn last_conversation(&self, session: SessionId) -> Result<Option<KeptCheckpoint>> {
        let sql = format!(
            "SELECT {CHECKPOINT_COLUMNS} FROM session_checkpoints WHERE session_id = ?
             AND json_extract(checkpoint_data, '$.checkpoint.conversation') IS NOT NULL
             ORDER BY sequence DESC LIMIT 1"
        );
        Ok(self.rows(&sql, [session.to_string()], read_checkpoint)?.pop())
    }

    /// What a session's agent waits for a person's leave for.
    pub fn approvals(&self, session: SessionId) -> Result<Vec<String>> {
        let sql = "SELECT tool, what FROM approvals WHERE session_id = ? ORDER BY sequence";
        self.rows(sql, [session.to_string()], |row| {
            let (tool, what): (String, Option<String>) = (row.get(0)?, row.get(1)?);
            Ok(what.map_or_else(|| tool.clone(), |what| format!("{tool}: {what}")))
        })
    }

    /// The newest words of a session, oldest first, and why its last turn ended when it ended badly.
    pub fn last_words(&self, session: SessionId, most: u32) -> Result<(Vec<Said>, Option<Note>)> {
        let sql = "SELECT kind, data FROM events WHERE session_id = ? AND kind IN ('prompt.given', 'turn.ended')
                   ORDER BY session_sequence DESC LIMIT ?";
        let mut said = Vec::new();
        let mut trouble = None;
        let events = self.rows(sql, params![session.to_string(), most], read_said)?;
        for (place, event) in events.into_iter().flatten().enumerate() {
            match event {
                Event::PromptGiven(given) => {
                    said.push(Said { who: Who::Person, words: given.prompt });
                }
                Event::TurnEnded(turn) => {
                    if place == 0 {
                        trouble = turn.error;
                    }
                    said.extend(turn.message.map(|words| Said { who: Who::Agent, words }));
                }
                _ => {}
            }
        }
        said.reverse();
        Ok((said, trouble))
    }

    /// Sessions that are being worked on by an agent, as far as anybody knows. Those that are supervised
    /// are for their supervisors to tell of.
    pub fn open_conversations(&self) -> Result<Vec<OpenConversation>> {
        let sql = "SELECT sessions.id, data,
                       (SELECT kind FROM events WHERE session_id = sessions.id
                        AND kind IN ('prompt.given', 'turn.ended')
                        ORDER BY session_sequence DESC LIMIT 1) IS 'prompt.given',
                       (SELECT max(session_sequence) FROM events WHERE session_id = sessions.id)
                   FROM sessions JOIN conversations ON session_id = sessions.id
                   WHERE status = 'active' AND ended_at IS NULL AND pid IS NOT NULL
                   AND conversations.sequence =
                       (SELECT max(sequence) FROM conversations WHERE session_id = sessions.id)
                   AND NOT EXISTS (SELECT 1 FROM runs WHERE session_id = sessions.id AND ending IS NULL)
                   ORDER BY conversations.sequence";
        self.rows(sql, [], |row| {
            Ok(OpenConversation {
                session_id: parse(row, 0, "conversations")?,
                started: read_started(row)?,
                is_turn_open: row.get(2)?,
                session_sequence: row.get(3)?,
            })
        })
    }

    /// What a session was told first.
    pub fn first_prompt(&self, session: SessionId) -> Result<Option<Note>> {
        let sql = "SELECT kind, data FROM events WHERE session_id = ?
                   AND kind IN ('prompt.given', 'turn.ended') AND kind = 'prompt.given'
                   ORDER BY session_sequence LIMIT 1";
        let found = self.rows(sql, [session.to_string()], read_said)?;
        Ok(found.into_iter().flatten().find_map(|event| match event {
            Event::PromptGiven(given) => Some(given.prompt),
            _ => None,
        }))
    }

    /// How a session's last turn ended, and when; `None` while one is under way.
    pub fn last_turn(&self, session: SessionId) -> Result<Option<(TurnEnded, Timestamp)>> {
        let sql = "SELECT kind, data, recorded_at FROM events WHERE session_id = ?
                   AND kind IN ('prompt.given', 'turn.ended') ORDER BY session_sequence DESC LIMIT 1";
        let found = self.rows(sql, [session.to_string()], |row| {
            Ok((read_said(row)?, parse(row, 2, "events")?))
        })?;
        Ok(found.into_iter().find_map(|(event, at)| match event {
            Some(Event::TurnEnded(turn)) => Some((turn, at)),
            _ => None,
        }))
    }

    /// When a session that is interrupted last gave a sign of life.
    pub fn last_sign(&self, session: SessionId) -> Result<Option<Timestamp>> {
        let sql = "SELECT recorded_at FROM events WHERE session_id = ?1 AND kind <> 'run.ended'
                   AND session_sequence < (SELECT max(session_sequence) FROM events
                                           WHERE session_id = ?1 AND kind = 'session.interrupted')
                   ORDER BY session_sequence DESC LIMIT 1";
        Ok(self.rows(sql, [session.to_string()], |row| parse(row, 0, "events"))?.pop())
    }

    /// The newest session that has no conversation yet and was opened for what comes now: for this agent, or
    /// by someone who wrote down what is to be done.
    pub fn session_in_waiting(
        &self,
        workspace: &bivouac_core::path::WorkspacePath,
        agent: AgentKind,
    ) -> Result<Option<SessionId>> {
        let sql = "SELECT id FROM sessions WHERE workspace = ? AND status = 'active'
                   AND (agent_type = ? OR (agent_type = 'manual'
                        AND EXISTS (SELECT 1 FROM progress WHERE session_id = sessions.id)))
                   AND NOT EXISTS (SELECT 1 FROM conversations WHERE session_id = sessions.id)
                   ORDER BY sequence DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let workspace = crate::projection::workspace_value(workspace);
        let found: Option<String> =
            statement.query_row(params![workspace, agent.as_str()], |row| row.get(0)).optional()?;
        found.map(|id| id.parse().map_err(|_| bad_row("its id is no id"))).transpose()
    }
}

const COLUMNS: &str = "session_id, data, untold, ended_at IS NOT NULL";

/// An event by its kind and data; one that makes no sense says nothing.
fn read_said(row: &Row<'_>) -> Result<Option<Event>> {
    let (kind, data): (String, String) = (row.get(0)?, row.get(1)?);
    Ok(Event::parse(&kind, &data).ok())
}

fn read_started(row: &Row<'_>) -> Result<ConversationStarted> {
    let data: String = row.get(1)?;
    serde_json::from_str(&data).map_err(|error| bad_row(&error.to_string()))
}

fn read_conversation(row: &Row<'_>) -> Result<KnownConversation> {
    let started = read_started(row)?;
    let untold: Option<String> = row.get(2)?;
    let untold = untold.and_then(|word| serde_json::from_value(word.into()).ok());
    Ok(KnownConversation {
        session_id: parse(row, 0, "conversations")?,
        started,
        untold,
        has_ended: row.get(3)?,
    })
}

fn bad_row(what: &str) -> Error {
    Error::BadRow { table: "conversations", what: what.to_owned() }
}

fn word(source: Source) -> String {
    serde_json::to_value(source)
        .ok()
        .and_then(|it| it.as_str().map(str::to_owned))
        .unwrap_or_default()
}
