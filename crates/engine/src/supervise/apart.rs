//! A run that goes on by itself: in tmux, where people can look at it, or out of sight.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bivouac_capture::agents::restore::Launch;
use bivouac_capture::supervised::look_at;
use bivouac_capture::tmux::Tmux;
use bivouac_core::checkpoint::Checkpoint;
use bivouac_core::run::Ending;
use bivouac_core::session::Session;
use bivouac_snapshot::private;

use super::{RunOrder, Saves};
use crate::home::Home;
use crate::terminal::InTmux;
use crate::{Engine, Error, Result};

/// What belongs to the terminal a program runs in, wherever it was started from.
const OF_THE_TERMINAL: [&str; 10] = [
    "BIV_SESSION",
    "BIV_WITHIN",
    "COLUMNS",
    "LINES",
    "PWD",
    "SHLVL",
    "TERM",
    "TMUX",
    "TMUX_PANE",
    "_",
];

/// Where a run goes on.
#[derive(Debug)]
pub enum Apart {
    Tmux(InTmux),
    /// Out of sight; what it says is written to a file.
    Logged(PathBuf),
}

impl Engine {
    /// Starts a run in tmux where there is one, else out of sight.
    pub fn start_apart(
        &self,
        order: &RunOrder,
        session: &Session,
        from: Option<&Checkpoint>,
    ) -> Result<Apart> {
        if Tmux::is_installed() {
            return self.start_run_in_tmux(order, session, from).map(Apart::Tmux);
        }
        let log = self.home.run_log(session.id);
        let order = RunOrder { log: Some(log.clone()), ..order.clone() };
        let program = self.home_of(session).own_command(run_words(&order, session))?;
        program.start_detached_in(&self.folder_of(&order))?;
        Ok(Apart::Logged(log))
    }

    /// Starts a run in a tmux session of its own, laid out as at a checkpoint if there is one.
    pub fn start_run_in_tmux(
        &self,
        order: &RunOrder,
        session: &Session,
        from: Option<&Checkpoint>,
    ) -> Result<InTmux> {
        self.check_free_in_tmux(session)?;
        let around = self.leave_environment(session)?;
        let order = RunOrder {
            tmux: Some(session.handle.to_string()),
            around: Some(around.clone()),
            ..order.clone()
        };
        let own = std::env::current_exe().map_err(Error::io("biv"))?;
        let home = self.home_of(session);
        let words = home.own_words(run_words(&order, session));
        let words = [own.into_os_string()].into_iter().chain(words);
        let text = |word: OsString| {
            word.into_string().map_err(|_| Error::from(bivouac_capture::Error::NotText))
        };
        let command = words.map(text).collect::<Result<_>>()?;
        let launch = Launch { before: Vec::new(), command };
        let started = self.start_in_tmux(session, from, &launch, &self.folder_of(&order));
        if started.is_err() {
            let _nobody_will_take_it = private::remove_file(&around);
        }
        started
    }

    /// tmux gives its own environment to what it starts, not ours; so ours is left where only we look.
    fn leave_environment(&self, session: &Session) -> Result<PathBuf> {
        let path = self.home.runs().join(format!("{}.env", session.id));
        let is_ours = |(name, _): &(OsString, OsString)| {
            OF_THE_TERMINAL.iter().all(|not_ours| name != not_ours)
        };
        let mut bytes = Vec::new();
        for (name, value) in std::env::vars_os().filter(is_ours) {
            bytes.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
        }
        private::write_disposable(&path, &bytes).map_err(Error::io(&path))?;
        Ok(path)
    }

    fn folder_of(&self, order: &RunOrder) -> PathBuf {
        let here = || std::env::current_dir().unwrap_or_else(|_| self.home.workspace.clone());
        order.folder.clone().unwrap_or_else(here)
    }

    /// A fork works in a workspace of its own.
    pub(crate) fn home_of(&self, session: &Session) -> Home {
        let workspace = PathBuf::from(OsStr::from_bytes(session.workspace.as_bytes()));
        Home { workspace, ..self.home.clone() }
    }

    /// How the last run of a session ended, if it has.
    pub fn run_ending(&self, session: &Session) -> Result<Option<Ending>> {
        Ok(self.journal.run(session.id)?.and_then(|run| run.ending))
    }
}

/// Takes the environment that was left for a run. It is there for one alone.
pub(super) fn take_environment(path: &Path) -> Result<Vec<(OsString, OsString)>> {
    let bytes = private::read(path).map_err(Error::io(path))?;
    private::remove_file(path).map_err(Error::io(path))?;
    let pair = |pair: &[u8]| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let word = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        Some((word(&pair[..equals]), word(&pair[equals + 1..])))
    };
    Ok(bytes.split(|byte| *byte == 0).filter_map(pair).collect())
}

/// Looks at a tmux session from this terminal, until it ends or someone leaves it.
pub fn look(attach: &Launch) -> Result<()> {
    Ok(look_at(&attach.command, Path::new("."))?)
}

fn run_words(order: &RunOrder, session: &Session) -> Vec<OsString> {
    let seconds = |span: Duration| format!("{}s", span.as_secs());
    let mut words: Vec<OsString> =
        vec!["run".into(), "--session".into(), session.id.to_string().into()];
    let mut option = |name: &str, value: Option<OsString>| {
        words.extend(value.into_iter().flat_map(|value| [name.into(), value]));
    };
    option("--timeout", order.timeout.map(|it| seconds(it).into()));
    option("--in-tmux", order.tmux.clone().map(Into::into));
    option("--around", order.around.clone().map(Into::into));
    option("--log", order.log.clone().map(Into::into));
    option("--prompt", order.prompt.as_ref().map(|it| it.as_str().into()));
    match order.saves {
        Saves::AsSet => {}
        Saves::Every(interval) => option("--interval", Some(seconds(interval).into())),
        Saves::Never => words.push("--no-checkpoint".into()),
    }
    words.push("--".into());
    words.extend(order.command.iter().map(OsString::from));
    words
}
