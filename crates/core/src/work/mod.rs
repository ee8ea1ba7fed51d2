//! What a session's progress is made of: tasks, phase, gates, decisions and all else that the next agent has
//! to know. Each is a thing of some noun with a key of its own. An event says what changed about it; what is
//! not said stays as it was.

mod found;
mod nouns;
mod status;
mod told;
mod values;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use found::{given_up, is_list};
pub use nouns::{
    Approval, Artifact, Author, Blocker, Commit, Decision, Delegation, ForkPoint, Gate, Outline,
    Partition, Phase, Remark, Step, Task, TestRun, Worktree,
};
pub use status::{TaskStatus, Verdict};
pub use told::{Difference, details, differences, progress, searchable, standing, told};
pub use values::{Check, ForkOption, Output, WorktreeStatus};

use crate::event::Event;
use crate::text::printable;
use crate::time::Timestamp;

/// One of the things progress is made of.
pub trait Thing: Clone + Default + PartialEq + Serialize + DeserializeOwned {
    fn key(&self) -> &str;
    fn set_key(&mut self, key: String);
    /// Takes on what a newer event says, and keeps what it does not speak of.
    fn absorb(&mut self, newer: Self);
    /// Is there nothing left to do about it?
    fn is_over(&self) -> bool {
        false
    }
    /// May it be left out where there are very many?
    fn is_past(&self) -> bool {
        self.is_over()
    }
    /// What people call it, beside its key.
    fn title(&self) -> Option<String> {
        None
    }
    /// The issue it is written down in.
    fn issue(&self) -> Option<&str> {
        None
    }
}

/// A thing as it is now, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry<T> {
    #[serde(flatten)]
    pub item: T,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

impl<T: Thing> Entry<T> {
    fn new(item: T, at: Timestamp) -> Self {
        let ended_at = item.is_over().then_some(at);
        Self { item, created_at: at, changed_at: at, ended_at }
    }

    /// Answers whether anything about it is new.
    fn absorb(&mut self, newer: T, at: Timestamp) -> bool {
        let before = self.item.clone();
        self.item.absorb(newer);
        let is_new = self.item != before;
        if is_new {
            self.changed_at = at;
            self.ended_at = self.item.is_over().then(|| self.ended_at.unwrap_or(at));
        }
        is_new
    }
}

impl<T> std::ops::Deref for Entry<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

/// Declares the closed set of nouns once: the word, the type, the event that speaks of it, its list.
macro_rules! nouns {
    ($($noun:ident($type:ty) = $word:literal, $event:ident => $list:ident,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Noun {
            $($noun,)+
        }

        impl Noun {
            pub const ALL: &'static [Self] = &[$(Self::$noun),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$noun => $word,)+
                }
            }

            /// The name of its list in [`Work`].
            pub const fn list(self) -> &'static str {
                match self {
                    $(Self::$noun => stringify!($list),)+
                }
            }
        }

        /// What one event says about one thing.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Item {
            $($noun(Box<$type>),)+
        }

        impl Item {
            pub const fn noun(&self) -> Noun {
                match self {
                    $(Self::$noun(_) => Noun::$noun,)+
                }
            }

            pub fn key(&self) -> &str {
                match self {
                    $(Self::$noun(item) => item.key(),)+
                }
            }

            pub fn title(&self) -> Option<String> {
                match self {
                    $(Self::$noun(item) => item.title(),)+
                }
            }

            /// May it be left out where there are very many?
            pub fn is_past(&self) -> bool {
                match self {
                    $(Self::$noun(item) => item.is_past(),)+
                }
            }

            /// The thing with this on top of what was stored of it before, and how to store that. None when
            /// this says nothing new.
            pub fn onto(
                self,
                before: Option<&str>,
                at: Timestamp,
            ) -> Result<Option<(Self, String)>, serde_json::Error> {
                match self {
                    $(Self::$noun(item) => Ok(onto(*item, before, at)?.map(|entry| {
                        let stored = to_json(&entry);
                        (Self::$noun(Box::new(entry.item)), stored)
                    })),)+
                }
            }

            /// Marks whose words these are, unless it is known.
            #[must_use]
            pub fn said(mut self, by: Author) -> Self {
                match &mut self {
                    $(Self::$noun(item) => item.by = item.by.or(Some(by)),)+
                }
                self
            }

            fn said_by(event: &Event) -> Option<Self> {
                match event {
                    $(Event::$event(item) => Some(Self::$noun(item.clone())),)+
                    _ => None,
                }
            }

            /// The event that says all of this at once.
            pub fn into_event(self) -> Event {
                match self {
                    $(Self::$noun(item) => Event::$event(item),)+
                }
            }
        }

        /// The noun and key an event speaks of. A key that is empty is given out by the journal.
        pub fn key_of(event: &mut Event) -> Option<(Noun, Box<dyn FnOnce(String) + '_>)> {
            match event {
                $(Event::$event(item) if item.key().is_empty() => {
                    Some((Noun::$noun, Box::new(|key| item.set_key(key))))
                })+
                _ => None,
            }
        }

        /// All progress of a session, each list in the order its things came up.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Work {
            $(#[serde(skip_serializing_if = "Vec::is_empty")] pub $list: Vec<Entry<$type>>,)+
        }

        impl Work {
            /// Adds a thing as it was stored.
            pub fn add_stored(&mut self, noun: Noun, stored: &str) -> Result<(), serde_json::Error> {
                match noun {
                    $(Noun::$noun => self.$list.push(serde_json::from_str(stored)?),)+
                }
                Ok(())
            }

            /// Everything in it, as what events would have to say for it to be so.
            pub fn items(&self) -> Vec<Item> {
                let mut items = Vec::new();
                $(items.extend(self.$list.iter().map(|it| Item::$noun(Box::new(it.item.clone()))));)+
                items
            }

            /// Only what there is still something to do about.
            #[must_use]
            pub fn open(mut self) -> Self {
                $(self.$list.retain(|it| !it.item.is_over());)+
                self
            }

            /// When anything in it changed last.
            pub fn changed_at(&self) -> Option<Timestamp> {
                let mut newest = None;
                $(newest = newest.max(self.$list.iter().map(|it| it.changed_at).max());)+
                newest
            }

            /// What an event said, with the titles things have now.
            pub fn told(&self, event: &Event) -> Option<String> {
                match Item::said_by(event)? {
                    $(Item::$noun(said) => {
                        let known = self.$list.iter().find(|it| it.item.key() == said.key());
                        let title = known.and_then(|it| it.item.title());
                        Some(told::told(&Item::$noun(said), title))
                    })+
                }
            }

            fn absorb_item(&mut self, item: Item, at: Timestamp) {
                match item {
                    $(Item::$noun(item) => absorb_into(&mut self.$list, *item, at),)+
                }
            }
        }
    };
}

