//! From what people type to the session or checkpoint they mean.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use bivouac_capture::running;
use bivouac_core::checkpoint::Checkpoint;
use bivouac_core::id::SessionId;
use bivouac_core::path::RelPath;
use bivouac_core::session::{NewSession, Session, Status};
use bivouac_journal::find::Scope;
use bivouac_journal::query::KeptCheckpoint;

use crate::{Engine, Error, Kind, Result};

/// How far a name reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// An id, a handle or a name is found wherever it is.
    Everywhere,
    /// What belongs to another workspace is not there: a model works in one.
    Here,
}

impl Engine {
    /// The session that is meant: the one named, else `BIV_SESSION`, else that of the agent that started us,
    /// else the one active here, else the one interrupted here, else the newest one here.
    pub fn session(&self, word: Option<&str>) -> Result<Session> {
        self.session_if_any(word)?.ok_or(Error::NoSession)
    }

    /// The same, where having none is no error. A word that names none always is.
    pub fn session_if_any(&self, word: Option<&str>) -> Result<Option<Session>> {
        let from_env = std::env::var("BIV_SESSION").ok().filter(|word| !word.is_empty());
        if let Some(word) = word {
            return self.session_named(word, self.reach).map(Some);
        }
        if let Some(word) = from_env {
            return self.session_named(&word, Reach::Everywhere).map(Some);
        }
        if let Some(session) = self.session_of_agent()? {
            return Ok(Some(session));
        }
        let workspace = self.home.workspace_path();
        for statuses in [&[Status::Active][..], &[Status::Interrupted], &Status::ALL] {
            if let Some(session) = self.journal.newest_session(&workspace, statuses)? {
                return Ok(Some(session));
            }
        }
        Ok(None)
    }

    /// What the agent works on that started us, told apart from others in the same workspace.
    fn session_of_agent(&self) -> Result<Option<Session>> {
        let Some(process) = running::agent_process() else {
            return Ok(None);
        };
        // One process can have several, in several places.
        for conversation in self.journal.conversations_of(&process)? {
            let session = self.journal.session(conversation.session_id)?;
            let is_here =
                |it: &Session| it.workspace == self.home.workspace_path() && !it.status.is_ended();
            if let Some(session) = session.filter(is_here) {
                return Ok(Some(session));
            }
        }
        Ok(None)
    }

    fn session_named(&self, word: &str, reach: Reach) -> Result<Session> {
        let workspace = self.home.workspace_path();
        let mut found = self.journal.find_sessions(word, Some(&workspace))?;
        found.retain(|it| reach == Reach::Everywhere || it.workspace == workspace);
        match (found.pop(), found.is_empty()) {
            (None, _) => Err(Error::NotFound { kind: Kind::Session, word: word.to_owned() }),
            (Some(session), true) => Ok(session),
            (Some(last), false) => {
                found.push(last);
                let candidates = found.iter().map(session_line).collect();
                Err(Error::Ambiguous { kind: Kind::Session, word: word.to_owned(), candidates })
            }
        }
    }

    /// The checkpoint that is meant, looked for in the session at hand first.
    pub fn checkpoint(&self, word: &str, session: Option<&str>) -> Result<KeptCheckpoint> {
        let session = self.session_if_any(session)?.map(|session| session.id);
        let scope = Scope { session, workspace: Some(self.home.workspace_path()) };
        let mut found = self.journal.find_checkpoints(word, &scope)?;
        if self.reach == Reach::Here {
            let here = self.home.workspace_path();
            found.retain(|it| {
                let session = self.journal.session(it.taken.checkpoint.session_id);
                session.ok().flatten().is_some_and(|it| it.workspace == here)
            });
        }
        match (found.pop(), found.is_empty()) {
            (None, _) => Err(Error::NotFound { kind: Kind::Checkpoint, word: word.to_owned() }),
            (Some(checkpoint), true) => Ok(checkpoint),
            (Some(last), false) => {
                found.push(last);
                let candidates =
                    found.iter().map(|it| self.candidate(&it.taken.checkpoint)).collect();
                Err(Error::Ambiguous { kind: Kind::Checkpoint, word: word.to_owned(), candidates })
            }
        }
    }

    fn candidate(&self, checkpoint: &Checkpoint) -> String {
        let about = checkpoint.name.as_ref().map(ToString::to_string);
        let about = about
            .or_else(|| checkpoint.message.as_ref().map(|it| it.headline()))
            .unwrap_or_default();
        let session = self.journal.session(checkpoint.session_id).ok().flatten();
        let handle = session.map(|session| session.handle.to_string()).unwrap_or_default();
        format!("  {}  {handle}  {about}", checkpoint.handle).trim_end().to_owned()
    }

    /// The session a new checkpoint goes to: as [`Engine::session`], but work that ended is not
    /// continued by accident, so then there is none.
    pub(crate) fn session_to_continue(&self, word: Option<&str>) -> Result<Option<Session>> {
        let is_named =
            word.is_some() || std::env::var_os("BIV_SESSION").is_some_and(|word| !word.is_empty());
        let session = self.session_if_any(word)?;
        Ok(session.filter(|session| is_named || !session.status.is_ended()))
    }

    /// What a shell offers where a checkpoint is meant: handles and messages, newest first.
    pub fn checkpoint_words(&self) -> Result<Vec<(String, Option<String>)>> {
        Ok(self.journal.complete_checkpoints(&self.home.workspace_path())?)
    }

    /// What a shell offers where a session is meant.
    pub fn session_words(&self) -> Result<Vec<(String, Option<String>)>> {
        Ok(self.journal.complete_sessions()?)
    }

    /// What identifies a session in a checkpoint's manifest.
    pub(crate) fn identity(&self, id: SessionId) -> Result<NewSession> {
        let session = self.journal.session(id)?.ok_or(Error::NoSession)?;
        Ok(NewSession {
            id: session.id,
            handle: session.handle,
            name: session.name,
            agent_type: session.agent_type,
            task_description: session.task_description,
            workspace: session.workspace,
            metadata: session.metadata,
            created_at: session.created_at,
        })
    }

    /// Paths as typed, relative to where the person stands, as paths in the workspace. None at all
    /// means all of it, and so does the workspace itself.
    pub fn paths_in_workspace(&self, typed: &[PathBuf]) -> Result<Vec<RelPath>> {
        let paths: Vec<Option<RelPath>> =
            typed.iter().map(|path| self.path_in_workspace(path)).collect::<Result<_>>()?;
        Ok(paths.into_iter().collect::<Option<_>>().unwrap_or_default())
    }

    /// `None` is the workspace itself.
    fn path_in_workspace(&self, typed: &Path) -> Result<Option<RelPath>> {
        let outside = || Error::OutsideWorkspace { path: typed.to_owned() };
        let mut whole = PathBuf::new();
        for component in self.home.folder.join(typed).components() {
            match component {
                Component::ParentDir => {
                    whole.pop();
                }
                other => whole.push(other),
            }
        }
        let inside = whole.strip_prefix(&self.home.workspace).map_err(|_| outside())?;
        match inside.as_os_str().is_empty() {
            true => Ok(None),
            false => RelPath::new(inside.as_os_str().as_bytes()).map(Some).map_err(|_| outside()),
        }
    }
}

fn session_line(session: &Session) -> String {
    let title = session.title().unwrap_or_default();
    format!("  {}  {title}", session.handle).trim_end().to_owned()
}
