//! A hook where memory is limited. Rust ends a process that gets no memory, and no code of that process can prevent
//! it; so the work is done by a second process of ours, and this one only hands on what it was told. If the second
//! one ends by itself, a third only writes down what was told; if that fails as well, an empty note is left, so that
//! the next command can tell that something is missing.

use std::io::{self, Write};
use std::time::Duration;

use bivouac_engine::home::Wishes;
use bivouac_engine::observe::{self, Hook, HookId, Reached};
use rustix::process::{Resource, getrlimit};

use super::{put_aside, within_deadline};

/// How much longer than its own deadline such a process is waited for, and how long one that only writes.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Part {
    pub(super) id: HookId,
    work: Work,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    All,
    /// Another process tried, and ended while it did.
    PutAside,
}

impl Work {
    const fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::PutAside => "put-aside",
        }
    }
}

/// Which part of a hook this process is, if it is one.
pub(super) fn part() -> Option<Part> {
    let told = std::env::var(observe::HOOK_PART).ok()?;
    let (word, id) = told.split_once(' ')?;
    let work = [Work::All, Work::PutAside].into_iter().find(|it| it.word() == word)?;
    Some(Part { id: id.parse().ok()?, work })
}

impl Part {
    pub(super) fn carry_out(&self, hook: &Hook, wishes: &Wishes) -> Option<String> {
        match self.work {
            Work::All => within_deadline(hook, wishes),
            Work::PutAside => {
                put_aside(hook, Reached::Unknown, wishes);
                None
            }
        }
    }
}

/// Can this process be refused memory that the machine has?
pub(super) fn is_memory_limited() -> bool {
    [Resource::As, Resource::Data].into_iter().any(|it| getrlimit(it).current.is_some())
}

/// Has a hook taken in by processes of its own, and prints what they answer.
pub(super) fn run((agent, event): (&str, &str), input: &[u8], deadline: Duration, wishes: &Wishes) {
    let id = HookId::now_v7();
    for work in [Work::All, Work::PutAside] {
        let part = format!("{} {id}", work.word());
        let within = if work == Work::All { deadline + PATIENCE } else { PATIENCE };
        let order = observe::Apart { agent, event, part: &part, within };
        if let Ok(answer) = observe::run_apart(&order, input, wishes) {
            let _the_agent_is_gone = io::stdout().write_all(&answer);
            return;
        }
    }
    leave_torn_note(id, wishes);
}

/// There was not even memory for what the agent says.
pub(super) fn give_up(wishes: &Wishes) {
    leave_torn_note(HookId::now_v7(), wishes);
}

fn leave_torn_note(id: HookId, wishes: &Wishes) {
    observe::leave_torn_note(id, wishes);
    let _nowhere_left_to_say_it = rustix::io::write(
        rustix::stdio::stderr(),
        b"note: there is not enough memory to keep what the agent told\n",
    );
}
