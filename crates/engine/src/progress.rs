//! What is said about the work, put on record, and found again by what people call it.

use bivouac_core::agent::AgentKind;
use bivouac_core::checkpoint::Trigger;
use bivouac_core::id::EventId;
use bivouac_core::session::Session;
use bivouac_core::work::{Entry, Item, Noun, TaskStatus, Thing, Work, told};
use bivouac_journal::append::{NewEvent, Terms};

use crate::save::{SaveRequest, Saved};
use crate::session::SessionDraft;
use crate::{Engine, Error, Kind, Result};

/// How something is to be recorded.
#[derive(Clone, Debug, Default)]
pub struct Saying {
    /// A word that makes saying it twice do nothing the second time.
    pub key: Option<String>,
    pub terms: Terms,
}

/// What was recorded.
#[derive(Debug)]
pub struct Said {
    /// Each thing as it is now.
    pub things: Vec<Item>,
    /// What was said, line by line.
    pub told: Vec<String>,
    /// The session's last event.
    pub sequence: i64,
    /// The checkpoint that was due because of it.
    pub saved: Option<Saved>,
}

impl Engine {
    /// All progress of a session.
    pub fn work(&self, session: &Session) -> Result<Work> {
        Ok(self.journal.work(session.id)?)
    }

    /// The things of one noun.
    pub fn things(&self, session: &Session, noun: Noun) -> Result<Work> {
        Ok(self.journal.things(session.id, noun)?)
    }

    /// The session that words about the work belong to: as for a checkpoint, a new one if there is none.
    pub fn session_for_work(&mut self, word: Option<&str>) -> Result<Session> {
        match self.session_to_continue(word)? {
            Some(session) => Ok(session),
            None => {
                let session = self.new_session(SessionDraft::default())?;
                self.notices.push(format!("opened session {}", session.handle));
                Ok(session)
            }
        }
    }

    /// The same for a person within an agent: a new one waits for the conversation, whose first words these may be.
    pub fn session_for_agent(&mut self, agent: AgentKind) -> Result<Session> {
        match self.session_to_continue(None)? {
            Some(session) => Ok(session),
            None => {
                let agent_type = Some(agent.to_string());
                self.new_session(SessionDraft { agent_type, ..SessionDraft::default() })
            }
        }
    }

    /// Records what someone says, all of it or nothing, and saves where that is due.
    pub fn say(&mut self, session: &Session, items: Vec<Item>, how: &Saying) -> Result<Said> {
        let items: Vec<Item> = items.into_iter().map(|item| item.said(self.author)).collect();
        let due = due(&items);
        let stamp = |(place, item): (usize, Item)| NewEvent {
            id: match &how.key {
                Some(key) => {
                    EventId::of_key(session.id, &format!("{} {key}", item.noun().as_str()), place)
                }
                None => EventId::new(self.clock.new_id()),
            },
            session_id: session.id,
            event: item.into_event(),
        };
        let before = self.journal.session_sequence(session.id)?;
        let events = items.into_iter().enumerate().map(stamp).collect();
        let recorded = self.journal.append_once(self.clock.now(), events, &how.terms)?;
        let (mut things, mut lines) = (Vec::new(), Vec::new());
        for item in recorded.iter().flat_map(Item::all_of) {
            let now = self.journal.thing(session.id, item.noun(), item.key())?;
            lines.push(told(&item, now.as_ref().and_then(Item::title)));
            things.push(now.unwrap_or(item));
        }
        let sequence = self.journal.session_sequence(session.id)?;
        let saved = match due.filter(|_| sequence > before) {
            Some(trigger) => self.save_due(session, trigger),
            None => None,
        };
        Ok(Said { things, told: lines, sequence, saved })
    }

    /// What was said is on record, whatever becomes of the checkpoint.
    fn save_due(&mut self, session: &Session, trigger: Trigger) -> Option<Saved> {
        if session.workspace != self.home.workspace_path() {
            return None;
        }
        match self.save(Some(&session.id.to_string()), SaveRequest::new(trigger)) {
            Ok(saved) => Some(saved),
            Err(error) => {
                let why = crate::error::in_one_line(&error);
                self.notices.push(format!("no checkpoint could be saved: {why}"));
                None
            }
        }
    }
}

/// A completed task and a new phase are worth a checkpoint.
fn due(items: &[Item]) -> Option<Trigger> {
    items.iter().find_map(|item| match item {
        Item::Task(task) if task.status == Some(TaskStatus::Completed) => Some(Trigger::Task),
        Item::Phase(_) => Some(Trigger::Phase),
        _ => None,
    })
}

/// Is this the one that is meant?
type Fits<'f, T> = &'f dyn Fn(&Entry<T>) -> bool;

/// The thing someone means: by its key, its number, its title, its issue, or the beginning of its title.
pub fn find<'w, T: Thing>(list: &'w [Entry<T>], noun: Noun, word: &str) -> Result<&'w Entry<T>> {
    let title = |it: &Entry<T>| it.title().unwrap_or_default().to_lowercase();
    let lower = word.to_lowercase();
    let number = noun.number_in(word);
    let ways: [Fits<'_, T>; 5] = [
        &|it| it.key() == word,
        &|it| number.is_some() && noun.number_in(it.key()) == number,
        &|it| title(it) == lower,
        &|it| it.issue().is_some_and(|issue| issue.eq_ignore_ascii_case(word)),
        &|it| lower.len() >= 3 && title(it).starts_with(&lower),
    ];
    for fits in ways {
        let found: Vec<&Entry<T>> = list.iter().filter(|it| fits(it)).collect();
        match found[..] {
            [] => {}
            [only] => return Ok(only),
            _ => {
                let line =
                    |it: &&Entry<T>| format!("  {}  {}", it.key(), it.title().unwrap_or_default());
                let candidates = found.iter().map(line).collect();
                let kind = Kind::Thing(noun);
                return Err(Error::Ambiguous { kind, word: word.to_owned(), candidates });
            }
        }
    }
    Err(Error::NotFound { kind: Kind::Thing(noun), word: word.to_owned() })
}