nouns! {
    Outline(Outline) = "outline", SessionDescribed => outline,
    Phase(Phase) = "phase", PhaseChanged => phase,
    Artifact(Artifact) = "artifact", ArtifactChanged => artifacts,
    Task(Task) = "task", TaskChanged => tasks,
    Decision(Decision) = "decision", DecisionMade => decisions,
    Blocker(Blocker) = "blocker", BlockerChanged => blockers,
    Approval(Approval) = "approval", ApprovalChanged => approvals,
    Gate(Gate) = "gate", GateExecuted => gates,
    Step(Step) = "step", StepChanged => steps,
    Delegation(Delegation) = "delegation", DelegationChanged => delegations,
    ForkPoint(ForkPoint) = "fork point", ForkPointChanged => fork_points,
    Partition(Partition) = "partition", PartitionChanged => partitions,
    Worktree(Worktree) = "worktree", WorktreeChanged => worktrees,
    Remark(Remark) = "note", RemarkMade => remarks,
    Commit(Commit) = "commit", CommitSeen => commits,
    TestRun(TestRun) = "test run", TestsRun => tests,
}

impl Noun {
    /// The noun a stored row is of.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|noun| noun.as_str() == word)
    }

    /// The `number`th key that nobody chose.
    pub fn numbered_key(self, number: u64) -> String {
        match self {
            Self::Task => format!("{number:03}"),
            Self::Step | Self::Delegation => number.to_string(),
            Self::ForkPoint => format!("f{number}"),
            Self::Remark => format!("n{number}"),
            other => format!("{}{number}", &other.as_str()[..1]),
        }
    }

    /// The number in a key that looks like one we gave out.
    pub fn number_in(self, key: &str) -> Option<u64> {
        const MOST: u64 = 1_000_000_000;
        let digits = key.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
        let number = digits.parse().ok().filter(|number| *number < MOST)?;
        let ours = self.numbered_key(number);
        (ours == key || ours.trim_start_matches('0') == key).then_some(number)
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id is one line of at most 120 letters without control characters")]
pub struct BadKey;

/// What something can be called by.
pub fn key_in(text: &str) -> Result<String, BadKey> {
    const MAX_CHARS: usize = 120;
    let text = text.trim();
    let is_good = !text.is_empty() && text.chars().count() <= MAX_CHARS && printable(text) == text;
    is_good.then(|| text.to_owned()).ok_or(BadKey)
}

/// `20000`, `20K`, `~20k` or `1.5M` as a number.
pub fn tokens_in(text: &str) -> Option<u64> {
    let text = text.trim().trim_start_matches('~').trim_end_matches("tokens").trim_end();
    let (digits, times) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1_000.0),
        'm' | 'M' => (&text[..text.len() - 1], 1_000_000.0),
        _ => (text, 1.0),
    };
    let number: f64 = digits.replace([',', '_'], "").parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number * times).round() as u64)
}

