//! Is there room for another checkpoint? When there is not, automatic ones are thinned first; one that
//! is skipped all the same is an event, never silence.

use bivouac_core::autosave::is_automatic;
use bivouac_core::checkpoint::Trigger;
use bivouac_core::event::{CheckpointDeleted, CheckpointSkipped, DeletionReason, Event};
use bivouac_core::id::{CheckpointId, SessionId};
use bivouac_core::retention;
use bivouac_core::session::Session;
use bivouac_core::size::Bytes;
use bivouac_journal::query::SessionFilter;

use crate::{Engine, Error, Result};

impl Engine {
    /// Makes room where there is none. `Some` is why an automatic checkpoint has to be skipped; a
    /// person's gets an error.
    pub(crate) fn make_room(
        &mut self,
        session: &Session,
        trigger: Trigger,
    ) -> Result<Option<String>> {
        if self.shortage()?.is_none() {
            return Ok(None);
        }
        self.shed()?;
        let Some(error) = self.shortage()? else {
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

    /// Halves the automatic checkpoints of every session, and gives their bytes back.
    fn shed(&mut self) -> Result<()> {
        let mut n_shed = 0;
        for session in self.journal.sessions(&SessionFilter::default())? {
            let candidates = self.journal.candidates(session.id)?;
            let gone = retention::thin(&candidates, candidates.len() / 2);
            n_shed += gone.len();
            self.delete_all(session.id, gone, DeletionReason::Budget)?;
        }
        if n_shed > 0 {
            self.notices.push(format!(
                "the store is short of room: {n_shed} automatic checkpoints were thinned"
            ));
        }
        self.sweep_packs()?;
        Ok(())
    }

    /// Thins one session's automatic checkpoints to the number that is kept.
    pub(crate) fn thin_session(&mut self, session: SessionId) -> Result<()> {
        let candidates = self.journal.candidates(session)?;
        let gone = retention::thin(&candidates, self.config.retention.max_per_session);
        self.delete_all(session, gone, DeletionReason::Thinned)
    }

    /// Lets go of what has outlived its time, in sessions that ended.
    pub(crate) fn expire_old(&mut self) -> Result<u64> {
        let mut n_expired = 0;
        for session in self.journal.sessions(&SessionFilter::default())? {
            if session.status.is_ended() {
                let candidates = self.journal.candidates(session.id)?;
                let gone =
                    retention::expire(&candidates, self.config.retention.max_age, self.clock.now());
                n_expired += gone.len() as u64;
                self.delete_all(session.id, gone, DeletionReason::Expired)?;
            }
        }
        Ok(n_expired)
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
