//! Sessions whose processes are gone. Nobody tells of such an end, so every command looks for it, puts it on
//! record once and says so.

use std::path::Path;
use std::time::Duration;

use bivouac_capture::process::WITHIN;
use bivouac_capture::{agents, running};
use bivouac_core::event::{Event, StatusChange};
use bivouac_core::id::{EventId, SessionId};
use bivouac_core::liveness::{Life, OpenRun, OpenTalk};
use bivouac_core::run::{Ending, RunEnded};
use bivouac_core::session::{Session, Status};
use bivouac_core::text::{Note, count};
use bivouac_core::time::Timestamp;
use bivouac_journal::agents::OpenConversation;
use bivouac_journal::append::{NewEvent, Terms};
use bivouac_journal::runs::KnownRun;
use bivouac_snapshot::private;

use crate::lock::{Hold, Lock};
use crate::{Engine, Result};

/// A session that stopped while nobody looked, as it was before.
struct Stopped {
    session: Session,
    /// The number of its last event: if another one came since, someone else knows more.
    last_event: i64,
    ending: Option<Ending>,
    status: Status,
    reason: Option<String>,
}

impl Engine {
    /// Finds sessions that stopped while nobody looked. No command fails because this does.
    pub fn find_interrupted(&mut self) {
        // What we start in the background has nobody to tell it to.
        if !self.is_writable() || std::env::var_os(WITHIN).is_some() {
            return;
        }
        if let Err(error) = self.record_interrupted() {
            let why = crate::error::in_one_line(&error);
            self.notices.push(format!("interrupted sessions could not be looked for: {why}"));
        }
    }

    fn record_interrupted(&mut self) -> Result<()> {
        // A goodbye may wait to be taken in.
        self.take_in_spool()?;
        self.tell_torn_notes();
        let (runs, talks) = (self.journal.open_runs()?, self.journal.open_conversations()?);
        if runs.is_empty() && talks.is_empty() {
            return Ok(());
        }
        let runs = runs.iter().map(|run| self.stopped_run(run)).collect::<Result<Vec<_>>>()?;
        let talks = talks.iter().map(|talk| self.stopped_talk(talk)).collect::<Result<Vec<_>>>()?;
        let mut n_elsewhere = 0;
        for it in runs.into_iter().chain(talks).flatten() {
            if !self.record_stopped(&it)? {
                continue;
            }
            match it.session.workspace == self.home.workspace_path() {
                true => self.notices.push(told(&it)),
                false => n_elsewhere += 1,
            }
        }
        if n_elsewhere > 0 {
            let number = count(n_elsewhere, "session");
            self.notices.push(format!(
                "{number} stopped in other workspaces; `biv session list --all --status interrupted` shows more"
            ));
        }
        Ok(())
    }

    fn stopped_run(&self, run: &KnownRun) -> Result<Option<Stopped>> {
        let last_event = self.journal.session_sequence(run.session_id)?;
        let Some(ending) = self.life_of_run(run)?.ending(self.clock.now()) else {
            return Ok(None);
        };
        let session = self.journal.session(run.session_id)?;
        Ok(session.map(|session| Stopped {
            session,
            last_event,
            ending: Some(ending),
            status: ending.status(),
            reason: ending.reason(),
        }))
    }

    /// All that can be told about a run from here.
    fn life_of_run(&self, run: &KnownRun) -> Result<OpenRun> {
        let child = match &run.started.child {
            Some(child) if run.started.machine == running::machine() => running::life(child),
            _ => Life::Unknown,
        };
        Ok(OpenRun {
            // Before its lock is tried, for whoever takes it leaves a sign of life.
            last_sign: self.heartbeat(run.session_id),
            is_supervised: self.is_supervised(run.session_id)?,
            child,
            started_at: run.started_at,
            timeout: run.started.timeout_seconds.map(Duration::from_secs),
        })
    }

    /// Is there a supervisor that holds the session's lock?
    pub(crate) fn is_supervised(&self, session: SessionId) -> Result<bool> {
        let lock = self.home.run_lock(session);
        Ok(lock.exists() && Lock::attempt(&lock, Hold::Shared)?.is_none())
    }

    /// When the supervisor of a session last showed that it lives.
    pub(crate) fn heartbeat(&self, session: SessionId) -> Option<Timestamp> {
        modified(&self.home.run_lock(session))
    }

    /// The process of a run whose supervisor is gone.
    pub(crate) fn orphan(&self, session: SessionId) -> Result<Option<u32>> {
        let Some(run) = self.journal.run(session)?.filter(|run| run.ending.is_none()) else {
            return Ok(None);
        };
        let life = self.life_of_run(&run)?;
        let is_orphan = !life.is_supervised && life.child == Life::Runs;
        Ok(run.started.child.filter(|_| is_orphan).map(|child| child.pid))
    }

    fn stopped_talk(&self, open: &OpenConversation) -> Result<Option<Stopped>> {
        let Some(process) = &open.started.process else {
            return Ok(None);
        };
        let talk = OpenTalk {
            agent: open.started.agent,
            pid: process.pid,
            life: running::life(process),
            says_goodbye: agents::of(open.started.agent).says_goodbye(),
            is_turn_open: open.is_turn_open,
        };
        let Some(reason) = talk.interruption() else {
            return Ok(None);
        };
        let session = self.journal.session(open.session_id)?;
        Ok(session.map(|session| Stopped {
            session,
            last_event: open.session_sequence,
            ending: None,
            status: Status::Interrupted,
            reason: Some(reason),
        }))
    }

    /// Puts it on record, unless something happened to the session since it was looked at: then it lives, or
    /// another command was faster. Answers whether its status changed.
    fn record_stopped(&mut self, it: &Stopped) -> Result<bool> {
        let reason = it.reason.as_deref().map(Note::cut);
        let change = StatusChange { reason, until: None };
        let is_change = it.session.status == Status::Active;
        let status = is_change.then(|| Event::of_status(it.status, change));
        let ended = it.ending.map(|ending| Event::RunEnded(RunEnded { ending }));
        let stamp = |event| NewEvent {
            id: EventId::new(self.clock.new_id()),
            session_id: it.session.id,
            event,
        };
        let events = ended.into_iter().chain(status).map(stamp).collect();
        let terms = Terms { expected: Some(it.last_event), is_new: false };
        match self.journal.append_once(self.clock.now(), events, &terms) {
            Err(bivouac_journal::Error::Moved { .. }) => Ok(false),
            recorded => recorded.map(|_| is_change).map_err(Into::into),
        }
    }
}

fn told(it: &Stopped) -> String {
    let handle = &it.session.handle;
    let word = if it.status == Status::Failed { "failed" } else { "was interrupted" };
    let reason = it.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("session {handle} {word}{reason}; `biv session recover {handle}` brings it back")
}

fn modified(path: &Path) -> Option<Timestamp> {
    let at = private::facts(path).ok()?.modified;
    jiff::Timestamp::try_from(at).ok().map(Timestamp::new)
}
