//! What can be done about a session that stopped, and how much of it is kept.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::session::{Session, Status};
use crate::text::Note;
use crate::time::{Timestamp, in_words};

/// What the person can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Go on from the checkpoint.
    Resume,
    /// A new session that is told the same.
    Fresh,
    /// Look at what the checkpoint holds.
    View,
    Cancel,
}

impl Action {
    /// In the order they are offered in; the first is the one to take.
    pub const ALL: [Self; 4] = [Self::Resume, Self::Fresh, Self::View, Self::Cancel];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Fresh => "fresh",
            Self::View => "view",
            Self::Cancel => "cancel",
        }
    }

    /// What it is called where it is offered.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Resume => "Resume from checkpoint (recommended)",
            Self::Fresh => "Start fresh session with same prompt",
            Self::View => "View checkpoint contents",
            Self::Cancel => "Cancel",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no action `{0}`; the actions are resume, fresh, view and cancel")]
pub struct BadAction(String);

impl FromStr for Action {
    type Err = BadAction;

    fn from_str(text: &str) -> Result<Self, BadAction> {
        let found = Self::ALL.into_iter().find(|action| action.as_str() == text);
        found.ok_or_else(|| BadAction(text.to_owned()))
    }
}

/// How far a checkpoint is from the moment the session stopped: `5 minutes before timeout`.
pub fn distance(taken_at: Timestamp, stopped_at: Timestamp, session: &Session) -> String {
    let span = stopped_at.since(taken_at);
    let (at, before) = moment(session);
    match (span == Duration::ZERO, session.status) {
        (true, Status::Active) => "just now".to_owned(),
        (false, Status::Active) => format!("{} ago", in_words(span)),
        (true, _) => at.to_owned(),
        (false, _) => format!("{} before {before}", in_words(span)),
    }
}

/// What happened when it stopped: `at timeout`, `before timeout`.
fn moment(session: &Session) -> (&'static str, &'static str) {
    let reason = session.reason.as_ref().map(Note::as_str).unwrap_or_default().to_lowercase();
    let says = |words: [&str; 2]| words.iter().any(|word| reason.contains(word));
    match session.status {
        Status::Paused => ("when it was paused", "it was paused"),
        _ if says(["timeout", "timed out"]) => ("at timeout", "timeout"),
        _ if says(["shut down", "shutdown"]) => ("at shutdown", "shutdown"),
        Status::Interrupted => ("when it was interrupted", "it was interrupted"),
        Status::Active | Status::Completed | Status::Failed => ("when it ended", "it ended"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SessionHandle;
    use crate::path::WorkspacePath;

    fn session(status: Status, reason: Option<&str>) -> Session {
        let id = "01990000-0000-7000-8000-000000000001".parse().unwrap();
        let at: Timestamp = "2026-01-21T14:30:00Z".parse().unwrap();
        Session {
            id,
            handle: SessionHandle::of(id),
            name: None,
            agent_type: "claude-code".to_owned(),
            task_description: None,
            workspace: WorkspacePath::new(b"/code/app".as_slice()),
            metadata: None,
            status,
            reason: reason.map(Note::cut),
            status_at: at,
            until: None,
            created_at: at,
            updated_at: at,
        }
    }

    #[test]
    fn the_distance_is_told_by_what_happened() {
        let check = |status: Status, reason: Option<&str>, minutes: i64, expected: &str| {
            let session = session(status, reason);
            let taken =
                jiff::Timestamp::from_second(session.status_at.as_millis() / 1_000 - minutes * 60);
            let taken = Timestamp::new(taken.unwrap());
            assert_eq!(distance(taken, session.status_at, &session), expected);
        };
        let late = Some("Container timeout after 24 hours");
        check(Status::Failed, late, 5, "5 minutes before timeout");
        check(Status::Failed, late, 0, "at timeout");
        check(Status::Interrupted, Some("Shut down by SIGTERM"), 1, "1 minute before shutdown");
        check(Status::Interrupted, Some("Shut down by SIGTERM"), 0, "at shutdown");
        check(
            Status::Failed,
            Some("Command ended with exit code 3"),
            2,
            "2 minutes before it ended",
        );
        check(Status::Completed, None, 0, "when it ended");
        check(Status::Interrupted, None, 60, "1 hour before it was interrupted");
        check(Status::Paused, Some("timeout"), 3, "3 minutes before it was paused");
        check(Status::Active, None, 3, "3 minutes ago");
    }

    #[test]
    fn actions_are_known_by_their_words() {
        for action in Action::ALL {
            assert_eq!(action.as_str().parse(), Ok(action));
        }
        assert_eq!(
            "retry".parse::<Action>().unwrap_err().to_string(),
            "there is no action `retry`; the actions are resume, fresh, view and cancel"
        );
    }
}
