//! The things progress is made of. All that can be said about one is optional, so that an event can say a
//! part of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Thing;
use super::status::{TaskStatus, Verdict};
use crate::text::Note;
use crate::time::Timestamp;

/// Who said something. What was seen to happen has no author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    Person,
    /// An agent, through a command or a tool of ours.
    Model,
    /// A file that was imported.
    Import,
}

impl Author {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Model => "model",
            Self::Import => "import",
        }
    }
}

/// Declares one thing: its key, then what can be said about it.
macro_rules! thing {
    ($(#[$doc:meta])* $name:ident[$key:ident] {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)+
    } $($more:tt)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name {
            pub $key: String,
            $(
                $(#[$field_doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )+
            #[serde(skip_serializing_if = "Option::is_none")]
            pub by: Option<Author>,
        }

        impl Thing for $name {
            fn key(&self) -> &str {
                &self.$key
            }

            fn set_key(&mut self, key: String) {
                self.$key = key;
            }

            fn absorb(&mut self, newer: Self) {
                $(if newer.$field.is_some() {
                    self.$field = newer.$field;
                })+
                self.by = newer.by.or(self.by);
            }

            $($more)*
        }
    };
}

thing! {
    /// What a session is about. There is one, and its key is always the same.
    Outline[key] {
        /// `feature`, `bugfix`, `refactor` or any other word.
        kind: String,
        feature: Note,
        issues: Vec<String>,
        approach: Note,
        /// What to do first, when someone said so.
        next: Note,
        instructions: Vec<Note>,
    }
}

thing! {
    /// Where the work is. There is one at a time.
    Phase[key] {
        name: String,
        number: u32,
        total: u32,
        about: Note,
    }
}

thing! {
    /// A document or a pull request: a path in the workspace, or an address.
    Artifact[place] {
        /// `design`, `plan`, `pr` or any other word.
        kind: String,
        gone: bool,
    }
    fn is_over(&self) -> bool {
        self.gone == Some(true)
    }
    fn title(&self) -> Option<String> {
        self.kind.clone()
    }
}

thing! {
    /// A piece of work.
    Task[task] {
        subject: Note,
        status: TaskStatus,
        issue: String,
        agent: String,
        files: Vec<String>,
        depends_on: Vec<String>,
        note: Note,
        /// Why it failed, or what it waits for.
        failure: Note,
    }
    fn is_over(&self) -> bool {
        self.status().is_over()
    }
    fn issue(&self) -> Option<&str> {
        self.issue.as_deref()
    }
    fn title(&self) -> Option<String> {
        self.subject.as_ref().map(Note::headline)
    }
}

thing! {
    Decision[decision] {
        title: Note,
        why: Note,
        rejected: Vec<Note>,
    }
    fn title(&self) -> Option<String> {
        self.title.as_ref().map(Note::headline)
    }
}

thing! {
    /// What stands in the way.
    Blocker[blocker] {
        what: Note,
        /// What would unblock it.
        needs: Note,
        /// Where it is written down.
        reference: String,
        resolution: Note,
    }
    fn is_over(&self) -> bool {
        self.resolution.is_some()
    }
    fn title(&self) -> Option<String> {
        self.what.as_ref().map(Note::headline)
    }
}

thing! {
    /// A question that was put to a person somewhere.
    Approval[approval] {
        question: Note,
        provider: String,
        channel: String,
        thread: String,
        posted_at: Timestamp,
        answer: Note,
    }
    fn is_over(&self) -> bool {
        self.answer.is_some()
    }
    fn title(&self) -> Option<String> {
        self.question.as_ref().map(Note::headline)
    }
}

thing! {
    /// A check the work has to pass, and what it said last.
    Gate[gate] {
        verdict: Verdict,
        findings: Vec<Note>,
        /// The task it was about.
        task: String,
    }
}

thing! {
    /// One step of a plan, with what it produced, so that a later one can be tried again alone.
    Step[step] {
        title: Note,
        status: TaskStatus,
        agent: String,
        issue: String,
        /// What was asked for, word for word.
        objective: Note,
        attempt: u32,
        seconds: u64,
        outputs: Vec<Output>,
        checks: Vec<Check>,
        /// What later steps have to know of it.
        cached: Note,
        error: Note,
        /// The commit it started from, and the one it ended at.
        base: String,
        head: String,
    }
    fn is_over(&self) -> bool {
        self.status().is_over()
    }
    fn issue(&self) -> Option<&str> {
        self.issue.as_deref()
    }
    fn title(&self) -> Option<String> {
        self.title.as_ref().map(Note::headline)
    }
}

thing! {
    /// Work that was handed to another agent, and what it cost.
    Delegation[delegation] {
        agent: String,
        issue: String,
        tier: String,
        tokens: u64,
        seconds: u64,
        status: TaskStatus,
        is_review: bool,
        note: Note,
    }
    fn is_over(&self) -> bool {
        matches!(self.status(), TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Dropped)
    }
    fn issue(&self) -> Option<&str> {
        self.issue.as_deref()
    }
    fn title(&self) -> Option<String> {
        self.agent.clone()
    }
}

thing! {
    /// Several ways forward, and the one that was taken.
    ForkPoint[fork_point] {
        title: Note,
        options: Vec<ForkOption>,
        needed_from: String,
        /// The letter of the option.
        chosen: String,
        why: Note,
    }
    fn is_over(&self) -> bool {
        self.chosen.is_some()
    }
    fn title(&self) -> Option<String> {
        self.title.as_ref().map(Note::headline)
    }
}

thing! {
    /// Which agent works on which paths.
    Partition[agent] {
        paths: Vec<String>,
    }
}

thing! {
    /// A branch that is worked on in a folder of its own.
    Worktree[branch] {
        path: String,
        status: WorktreeStatus,
    }
    fn is_over(&self) -> bool {
        self.status == Some(WorktreeStatus::Removed)
    }
}

thing! {
    Remark[note] {
        text: Note,
    }
    fn is_past(&self) -> bool {
        true
    }
    fn title(&self) -> Option<String> {
        self.text.as_ref().map(Note::headline)
    }
}

thing! {
    /// A commit that was made while the session went on.
    Commit[sha] {
        subject: Note,
        branch: String,
    }
    fn is_past(&self) -> bool {
        true
    }
}

thing! {
    /// A command that runs tests, and how it ended last.
    TestRun[command] {
        verdict: Verdict,
    }
    fn is_past(&self) -> bool {
        true
    }
}

impl Task {
    pub fn status(&self) -> TaskStatus {
        self.status.unwrap_or_default()
    }
}

impl Step {
    pub fn status(&self) -> TaskStatus {
        self.status.unwrap_or_default()
    }

    /// The place in the plan, where the key is a number.
    pub fn number(&self) -> Option<u64> {
        self.step.parse().ok()
    }
}

impl Delegation {
    pub fn status(&self) -> TaskStatus {
        self.status.unwrap_or(TaskStatus::InProgress)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorktreeStatus {
    Active,
    Merged,
    Removed,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no status of a worktree; one is active, merged or removed")]
pub struct BadWorktreeStatus(String);

impl WorktreeStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Merged => "merged",
            Self::Removed => "removed",
        }
    }
}

impl FromStr for WorktreeStatus {
    type Err = BadWorktreeStatus;

    fn from_str(text: &str) -> Result<Self, BadWorktreeStatus> {
        match text.to_lowercase().as_str() {
            "active" | "open" => Ok(Self::Active),
            "merged" => Ok(Self::Merged),
            "removed" | "deleted" | "gone" => Ok(Self::Removed),
            _ => Err(BadWorktreeStatus(text.to_owned())),
        }
    }
}

/// What a step left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// `Created`, `Modified` or any other word; none when only the path is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Note>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadText {
    #[error("an output needs a path, as in `created src/a.rs: the parser`")]
    Output,
    #[error("a check is written as `lint=pass`, not `{0}`")]
    Check(String),
    #[error("an option is written as `A: what it is`, not `{0}`")]
    Option(String),
}

impl FromStr for Output {
    type Err = BadText;

    /// Reads ``Created `path` — description``, `created path: description` or a path alone.
    fn from_str(text: &str) -> Result<Self, BadText> {
        const VERBS: [&str; 8] =
            ["created", "modified", "added", "changed", "deleted", "removed", "renamed", "updated"];
        let text = text.trim();
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let is_verb = !rest.is_empty() && VERBS.contains(&first.to_lowercase().as_str());
        let (what, rest) =
            if is_verb { (Some(capitalised(first)), rest.trim_start()) } else { (None, text) };
        let (path, about) = match rest.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
            Some((path, about)) => (path, about),
            None => {
                let end = [": ", " — ", " - "].iter().filter_map(|mark| rest.find(mark)).min();
                rest.split_at(end.unwrap_or(rest.len()))
            }
        };
        let about = about.trim_start_matches([':', '—', '-', ' ']).trim();
        let about = (!about.is_empty()).then(|| Note::cut(about));
        match path.trim() {
            "" => Err(BadText::Output),
            path => Ok(Self { what, path: path.to_owned(), about }),
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(what) = &self.what {
            write!(f, "{what} ")?;
        }
        write!(f, "`{}`", self.path)?;
        match &self.about {
            Some(about) => write!(f, " — {}", about.headline()),
            None => Ok(()),
        }
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    first + &letters.as_str().to_lowercase()
}

/// What a step's own check said: `Lint ✅`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub verdict: Verdict,
}

impl FromStr for Check {
    type Err = BadText;

    /// Reads `lint=pass` or `Lint ✅`.
    fn from_str(text: &str) -> Result<Self, BadText> {
        let bad = || BadText::Check(text.to_owned());
        let text = text.trim();
        let (name, verdict) =
            text.split_once('=').or_else(|| text.rsplit_once(' ')).ok_or_else(bad)?;
        let verdict = verdict.parse().map_err(|_| bad())?;
        match name.trim() {
            "" => Err(bad()),
            name => Ok(Self { name: name.to_owned(), verdict }),
        }
    }
}

/// One way forward.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkOption {
    pub letter: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pros: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cons: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

impl FromStr for ForkOption {
    type Err = BadText;

    /// Reads `A: Server-side approach`.
    fn from_str(text: &str) -> Result<Self, BadText> {
        let bad = || BadText::Option(text.to_owned());
        let (letter, title) = text.split_once(':').ok_or_else(bad)?;
        let letter = letter.trim();
        let letter = letter.strip_prefix("Option ").unwrap_or(letter);
        match (letter, title.trim()) {
            ("", _) | (_, "") => Err(bad()),
            (letter, title) => {
                Ok(Self { letter: letter.to_owned(), title: title.to_owned(), ..Self::default() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_read_as_people_write_them() {
        let check = |text: &str, what: Option<&str>, path: &str, about: Option<&str>| {
            let found: Output = text.parse().unwrap();
            assert_eq!(found.what.as_deref(), what, "{text}");
            assert_eq!(found.path, path, "{text}");
            assert_eq!(found.about.as_ref().map(Note::as_str), about, "{text}");
            assert_eq!(found.to_string().parse::<Output>().unwrap(), found);
        };
        check("Created `src/a.rs` — the parser", Some("Created"), "src/a.rs", Some("the parser"));
        check("modified src/b.rs: faster", Some("Modified"), "src/b.rs", Some("faster"));
        check("src/c.rs", None, "src/c.rs", None);
        check("my file.md", None, "my file.md", None);
        assert_eq!("".parse::<Output>(), Err(BadText::Output));
    }

    #[test]
    fn checks_and_options_are_read() {
        let check: Check = "lint=pass".parse().unwrap();
        assert_eq!(check, "lint ✅".parse().unwrap());
        assert!("lint".parse::<Check>().is_err() && "lint=maybe".parse::<Check>().is_err());
        let option: ForkOption = "A: Server-side approach".parse().unwrap();
        assert_eq!((option.letter.as_str(), option.title.as_str()), ("A", "Server-side approach"));
        assert!("Server-side".parse::<ForkOption>().is_err());
    }
}