/// A title as a key: `Feature X` is `feature-x`.
pub fn slug(title: &str) -> String {
    let words = title.split(|letter: char| !letter.is_alphanumeric()).filter(|it| !it.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("-")
}

/// Does an event speak of progress itself?
pub fn is_progress(event: &Event) -> bool {
    Item::said_by(event).is_some()
}

impl Item {
    /// What an event says about progress: by itself, or by what it lets us conclude.
    pub fn all_of(event: &Event) -> Vec<Self> {
        match Self::said_by(event) {
            Some(item) => vec![item],
            None => found::conclude(event),
        }
    }
}

impl Work {
    /// Takes on an event: the fold that the journal's tables are kept by.
    pub fn apply(&mut self, event: &Event, at: Timestamp) {
        for item in Item::all_of(event) {
            self.absorb_item(item, at);
        }
    }

    pub fn outline(&self) -> Outline {
        self.outline.first().map(|it| it.item.clone()).unwrap_or_default()
    }

    pub fn phase(&self) -> Option<&Phase> {
        self.phase.first().map(|it| &it.item)
    }

    /// Tasks that are neither done nor given up.
    pub fn open_tasks(&self) -> impl Iterator<Item = &Entry<Task>> {
        self.tasks.iter().filter(|task| !task.is_over())
    }

    pub fn open_blockers(&self) -> impl Iterator<Item = &Entry<Blocker>> {
        self.blockers.iter().filter(|blocker| !blocker.is_over())
    }

    pub fn pending_approvals(&self) -> impl Iterator<Item = &Entry<Approval>> {
        self.approvals.iter().filter(|approval| !approval.is_over())
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Every issue that is spoken of, each once, in the order they came up.
    pub fn issues(&self) -> Vec<String> {
        let outline = self.outline();
        let tasks = self.tasks.iter().map(|it| it.issue.clone());
        let steps = self.steps.iter().map(|it| it.issue.clone());
        let delegations = self.delegations.iter().map(|it| it.issue.clone());
        let all = outline.issues.unwrap_or_default().into_iter().map(Some);
        let mut issues: Vec<String> = Vec::new();
        for issue in all.chain(tasks).chain(steps).chain(delegations).flatten() {
            if !issues.contains(&issue) {
                issues.push(issue);
            }
        }
        issues
    }
}

fn onto<T: Thing>(
    item: T,
    before: Option<&str>,
    at: Timestamp,
) -> Result<Option<Entry<T>>, serde_json::Error> {
    let Some(before) = before else {
        return Ok(Some(Entry::new(item, at)));
    };
    let mut entry: Entry<T> = serde_json::from_str(before)?;
    Ok(entry.absorb(item, at).then_some(entry))
}

fn absorb_into<T: Thing>(list: &mut Vec<Entry<T>>, item: T, at: Timestamp) {
    match list.iter_mut().find(|entry| entry.item.key() == item.key()) {
        Some(entry) => {
            entry.absorb(item, at);
        }
        None => list.push(Entry::new(item, at)),
    }
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("our own types have string keys and no failing serialisers")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: u32) -> Timestamp {
        format!("2026-03-07T10:{minute:02}:00Z").parse().unwrap()
    }

    fn task(key: &str, status: Option<TaskStatus>) -> Event {
        let task = Task { task: key.to_owned(), status, ..Task::default() };
        Event::TaskChanged(Box::new(task))
    }

    #[test]
    fn what_is_not_said_stays_as_it_was() {
        let mut work = Work::default();
        let first = Task {
            task: "001".to_owned(),
            subject: Some("email-sender".parse().unwrap()),
            issue: Some("TAS-12".to_owned()),
            ..Task::default()
        };
        work.apply(&Event::TaskChanged(Box::new(first)), at(0));
        work.apply(&task("001", Some(TaskStatus::Completed)), at(1));
        let found = &work.tasks[0];
        assert_eq!(found.issue.as_deref(), Some("TAS-12"));
        assert_eq!(found.status(), TaskStatus::Completed);
        assert_eq!((found.created_at, found.ended_at), (at(0), Some(at(1))));
        work.apply(&task("001", Some(TaskStatus::InProgress)), at(2));
        assert_eq!(work.tasks[0].ended_at, None);
    }

    #[test]
    fn a_row_and_the_fold_say_the_same() {
        let events = [task("1", None), task("1", Some(TaskStatus::Failed))];
        let mut work = Work::default();
        let mut stored: Option<String> = None;
        for (minute, event) in events.iter().enumerate() {
            work.apply(event, at(minute as u32));
            let item = Item::all_of(event).pop().unwrap();
            stored = Some(item.onto(stored.as_deref(), at(minute as u32)).unwrap().unwrap().1);
        }
        let mut from_row = Work::default();
        from_row.add_stored(Noun::Task, &stored.unwrap()).unwrap();
        assert_eq!(from_row, work);
    }

    #[test]
    fn keys_that_nobody_chose_are_numbers() {
        assert_eq!(Noun::Task.numbered_key(7), "007");
        assert_eq!(Noun::Decision.numbered_key(2), "d2");
        assert_eq!(Noun::Step.numbered_key(3), "3");
        assert_eq!(Noun::Remark.numbered_key(1), "n1");
        for noun in Noun::ALL {
            assert_eq!(noun.number_in(&noun.numbered_key(12)), Some(12), "{noun:?}");
            assert_eq!(Noun::from_word(noun.as_str()), Some(*noun));
        }
        assert_eq!(Noun::Task.number_in("5"), Some(5));
        assert_eq!(Noun::Task.number_in("auth"), None);
        assert_eq!(Noun::Decision.number_in("b2"), None);
    }
}
