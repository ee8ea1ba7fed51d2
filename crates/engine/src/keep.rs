//! What a person decides about single checkpoints: keep for ever, or let go.

use bivouac_core::event::{CheckpointDeleted, CheckpointRef, DeletionReason, Event};
use bivouac_journal::query::KeptCheckpoint;

use crate::{Engine, Error, Result};

impl Engine {
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
