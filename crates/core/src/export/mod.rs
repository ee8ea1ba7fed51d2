//! Progress as files that people and other tools read, and those files read back. The same sheet always gives
//! the same bytes, and no text of anybody's can change the shape of the document it stands in.
//!
//! - [`session_checkpoint`]: `docs/SESSION-CHECKPOINT.md`; [`checkpoint_md`]: one file per checkpoint
//! - [`handoff`], [`memory`]: a part of somebody else's file, every other byte of which is kept
//! - [`import`]: what a file says that was not known
//! - `inline`, `pen`: text within a line; `blocks`, `fence`: lines; `entry`, `words`, `steps_ahead`: what stands in them

mod blocks;
mod body;
mod body_parse;
pub mod checkpoint_md;
mod entry;
mod fence;
pub mod handoff;
pub mod import;
mod inline;
mod label;
pub mod memory;
mod pen;
pub mod session_checkpoint;
mod steps_ahead;
mod words;

use crate::redact::Redactor;
use crate::session::Session;
use crate::time::Timestamp;
use crate::work::{Item, Work};

/// All an export is made of.
#[derive(Clone, Debug)]
pub struct Sheet {
    pub session: Session,
    pub work: Work,
    pub branch: Option<String>,
    /// The commit, as few letters as git needs.
    pub sha: Option<String>,
    pub label: String,
    pub created_at: Timestamp,
    /// `2026-02-13 14:30`, where the person is.
    pub updated: String,
    /// `2026-02-13`, where the person is.
    pub date: String,
    /// `2026-02-13-1430`, where the person is: the beginning of a file name.
    pub stamp: String,
    pub key_files: Vec<KeyFile>,
    /// The text of a `pipeline_state.json`.
    pub pipeline: Option<String>,
    /// What a progress spine has to say, line by line.
    pub spine: Vec<String>,
    pub redactor: Redactor,
}

/// A file that matters, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyFile {
    pub path: String,
    pub about: String,
}

/// What a file says. Things without a key of their own have an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub feature: Option<String>,
    pub branch: Option<String>,
    pub issues: Vec<String>,
    pub updated: Option<String>,
    pub items: Vec<Item>,
    /// What was there and could not be made use of: the headings of unknown sections, and lines of known ones.
    pub ignored: Vec<String>,
}

/// A file that is not what it should be. Nothing of it is used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct BadMarkdown {
    pub line: usize,
    pub reason: String,
}

impl BadMarkdown {
    fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}
