//! Beside an agent that somebody started by hand: saving once in a while, until the work is over.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use bivouac_capture::agents;
use bivouac_capture::signals::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, Signals};
use bivouac_capture::supervised::fates;
use bivouac_core::agent::AgentKind;
use bivouac_core::checkpoint::Trigger;
use bivouac_core::id::SessionId;
use bivouac_core::progress::Silent;
use bivouac_core::session::{Session, Status};
use bivouac_core::text::Note;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::saver::Saver;
use crate::home::Wishes;
use crate::open::Need;
use crate::watch::{Watch, ask_status};
use crate::{Engine, Error, Result};

/// Why a vigil is over.
#[derive(Debug)]
pub enum VigilEnd {
    /// Someone said so.
    Stopped,
    /// There is nothing left to wait for.
    WorkEnded(Box<Session>),
    /// The workspace is gone.
    WorkspaceGone,
}

/// Watches a workspace and saves its session. `on_news` is told what a person should know.
pub fn keep_vigil(
    session: Option<SessionId>,
    interval: Option<Duration>,
    wishes: &Wishes,
    on_news: &mut dyn FnMut(&str),
) -> Result<VigilEnd> {
    let engine = Engine::prepare(wishes, Need::Write, Box::new(Silent))?;
    let home = engine.home.clone();
    let interval = interval.unwrap_or(engine.config.autosave.interval);
    drop(engine);
    let mut signals =
        Signals::catch(&[SIGCHLD, SIGTERM, SIGINT, SIGHUP]).map_err(Error::io("signals"))?;
    let saver = Saver::new(&home, session, Some(interval));
    let Some(watch) = saver.watch() else {
        let owner = ask_status(&home).map(|it| format!("process {}", it.process));
        let owner = owner.or_else(|| crate::lock::owner(&home.watch_lock())).unwrap_or_default();
        return Err(Error::AlreadyWatched { owner });
    };
    watch.tell(|status| status.may_stop = true);
    let mut vigil =
        Vigil { saver, interval, named: session, next_look: Instant::now(), told: None };
    let end = loop {
        if let Some(end) = vigil.look(on_news) {
            break end;
        }
        vigil.wait(&signals);
        let came = signals.take();
        for (process, fate) in fates() {
            vigil.saver.ended(process, fate);
        }
        if came.iter().any(|signal| *signal != SIGCHLD) {
            break VigilEnd::Stopped;
        }
        vigil.saver.tick();
    };
    if !matches!(end, VigilEnd::WorkspaceGone) {
        vigil.saver.save_last(Trigger::Shutdown, None, &mut signals);
    }
    Ok(end)
}

/// Goes on with a session whose time has come, in its agent. What keeps it from that is told, and it is paused
/// again.
fn take_up(engine: &mut Engine, session: &Session, on_news: &mut dyn FnMut(&str)) {
    let Ok(kind) = session.agent_type.parse::<AgentKind>() else { return };
    if !engine.take_up_due(session).unwrap_or(false) {
        return;
    }
    on_news(&format!("going on with session {}", session.handle));
    let words = ["resume", &session.id.to_string(), "--detach", "--"].map(OsString::from);
    let opening = agents::of(kind).opening("Go on where you left off.");
    let words = words.into_iter().chain(opening.into_iter().map(OsString::from));
    let started = engine.home.own_command(words).and_then(|it| Ok(it.within(TAKE_UP).output()?));
    if let Err(error) = started {
        let why = format!("it could not go on by itself: {}", crate::error::in_one_line(&error));
        on_news(&why);
        let now = engine.session(Some(&session.id.to_string()));
        let reason = Some(Note::cut(&why));
        let _told_above = now.and_then(|it| engine.change_status(&it, Status::Paused, reason));
    }
}

/// How long an agent may take to be started.
const TAKE_UP: Duration = Duration::from_secs(60);

struct Vigil {
    saver: Saver,
    interval: Duration,
    /// The session to save; whichever is worked on if none was named.
    named: Option<SessionId>,
    next_look: Instant,
    /// The trouble that was told last.
    told: Option<String>,
}

impl Vigil {
    /// Looks how things stand, once in an interval.
    fn look(&mut self, on_news: &mut dyn FnMut(&str)) -> Option<VigilEnd> {
        if self.saver.watch().is_some_and(Watch::is_stop_asked) {
            return Some(VigilEnd::Stopped);
        }
        if Instant::now() < self.next_look {
            return None;
        }
        self.next_look = Instant::now() + self.interval;
        let wishes = self.saver.wishes();
        if !wishes.workspace.as_ref().is_some_and(|it| it.is_dir()) {
            return Some(VigilEnd::WorkspaceGone);
        }
        self.tell_trouble(on_news);
        let mut engine = Engine::open(&wishes, Need::Record, Box::new(Silent)).ok()?;
        engine.find_interrupted();
        engine.take_notices().iter().for_each(|notice| on_news(notice));
        let is_over =
            |session: &Session| session.status.is_ended() || session.status == Status::Interrupted;
        if self.named.is_none()
            && let Some(session) = engine.session_if_any(None).ok()?
            && !is_over(&session)
        {
            self.saver.take_session(session.id);
            take_up(&mut engine, &session, on_news);
            return None;
        }
        let session = engine.session(Some(&self.saver.session?.to_string())).ok()?;
        take_up(&mut engine, &session, on_news);
        is_over(&session).then(|| VigilEnd::WorkEnded(Box::new(session)))
    }

    fn tell_trouble(&mut self, on_news: &mut dyn FnMut(&str)) {
        let trouble = self.saver.watch().and_then(|watch| watch.status().trouble);
        if trouble.is_some() && trouble != self.told {
            let why = trouble.as_deref().unwrap_or_default();
            on_news(&format!("{why}; so everything is looked at, and more rarely"));
        }
        self.told = trouble;
        if let (5.., Some(why)) = (self.saver.n_failures, &self.saver.last_failure) {
            on_news(&format!("the last {} saves failed: {why}", self.saver.n_failures));
        }
    }

    fn wait(&self, signals: &Signals) {
        let until = self.saver.next_look().map_or(self.next_look, |at| at.min(self.next_look));
        // A wish to stop comes through the watch, which cannot wake us.
        const SOON: Duration = Duration::from_millis(500);
        let left = until.saturating_duration_since(Instant::now()).min(SOON);
        let mut waits = [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        let _woken_or_late = poll(&mut waits, Some(&timeout));
    }
}
