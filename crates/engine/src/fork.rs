//! A second way from a checkpoint: files, conversation and history of its own. The first stays untouched.

use std::path::Path;

use bivouac_capture::git;
use bivouac_core::checkpoint::{Checkpoint, Trigger};
use bivouac_core::event::Level;
use bivouac_core::progress::Silent;
use bivouac_core::session::Session;
use bivouac_core::text::Name;
use bivouac_core::work::Item;
use bivouac_journal::query::KeptCheckpoint;

use crate::home::Wishes;
use crate::open::Need;
use crate::save::{SaveRequest, Saved};
use crate::session::SessionDraft;
use crate::{Engine, Error, Result};

#[derive(Debug)]
pub struct ForkReport {
    pub session: Session,
    pub checkpoint: Checkpoint,
    pub n_files: u64,
    pub has_git: bool,
}

impl Engine {
    /// Makes a new session in `folder`, which is new or empty, from a checkpoint: its files, its
    /// conversation and, where there is a repository, a clone of it at the same commit.
    pub fn fork(
        &mut self,
        kept: &KeptCheckpoint,
        folder: &Path,
        name: Option<Name>,
    ) -> Result<ForkReport> {
        let origin = &kept.taken.checkpoint;
        let parent = self.session(Some(&origin.session_id.to_string()))?;
        let written = self.restore_into(kept, folder)?;
        let has_git = self.clone_history(origin, folder)?;
        let folder = folder.canonicalize().map_err(Error::io(folder))?;
        let store = Some(self.home.store.clone());
        let wishes = Wishes { folder: Some(folder.clone()), workspace: Some(folder), store };
        let mut there = Self::open(&wishes, Need::Write, Box::new(Silent))?;
        let metadata =
            serde_json::json!({ "forked_from": { "session": parent.id, "checkpoint": origin.id } });
        let session = there.new_session(SessionDraft {
            agent_type: Some(parent.agent_type.clone()),
            task_description: parent.task_description.clone(),
            name,
            metadata: Some(metadata.to_string().parse()?),
        })?;
        // What was known about the work goes with it.
        let known = self.work_of(origin)?.items().into_iter().map(Item::into_event).collect();
        there.record(session.id, known)?;
        let mut request = SaveRequest::new(Trigger::Manual);
        request.message = Some(format!("forked from {}", origin.handle).parse()?);
        request.conversation.clone_from(&origin.conversation);
        let saved = there.save(Some(&session.id.to_string()), request)?;
        let Saved::Taken(saved) = saved else {
            unreachable!("what a person asks for is always taken")
        };
        self.note(
            parent.id,
            Level::Info,
            &format!("forked {} into {}", origin.handle, session.handle),
        )?;
        Ok(ForkReport { session, checkpoint: saved.checkpoint, n_files: written.n_files, has_git })
    }

    /// Gives the new folder the repository's history, if the repository is the workspace's own and the commit is in
    /// it. A repository that git refuses to open, such as another user's, is left out, and that is on record.
    fn clone_history(&mut self, origin: &Checkpoint, folder: &Path) -> Result<bool> {
        let Some((repository, facts)) = self.home.repository().zip(origin.git.as_ref()) else {
            return Ok(false);
        };
        // A checkpoint that was imported can speak of commits that are not here.
        let is_here =
            |head: &String| git::missing_names(&repository, std::slice::from_ref(head)).is_empty();
        let head = facts.head.as_ref().filter(|head| is_here(head));
        if repository.top != self.home.workspace || head.is_none() {
            return Ok(false);
        }
        let head = head.map(String::as_str);
        match git::clone_history(&repository, folder, facts.branch.as_deref(), head) {
            Ok(has_git) => Ok(has_git),
            Err(error) => {
                let message = format!("forked without the repository's history: {error}");
                self.note(origin.session_id, Level::Warning, &message)?;
                Ok(false)
            }
        }
    }
}
