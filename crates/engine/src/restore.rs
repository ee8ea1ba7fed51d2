//! Writing a checkpoint's files somewhere else.

use std::path::Path;

use bivouac_core::event::Level;
use bivouac_journal::query::KeptCheckpoint;
use bivouac_snapshot::checkout::{Written, checkout};

use crate::{Engine, Result};

impl Engine {
    /// Writes all files of a checkpoint into a folder that is new or empty.
    pub fn restore_into(&mut self, kept: &KeptCheckpoint, folder: &Path) -> Result<Written> {
        let checkpoint = &kept.taken.checkpoint;
        let written = {
            let _store_lock = self.use_store()?;
            let index = self.index();
            let objects = self.objects(&index);
            checkout(&objects, &checkpoint.tree, folder, self.progress.as_ref())?
        };
        if self.is_writable() {
            let line = format!("restored {} into {}", checkpoint.handle, folder.display());
            self.note(checkpoint.session_id, Level::Info, &line)?;
        }
        Ok(written)
    }
}
