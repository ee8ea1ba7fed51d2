//! `docs/SESSION-CHECKPOINT.md`: the whole of a session's progress as tables and lists that people keep by hand
//! elsewhere. What is written here is read back without loss, and what hands have written is read too.

mod parse;
mod steps;
mod write;

pub use parse::parse;
pub(super) use parse::{blocker, decision, plain};
pub use write::write;

use super::blocks::Columns;

/// The sections, under the names they are known by.
pub(super) const COMPLETED: Columns =
    Columns { names: &["task", "linear", "agent", "status", "files"], may_lack: None };
pub(super) const IN_PROGRESS: Columns =
    Columns { names: &["task", "linear", "agent", "status", "notes"], may_lack: None };
pub(super) const REMAINING: Columns =
    Columns { names: &["task", "linear", "agent", "dependencies", "files"], may_lack: None };
pub(super) const APPROVALS: Columns = Columns {
    names: &["provider", "channel", "thread id", "question", "posted at"],
    may_lack: None,
};
pub(super) const DELEGATIONS: Columns = Columns {
    names: &["#", "agent", "linear", "model tier", "est tokens", "duration", "status"],
    may_lack: Some("duration"),
};

/// What begins the part of a note that says why a task failed or what it waits for.
pub(super) const REASON: &str = "Reason:";
/// The comment on an agent whose work was a review by a panel.
pub(super) const REVIEW: &str = "panel review";
/// What stands for a phase that nobody named.
pub(super) const NO_PHASE: &str = "Not recorded";
