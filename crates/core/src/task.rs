//! Pieces of work within a session, as the agents' own task lists tell of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::Note;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Pending,
    InProgress,
    Completed,
    /// It will not be done.
    Dropped,
}

impl TaskStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in progress",
            Self::Completed => "completed",
            Self::Dropped => "dropped",
        }
    }

    /// Reads any agent's word for it.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "pending" | "todo" | "open" => Some(Self::Pending),
            "in_progress" | "in-progress" | "active" => Some(Self::InProgress),
            "completed" | "done" => Some(Self::Completed),
            "cancelled" | "canceled" | "deleted" | "dropped" => Some(Self::Dropped),
            _ => None,
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A task appeared or changed. What is not said stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskChanged {
    /// The agent's own key, unique within the session.
    pub task: String,
    pub subject: Option<Note>,
    pub status: Option<TaskStatus>,
}

/// A task as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub key: String,
    pub subject: Option<Note>,
    pub status: TaskStatus,
}
