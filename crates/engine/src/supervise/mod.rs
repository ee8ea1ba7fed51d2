//! Running an agent, or any command, under supervision: on a terminal of its own, saved once in a while and
//! at every end, with word of how it ended.
//!
//! - `apart`: a run that goes on by itself, in tmux or out of sight
//! - `stage`: the program, its terminal and ours, and what is passed between them
//! - `attend`: being there until it ends, and ending it when its time has come
//! - `saver`: saving once in a while
//! - `vigil`: the same for an agent that somebody started by hand

mod apart;
mod attend;
mod saver;
mod stage;
mod vigil;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bivouac_capture::agents;
use bivouac_capture::running;
use bivouac_capture::search_path::find_program;
use bivouac_core::agent::AgentKind;
use bivouac_core::checkpoint::Checkpoint;
use bivouac_core::event::{Event, StatusChange};
use bivouac_core::id::SessionId;
use bivouac_core::progress::Silent;
use bivouac_core::run::{Ending, RunEnded, RunStarted};
use bivouac_core::session::{Session, Status};
use bivouac_core::text::Note;

pub use apart::{Apart, look};
use attend::{Onlookers, Watching};
pub use bivouac_capture::process::Says;
pub use bivouac_capture::supervised::{LEADER, lead};
use saver::Saver;
use stage::Stage;
pub use vigil::{VigilEnd, keep_vigil};

use crate::home::{Home, Wishes, home_folder};
use crate::lock::{Hold, Lock, owner};
use crate::open::Need;
use crate::session::SessionDraft;
use crate::{Engine, Error, Result};

/// What is to be run, and how.
#[derive(Clone, Debug, Default)]
pub struct RunOrder {
    pub command: Vec<String>,
    /// Where it runs; here if nothing is said.
    pub folder: Option<PathBuf>,
    /// The session it belongs to; a new one if there is none.
    pub session: Option<String>,
    pub task: Option<Note>,
    /// What an agent is told to do, when it is started for that alone.
    pub prompt: Option<Note>,
    pub timeout: Option<Duration>,
    pub saves: Saves,
    pub says: Says,
    /// The tmux session we are in.
    pub tmux: Option<String>,
    /// Where the environment was left that it was started in.
    pub around: Option<PathBuf>,
    /// Where to write what it says, when nobody is looking.
    pub log: Option<PathBuf>,
}

/// When a run is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Saves {
    /// As often as the settings say.
    #[default]
    AsSet,
    Every(Duration),
    Never,
}

