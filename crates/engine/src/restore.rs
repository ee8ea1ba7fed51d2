//! Writing a checkpoint's files somewhere else.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bivouac_core::event::Level;
use bivouac_journal::query::KeptCheckpoint;
use bivouac_snapshot::beneath::Root;
use bivouac_snapshot::checkout::{SetId, Written, checkout};

use crate::{Engine, Error, Result};

impl Engine {
    /// Writes all files of a checkpoint into a folder that is new or empty.
    pub fn restore_into(&mut self, kept: &KeptCheckpoint, folder: &Path) -> Result<Written> {
        self.check_place(folder)?;
        let checkpoint = &kept.taken.checkpoint;
        let session = self.session(Some(&checkpoint.session_id.to_string()))?;
        // The files will belong to the caller, so their contents must be nobody else's choice. Of a
        // workspace that is gone, nobody can tell whose it was.
        let workspace = Root::open(Path::new(OsStr::from_bytes(session.workspace.as_bytes())));
        let is_ours = workspace.is_ok_and(|it| it.is_callers_alone());
        let set_id = if is_ours { SetId::Restore } else { SetId::Drop };
        let written = {
            let _store_lock = self.use_store()?;
            let index = self.index();
            let objects = self.objects(&index);
            checkout(&objects, &checkpoint.tree, folder, set_id, self.progress.as_ref())?
        };
        self.tell_without_set_id(&written.without_set_id);
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
