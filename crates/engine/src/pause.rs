//! Sessions that are set aside until some time: when that is, and taking them up again by themselves.

use bivouac_core::event::{Event, StatusChange};
use bivouac_core::id::EventId;
use bivouac_core::limit::{check_until, end_of_limit, until};
use bivouac_core::session::{Session, Status};
use bivouac_core::text::Note;
use bivouac_core::time::Timestamp;
use bivouac_journal::append::{NewEvent, Terms};

use crate::session::check_change;
use crate::{Engine, Error, Result};

/// What people write for the end of the agent's usage limit.
const RESET: &str = "reset";
/// Longer messages are the model's own words, which may speak of any limit.
const SHORT: usize = 300;

impl Engine {
    /// Sets a session aside, until some time if one is given.
    pub fn pause(
        &mut self,
        session: &Session,
        until: Option<Timestamp>,
        reason: Option<Note>,
    ) -> Result<Session> {
        check_change(session, Status::Paused)?;
        self.record(session.id, vec![Event::SessionPaused(StatusChange { reason, until })])?;
        self.session(Some(&session.id.to_string()))
    }

    /// The time someone means: by the clock, from now, in full, or the end of the agent's limit.
    pub fn read_until(&self, session: &Session, text: &str) -> Result<Timestamp> {
        let now = self.clock.now();
        if text.trim() != RESET {
            return Ok(until(text, now, &|name| self.clock.zone(name))?);
        }
        let no_limit = || Error::NoLimit { handle: session.handle.clone() };
        let ends = self.last_limit(session)?.ok_or_else(no_limit)?;
        let local = self.clock.local(ends).strftime("%Y-%m-%d %H:%M").to_string();
        Ok(check_until(ends, &local, now)?)
    }

    /// When the limit ends that stopped a session's last turn, if it is still to come.
    pub fn limit_ahead(&self, session: &Session) -> Result<Option<Timestamp>> {
        let now = self.clock.now();
        Ok(self.limit_of_turn(session)?.filter(|ends| *ends > now))
    }

    /// The end of the limit a session's agent spoke of last.
    fn last_limit(&self, session: &Session) -> Result<Option<Timestamp>> {
        if let Some(ends) = self.limit_of_turn(session)? {
            return Ok(Some(ends));
        }
        let Some(kept) = self.journal.last_conversation(session.id)? else {
            return Ok(None);
        };
        let checkpoint = &kept.taken.checkpoint;
        let Some(summary) = &checkpoint.conversation else {
            return Ok(None);
        };
        let said = self.conversation_about(summary)?.main().last_message;
        Ok(said.and_then(|words| self.limit_in(&words, checkpoint.taken_at)))
    }

    fn limit_of_turn(&self, session: &Session) -> Result<Option<Timestamp>> {
        let Some((turn, at)) = self.journal.last_turn(session.id)? else {
            return Ok(None);
        };
        let message = turn.message.filter(|words| words.as_str().len() <= SHORT);
        let words = turn.error.into_iter().chain(message);
        Ok(words.into_iter().find_map(|words| self.limit_in(words.as_str(), at)))
    }

    fn limit_in(&self, words: &str, said_at: Timestamp) -> Option<Timestamp> {
        end_of_limit(words, said_at, &|name| self.clock.zone(name))
    }

    /// Takes a session up whose time has come. Answers whether that fell to us: it is done once, by whoever
    /// comes first.
    pub fn take_up_due(&mut self, session: &Session) -> Result<bool> {
        let expected = Some(self.journal.session_sequence(session.id)?);
        let now = self.clock.now();
        let current = self.journal.session(session.id)?;
        if !current.is_some_and(|session| session.is_resumption_due(now)) {
            return Ok(false);
        }
        let reason = Some(Note::cut("the time it was paused until has come"));
        let event = NewEvent {
            id: EventId::new(self.clock.new_id()),
            session_id: session.id,
            event: Event::SessionResumed(StatusChange { reason, until: None }),
        };
        let terms = Terms { expected, is_new: false };
        match self.journal.append_once(now, vec![event], &terms) {
            Err(bivouac_journal::Error::Moved { .. }) => Ok(false),
            recorded => recorded.map(|_| true).map_err(Into::into),
        }
    }
}
