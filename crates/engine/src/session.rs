//! What is done with sessions.

use bivouac_core::checkpoint::State;
use bivouac_core::event::{Event, SessionRenamed, StatusChange};
use bivouac_core::id::{SessionHandle, SessionId};
use bivouac_core::session::{AlreadyThere, NewSession, Session, Status};
use bivouac_core::text::{Name, Note};
use bivouac_journal::query::{CheckpointFilter, KeptCheckpoint, LogLine, SessionFilter};
use bivouac_journal::search::{Hit, SearchFilter};
use bivouac_journal::stored::StoredEvent;

use crate::{Engine, Error, Result};

/// What a new session is told about itself.
#[derive(Clone, Debug, Default)]
pub struct SessionDraft {
    pub agent_type: Option<String>,
    pub task_description: Option<Note>,
    pub name: Option<Name>,
    pub metadata: Option<State>,
}

impl Engine {
    pub fn new_session(&mut self, draft: SessionDraft) -> Result<Session> {
        self.home.check_workspace()?;
        let session = self.identify(draft);
        let id = session.id;
        self.record(id, vec![Event::SessionCreated(Box::new(session))])?;
        self.journal.session(id)?.ok_or(Error::NoSession)
    }

    /// What a session is from its first event on, in this workspace and now.
    pub(crate) fn identify(&self, draft: SessionDraft) -> NewSession {
        let id = SessionId::new(self.clock.new_id());
        NewSession {
            id,
            handle: SessionHandle::of(id),
            name: draft.name,
            agent_type: draft.agent_type.unwrap_or_else(|| "manual".to_owned()),
            task_description: draft.task_description,
            workspace: self.home.workspace_path(),
            metadata: draft.metadata,
            created_at: self.clock.now(),
        }
    }

    /// Sessions, oldest first: those of this workspace, or all.
    pub fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Session>> {
        Ok(self.journal.sessions(filter)?)
    }

    pub fn rename_session(&mut self, session: &Session, name: Name) -> Result<Session> {
        self.record(session.id, vec![Event::SessionRenamed(SessionRenamed { name })])?;
        self.session(Some(&session.id.to_string()))
    }

    /// Takes a session to another status. Work that is done or failed is saved by the caller first.
    pub fn change_status(
        &mut self,
        session: &Session,
        status: Status,
        reason: Option<Note>,
    ) -> Result<Session> {
        check_change(session, status)?;
        let change = StatusChange { reason, until: None };
        let event = Event::of_status(status, change);
        self.record(session.id, vec![event])?;
        self.session(Some(&session.id.to_string()))
    }

    /// Work that goes on is active, whatever it was.
    pub fn reopen(&mut self, session: &Session) -> Result<Session> {
        let session = self.session(Some(&session.id.to_string()))?;
        match session.status {
            Status::Active => Ok(session),
            _ => self.change_status(&session, Status::Active, None),
        }
    }

    pub fn session_log(&self, session: &Session) -> Result<Vec<LogLine>> {
        Ok(self.journal.logs(session.id)?)
    }

    /// A session's events behind one, oldest first.
    pub fn events_after(&self, session: &Session, sequence: i64) -> Result<Vec<StoredEvent>> {
        Ok(self.journal.events_after(session.id, sequence)?)
    }

    /// A session's last events, oldest first.
    pub fn last_events(&self, session: &Session, most: u32) -> Result<Vec<StoredEvent>> {
        Ok(self.journal.last_events(session.id, most)?)
    }

    /// Finds events by their words. Each comes with its session's handle.
    pub fn search(&self, text: &str, filter: &SearchFilter) -> Result<Vec<(Hit, String)>> {
        let mut found = Vec::new();
        for hit in self.journal.search(text, filter)? {
            let session = self.journal.session(hit.session_id)?;
            let handle = session.map(|session| session.handle.to_string()).unwrap_or_default();
            found.push((hit, handle));
        }
        Ok(found)
    }

    /// The branch the workspace is on.
    pub fn branch(&self) -> Option<String> {
        self.home.repository()?.branch()
    }

    /// Checkpoints, oldest first.
    pub fn checkpoints(&self, filter: &CheckpointFilter) -> Result<Vec<KeptCheckpoint>> {
        Ok(self.journal.checkpoints(filter)?)
    }

    pub fn last_checkpoint(&self, session: &Session) -> Result<Option<KeptCheckpoint>> {
        Ok(self.journal.last_checkpoint(session.id)?)
    }

    pub fn n_checkpoints(&self, session: &Session) -> Result<u64> {
        Ok(self.journal.n_checkpoints(session.id)?)
    }
}

/// Refuses a change of status that makes no sense.
pub fn check_change(session: &Session, status: Status) -> Result<()> {
    match session.status.allows(status) {
        true => Ok(()),
        false => {
            Err(AlreadyThere { handle: session.handle.clone(), status: session.status }.into())
        }
    }
}
