//! JSON that leaves the process. Keys are stable: added, never changed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bivouac_core::agent::AgentKind;
use bivouac_core::checkpoint::{Coverage, State, Trigger};
use bivouac_core::conversation::{ConversationSummary, Tokens};
use bivouac_core::environment::{self, Environment};
use bivouac_core::git::GitFacts;
use bivouac_core::operation::Outcome;
use bivouac_core::path::{PathBytes, RelPath};
use bivouac_core::session::Status;
use bivouac_core::terminal::Terminal;
use bivouac_core::work::{Difference, Work};
use bivouac_core::{checkpoint, session};
use bivouac_engine::compare::{ChangeKind, Comparison};
use bivouac_engine::excluded;
use bivouac_journal::query::{KeptCheckpoint, LogLine};
use bivouac_snapshot::database::in_use;
use serde::Serialize;

#[derive(Serialize)]
pub struct Session {
    pub id: String,
    pub handle: String,
    pub name: Option<String>,
    pub agent_type: String,
    pub task_description: Option<String>,
    pub status: Status,
    pub reason: Option<String>,
    pub until: Option<String>,
    pub workspace: PathBytes,
    pub metadata: Option<State>,
    pub created_at: String,
    pub updated_at: String,
}

impl From<&session::Session> for Session {
    fn from(it: &session::Session) -> Self {
        Self {
            id: it.id.to_string(),
            handle: it.handle.to_string(),
            name: it.name.as_ref().map(|name| name.as_str().to_owned()),
            agent_type: it.agent_type.clone(),
            task_description: it.task_description.as_ref().map(|task| task.as_str().to_owned()),
            status: it.status,
            reason: it.reason.as_ref().map(|reason| reason.as_str().to_owned()),
            until: it.until.map(|until| until.to_string()),
            workspace: path_bytes(it.workspace.as_bytes()),
            metadata: it.metadata.clone(),
            created_at: it.created_at.to_string(),
            updated_at: it.updated_at.to_string(),
        }
    }
}

#[derive(Serialize)]
pub struct Checkpoint {
    pub id: String,
    pub handle: String,
    pub session_id: String,
    pub name: Option<String>,
    pub trigger: Trigger,
    pub created_at: String,
    pub message: Option<String>,
    pub git_branch: Option<String>,
    pub git_head: Option<String>,
    pub git_uncommitted: Option<u64>,
    pub conversation: Option<Conversation>,
    pub pinned: bool,
    pub parent_id: Option<String>,
    pub operation_id: Option<String>,
    pub coverage: CoverageCounts,
    pub state: Option<State>,
    pub by: String,
    pub tree: String,
}

impl Checkpoint {
    pub fn new(it: &checkpoint::Checkpoint, is_pinned: bool) -> Self {
        Self {
            id: it.id.to_string(),
            handle: it.handle.to_string(),
            session_id: it.session_id.to_string(),
            name: it.name.as_ref().map(|name| name.as_str().to_owned()),
            trigger: it.trigger,
            created_at: it.taken_at.to_string(),
            message: it.message.as_ref().map(|message| message.as_str().to_owned()),
            git_branch: it.git.as_ref().and_then(|git| git.branch.clone()),
            git_head: it.git.as_ref().and_then(|git| git.head.clone()),
            git_uncommitted: it.git.as_ref().map(|git| git.uncommitted),
            conversation: it.conversation.as_ref().map(Conversation::from),
            pinned: is_pinned,
            parent_id: it.parent.map(|id| id.to_string()),
            operation_id: it.operation.map(|id| id.to_string()),
            coverage: (&it.coverage).into(),
            state: it.state.clone(),
            by: it.by.clone(),
            tree: it.tree.to_string(),
        }
    }
}

impl From<&KeptCheckpoint> for Checkpoint {
    fn from(kept: &KeptCheckpoint) -> Self {
        Self::new(&kept.taken.checkpoint, kept.is_pinned)
    }
}

