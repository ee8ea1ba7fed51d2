//! A session that stopped: which of its checkpoints can be given back, and starting it afresh.

use std::time::Duration;

use bivouac_capture::agents;
use bivouac_capture::agents::restore::Launch;
use bivouac_core::checkpoint::Checkpoint;
use bivouac_core::event::Level;
use bivouac_core::recovery;
use bivouac_core::run::Ending;
use bivouac_core::session::{Session, Status};
use bivouac_core::text::Note;
use bivouac_core::time::Timestamp;
use bivouac_journal::query::{CheckpointFilter, KeptCheckpoint};
use bivouac_journal::runs::KnownRun;

use crate::resume::{Mode, agent_of, check_agent};
use crate::session::SessionDraft;
use crate::supervise::RunOrder;
use crate::{Engine, Error, Result};

/// What there is to know before something is done about a session that stopped.
#[derive(Debug)]
pub struct Recovery {
    pub session: Session,
    /// The newest checkpoint that can be given back whole.
    pub checkpoint: Option<KeptCheckpoint>,
    /// How far that is from the moment the session stopped, in words.
    pub distance: Option<String>,
    /// The newest checkpoint of all, where it is damaged.
    pub damaged: Option<Checkpoint>,
    /// Its last run, where it was supervised.
    pub run: Option<KnownRun>,
}

impl Recovery {
    /// What is said about a checkpoint that cannot be taken.
    pub fn fallback(&self) -> Option<String> {
        let damaged = &self.damaged.as_ref()?.handle;
        Some(match &self.checkpoint {
            Some(kept) => {
                format!("{damaged} is damaged, so {} is taken", kept.taken.checkpoint.handle)
            }
            None => format!("{damaged} is damaged, and so are all others"),
        })
    }
}

impl Engine {
    /// Looks at a session that stopped. Every byte of the checkpoint it offers was read.
    pub fn plan_recovery(&self, session: &Session) -> Result<Recovery> {
        let filter = CheckpointFilter { session: Some(session.id), ..CheckpointFilter::default() };
        let mut checkpoint = None;
        let mut damaged = None;
        for kept in self.journal.checkpoints(&filter)?.into_iter().rev() {
            if self.is_whole(&kept.taken)? {
                checkpoint = Some(kept);
                break;
            }
            damaged.get_or_insert(kept.taken.checkpoint);
        }
        let run = self.journal.run(session.id)?;
        let stopped_at = self.stopped_at(session, run.as_ref())?;
        let taken_at = checkpoint.as_ref().map(|kept| kept.taken.checkpoint.taken_at);
        Ok(Recovery {
            session: session.clone(),
            distance: taken_at.map(|at| recovery::distance(at, stopped_at, session)),
            checkpoint,
            damaged,
            run,
        })
    }

    /// When a session stopped. What was noticed later happened at its last sign of life.
    fn stopped_at(&self, session: &Session, run: Option<&KnownRun>) -> Result<Timestamp> {
        // It may have been taken up and ended again since its last run.
        let is_of_run = |ending: &Ending| {
            ending.reason().as_deref() == session.reason.as_ref().map(Note::as_str)
        };
        let ending = run.and_then(|run| run.ending).filter(is_of_run);
        let at = match (session.status, ending) {
            (Status::Active, _) => return Ok(self.clock.now()),
            (Status::Failed, Some(Ending::TimedOut { after_seconds })) => {
                run.and_then(|run| later(run.started_at, after_seconds))
            }
            (Status::Interrupted, Some(Ending::Lost)) => self.heartbeat(session.id),
            (Status::Interrupted, None) => self.journal.last_sign(session.id)?,
            _ => None,
        };
        Ok(at.unwrap_or(session.status_at).min(session.status_at))
    }

