//! A checkpoint outside the store: a folder of plain files, or that folder as one `.tar.gz`.
//!
//! - `write`, `tarball`, `withhold`, `safe`: from a checkpoint to a bundle, without its secrets unless asked for them
//! - `open`, `inflate`, `files`: a bundle of whoever, believed in nothing
//! - `import`: from a bundle to a session of its own

mod base64;
mod error;
mod files;
mod import;
mod inflate;
mod open;
mod safe;
mod tarball;
mod withhold;
mod write;

use std::collections::BTreeMap;

use bivouac_core::agent::AgentKind;
use bivouac_core::checkpoint::{Coverage, State, Trigger};
use bivouac_core::conversation::{NativeId, Usage};
use bivouac_core::git::GitFacts;
use bivouac_core::id::{CheckpointHandle, CheckpointId};
use bivouac_core::path::RelPath;
use bivouac_core::session::NewSession;
use bivouac_core::text::{Name, Note};
use bivouac_core::time::Timestamp;
use serde::{Deserialize, Serialize};

pub use error::BadBundle;
pub use import::ImportReport;
pub use write::{ExportReport, Target};

/// What a manifest calls itself.
const FORMAT: &str = "bivouac-bundle";
const VERSION: u32 = 1;

const MANIFEST: &str = "manifest.json";
const CONVERSATION: &str = "conversation.json";
const WORKSPACE: &str = "workspace.tar.gz";
const TERMINAL: &str = "tmux-layout.txt";
const ENVIRONMENT: &str = "env.json";
const PROGRESS: &str = "progress.json";

/// All a bundle has beside its manifest.
const PARTS: [&str; 5] = [CONVERSATION, ENVIRONMENT, PROGRESS, TERMINAL, WORKSPACE];

/// How much of it may be seen by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Care {
    /// Secrets are blotted out of texts about the work, and files that hold secrets are withheld.
    Redacted,
    /// Byte for byte, for another machine of the same person.
    Raw,
}

/// `manifest.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: String,
    version: u32,
    /// Which program wrote it.
    tool: String,
    care: Care,
    session: NewSession,
    checkpoint: Moment,
    left_out: Vec<LeftOut>,
    /// Every other file.
    files: BTreeMap<String, Seal>,
}

/// What is known about the checkpoint.
#[derive(Debug, Serialize, Deserialize)]
struct Moment {
    id: CheckpointId,
    handle: CheckpointHandle,
    trigger: Trigger,
    name: Option<Name>,
    message: Option<Note>,
    taken_at: Timestamp,
    by: String,
    git: Option<GitFacts>,
    coverage: Coverage,
    usage: Option<Usage>,
    cost_usd: Option<f64>,
    state: Option<State>,
}

/// Something that was in the workspace and is not in the bundle.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LeftOut {
    path: RelPath,
    /// A gap's own word, or [`PRIVATE`].
    why: String,
    is_folder: bool,
    /// What gave a file away that is [`PRIVATE`]. Older versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
}

/// What gives away that a file holds secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// Programs keep secrets in files of this name.
    Name,
    /// The redactor found a secret in it.
    Contents,
    /// `workspace.include` names it: it is captured although git ignores it.
    Include,
    /// A newer version knows more reasons.
    #[serde(other)]
    Other,
}

impl Reason {
    /// As in "withheld because of …".
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Contents => "contents",
            Self::Include => "include",
            Self::Other => "other",
        }
    }
}

/// A file that its sender kept back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    pub path: RelPath,
    /// `None` in bundles of older versions.
    pub reason: Option<Reason>,
}

const PRIVATE: &str = "private";

/// What a file must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seal {
    blake3: String,
    size_bytes: u64,
}

impl Seal {
    fn of(bytes: &[u8]) -> Self {
        Self { blake3: blake3::hash(bytes).to_hex().to_string(), size_bytes: bytes.len() as u64 }
    }
}

/// `conversation.json`, unless there is none: then it is `null`.
#[derive(Debug, Serialize, Deserialize)]
struct Conversation {
    version: u32,
    agent: AgentKind,
    id: NativeId,
    /// The workspace it speaks of.
    workspace: String,
    usage: Usage,
    cost_usd: Option<f64>,
    /// The agent's last words, where they had not reached its file yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unwritten: Option<String>,
    /// The agent's files, the main one first.
    parts: Vec<Part>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Part {
    name: String,
    #[serde(flatten)]
    body: Body,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Body {
    Text(String),
    Base64(String),
    /// Why it is not here.
    Withheld(String),
}
