//! Is there room for another checkpoint? When there is not, automatic ones are thinned first; one that
//! is skipped all the same is an event, never silence.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bivouac_core::autosave::is_automatic;
use bivouac_core::checkpoint::Trigger;
use bivouac_core::event::{CheckpointDeleted, CheckpointSkipped, DeletionReason, Event};
use bivouac_core::id::{CheckpointId, SessionId};
use bivouac_core::retention::{self, Limit};
use bivouac_core::session::Session;
use bivouac_core::size::Bytes;
use bivouac_journal::query::SessionFilter;

use crate::config::Config;
use crate::home::Home;
use crate::{Engine, Error, Result};

impl Engine {
    /// Makes room where there is none. `Some` is why an automatic checkpoint has to be skipped; a
    /// person's gets an error.
    pub(crate) fn make_room(
        &mut self,
        session: &Session,
        trigger: Trigger,
    ) -> Result<Option<String>> {
        let short = match self.shortage()? {
            None => return Ok(None),
            // Others fill the disk, too: our history must not pay for that. What is dead can go.
            Some(Error::DiskFloor { .. }) => {
                self.sweep_packs()?;
                self.shortage()?
            }
            Some(_) => self.shed()?,
        };
        let Some(error) = short else {
            return Ok(None);
        };
        if !is_automatic(trigger) {
            return Err(error);
        }
        let why = error.to_string();
        let skipped = CheckpointSkipped { trigger, reason: why.parse()? };
        self.record(session.id, vec![Event::CheckpointSkipped(skipped)])?;
        Ok(Some(why))
    }

    /// Is there room on the disk? A restore asks this and no more: it lets nothing go that it may need.
    pub(crate) fn check_floor(&self) -> Result<()> {
        match self.shortage()? {
            Some(floor @ Error::DiskFloor { .. }) => Err(floor),
            _ => Ok(()),
        }
    }

    /// Is there room for what comes from elsewhere? Nothing is let go for it.
    pub(crate) fn check_room(&self) -> Result<()> {
        self.shortage()?.map_or(Ok(()), Err)
    }

    /// What is short, if anything is.
    fn shortage(&self) -> Result<Option<Error>> {
        let stat = rustix::fs::statvfs(&self.home.store)
            .map_err(|error| Error::io(&self.home.store)(error.into()))?;
        let free = Bytes(stat.f_bavail.saturating_mul(stat.f_frsize));
        if free < self.config.min_free {
            return Ok(Some(Error::DiskFloor { free, floor: self.config.min_free }));
        }
        let used = Bytes(self.journal.pack_bytes()?);
        if used > self.config.budget {
            return Ok(Some(Error::OverBudget { used, budget: self.config.budget }));
        }
        Ok(None)
    }

    /// Thins the automatic checkpoints of every session by a quarter, and again as long as that gives
    /// bytes back and is not enough. Answers what is still short.
    fn shed(&mut self) -> Result<Option<Error>> {
        let mut n_shed = 0;
        self.sweep_packs()?;
        let mut short = self.shortage()?;
        if short.is_some() {
            n_shed = self.thin_to_own()?;
            if n_shed > 0 {
                self.sweep_packs()?;
                short = self.shortage()?;
            }
        }
        while short.is_some() {
            let n_now = self.thin_by_a_quarter()?;
            if n_now == 0 {
                break;
            }
            n_shed += n_now;
            let swept = self.sweep_packs()?;
            short = self.shortage()?;
            if swept.bytes_after >= swept.bytes_before {
                break;
            }
        }
        if n_shed > 0 {
            self.notices.push(format!(
                "the store is short of room: {n_shed} automatic checkpoints were thinned"
            ));
        }
        Ok(short)
    }

    /// Lets go what is only kept because a workspace's file asks for more than the user's own configuration. It
    /// goes first, so that one workspace's wishes do not cost the checkpoints of all others.
    fn thin_to_own(&mut self) -> Result<usize> {
        let own = Limit::exactly(self.config.retention.max_per_session.own);
        let mut n_gone = 0;
        for session in self.journal.sessions(&SessionFilter::default())? {
            let gone = retention::thin(&self.journal.candidates(session.id)?, &own);
            n_gone += gone.len();
            self.delete_all(session.id, gone, DeletionReason::Budget)?;
        }
        Ok(n_gone)
    }

    fn thin_by_a_quarter(&mut self) -> Result<usize> {
        let mut n_gone = 0;
        for session in self.journal.sessions(&SessionFilter::default())? {
            let candidates = self.journal.candidates(session.id)?;
            let n_left = retention::n_thinnable(&candidates) * 3 / 4;
            let gone = retention::thin(&candidates, &Limit::exactly(n_left));
            n_gone += gone.len();
            self.delete_all(session.id, gone, DeletionReason::Budget)?;
        }
        Ok(n_gone)
    }

    /// Thins one session's automatic checkpoints to the number that is kept.
    pub(crate) fn thin_session(&mut self, session: SessionId) -> Result<()> {
        let most = &self.config.retention.max_per_session;
        let gone = retention::thin(&self.journal.candidates(session)?, most);
        self.delete_all(session, gone, DeletionReason::Thinned)
    }

    /// Applies every session's own retention: that of the workspace it is in. Where that cannot be read,
    /// nothing is let go. Answers how many checkpoints went.
    pub(crate) fn retain(&mut self) -> Result<u64> {
        let mut n_gone = 0;
        for session in self.journal.sessions(&SessionFilter::default())? {
            let home = Home {
                workspace: OsStr::from_bytes(session.workspace.as_bytes()).into(),
                ..self.home.clone()
            };
            let Ok(config) = Config::load(&home) else {
                continue;
            };
            let mut gone = Vec::new();
            if session.status.is_ended() {
                let candidates = self.journal.candidates(session.id)?;
                gone = retention::expire(&candidates, &config.retention.max_age, self.clock.now());
            }
            n_gone += gone.len() as u64;
            self.delete_all(session.id, gone, DeletionReason::Expired)?;
            let candidates = self.journal.candidates(session.id)?;
            let gone = retention::thin(&candidates, &config.retention.max_per_session);
            n_gone += gone.len() as u64;
            self.delete_all(session.id, gone, DeletionReason::Thinned)?;
        }
        Ok(n_gone)
    }

    fn delete_all(
        &mut self,
        session: SessionId,
        ids: Vec<CheckpointId>,
        reason: DeletionReason,
    ) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let events = ids
            .into_iter()
            .map(|id| Event::CheckpointDeleted(CheckpointDeleted { id, reason }))
            .collect();
        self.record(session, events)?;
        Ok(())
    }
}