/// What had been said by then.
#[derive(Serialize)]
pub struct Conversation {
    pub agent: AgentKind,
    pub id: String,
    pub turns: u64,
    pub tokens: u64,
    pub tokens_by_model: BTreeMap<String, Tokens>,
    pub cost_usd: Option<f64>,
}

impl From<&ConversationSummary> for Conversation {
    fn from(it: &ConversationSummary) -> Self {
        Self {
            agent: it.agent,
            id: it.id.to_string(),
            turns: it.usage.n_turns,
            tokens: it.usage.total(),
            tokens_by_model: it.usage.by_model.clone(),
            cost_usd: it.cost_usd,
        }
    }
}

/// All progress, noun by noun. What there is one of is no list.
pub fn progress(work: &Work) -> serde_json::Value {
    let mut document = serde_json::to_value(work).unwrap_or_default();
    for noun in ["outline", "phase"] {
        if let Some(only) = document.get_mut(noun) {
            *only = only.get_mut(0).map(serde_json::Value::take).unwrap_or_default();
        }
    }
    document
}

/// `12,500`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[derive(Serialize)]
pub struct CoverageCounts {
    pub files: u64,
    pub size_bytes: u64,
    /// How many paths were left out, by reason.
    pub not_covered: BTreeMap<checkpoint::Gap, u64>,
}

impl From<&Coverage> for CoverageCounts {
    fn from(it: &Coverage) -> Self {
        Self { files: it.n_files, size_bytes: it.size_bytes, not_covered: it.gaps.clone() }
    }
}

/// A checkpoint with all there is to show about it.
#[derive(Serialize)]
pub struct CheckpointDetails {
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
    pub session: Session,
    pub git: Option<GitFacts>,
    pub environment: Option<Environment>,
    pub terminal: Option<Terminal>,
    pub progress: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<File>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_covered: Option<Vec<NotCovered>>,
}

#[derive(Serialize)]
pub struct File {
    pub path: PathBytes,
    pub kind: &'static str,
    pub mode: Option<String>,
    pub size_bytes: Option<u64>,
}

#[derive(Serialize)]
pub struct NotCovered {
    pub path: PathBytes,
    pub reason: checkpoint::Gap,
}

#[derive(Serialize)]
pub struct Saved {
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
    pub session: Session,
    /// Files that differ from the session's checkpoint before; null for its first.
    pub changed: Option<u64>,
    pub stored_bytes: u64,
    /// The patterns of `workspace.exclude`, where they left something out.
    pub excluded_by: Vec<String>,
}

#[derive(Serialize)]
pub struct NotSaved {
    /// Always true: no checkpoint was needed.
    pub skipped: bool,
    pub reason: String,
    pub session: Session,
}

#[derive(Serialize)]
pub struct Diff {
    pub from: Checkpoint,
    /// Null is the workspace now.
    pub to: Option<Checkpoint>,
    pub files: Vec<DiffFile>,
    pub progress: Vec<Difference>,
    pub environment: Vec<environment::Difference>,
}

#[derive(Serialize)]
pub struct DiffFile {
    pub path: PathBytes,
    pub status: &'static str,
    pub lines_added: Option<u64>,
    pub lines_removed: Option<u64>,
    pub size_before: Option<u64>,
    pub size_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

impl From<&Comparison> for Diff {
    fn from(it: &Comparison) -> Self {
        let files = it.files.iter().map(|file| DiffFile {
            path: path_bytes(file.path.as_bytes()),
            status: status_word(file.kind),
            lines_added: file.lines.map(|lines| lines.added),
            lines_removed: file.lines.map(|lines| lines.removed),
            size_before: file.size_before,
            size_after: file.size_after,
            mode_before: file.modes.map(|(before, _)| octal(before)),
            mode_after: file.modes.map(|(_, after)| octal(after)),
            patch: file.patch.as_ref().map(|patch| String::from_utf8_lossy(patch).into_owned()),
        });
        Self {
            from: Checkpoint::new(&it.from, false),
            to: it.to.as_ref().map(|to| Checkpoint::new(to, false)),
            files: files.collect(),
            progress: it.progress.clone(),
            environment: it.environment.clone(),
        }
    }
}

fn status_word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::New | ChangeKind::NewFolder => "new",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted | ChangeKind::DeletedFolder => "deleted",
        ChangeKind::Mode => "mode",
        ChangeKind::Type => "type",
        ChangeKind::Uncovered(_) => "no_longer_covered",
        ChangeKind::Covered(_) => "newly_covered",
    }
}

