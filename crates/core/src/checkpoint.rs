//! One moment of a session: what was there, why it was kept, and what was left out.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::conversation::ConversationSummary;
use crate::git::GitSummary;
use crate::id::{CheckpointHandle, CheckpointId, ObjectId, OperationId, SessionId};
use crate::retention::Promise;
use crate::text::{Name, Note};
use crate::time::Timestamp;

/// An event that names a snapshot and all else needed to come back to that moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub id: CheckpointId,
    pub handle: CheckpointHandle,
    pub session_id: SessionId,
    pub parent: Option<CheckpointId>,
    pub trigger: Trigger,
    pub name: Option<Name>,
    pub message: Option<Note>,
    pub taken_at: Timestamp,
    /// The root of the file tree.
    pub tree: ObjectId,
    pub coverage: Coverage,
    pub git: Option<GitSummary>,
    /// What the agent and the person had said by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationSummary>,
    /// How far the work was: the stored [`crate::work::Work`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<ObjectId>,
    /// Where the agent worked: the stored `Environment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<ObjectId>,
    /// What its terminal looked like: the stored `Terminal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<ObjectId>,
    /// Whatever the caller wants to find again, as it was passed.
    pub state: Option<State>,
    /// The operation this was taken for, when it is a safety checkpoint.
    pub operation: Option<OperationId>,
    /// Who asked for it: `user@machine`.
    pub by: String,
    /// How it is to be kept, where a workspace's file said so and not the user's own configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Promise>,
}

/// Why a checkpoint was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Trigger {
    Periodic,
    Detach,
    Manual,
    Error,
    Complete,
    Shutdown,
    /// Before a risky operation of the agent.
    Risk,
    /// Before a restore of our own.
    Safety,
    Turn,
    Task,
    Spawn,
    Phase,
    Compact,
    End,
}

impl Trigger {
    pub const ALL: [Self; 14] = [
        Self::Periodic,
        Self::Detach,
        Self::Manual,
        Self::Error,
        Self::Complete,
        Self::Shutdown,
        Self::Risk,
        Self::Safety,
        Self::Turn,
        Self::Task,
        Self::Spawn,
        Self::Phase,
        Self::Compact,
        Self::End,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Periodic => "PERIODIC",
            Self::Detach => "DETACH",
            Self::Manual => "MANUAL",
            Self::Error => "ERROR",
            Self::Complete => "COMPLETE",
            Self::Shutdown => "SHUTDOWN",
            Self::Risk => "RISK",
            Self::Safety => "SAFETY",
            Self::Turn => "TURN",
            Self::Task => "TASK",
            Self::Spawn => "SPAWN",
            Self::Phase => "PHASE",
            Self::Compact => "COMPACT",
            Self::End => "END",
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no trigger `{0}`; the triggers are {list}", list = all_triggers())]
pub struct BadTrigger(String);

fn all_triggers() -> String {
    Trigger::ALL.map(|trigger| trigger.as_str().to_ascii_lowercase()).join(", ")
}

impl FromStr for Trigger {
    type Err = BadTrigger;

    fn from_str(text: &str) -> Result<Self, BadTrigger> {
        let found =
            Self::ALL.into_iter().find(|trigger| trigger.as_str().eq_ignore_ascii_case(text));
        found.ok_or_else(|| BadTrigger(text.to_owned()))
    }
}

/// What a snapshot holds, and how much it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    pub n_files: u64,
    pub size_bytes: u64,
    /// Paths that were left out, counted by reason. A folder that was left out counts once.
    pub gaps: BTreeMap<Gap, u64>,
}

impl Coverage {
    pub fn n_gaps(&self) -> u64 {
        self.gaps.values().sum()
    }
}

/// Why something in the workspace is not in the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// An ignore rule matches and it is neither tracked nor precious.
    Ignored,
    /// `workspace.exclude` names it.
    Excluded,
    TooLarge,
    /// Not readable for us, or too many folders deep.
    Unreadable,
    /// A fifo, socket or device.
    Special,
    /// It changed every time we read it.
    ChangedWhileRead,
    /// Our own store, or the state folder of an agent.
    OwnState,
}

impl Gap {
    pub const ALL: [Self; 7] = [
        Self::Ignored,
        Self::Excluded,
        Self::TooLarge,
        Self::Unreadable,
        Self::Special,
        Self::ChangedWhileRead,
        Self::OwnState,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Excluded => "excluded",
            Self::TooLarge => "too large",
            Self::Unreadable => "unreadable",
            Self::Special => "not a file",
            Self::ChangedWhileRead => "changed while read",
            Self::OwnState => "state of bivouac or an agent",
        }
    }

    /// Would a person be surprised that it is missing?
    pub const fn is_surprising(self) -> bool {
        matches!(self, Self::TooLarge | Self::Unreadable | Self::ChangedWhileRead)
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// JSON of the caller's, kept to the letter.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct State(Box<RawValue>);

#[derive(Debug, thiserror::Error)]
pub enum BadState {
    #[error("the JSON is not valid: {0}")]
    NotJson(serde_json::Error),
    #[error("the JSON has {0} bytes; at most {max} are kept", max = State::MAX_BYTES)]
    TooLarge(usize),
}

impl State {
    pub const MAX_BYTES: usize = 4 << 20;

    pub fn as_json(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.as_json() == other.as_json()
    }
}

impl FromStr for State {
    type Err = BadState;

    fn from_str(text: &str) -> Result<Self, BadState> {
        if text.len() > Self::MAX_BYTES {
            return Err(BadState::TooLarge(text.len()));
        }
        serde_json::from_str(text).map(Self).map_err(BadState::NotJson)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_read_in_any_case() {
        assert_eq!("manual".parse(), Ok(Trigger::Manual));
        assert_eq!("PERIODIC".parse(), Ok(Trigger::Periodic));
        for trigger in Trigger::ALL {
            assert_eq!(trigger.as_str().parse(), Ok(trigger));
            assert_eq!(serde_json::to_string(&trigger).unwrap(), format!("\"{trigger}\""));
        }
        assert_eq!(
            "sometimes".parse::<Trigger>().unwrap_err().to_string(),
            "there is no trigger `sometimes`; the triggers are periodic, detach, manual, error, complete, \
             shutdown, risk, safety, turn, task, spawn, phase, compact, end"
        );
    }

    #[test]
    fn state_is_kept_to_the_letter() {
        let text = r#"{"z": 1, "a": 12345678901234567890123, "z2": [1.0, 1.50]}"#;
        let state: State = text.parse().unwrap();
        assert_eq!(serde_json::to_string(&state).unwrap(), text);
        assert!("{broken".parse::<State>().is_err());
        assert!(matches!(" ".repeat(5 << 20).parse::<State>(), Err(BadState::TooLarge(_))));
    }
}
