//! Facts about a session. Events are for ever: variants are added, never changed, and what a newer
//! version wrote is kept word for word.

use serde::{Deserialize, Serialize};

use crate::agent::{
    ApprovalAsked, ConversationCompacted, ConversationEnded, ConversationRewound,
    ConversationStarted, PromptGiven, SubagentStarted, SubagentStopped, ToolUsed, TurnEnded,
};
use crate::checkpoint::{Checkpoint, Trigger};
use crate::id::{CheckpointId, ObjectId, OperationId};
use crate::operation::{Operation, Outcome};
use crate::path::WorkspacePath;
use crate::run::{RunEnded, RunStarted};
use crate::session::{NewSession, Status};
use crate::text::{Name, Note};
use crate::time::Timestamp;
use crate::work::{
    Approval, Artifact, Blocker, Commit, Decision, Delegation, ForkPoint, Gate, Outline, Partition,
    Phase, Remark, Step, Task, TestRun, Worktree,
};

/// Declares the closed set of events once: the variant, the word it is stored under, its data.
macro_rules! events {
    ($($variant:ident($data:ty) = $kind:literal,)+) => {
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event {
            $($variant($data),)+
            /// Written by a newer version.
            Unknown { kind: String, data: String },
        }

        impl Event {
            /// Every kind this version knows.
            pub const KINDS: &'static [&'static str] = &[$($kind),+];

            /// The word it is stored under.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)+
                    Self::Unknown { kind, .. } => kind,
                }
            }

            /// Its data as it is stored.
            pub fn data(&self) -> String {
                match self {
                    $(Self::$variant(data) => to_json(data),)+
                    Self::Unknown { data, .. } => data.clone(),
                }
            }

            /// Reads a stored event back.
            pub fn parse(kind: &str, data: &str) -> Result<Self, BadEvent> {
                match kind {
                    $($kind => from_json(kind, data).map(Self::$variant),)+
                    _ => Ok(Self::Unknown { kind: kind.to_owned(), data: data.to_owned() }),
                }
            }
        }
    };
}

events! {
    SessionCreated(Box<NewSession>) = "session.created",
    SessionRenamed(SessionRenamed) = "session.renamed",
    SessionPaused(StatusChange) = "session.paused",
    SessionResumed(StatusChange) = "session.resumed",
    SessionCompleted(StatusChange) = "session.completed",
    SessionFailed(StatusChange) = "session.failed",
    CheckpointTaken(Box<CheckpointTaken>) = "checkpoint.taken",
    CheckpointSkipped(CheckpointSkipped) = "checkpoint.skipped",
    CheckpointFailed(CheckpointFailed) = "checkpoint.failed",
    CheckpointDeleted(CheckpointDeleted) = "checkpoint.deleted",
    CheckpointPinned(CheckpointRef) = "checkpoint.pinned",
    CheckpointUnpinned(CheckpointRef) = "checkpoint.unpinned",
    OperationStarted(Box<Operation>) = "operation.started",
    OperationFinished(OperationFinished) = "operation.finished",
    Noted(Noted) = "log.noted",
    ConversationStarted(Box<ConversationStarted>) = "conversation.started",
    ConversationEnded(ConversationEnded) = "conversation.ended",
    ConversationCompacted(ConversationCompacted) = "conversation.compacted",
    ConversationRewound(ConversationRewound) = "conversation.rewound",
    PromptGiven(PromptGiven) = "prompt.given",
    TurnEnded(TurnEnded) = "turn.ended",
    ToolUsed(Box<ToolUsed>) = "tool.used",
    SubagentStarted(SubagentStarted) = "subagent.started",
    SubagentStopped(SubagentStopped) = "subagent.stopped",
    ApprovalAsked(ApprovalAsked) = "approval.asked",
    TaskChanged(Box<Task>) = "task.changed",
    SessionDescribed(Box<Outline>) = "session.described",
    PhaseChanged(Box<Phase>) = "phase.changed",
    ArtifactChanged(Box<Artifact>) = "artifact.changed",
    DecisionMade(Box<Decision>) = "decision.made",
    BlockerChanged(Box<Blocker>) = "blocker.changed",
    ApprovalChanged(Box<Approval>) = "approval.changed",
    GateExecuted(Box<Gate>) = "gate.executed",
    StepChanged(Box<Step>) = "step.changed",
    DelegationChanged(Box<Delegation>) = "delegation.changed",
    ForkPointChanged(Box<ForkPoint>) = "fork_point.changed",
    PartitionChanged(Box<Partition>) = "partition.changed",
    WorktreeChanged(Box<Worktree>) = "worktree.changed",
    RemarkMade(Box<Remark>) = "note.added",
    CommitSeen(Box<Commit>) = "commit.seen",
    TestsRun(Box<TestRun>) = "tests.run",
    SessionInterrupted(StatusChange) = "session.interrupted",
    RunStarted(Box<RunStarted>) = "run.started",
    RunEnded(RunEnded) = "run.ended",
    SessionMoved(Box<SessionMoved>) = "session.moved",
}

