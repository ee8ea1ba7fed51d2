//! Changes we make to a workspace. Each can be undone, and each undo redone, without limit.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{CheckpointId, ObjectId, OperationId};
use crate::path::{RelPath, WorkspacePath};
use crate::time::Timestamp;

/// What is written to the journal before the first file is touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub id: OperationId,
    pub kind: OperationKind,
    pub workspace: WorkspacePath,
    /// The checkpoint gone back to, for a rollback.
    pub target: Option<CheckpointId>,
    /// Holds everything as it was before.
    pub safety: CheckpointId,
    /// The stored plan: every path with what it was and what it becomes.
    pub plan: ObjectId,
    pub started_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum OperationKind {
    Rollback,
    /// Takes back `of`.
    Undo {
        of: OperationId,
    },
    /// Takes back the undo `of`.
    Redo {
        of: OperationId,
    },
}

impl OperationKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rollback => "rollback",
            Self::Undo { .. } => "undo",
            Self::Redo { .. } => "redo",
        }
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How an operation ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub n_written: u64,
    pub n_removed: u64,
    /// Paths the plan named and we did not touch.
    pub left_alone: Vec<LeftAlone>,
    /// Files and folders that were restored without the set-user-id and set-group-id bits they had,
    /// because another user can write to a folder on the way to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_set_id: Vec<RelPath>,
    /// It was interrupted, and a later command finished it.
    pub finished_later: bool,
    /// It failed before anything changed, or was taken back whole.
    pub reverted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WireLeftAlone", into = "WireLeftAlone")]
pub struct LeftAlone {
    pub path: RelPath,
    pub why: WhyLeft,
}

/// The stored form. Versions that know only the first four reasons refuse an event with any other, so a
/// refusal of the system is stored as `changed_meanwhile`, with the real reason beside it.
#[derive(Serialize, Deserialize)]
struct WireLeftAlone {
    path: RelPath,
    why: WhyLeft,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl From<LeftAlone> for WireLeftAlone {
    fn from(LeftAlone { path, why }: LeftAlone) -> Self {
        match why.is_refusal() {
            true => Self {
                path,
                why: WhyLeft::ChangedMeanwhile,
                refused: Some(why.refusal_word().to_owned()),
            },
            false => Self { path, why, refused: None },
        }
    }
}

impl From<WireLeftAlone> for LeftAlone {
    fn from(wire: WireLeftAlone) -> Self {
        let refusal =
            |word: &str| WhyLeft::REFUSALS.into_iter().find(|it| it.refusal_word() == word);
        let why = wire.refused.as_deref().and_then(refusal).unwrap_or(wire.why);
        Self { path: wire.path, why }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyLeft {
    /// Someone changed it after the plan was made.
    ChangedMeanwhile,
    /// The folder still holds something that is not part of the plan.
    NotEmpty,
    /// No checkpoint covers what is there now.
    Uncovered,
    /// What is there now was saved before, and that copy is damaged: this is the only good one.
    Unreadable,
    /// It is a mount point, or lies below one: files cannot be exchanged between file systems.
    OtherFileSystem,
    /// The operating system refuses the change: immutable or append-only, or someone else's.
    NotPermitted,
    /// The permissions of a folder on the way do not allow the change.
    NoAccess,
}

impl WhyLeft {
    /// Reasons for which the operating system, and not the plan, leaves a single path alone.
    const REFUSALS: [Self; 3] = [Self::OtherFileSystem, Self::NotPermitted, Self::NoAccess];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ChangedMeanwhile => "changed meanwhile",
            Self::NotEmpty => "still holds other files",
            Self::Uncovered => "what is there now is not covered",
            Self::Unreadable => "its saved copy is damaged",
            Self::OtherFileSystem => "on another mount",
            Self::NotPermitted => "not permitted: immutable, append-only or another user's",
            Self::NoAccess => "no permission to change it",
        }
    }

    /// A folder that stays for the sake of what is in it is as it should be; the rest is a loose end.
    pub const fn is_loose_end(self) -> bool {
        !matches!(self, Self::NotEmpty)
    }

    /// Did the operating system refuse the change?
    pub fn is_refusal(self) -> bool {
        Self::REFUSALS.contains(&self)
    }

    const fn refusal_word(self) -> &'static str {
        match self {
            Self::OtherFileSystem => "other_file_system",
            Self::NoAccess => "no_access",
            _ => "not_permitted",
        }
    }
}

impl fmt::Display for WhyLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What `undo` and `redo` would take next.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct History {
    pub undo: Option<OperationId>,
    pub redo: Option<OperationId>,
}

impl History {
    /// Folds a workspace's operations, oldest first. Doing something new forgets what could be redone.
    pub fn of<'a>(operations: impl IntoIterator<Item = (OperationId, &'a OperationKind)>) -> Self {
        let mut done: Vec<OperationId> = Vec::new();
        let mut undone: Vec<OperationId> = Vec::new();
        for (id, kind) in operations {
            match kind {
                OperationKind::Rollback => {
                    done.push(id);
                    undone.clear();
                }
                OperationKind::Undo { of } => {
                    done.retain(|earlier| earlier != of);
                    undone.push(id);
                }
                OperationKind::Redo { of } => {
                    undone.retain(|earlier| earlier != of);
                    done.push(id);
                }
            }
        }
        Self { undo: done.last().copied(), redo: undone.last().copied() }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn op(n: u128) -> OperationId {
        OperationId::new(Uuid::from_u128(n))
    }

    #[test]
    fn a_refusal_is_stored_so_that_older_versions_read_it() {
        let check = |why, json: &str| {
            let left = LeftAlone { path: "a/b".parse().unwrap(), why };
            assert_eq!(serde_json::to_string(&left).unwrap(), json);
            assert_eq!(serde_json::from_str::<LeftAlone>(json).unwrap(), left);
        };
        check(WhyLeft::NotEmpty, r#"{"path":"a/b","why":"not_empty"}"#);
        for why in WhyLeft::REFUSALS {
            let word = why.refusal_word();
            let json = format!(r#"{{"path":"a/b","why":"changed_meanwhile","refused":"{word}"}}"#);
            check(why, &json);
        }
        // A reason that only a newer version knows.
        let json = r#"{"path":"a/b","why":"changed_meanwhile","refused":"on_the_moon"}"#;
        let left: LeftAlone = serde_json::from_str(json).unwrap();
        assert_eq!(left.why, WhyLeft::ChangedMeanwhile);
    }

    #[test]
    fn undo_and_redo_walk_back_and_forth() {
        use OperationKind::{Redo, Rollback, Undo};
        let check = |history: &[(u128, OperationKind)], undo: Option<u128>, redo: Option<u128>| {
            let found = History::of(history.iter().map(|(id, kind)| (op(*id), kind)));
            assert_eq!(found, History { undo: undo.map(op), redo: redo.map(op) }, "{history:?}");
        };
        let mut history = vec![];
        check(&history, None, None);
        history.push((1, Rollback));
        history.push((2, Rollback));
        check(&history, Some(2), None);
        history.push((3, Undo { of: op(2) }));
        check(&history, Some(1), Some(3));
        history.push((4, Undo { of: op(1) }));
        check(&history, None, Some(4));
        history.push((5, Redo { of: op(4) }));
        check(&history, Some(5), Some(3));
        history.push((6, Undo { of: op(5) }));
        check(&history, None, Some(6));
        history.push((7, Rollback));
        check(&history, Some(7), None);
    }
}
