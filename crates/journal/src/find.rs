//! From what people type to what they mean: ids, handles, their beginnings and ends, names, `latest`.

use bivouac_core::id::{CheckpointId, SessionId};
use bivouac_core::path::WorkspacePath;
use bivouac_core::session::{Session, Status};
use rusqlite::types::Value;

use crate::projection::workspace_value;
use crate::query::{
    CHECKPOINT_COLUMNS, KeptCheckpoint, SESSION_COLUMNS, read_checkpoint, read_session,
};
use crate::{Journal, Result};

/// Where a word is looked for: in the session at hand, then in the workspace. A whole handle or id is
/// found anywhere.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub session: Option<SessionId>,
    pub workspace: Option<WorkspacePath>,
}

impl Journal {
    /// The sessions a word can mean: one if all is well, none or several if not.
    pub fn find_sessions(
        &self,
        word: &str,
        workspace: Option<&WorkspacePath>,
    ) -> Result<Vec<Session>> {
        if let Ok(id) = word.parse::<SessionId>() {
            return Ok(self.session(id)?.into_iter().collect());
        }
        if word == "latest" {
            let Some(workspace) = workspace else {
                return Ok(Vec::new());
            };
            return Ok(self.newest_session(workspace, &Status::ALL)?.into_iter().collect());
        }
        for condition in ["handle = ?1", "name = ?1", BEGINS] {
            let sql = format!(
                "SELECT {SESSION_COLUMNS} FROM sessions WHERE {condition} ORDER BY sequence"
            );
            let found = self.rows(&sql, [word], read_session)?;
            let here: Vec<Session> =
                found.iter().filter(|it| Some(&it.workspace) == workspace).cloned().collect();
            if here.len() == 1 {
                return Ok(here);
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    /// The checkpoints a word can mean: one if all is well, none or several if not.
    pub fn find_checkpoints(&self, word: &str, scope: &Scope) -> Result<Vec<KeptCheckpoint>> {
        if let Ok(id) = word.parse::<CheckpointId>() {
            return Ok(self.checkpoint(id)?.into_iter().collect());
        }
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let end = if is_number {
            Some(format!("-{word}"))
        } else {
            word.strip_prefix("cp").map(str::to_owned)
        };
        let end = end.map(|end| format!("%{}", escape_like(&end)));
        let exact = ("handle = ?1", word);
        let mut near = vec![exact, ("name = ?1 AND is_named", word), (BEGINS, word)];
        near.extend(end.as_deref().map(|end| ("handle LIKE ?1 ESCAPE '\\'", end)));
        let mut far = vec![exact];
        if word == "latest" {
            let newest = "?1 = ?1 AND sequence = (SELECT max(sequence) FROM session_checkpoints WHERE {place})";
            (near, far) = (vec![(newest, word)], Vec::new());
        }
        // Only a whole handle reaches into other workspaces.
        let places = [
            ("session_id = ?2", scope.session.map(|id| Value::Text(id.to_string())), &near),
            ("workspace = ?2", scope.workspace.as_ref().map(workspace_value), &near),
            ("?2 IS NULL", Some(Value::Null), &far),
        ];
        for (place, value, questions) in places {
            let Some(value) = value else { continue };
            for (condition, word) in questions {
                let condition = condition.replace("{place}", place);
                let sql = format!(
                    "SELECT {CHECKPOINT_COLUMNS} FROM session_checkpoints WHERE {condition} AND {place} ORDER BY sequence"
                );
                let found = self.rows(&sql, (word, &value), read_checkpoint)?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
        }
        Ok(Vec::new())
    }

    /// Handles and names that complete what someone began to type, newest first.
    pub fn complete_checkpoints(
        &self,
        workspace: &WorkspacePath,
    ) -> Result<Vec<(String, Option<String>)>> {
        let sql = "SELECT handle, message FROM session_checkpoints WHERE workspace = ? ORDER BY sequence DESC LIMIT 200";
        self.rows(sql, [workspace_value(workspace)], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    pub fn complete_sessions(&self) -> Result<Vec<(String, Option<String>)>> {
        let sql = "SELECT handle, coalesce(name, task_description) FROM sessions ORDER BY sequence DESC LIMIT 200";
        self.rows(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }
}

/// The id or the handle starts with the word. A handle's own prefix says nothing.
const BEGINS: &str =
    "length(?1) >= 4 AND (substr(id, 1, length(?1)) = ?1 OR substr(handle, 1, length(?1)) = ?1)";

fn escape_like(text: &str) -> String {
    text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}