impl Saves {
    /// The time between two; `None` for never.
    pub const fn interval(self, as_set: Duration) -> Option<Duration> {
        match self {
            Self::AsSet => Some(as_set),
            Self::Every(interval) => Some(interval),
            Self::Never => None,
        }
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct RunReport {
    pub session: Session,
    pub ending: Ending,
    pub last: Option<Checkpoint>,
    /// Saves that failed and were not made up for.
    pub n_failures: u64,
    pub last_failure: Option<String>,
    /// Why none of this could be put on record, if so.
    pub unrecorded: Option<Error>,
}

impl Engine {
    /// The session a run belongs to, opened or reopened.
    pub fn session_for_run(&mut self, order: &RunOrder) -> Result<Session> {
        let program = order.command.first().map(String::as_str).unwrap_or_default();
        check_program(program)?;
        let Some(word) = &order.session else {
            let draft = SessionDraft {
                agent_type: Some(agent_type(program)),
                task_description: order.task.clone().or_else(|| order.prompt.clone()),
                ..SessionDraft::default()
            };
            return self.new_session(draft);
        };
        let session = self.session(Some(word))?;
        self.reopen(&session)
    }

    /// Files in which the agents of a session write down what is said.
    pub(crate) fn transcripts(&self, session: SessionId) -> Result<Vec<PathBuf>> {
        let conversations = self.journal.conversations(session)?;
        let home = home_folder().unwrap_or_default();
        let files = conversations.iter().flat_map(|it| {
            let transcript = it.started.transcript.as_deref().map(Path::new);
            agents::of(it.started.agent).grows_in(transcript, &home)
        });
        Ok(files.collect())
    }

    /// Puts on record that a session's command could not be started.
    pub fn give_up(&mut self, session: &Session, error: &Error) {
        let why = Note::cut(&crate::error::in_one_line(error));
        let _the_first_error_counts = self.change_status(session, Status::Failed, Some(why));
    }

    fn end_run(&mut self, session: &Session, ending: Ending) -> Result<Session> {
        let mut events = vec![Event::RunEnded(RunEnded { ending })];
        let now = self.session(Some(&session.id.to_string()))?;
        let change = StatusChange { reason: ending.reason().map(|it| Note::cut(&it)), until: None };
        // Someone may have paused it, or called it done, meanwhile.
        if now.status == Status::Active {
            events.push(Event::of_status(ending.status(), change));
        }
        self.record(session.id, events)?;
        self.session(Some(&session.id.to_string()))
    }
}

/// Runs a command to its end. Whatever becomes of our own records, how it ended is answered.
pub fn run(order: &RunOrder, session: &Session, wishes: &Wishes) -> Result<RunReport> {
    let mut engine = Engine::prepare(wishes, Need::Write, Box::new(Silent))?;
    let home = engine.home.clone();
    let lock_path = home.run_lock(session.id);
    let Some(lock) = Lock::attempt(&lock_path, Hold::Alone)? else {
        let owner = owner(&lock_path).unwrap_or_default();
        return Err(Error::AlreadySupervised { handle: session.handle.clone(), owner });
    };
    let interval = order.saves.interval(engine.config.autosave.interval);
    let grace = engine.config.grace;
    let environment = environment(&home, session, order, wishes);
    let set = |environment: Vec<_>| Stage::set(order, &environment, &home.workspace);
    let mut stage = match environment.and_then(set) {
        Ok(stage) => stage,
        Err(error) => {
            engine.give_up(session, &error);
            return Err(error);
        }
    };
    let mut saver = Saver::new(&home, Some(session.id), interval);
    // From here on the command runs, and nothing of ours may keep it from running.
    let begun = begin(engine, session, order, stage.process());
    let deadline = order.timeout.and_then(|it| Instant::now().checked_add(it));
    let onlookers = order.tmux.as_ref().map(|name| Onlookers::new(name));
    let mut watching = Watching { lock: &lock, grace, deadline, onlookers };
    let ending = watching.until_the_end(&mut stage, &mut saver, order.timeout.unwrap_or_default());
    saver.save_last(ending.trigger(), ending.reason().as_deref(), &mut stage.leave());
    let recorded = begun.and_then(|()| {
        let mut engine = Engine::open(&saver.wishes(), Need::Record, Box::new(Silent))?;
        let session = engine.end_run(session, ending)?;
        let last = engine.last_checkpoint(&session)?.map(|kept| kept.taken.checkpoint);
        Ok((session, last))
    });
    let (n_failures, last_failure) = (saver.n_failures, saver.last_failure.clone());
    let (session, last, unrecorded) = match recorded {
        Ok((session, last)) => (session, last, None),
        Err(error) => (session.clone(), None, Some(error)),
    };
    Ok(RunReport { session, ending, last, n_failures, last_failure, unrecorded })
}

/// Puts on record that a command runs.
fn begin(
    mut engine: Engine,
    session: &Session,
    order: &RunOrder,
    child: Option<bivouac_core::agent::ProcessId>,
) -> Result<()> {
    let supervisor = running::identify(std::process::id());
    let unknown = || bivouac_core::agent::ProcessId {
        pid: std::process::id(),
        started: 0,
        boot: String::new(),
    };
    let started = RunStarted {
        command: order.command.clone(),
        supervisor: supervisor.unwrap_or_else(unknown),
        child,
        machine: running::machine(),
        timeout_seconds: order.timeout.map(|it| it.as_secs()),
        tmux: order.tmux.clone(),
        prompt: order.prompt.clone(),
    };
    engine.record(session.id, vec![Event::RunStarted(Box::new(started))])?;
    Ok(())
}

/// What the command finds around it, besides what we found.
fn environment(
    home: &Home,
    session: &Session,
    order: &RunOrder,
    wishes: &Wishes,
) -> Result<Vec<(OsString, OsString)>> {
    let around = order.around.as_deref().map(apart::take_environment).transpose()?;
    let mut pairs = around.unwrap_or_default();
    pairs.push(("BIV_SESSION".into(), session.id.to_string().into()));
    if wishes.store.is_some() {
        pairs.push(("BIV_STORE".into(), home.store.clone().into()));
    }
    let saves = match order.saves {
        Saves::AsSet => Vec::new(),
        Saves::Every(interval) => saver::overrides(Some(interval)),
        Saves::Never => saver::overrides(None),
    };
    pairs.extend(saves.into_iter().map(|(name, value)| (name.into(), value.into())));
    Ok(pairs)
}

/// Is there such a program?
fn check_program(program: &str) -> Result<()> {
    if find_program(program).is_some() {
        return Ok(());
    }
    let program = program.to_owned();
    match Path::new(&program).metadata() {
        Ok(it) if program.contains('/') && it.is_dir() => {
            Err(Error::NotAProgram { program, what: "a folder" })
        }
        Ok(_) if program.contains('/') => {
            Err(Error::NotAProgram { program, what: "not executable" })
        }
        _ => Err(Error::NoProgram { program }),
    }
}

/// The agent a program is, else the program.
fn agent_type(program: &str) -> String {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let known = AgentKind::ALL.into_iter().find(|kind| agents::of(*kind).program() == name);
    known.map_or(name, |kind| kind.to_string())
}