impl Event {
    /// The fact that a session came to be in a status.
    pub fn of_status(status: Status, change: StatusChange) -> Self {
        match status {
            Status::Active => Self::SessionResumed(change),
            Status::Paused => Self::SessionPaused(change),
            Status::Interrupted => Self::SessionInterrupted(change),
            Status::Completed => Self::SessionCompleted(change),
            Status::Failed => Self::SessionFailed(change),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("an event of kind `{kind}` has data that is not its own")]
pub struct BadEvent {
    kind: String,
    #[source]
    cause: serde_json::Error,
}

fn to_json(data: &impl Serialize) -> String {
    serde_json::to_string(data).expect("our own types have string keys and no failing serialisers")
}

fn from_json<'a, T: Deserialize<'a>>(kind: &str, data: &'a str) -> Result<T, BadEvent> {
    serde_json::from_str(data).map_err(|cause| BadEvent { kind: kind.to_owned(), cause })
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRenamed {
    pub name: Name,
}

/// The folder a session belongs to has another path now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMoved {
    pub from: WorkspacePath,
    pub to: WorkspacePath,
}

/// A session was paused, resumed, interrupted, completed or failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusChange {
    pub reason: Option<Note>,
    /// Until when it is paused, where someone said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointTaken {
    pub checkpoint: Checkpoint,
    /// The stored [`Manifest`].
    pub manifest: ObjectId,
}

impl CheckpointTaken {
    /// The stored objects it names, besides the trees of its files and its conversation.
    pub fn single_objects(&self) -> Vec<ObjectId> {
        let Checkpoint { git, work, environment, terminal, .. } = &self.checkpoint;
        let facts = git.as_ref().map(|git| git.facts);
        let all = [Some(self.manifest), facts, *work, *environment, *terminal];
        all.into_iter().flatten().collect()
    }
}

/// An automatic checkpoint that was due and was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointSkipped {
    pub trigger: Trigger,
    pub reason: Note,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointFailed {
    pub trigger: Trigger,
    pub error: Note,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointDeleted {
    pub id: CheckpointId,
    pub reason: DeletionReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeletionReason {
    /// A person asked for it.
    Asked,
    /// There were more automatic ones than `max_per_session`.
    Thinned,
    /// It was older than `retention_days`.
    Expired,
    /// The store was over its budget.
    Budget,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRef {
    pub id: CheckpointId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationFinished {
    pub id: OperationId,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    pub level: Level,
    pub message: Note,
}

/// How much a line of the session log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Info,
    Warning,
    Error,
}

impl Level {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A checkpoint as its own stored object, with the session it belongs to: enough to rebuild the
/// database from the packs alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub version: u32,
    pub session: NewSession,
    pub checkpoint: Checkpoint,
}

impl Manifest {
    pub const VERSION: u32 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_may_carry_a_promise() {
        let golden = include_str!("../tests/golden/checkpoint.taken.json").trim_end();
        let promise = r#","promise":{"max_per_session":5,"max_age_seconds":604800}}"#;
        let data = golden.replacen(
            r#""by":"tester@here"}"#,
            &format!(r#""by":"tester@here"{promise}"#),
            1,
        );
        assert_ne!(data, golden);
        let event = Event::parse("checkpoint.taken", &data).unwrap();
        assert_eq!(event.data(), data);
    }

    #[test]
    fn what_a_newer_version_wrote_is_kept_word_for_word() {
        let (kind, data) = ("session.teleported", r#"{"to":"the moon",  "at": 1}"#);
        let event = Event::parse(kind, data).unwrap();
        assert_eq!((event.kind(), event.data().as_str()), (kind, data));
    }

    #[test]
    fn data_of_another_kind_is_an_error() {
        let error = Event::parse("session.renamed", r#"{"id":1}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "an event of kind `session.renamed` has data that is not its own"
        );
    }

    #[test]
    fn a_newer_field_does_no_harm() {
        let event = Event::parse("session.renamed", r#"{"name":"auth","colour":"red"}"#).unwrap();
        assert_eq!(event, Event::SessionRenamed(SessionRenamed { name: "auth".parse().unwrap() }));
    }
}
