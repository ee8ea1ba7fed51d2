//! What a model is told about the work it comes back to: a notice of three lines, or a briefing that puts it
//! back in the picture. The same facts always give the same words.
//!
//! - `rank`: every fact as a line, with how much it matters; `select`: which of them are worth their tokens
//! - `next`: what to do first
//! - `render`: the words, as text or as Markdown

mod next;
mod rank;
mod render;
mod select;

pub use next::next_action;
pub use select::{Brief, TooSmall};

use crate::budget::{cut, tokens};
use crate::checkpoint::Checkpoint;
use crate::git::GitFacts;
use crate::redact::Redactor;
use crate::session::Session;
use crate::text::{Note, count};
use crate::time::Timestamp;
use crate::work::{Work, progress};

/// The most a notice may cost.
pub const NOTICE_TOKENS: usize = 60;
/// The same by our own count, which is at least a quarter too high for so short a text; `tests/tokens.rs`
/// holds it against real tokenizers.
const NOTICE_COUNT: usize = 75;
/// The most a briefing may cost, whatever there is to tell.
pub const BRIEFING_TOKENS: usize = 2_400;

/// All a briefing is made of.
#[derive(Clone, Debug)]
pub struct Facts {
    pub session: Session,
    pub now: Timestamp,
    /// The newest checkpoint, and what git said then.
    pub checkpoint: Option<Checkpoint>,
    pub git_then: Option<GitFacts>,
    pub git_now: Option<GitFacts>,
    /// The commits since the checkpoint, newest first: `sha subject`. The list may be cut short.
    pub commits_since: Vec<String>,
    pub n_commits_since: Option<u64>,
    /// Files that differ from the checkpoint.
    pub changed: Vec<String>,
    pub work: Work,
    /// What the agent waits for a person's leave for, right now.
    pub asked: Vec<String>,
    /// Why the last turn ended, when it did not end well.
    pub trouble: Option<Note>,
    /// When the limit ends that it ran into, by the person's clock.
    pub goes_on_at: Option<String>,
    /// What happened last, oldest first.
    pub recent: Vec<String>,
    /// The newest words, oldest first.
    pub said: Vec<Said>,
    /// What a memory server had to say.
    pub remembered: Vec<String>,
    /// What was named and looked for, and is not there: paths, branches, commits.
    pub missing: Vec<String>,
    pub redactor: Redactor,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub who: Who,
    pub words: Note,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Person,
    Agent,
}

/// In which form a briefing is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Markdown,
}

/// Three lines: what is unfinished, how far it is, and the command that says the rest.
pub fn notice(session: &Session, work: &Work, redactor: &Redactor) -> String {
    let phase = work.phase().and_then(|phase| phase.name.clone());
    let phase = phase.map(|name| format!(" ({} phase)", cut(&name, 5))).unwrap_or_default();
    let how_far = match work.tasks.is_empty() {
        true => format!("status: {}", session.status),
        false => progress(&work.tasks),
    };
    let approvals = match work.pending_approvals().count() as u64 {
        0 => String::new(),
        n_pending => format!("; {} pending", count(n_pending, "approval")),
    };
    let say = |name: &str| {
        format!(
            "Active session detected: {name}{phase}\n  {how_far}{approvals}\nRun `biv rehydrate {}` to resume.",
            session.handle
        )
    };
    let name = redactor.redact(&session.title().unwrap_or_else(|| session.handle.to_string()));
    fitting(&name, say)
}

/// What a model is told when one save after the other fails; no longer than a notice.
pub fn warning(n_failed: u64, error: &Note, redactor: &Redactor) -> String {
    let times = count(n_failed, "time");
    let say = |error: &str| {
        format!(
            "Warning: Bivouac could not save this work, {times} in a row: {error}. Tell the person; `biv status` says more."
        )
    };
    fitting(&redactor.redact(&error.headline()), say)
}

/// Words of any length within those of a notice: they get what the rest leaves.
fn fitting(words: &str, say: impl Fn(&str) -> String) -> String {
    let mut most = NOTICE_COUNT.saturating_sub(tokens(&say(""))) + 1;
    while most > 2 && tokens(&say(&cut(words, most))) > NOTICE_COUNT {
        most -= 1;
    }
    say(&cut(words, most))
}

/// The whole picture within a budget. What must not be dropped is always there; what had to be is counted.
pub fn briefing(facts: &Facts, format: Format, budget: usize) -> Result<String, TooSmall> {
    let brief = select::select(facts, format, budget)?;
    Ok(render::render(&brief, format))
}

/// The same as facts, for programs.
pub fn brief(facts: &Facts, budget: usize) -> Result<Brief, TooSmall> {
    select::select(facts, Format::Text, budget)
}

#[cfg(test)]
mod tests;
