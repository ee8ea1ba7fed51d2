//! The things progress is made of. All that can be said about one is optional, so that an event can say a
//! part of it.

use serde::{Deserialize, Serialize};

use super::Thing;
use super::status::{TaskStatus, Verdict};
use super::values::{Check, ForkOption, Output, WorktreeStatus};
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
        /// It stands in the agent's own list, which tells of all that are in it at once.
        listed: bool,
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

    /// What went wrong, if nothing went right since.
    pub fn error(&self) -> Option<&Note> {
        self.error.as_ref().filter(|error| !error.as_str().is_empty())
    }

    /// The place in the plan, where the key is a number.
    pub fn number(&self) -> Option<u64> {
        self.step.parse().ok()
    }
}

impl Gate {
    /// A gate is run for each task on its own.
    pub fn key_for(gate: &str, task: Option<&str>) -> String {
        task.map_or_else(|| gate.to_owned(), |task| format!("{gate}/{task}"))
    }

    /// Its name, without the task.
    pub fn name(&self) -> &str {
        let task = self.task.as_deref().unwrap_or_default();
        let name = self.gate.strip_suffix(task).and_then(|rest| rest.strip_suffix('/'));
        name.filter(|_| !task.is_empty()).unwrap_or(&self.gate)
    }

    /// Its name, and what it was about.
    pub fn called(&self) -> String {
        match &self.task {
            Some(task) => format!("{} ({task})", self.name()),
            None => self.gate.clone(),
        }
    }
}

impl Delegation {
    pub fn status(&self) -> TaskStatus {
        self.status.unwrap_or(TaskStatus::InProgress)
    }
}
