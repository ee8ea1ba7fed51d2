//! The tmux session an agent works in: looked at, left, and made again.

use std::ffi::OsString;
use std::path::Path;

use bivouac_capture::agents::restore::Launch;
use bivouac_capture::process::{self, Says};
use bivouac_capture::tmux::{Start, Tmux};
use bivouac_core::checkpoint::Checkpoint;
use bivouac_core::session::Session;
use bivouac_core::terminal::Terminal;
use bivouac_journal::query::CheckpointFilter;
use bivouac_snapshot::private;

use crate::{Engine, Error, Result};

/// An agent that was started in tmux.
#[derive(Debug)]
pub struct InTmux {
    /// The tmux session.
    pub name: String,
    /// What is not as it was.
    pub notes: Vec<String>,
    /// How to look at it.
    pub attach: Launch,
}

impl Engine {
    /// What the terminal looked like at a checkpoint.
    pub fn terminal_of(&self, checkpoint: &Checkpoint) -> Result<Option<Terminal>> {
        let _store_lock = self.use_store()?;
        checkpoint.terminal.map(|id| self.stored_facts(id, "terminal")).transpose()
    }

    /// How to look at the tmux session a session runs in.
    pub fn plan_attach(&self, session: &Session) -> Result<Launch> {
        let (tmux, name) = self.tmux_of(session)?;
        Ok(tmux.attach(&name))
    }

    /// Sends everyone away who looks at a session. Answers the tmux session, and how many they were.
    pub fn detach(&self, session: &Session) -> Result<(String, usize)> {
        let (tmux, name) = self.tmux_of(session)?;
        let n_clients = tmux.n_clients(&name)?;
        if n_clients > 0 {
            tmux.detach(&name)?;
        }
        Ok((name, n_clients))
    }

    fn tmux_of(&self, session: &Session) -> Result<(Tmux, String)> {
        check_tmux()?;
        let tmux = Tmux::standard();
        let run = self.journal.run(session.id)?.and_then(|run| run.started.tmux);
        let mut names = [Some(session.handle.to_string()), run].into_iter().flatten();
        if let Some(name) = names.find(|name| tmux.has(name)) {
            return Ok((tmux, name));
        }
        let handle = session.handle.clone();
        let log = self.home.run_log(session.id);
        Err(match session.status.is_ended() {
            true => Error::Ended { handle, status: session.status },
            false if private::facts(&log).is_ok() => Error::OutOfSight { handle, log },
            false => Error::NotInTmux { handle },
        })
    }

    /// Is there a tmux, and is the session's name in it free?
    pub fn check_free_in_tmux(&self, session: &Session) -> Result<()> {
        check_tmux()?;
        match Tmux::standard().has(session.handle.as_str()) {
            true => Err(Error::InTmux { handle: session.handle.clone() }),
            false => Ok(()),
        }
    }

    /// Starts an agent in a tmux session with the name of its session, laid out as it was at a checkpoint.
    pub fn start_in_tmux(
        &self,
        session: &Session,
        from: Option<&Checkpoint>,
        launch: &Launch,
        folder: &Path,
    ) -> Result<InTmux> {
        self.check_free_in_tmux(session)?;
        process::run_before(launch, folder)?;
        let tmux = Tmux::standard();
        let name = session.handle.to_string();
        // tmux is given text. A store under another name would be another store.
        let store = self.home.store.to_str().ok_or(bivouac_capture::Error::NotText)?;
        let environment =
            [("BIV_SESSION", session.id.to_string()), ("BIV_STORE", store.to_owned())];
        let command = launch.command.as_slice();
        let start = Start { name: &name, folder, command, environment: &environment };
        let terminal = from.map(|it| self.last_terminal(it)).transpose()?.flatten();
        let notes = match terminal {
            Some(terminal) => tmux.rebuild(&terminal, &start)?,
            None => {
                tmux.new_session(&name, folder, command, &environment)?;
                Vec::new()
            }
        };
        tmux.at_detach(&name, &self.save_at_detach(session)?)?;
        let attach = tmux.attach(&name);
        Ok(InTmux { name, notes, attach })
    }

    /// The command that saves a session when someone detaches from its terminal.
    fn save_at_detach(&self, session: &Session) -> Result<Vec<OsString>> {
        let own = std::env::current_exe().map_err(Error::io("biv"))?;
        let save = ["checkpoint", "create", &session.id.to_string(), "--trigger", "detach"];
        let place = self.home_of(session);
        let words = place.own_words(save.map(OsString::from));
        Ok([own.into()].into_iter().chain(words).collect())
    }

    /// The terminal of a checkpoint, or of the last one before it that has any.
    fn last_terminal(&self, checkpoint: &Checkpoint) -> Result<Option<Terminal>> {
        if checkpoint.terminal.is_some() {
            return self.terminal_of(checkpoint);
        }
        let filter = CheckpointFilter {
            session: Some(checkpoint.session_id),
            ..CheckpointFilter::default()
        };
        let before = self.journal.checkpoints(&filter)?.into_iter().map(|it| it.taken.checkpoint);
        let before =
            before.filter(|it| it.terminal.is_some() && it.taken_at <= checkpoint.taken_at);
        match before.max_by_key(|it| it.taken_at) {
            Some(it) => self.terminal_of(&it),
            None => Ok(None),
        }
    }
}

/// Becomes tmux, in this terminal. Comes back only if that fails.
pub fn become_tmux(attach: &Launch) -> Error {
    match process::become_program(attach, Path::new("."), &[], Says::Out) {
        Err(error) => error.into(),
        Ok(never) => match never {},
    }
}

/// Is there a tmux that can do all this?
pub fn check_tmux() -> Result<()> {
    if Tmux::is_installed() { Ok(()) } else { Err(Error::NoTmux) }
}
