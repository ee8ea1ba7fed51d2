//! What a person decides about single checkpoints: keep for ever, or let go.

use std::collections::HashSet;

use bivouac_core::event::{CheckpointDeleted, CheckpointRef, DeletionReason, Event};
use bivouac_core::session::Session;
use bivouac_core::work::Author;
use bivouac_journal::query::{CheckpointFilter, KeptCheckpoint};

use crate::{Engine, Error, Result};

/// A checkpoint that would be deleted.
#[derive(Debug)]
pub struct Going {
    pub kept: KeptCheckpoint,
    pub session: Session,
    /// Does its session have no other checkpoint that stays?
    pub is_last: bool,
}

impl Engine {
    /// What deleting these checkpoints would take away. All words are understood before the first one goes.
    pub fn plan_delete(&self, words: &[String], session: Option<&str>) -> Result<Vec<Going>> {
        if self.author == Author::Model {
            return Err(Error::OnlyPeople { what: "delete checkpoints" });
        }
        let mut found: Vec<KeptCheckpoint> =
            words.iter().map(|word| self.checkpoint(word, session)).collect::<Result<_>>()?;
        let mut ids = HashSet::new();
        found.retain(|kept| ids.insert(kept.taken.checkpoint.id));
        if let Some(kept) = found.iter().find(|kept| kept.is_pinned) {
            return Err(Error::Pinned { handle: kept.taken.checkpoint.handle.clone() });
        }
        let going = |kept: KeptCheckpoint| {
            let session = self.session(Some(&kept.taken.checkpoint.session_id.to_string()))?;
            let filter =
                CheckpointFilter { session: Some(session.id), ..CheckpointFilter::default() };
            let stays = |it: &KeptCheckpoint| !ids.contains(&it.taken.checkpoint.id);
            let is_last = !self.checkpoints(&filter)?.iter().any(stays);
            Ok(Going { kept, session, is_last })
        };
        found.into_iter().map(going).collect()
    }

    /// Lets a checkpoint go. Its bytes come back with the next `gc`.
    pub fn delete_checkpoint(&mut self, kept: &KeptCheckpoint) -> Result<()> {
        let checkpoint = &kept.taken.checkpoint;
        if kept.is_pinned {
            return Err(Error::Pinned { handle: checkpoint.handle.clone() });
        }
        let deleted = CheckpointDeleted { id: checkpoint.id, reason: DeletionReason::Asked };
        self.record(checkpoint.session_id, vec![Event::CheckpointDeleted(deleted)])?;
        Ok(())
    }

    /// Keeps a checkpoint until it is unpinned. `false` when it was pinned already.
    pub fn pin(&mut self, kept: &KeptCheckpoint) -> Result<bool> {
        if kept.is_pinned {
            return Ok(false);
        }
        let checkpoint = &kept.taken.checkpoint;
        self.record(
            checkpoint.session_id,
            vec![Event::CheckpointPinned(CheckpointRef { id: checkpoint.id })],
        )?;
        Ok(true)
    }

    /// `false` when it was not pinned.
    pub fn unpin(&mut self, kept: &KeptCheckpoint) -> Result<bool> {
        if !kept.is_pinned {
            return Ok(false);
        }
        let checkpoint = &kept.taken.checkpoint;
        self.record(
            checkpoint.session_id,
            vec![Event::CheckpointUnpinned(CheckpointRef { id: checkpoint.id })],
        )?;
        Ok(true)
    }
}