#[derive(Serialize)]
pub struct Restore {
    pub operation: &'static str,
    pub target: Option<Checkpoint>,
    pub dry_run: bool,
    /// What `--plan` takes: the same as long as the same would be done.
    pub plan: String,
    pub steps: Vec<Step>,
    pub not_covered: BTreeMap<checkpoint::Gap, u64>,
    /// Databases that stay as they are because another process has them open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_use: Vec<InUse>,
    /// Paths that a rollback does not restore because they are excluded now or were when the checkpoint was taken, and
    /// the patterns that are configured now.
    pub excluded: Excluded,
    /// What came of it; null for a dry run, and when nothing had to be done.
    pub result: Option<RestoreResult>,
}

#[derive(Serialize)]
pub struct Excluded {
    pub n_paths: usize,
    /// The first hundred of them.
    pub paths: Vec<PathBytes>,
    pub patterns: Vec<String>,
}

impl From<&excluded::Excluded> for Excluded {
    fn from(it: &excluded::Excluded) -> Self {
        let all = it.now.iter().chain(&it.then);
        let paths = all.take(100).map(|(name, _)| path_bytes(name.as_bytes())).collect();
        Self { n_paths: it.now.len() + it.then.len(), paths, patterns: it.patterns.clone() }
    }
}

#[derive(Serialize)]
pub struct Step {
    pub path: PathBytes,
    pub action: &'static str,
}

#[derive(Serialize)]
pub struct InUse {
    pub path: PathBytes,
    pub pid: Option<u32>,
}

impl From<&in_use::InUse> for InUse {
    fn from(it: &in_use::InUse) -> Self {
        Self { path: path_bytes(it.path.as_bytes()), pid: it.pid }
    }
}

#[derive(Serialize)]
pub struct RestoreResult {
    pub operation_id: String,
    pub safety_checkpoint: Checkpoint,
    pub written: u64,
    pub removed: u64,
    pub left_alone: Vec<LeftAlone>,
    /// Restored, but without set-user-id and set-group-id bits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_set_id: Vec<PathBytes>,
    pub stash: Option<String>,
}

#[derive(Serialize)]
pub struct LeftAlone {
    pub path: PathBytes,
    pub reason: bivouac_core::operation::WhyLeft,
}

pub fn left_alone(outcome: &Outcome) -> Vec<LeftAlone> {
    outcome
        .left_alone
        .iter()
        .map(|left| LeftAlone { path: path_bytes(left.path.as_bytes()), reason: left.why })
        .collect()
}

pub fn paths(paths: &[RelPath]) -> Vec<PathBytes> {
    paths.iter().map(|it| path_bytes(it.as_bytes())).collect()
}

#[derive(Serialize)]
pub struct Log {
    pub id: i64,
    pub level: String,
    pub message: String,
    pub created_at: String,
}

impl From<&LogLine> for Log {
    fn from(it: &LogLine) -> Self {
        Self {
            id: it.sequence,
            level: it.level.clone(),
            message: it.message.clone(),
            created_at: it.created_at.to_string(),
        }
    }
}

/// The same of a path that is bytes already.
pub fn path_bytes(path: &[u8]) -> PathBytes {
    PathBytes::new(path)
}

/// A path as all our documents carry it, whether its bytes are UTF-8 or not.
pub fn path(path: impl AsRef<OsStr>) -> PathBytes {
    PathBytes::new(path.as_ref().as_bytes())
}

pub fn octal(mode: u16) -> String {
    format!("{mode:o}")
}
