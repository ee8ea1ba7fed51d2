//! How far something is, in the words of whoever says it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    #[default]
    Pending,
    InProgress,
    Blocked,
    Completed,
    Failed,
    /// It will not be done.
    Dropped,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no status; one is pending, in-progress, blocked, completed, failed or dropped")]
pub struct BadStatus(String);

impl TaskStatus {
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::InProgress,
        Self::Blocked,
        Self::Completed,
        Self::Failed,
        Self::Dropped,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in-progress",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }

    /// As tables for people show it.
    pub const fn badge(self) -> &'static str {
        match self {
            Self::Pending => "⏳ Pending",
            Self::InProgress => "🔄 In Progress",
            Self::Blocked => "⛔ Blocked",
            Self::Completed => "✅ Done",
            Self::Failed => "❌ Failed",
            Self::Dropped => "🚫 Dropped",
        }
    }

    /// Is there nothing left to do?
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Dropped)
    }

    /// Reads anybody's word for it: a sign, a word, or both with more words behind.
    pub fn from_word(text: &str) -> Option<Self> {
        if let Some(found) = text.chars().find_map(Self::from_sign) {
            return Some(found);
        }
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|it| !it.is_empty())
            .collect();
        // What is not done yet is still to be done.
        if let Some(("not" | "never", rest)) =
            words.split_first().map(|(first, rest)| (*first, rest))
        {
            let is_known = rest.iter().any(|word| Self::from_plain_word(word).is_some());
            return is_known.then_some(Self::Pending);
        }
        let pairs = words.windows(2).map(|pair| pair.concat());
        let first_pair = pairs.into_iter().next();
        let candidates = first_pair.iter().map(String::as_str).chain(words.iter().copied());
        candidates.into_iter().find_map(Self::from_plain_word)
    }

    fn from_sign(sign: char) -> Option<Self> {
        Some(match sign {
            '✅' | '✓' | '✔' | '☑' | '🟢' => Self::Completed,
            '🔄' | '🚧' | '▶' | '🟡' | '⚙' => Self::InProgress,
            '❌' | '✗' | '✘' | '🔴' => Self::Failed,
            '⛔' | '🛑' | '⏸' => Self::Blocked,
            '⏳' | '⬜' | '☐' | '⚪' | '🕐' => Self::Pending,
            '🚫' | '🗑' => Self::Dropped,
            _ => return None,
        })
    }

    fn from_plain_word(word: &str) -> Option<Self> {
        Some(match word {
            "pending" | "todo" | "open" | "new" | "queued" | "planned" | "notstarted"
            | "backlog" | "ready" => Self::Pending,
            "inprogress" | "active" | "started" | "running" | "doing" | "wip" | "ongoing"
            | "working" | "progress" => Self::InProgress,
            "blocked" | "stuck" | "waiting" | "onhold" => Self::Blocked,
            "completed" | "complete" | "done" | "finished" | "merged" | "closed" | "x" => {
                Self::Completed
            }
            "failed" | "fail" | "failure" | "error" | "errored" | "broken" => Self::Failed,
            "cancelled" | "canceled" | "deleted" | "dropped" | "skipped" | "abandoned"
            | "wontfix" => Self::Dropped,
            _ => return None,
        })
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for TaskStatus {
    type Err = BadStatus;

    fn from_str(text: &str) -> Result<Self, BadStatus> {
        Self::from_word(text).ok_or_else(|| BadStatus(text.to_owned()))
    }
}

/// What a gate or a check said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Pass,
    Fail,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no verdict; one is pass or fail")]
pub struct BadVerdict(String);

impl Verdict {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
        }
    }

    pub const fn sign(self) -> &'static str {
        match self {
            Self::Pass => "✅",
            Self::Fail => "❌",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Verdict {
    type Err = BadVerdict;

    fn from_str(text: &str) -> Result<Self, BadVerdict> {
        match text.trim().trim_end_matches('\u{fe0f}').to_lowercase().as_str() {
            "pass" | "passed" | "passing" | "ok" | "yes" | "true" | "green" | "✅" | "✓" | "✔" => {
                Ok(Self::Pass)
            }
            "fail" | "failed" | "failing" | "no" | "false" | "red" | "❌" | "✗" | "✘" => {
                Ok(Self::Fail)
            }
            _ => Err(BadVerdict(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anybodys_word_for_a_status_is_understood() {
        let check = |text: &str, expected: Option<TaskStatus>| {
            assert_eq!(TaskStatus::from_word(text), expected, "{text:?}");
        };
        for text in [
            "in_progress",
            "in-progress",
            "In Progress",
            "🔄 In Progress",
            "🔄",
            "IN PROGRESS",
            "wip",
        ] {
            check(text, Some(TaskStatus::InProgress));
        }
        for text in ["Done", "✅ Done", "completed", "[x]", "✓", "DONE"] {
            check(text, Some(TaskStatus::Completed));
        }
        for text in ["❌ Failed → retry", "❌ Failed (attempt 1)", "failed", "error"] {
            check(text, Some(TaskStatus::Failed));
        }
        check("not started", Some(TaskStatus::Pending));
        check("not done", Some(TaskStatus::Pending));
        check("not sure", None);
        check("on hold", Some(TaskStatus::Blocked));
        check("won't do", None);
        check("", None);
        for status in TaskStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            assert_eq!(status.badge().parse(), Ok(status));
            let stored = serde_json::to_string(&status).unwrap();
            check(stored.trim_matches('"'), Some(status));
        }
    }
}