    /// Refuses while something of the session still runs.
    pub fn check_stopped(&self, session: &Session) -> Result<()> {
        if let Some((agent, pid)) = self.twin(session)? {
            let handle = session.handle.clone();
            return Err(Error::StillRuns { what: agent.title(), handle, pid });
        }
        self.check_unsupervised(session)
    }

    /// Refuses while a command of the session runs under supervision, or without the supervisor it had.
    pub(crate) fn check_unsupervised(&self, session: &Session) -> Result<()> {
        let handle = session.handle.clone();
        let Some(run) = self.journal.run(session.id)?.filter(|run| run.ending.is_none()) else {
            return Ok(());
        };
        if self.is_supervised(session.id)? {
            let pid = run.started.supervisor.pid;
            return Err(Error::StillRuns { what: "a supervised command", handle, pid });
        }
        match self.orphan(session.id)? {
            Some(pid) => Err(Error::StillRuns { what: "a command", handle, pid }),
            None => Ok(()),
        }
    }

    /// What a session was told first.
    pub fn prompt_of(&self, session: &Session) -> Result<Note> {
        let from_run = || -> Result<Option<Note>> {
            Ok(self.journal.run(session.id)?.and_then(|run| run.started.prompt))
        };
        let prompt = match self.journal.first_prompt(session.id)? {
            Some(prompt) => Some(prompt),
            None => from_run()?.or_else(|| session.task_description.clone()),
        };
        prompt.ok_or_else(|| Error::NoPrompt { handle: session.handle.clone() })
    }

    /// Opens a session for the same task as another, and answers how to start its agent with the same
    /// prompt. The old session stays as it is; both logs tell of each other.
    pub fn start_afresh(&mut self, old: &Session) -> Result<(Session, Launch)> {
        self.check_same_workspace(old)?;
        self.check_stopped(old)?;
        let prompt = self.prompt_of(old)?;
        let kind = agent_of(old);
        check_agent(kind, Mode::Brief)?;
        let new = self.session_after(old, kind.to_string())?;
        let agent = agents::of(kind);
        Ok((new, agent.start(&agent.opening(prompt.as_str()))))
    }

    /// The same for a session whose command was supervised: that very command, and an agent that was told its
    /// prompt by hand is told it right away.
    pub fn run_afresh(&mut self, old: &Session, run: &KnownRun) -> Result<(Session, RunOrder)> {
        self.check_same_workspace(old)?;
        self.check_stopped(old)?;
        let mut command = run.started.command.clone();
        let agent = old.agent_type.parse().ok().map(agents::of);
        if let (Some(agent), Ok(prompt)) = (agent, self.prompt_of(old))
            && !command.iter().any(|word| word == prompt.as_str())
        {
            command.extend(agent.opening(prompt.as_str()));
        }
        let new = self.session_after(old, old.agent_type.clone())?;
        let timeout = run.started.timeout_seconds.map(Duration::from_secs);
        let prompt = run.started.prompt.clone();
        Ok((new, RunOrder { command, timeout, prompt, ..RunOrder::default() }))
    }

    fn session_after(&mut self, old: &Session, agent_type: String) -> Result<Session> {
        let (agent_type, task_description) = (Some(agent_type), old.task_description.clone());
        let draft = SessionDraft { agent_type, task_description, ..SessionDraft::default() };
        let new = self.new_session(draft)?;
        self.note(old.id, Level::Info, &format!("started afresh as {}", new.handle))?;
        self.note(new.id, Level::Info, &format!("a fresh start of {}", old.handle))?;
        Ok(new)
    }

    /// Puts on record that a damaged checkpoint was passed over.
    pub fn note_fallback(&mut self, recovery: &Recovery) -> Result<()> {
        match recovery.fallback() {
            Some(line) => self.note(recovery.session.id, Level::Warning, &line),
            None => Ok(()),
        }
    }
}

fn later(moment: Timestamp, seconds: u64) -> Option<Timestamp> {
    moment.jiff().checked_add(Duration::from_secs(seconds)).ok().map(Timestamp::new)
}
