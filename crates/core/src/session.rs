//! One piece of work in a workspace. It outlives conversations, crashes and agents.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checkpoint::State;
use crate::id::{SessionHandle, SessionId};
use crate::path::WorkspacePath;
use crate::text::{Name, Note};
use crate::time::Timestamp;

/// What a session is from its first event on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewSession {
    pub id: SessionId,
    pub handle: SessionHandle,
    pub name: Option<Name>,
    pub agent_type: String,
    pub task_description: Option<Note>,
    pub workspace: WorkspacePath,
    /// Whatever the caller wants to find again, as it was passed.
    pub metadata: Option<State>,
    pub created_at: Timestamp,
}

/// A session as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    pub id: SessionId,
    pub handle: SessionHandle,
    pub name: Option<Name>,
    pub agent_type: String,
    pub task_description: Option<Note>,
    pub workspace: WorkspacePath,
    pub metadata: Option<State>,
    pub status: Status,
    /// Why it is in this status, when someone said so.
    pub reason: Option<Note>,
    /// When it came to be in this status.
    pub status_at: Timestamp,
    /// Until when it is paused, where someone said so.
    pub until: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Session {
    /// What people call it: its name, else its task.
    pub fn title(&self) -> Option<String> {
        let task = || self.task_description.as_ref().map(Note::headline);
        self.name.as_ref().map(ToString::to_string).or_else(task)
    }

    /// Is it to be taken up again by itself? It was paused until some time, and that has come, not too long
    /// ago: nobody expects work to begin days later.
    pub fn is_resumption_due(&self, now: Timestamp) -> bool {
        const A_DAY: Duration = Duration::from_secs(86_400);
        let due = self.until.filter(|_| self.status == Status::Paused);
        due.is_some_and(|until| until <= now && now.since(until) <= A_DAY)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Active,
    Paused,
    /// Its process is gone, and nobody ended it.
    Interrupted,
    Completed,
    Failed,
}

/// A change of status that makes no sense.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("session {handle} is already {status}")]
pub struct AlreadyThere {
    pub handle: SessionHandle,
    pub status: Status,
}

impl Status {
    pub const ALL: [Self; 5] =
        [Self::Active, Self::Paused, Self::Interrupted, Self::Completed, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Interrupted => "interrupted",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// Is the work over, for better or worse?
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }

    /// May a session in this status go to `next`? Work that ended is made active first.
    pub fn allows(self, next: Self) -> bool {
        match next {
            Self::Active => self != Self::Active,
            Self::Paused | Self::Interrupted => self == Self::Active,
            Self::Completed | Self::Failed => !self.is_ended(),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no status `{0}`; a session is active, paused, interrupted, completed or failed")]
pub struct BadStatus(String);

impl FromStr for Status {
    type Err = BadStatus;

    fn from_str(text: &str) -> Result<Self, BadStatus> {
        let found = Self::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(text));
        found.ok_or_else(|| BadStatus(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_is_over_is_taken_up_within_a_day() {
        let id = "01990000-0000-7000-8000-000000000001".parse().unwrap();
        let at: Timestamp = "2026-01-21T14:30:00Z".parse().unwrap();
        let check = |status: Status, until: Option<&str>, now: &str, expected: bool| {
            let session = Session {
                id,
                handle: SessionHandle::of(id),
                name: None,
                agent_type: "codex".to_owned(),
                task_description: None,
                workspace: WorkspacePath::new(b"/code/app".as_slice()),
                metadata: None,
                status,
                reason: None,
                status_at: at,
                until: until.map(|until| until.parse().unwrap()),
                created_at: at,
                updated_at: at,
            };
            let now = now.parse().unwrap();
            assert_eq!(session.is_resumption_due(now), expected, "{status} {until:?} {now}");
        };
        let until = Some("2026-01-21T15:00:00Z");
        check(Status::Paused, until, "2026-01-21T14:59:59Z", false);
        check(Status::Paused, until, "2026-01-21T15:00:00Z", true);
        check(Status::Paused, until, "2026-01-22T15:00:00Z", true);
        check(Status::Paused, until, "2026-01-22T15:00:01Z", false);
        check(Status::Paused, None, "2026-01-21T15:00:00Z", false);
        check(Status::Active, until, "2026-01-21T15:00:00Z", false);
    }

    #[test]
    fn what_ended_must_be_made_active_first() {
        let check = |from: Status, to: Status, allowed: bool| {
            assert_eq!(from.allows(to), allowed, "{from} -> {to}");
        };
        check(Status::Active, Status::Paused, true);
        check(Status::Active, Status::Completed, true);
        check(Status::Active, Status::Active, false);
        check(Status::Paused, Status::Active, true);
        check(Status::Paused, Status::Failed, true);
        check(Status::Paused, Status::Paused, false);
        check(Status::Active, Status::Interrupted, true);
        check(Status::Paused, Status::Interrupted, false);
        check(Status::Interrupted, Status::Active, true);
        check(Status::Interrupted, Status::Failed, true);
        check(Status::Completed, Status::Active, true);
        check(Status::Completed, Status::Failed, false);
        check(Status::Failed, Status::Paused, false);
    }
}
