//! Finding events by their words, over all sessions. What is indexed has no secrets in it.

use bivouac_core::event::Event;
use bivouac_core::id::{CheckpointHandle, SessionId};
use bivouac_core::path::WorkspacePath;
use bivouac_core::redact::Redactor;
use bivouac_core::time::Timestamp;
use bivouac_core::work::searchable;
use rusqlite::types::Value;
use rusqlite::{Connection, TransactionBehavior, params, params_from_iter};

use crate::projection::workspace_value;
use crate::stored::{StoredEvent, parse};
use crate::{Journal, Result, read};

/// Where to look, and how much to answer.
#[derive(Clone, Debug, Default)]
pub struct SearchFilter {
    pub session: Option<SessionId>,
    pub workspace: Option<WorkspacePath>,
    pub most: u32,
}

/// One event that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub sequence: i64,
    pub session_id: SessionId,
    pub kind: String,
    /// The words around what was found; [`MARKS`] stand around each match.
    pub excerpt: String,
    pub recorded_at: Timestamp,
    /// The checkpoint that holds the moment: the first after it, else the last before.
    pub checkpoint: Option<CheckpointHandle>,
}

/// What stands before and behind a match in an excerpt.
pub const MARKS: [char; 2] = ['\u{2}', '\u{3}'];

pub(crate) fn index(
    connection: &Connection,
    stored: &StoredEvent,
    event: &Event,
    redactor: &Redactor,
) -> Result<()> {
    let Some(words) = searchable(event) else {
        return Ok(());
    };
    let sql = "INSERT INTO search (rowid, words, session_id, kind) VALUES (?, ?, ?, ?)";
    connection.prepare_cached(sql)?.execute(params![
        stored.sequence,
        redactor.redact(&words),
        stored.session_id.to_string(),
        stored.kind,
    ])?;
    Ok(())
}

impl Journal {
    /// Is there nothing to be found, although something happened? An upgrade leaves that to who knows the
    /// secrets.
    pub fn is_unindexed(&self) -> Result<bool> {
        let sql =
            "SELECT NOT EXISTS (SELECT 1 FROM search_docsize) AND EXISTS (SELECT 1 FROM events)";
        Ok(self.connection.query_row(sql, [], |row| row.get(0))?)
    }

    /// Makes the index anew, with what is known to be secret by now.
    pub fn reindex(&mut self) -> Result<()> {
        let redactor = self.redactor.clone();
        let transaction =
            self.writable()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute("DELETE FROM search", [])?;
        for stored in read::all(&transaction)? {
            if let Ok(event) = stored.event() {
                index(&transaction, &stored, &event, &redactor)?;
            }
        }
        // Where nothing was said yet, this row keeps the question from being asked again. No word finds it.
        let sql = "INSERT INTO search (rowid, words, session_id, kind) VALUES (0, '', '', '')";
        transaction.execute(sql, [])?;
        transaction.commit()?;
        Ok(())
    }

    /// Events that hold all the words, the best first.
    pub fn search(&self, text: &str, filter: &SearchFilter) -> Result<Vec<Hit>> {
        let words = phrases(text);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let sql = "SELECT search.rowid, search.session_id, search.kind,
                          snippet(search, 0, char(2), char(3), '…', 16), events.recorded_at,
                          coalesce((SELECT handle FROM session_checkpoints it WHERE it.session_id = search.session_id
                                    AND it.sequence >= search.rowid ORDER BY it.sequence LIMIT 1),
                                   (SELECT handle FROM session_checkpoints it WHERE it.session_id = search.session_id
                                    ORDER BY it.sequence DESC LIMIT 1))
                   FROM search JOIN events ON events.sequence = search.rowid
                   JOIN sessions ON sessions.id = search.session_id
                   WHERE search MATCH ?1 AND (?2 IS NULL OR search.session_id = ?2)
                     AND (?3 IS NULL OR sessions.workspace = ?3)
                   ORDER BY search.rank, search.rowid DESC LIMIT ?4";
        let values = [
            Value::Text(words.join(" AND ")),
            filter.session.map_or(Value::Null, |id| Value::Text(id.to_string())),
            filter.workspace.as_ref().map_or(Value::Null, workspace_value),
            Value::Integer(i64::from(filter.most)),
        ];
        self.rows(sql, params_from_iter(values), |row| {
            let handle: Option<String> = row.get(5)?;
            Ok(Hit {
                sequence: row.get(0)?,
                session_id: parse(row, 1, "search")?,
                kind: row.get(2)?,
                excerpt: row.get(3)?,
                recorded_at: parse(row, 4, "events")?,
                checkpoint: handle.map(CheckpointHandle::from),
            })
        })
    }
}

/// What people type, as words and quoted phrases. The last word may be the beginning of one.
fn phrases(text: &str) -> Vec<String> {
    let mut phrases = Vec::new();
    for (place, part) in text.split('"').enumerate() {
        let words: Vec<&str> = part
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        match place % 2 {
            0 => phrases.extend(words.iter().map(|word| format!("\"{word}\""))),
            _ if words.is_empty() => {}
            _ => phrases.push(format!("\"{}\"", words.join(" "))),
        }
    }
    let ends_in_word = text.chars().last().is_some_and(char::is_alphanumeric);
    if let (Some(last), true) = (phrases.last_mut(), ends_in_word) {
        last.push('*');
    }
    phrases
}

#[cfg(test)]
mod tests {
    use super::phrases;

    #[test]
    fn what_people_type_is_never_an_operator() {
        let check = |text: &str, expected: &[&str]| assert_eq!(phrases(text), expected, "{text}");
        check("auth refactor", &["\"auth\"", "\"refactor\"*"]);
        check("\"auth refactor\" tests", &["\"auth refactor\"", "\"tests\"*"]);
        check("a AND (b OR", &["\"a\"", "\"AND\"", "\"b\"", "\"OR\"*"]);
        check("src/auth.rs", &["\"src\"", "\"auth\"", "\"rs\"*"]);
        check("* \" -", &[]);
    }
}
