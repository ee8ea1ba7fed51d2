//! Writing a checkpoint's files somewhere else.

use std::path::Path;

use bivouac_core::event::Level;
use bivouac_journal::query::KeptCheckpoint;
use bivouac_snapshot::checkout::{Written, checkout};

use crate::{Engine, Error, Result};

impl Engine {
    /// Writes all files of a checkpoint into a folder that is new or empty.
    pub fn restore_into(&mut self, kept: &KeptCheckpoint, folder: &Path) -> Result<Written> {
        self.check_place(folder)?;
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

    /// Nothing is written into a repository's own folder, nor into the store.
    pub(crate) fn check_place(&self, folder: &Path) -> Result<()> {
        let whole = std::path::absolute(folder).map_err(Error::io(folder))?;
        let nearest = whole.ancestors().find_map(|it| it.canonicalize().ok()).unwrap_or_default();
        let in_git = whole.ancestors().chain(nearest.ancestors()).any(|it| it.ends_with(".git"));
        let store = self.home.store.canonicalize().unwrap_or_else(|_| self.home.store.clone());
        match (in_git, nearest.starts_with(store)) {
            (true, _) => Err(Error::Forbidden { path: whole, what: "inside a `.git` folder" }),
            (_, true) => Err(Error::Forbidden { path: whole, what: "inside the store" }),
            (false, false) => Ok(()),
        }
    }
}
