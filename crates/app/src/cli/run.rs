//! `biv run`: a command under supervision, saved while it runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bivouac_core::session::Session;
use bivouac_core::text::{Note, count, printable};
use bivouac_core::time::{Age, exactly_in_words};
use bivouac_engine::Engine;
use bivouac_engine::home::Wishes;
use bivouac_engine::open::Need;
use bivouac_engine::supervise::{
    Apart, LEADER, RunOrder, RunReport, Saves, Says, lead, look, run as supervise,
};
use bivouac_engine::terminal::check_tmux;
use owo_colors::OwoColorize;
use serde_json::json;

use crate::cli::status::note_ignored;
use crate::cli::{Error, complete, open};
use crate::contract;
use crate::report::{self, Exit};
use crate::ui::{Ui, looks};

/// Run an agent, or any command, under supervision
///
/// It is saved every interval when something changed, when it is told to end, and when it ends, with the
/// reason. The exit code is the command's own; 124 after a timeout, 128 and the signal's number when one
/// ended it. With `--json`, what the command prints goes to stderr: stdout has the one document, at the end.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// What is to be done
    #[arg(long, value_name = "TEXT")]
    task: Option<Note>,
    /// Go on in this session instead of a new one
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    within: Within,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// How something is run.
#[derive(Debug, clap::Args)]
pub struct How {
    /// End it after so long, such as `24h`
    #[arg(long, value_name = "TIME", value_parser = span)]
    timeout: Option<Age>,
    /// Save this often, such as `30s`, instead of as the settings say
    #[arg(long, value_name = "TIME", value_parser = span)]
    interval: Option<Age>,
    /// Save nothing by itself
    #[arg(long, conflicts_with = "interval")]
    no_checkpoint: bool,
    /// Run it in tmux: `Ctrl+B D` leaves it running, and saves; `biv attach` comes back
    #[arg(long)]
    tmux: bool,
    /// Do not wait for it: it goes on in tmux, or where there is none, out of sight
    #[arg(long)]
    detach: bool,
}

/// What those who started us have to say.
#[derive(Debug, clap::Args)]
struct Within {
    /// Where to write what it says, when nobody is looking
    #[arg(long, value_name = "FILE", hide = true)]
    log: Option<PathBuf>,
    /// The tmux session we are in
    #[arg(long, value_name = "NAME", hide = true)]
    in_tmux: Option<String>,
    /// Where the environment was left that it was started in
    #[arg(long, value_name = "FILE", hide = true)]
    around: Option<PathBuf>,
    /// What the agent is told to do
    #[arg(long, value_name = "TEXT", hide = true)]
    prompt: Option<Note>,
}

impl How {
    /// Can it be run like that here?
    pub fn check(&self) -> Result<(), Error> {
        if self.tmux { Ok(check_tmux()?) } else { Ok(()) }
    }

    pub fn order(&self, command: Vec<String>) -> RunOrder {
        let saves = match (self.no_checkpoint, self.interval) {
            (true, _) => Saves::Never,
            (false, Some(interval)) => Saves::Every(interval.duration()),
            (false, None) => Saves::AsSet,
        };
        let timeout = self.timeout.map(Age::duration);
        RunOrder { command, timeout, saves, ..RunOrder::default() }
    }
}

/// A length of time that is one.
pub fn span(text: &str) -> Result<Age, String> {
    let age: Age = text.parse().map_err(|error: bivouac_core::time::BadAge| error.to_string())?;
    match age.duration().is_zero() {
        true => Err("it is at least `1s`".to_owned()),
        false => Ok(age),
    }
}

pub fn run(args: &RunArgs, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    let order = RunOrder {
        task: args.task.clone(),
        session: args.session.clone(),
        prompt: args.within.prompt.clone(),
        tmux: args.within.in_tmux.clone(),
        around: args.within.around.clone(),
        log: args.within.log.clone(),
        ..args.how.order(args.command.clone())
    };
    let mut engine = open(wishes, Need::Write, ui)?;
    args.how.check()?;
    let session = engine.session_for_run(&order)?;
    start(&order, &args.how, &session, &mut engine, ui)
}

/// Runs it here, or where it was asked for.
pub fn start(
    order: &RunOrder,
    how: &How,
    session: &Session,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    note_ignored(&engine.config, ui);
    match (how.detach, how.tmux) {
        (true, _) => detached(order, session, engine, ui),
        (false, true) => in_tmux(order, session, engine, ui),
        (false, false) => carry_out(order, session, engine, ui),
    }
}

fn detached(
    order: &RunOrder,
    session: &Session,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    let apart = engine.start_apart(order, session, None);
    let apart = apart.inspect_err(|error| engine.give_up(session, error))?;
    let log = tell_where(&apart, session, ui)?;
    ui.data(&json!({ "session": contract::Session::from(session), "log": log }))?;
    Ok(Exit::Done)
}

/// Says where something goes on by itself. Answers its log, if it has one.
pub fn tell_where(apart: &Apart, session: &Session, ui: &mut Ui) -> Result<Option<String>, Error> {
    let handle = session.handle.style(looks::handle());
    match apart {
        Apart::Tmux(started) => {
            started.notes.iter().for_each(|note| ui.note(printable(note)));
            ui.say(format_args!(
                "Session {handle} goes on in tmux; `biv attach {handle}` shows it"
            ))?;
            Ok(None)
        }
        Apart::Logged(log) => {
            let log = log.display();
            ui.say(format_args!(
                "Session {handle} goes on out of sight; what it says is in {log}"
            ))?;
            Ok(Some(log.to_string()))
        }
    }
}

/// Looks at it from a terminal, and answers as it ended, if it has.
fn in_tmux(
    order: &RunOrder,
    session: &Session,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    let started = engine.start_run_in_tmux(order, session, None);
    let started = started.inspect_err(|error| engine.give_up(session, error))?;
    if !ui.can_ask() {
        let handle = session.handle.style(looks::handle());
        ui.say(format_args!("Session {handle} goes on in tmux; `biv attach {handle}` shows it"))?;
        ui.data(&json!({ "session": contract::Session::from(session), "log": null }))?;
        return Ok(Exit::Done);
    }
    look(&started.attach)?;
    match engine.run_ending(session)? {
        Some(ending) => Ok(Exit::Code(ending.exit_code())),
        None => {
            ui.note(format_args!("it goes on; `biv attach {}` comes back to it", session.handle));
            Ok(Exit::Done)
        }
    }
}

/// Runs it here and now, and says what came of it.
pub fn carry_out(
    order: &RunOrder,
    session: &Session,
    engine: &Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    let how_often = order.saves.interval(engine.config.autosave.interval);
    let how_often = how_often.map_or("never saved by itself".to_owned(), |interval| {
        format!("saved every {} when something changed", exactly_in_words(interval))
    });
    ui.note(format_args!("session {}, {how_often}", session.handle.style(looks::handle())));
    let place = Wishes {
        folder: Some(engine.home.workspace.clone()),
        workspace: Some(engine.home.workspace.clone()),
        store: Some(engine.home.store.clone()),
    };
    let says = if ui.is_json() { Says::Aside } else { order.says };
    let report = supervise(&RunOrder { says, ..order.clone() }, session, &place)?;
    tell(&report, ui)?;
    Ok(Exit::Code(report.ending.exit_code()))
}

/// How it ended. On stderr, since stdout was the command's.
fn tell(report: &RunReport, ui: &mut Ui) -> Result<(), Error> {
    let handle = report.session.handle.style(looks::handle());
    let last = report
        .last
        .as_ref()
        .map(|last| format!("; last checkpoint {} ({})", last.handle, last.trigger));
    let reason = report.ending.reason().map(|reason| format!(": {reason}")).unwrap_or_default();
    let status = report.session.status;
    ui.note(format_args!("session {handle} is {status}{reason}{}", last.unwrap_or_default()));
    if let Some(error) = &report.unrecorded {
        report::note("how it ended could not be put on record", error, ui);
    }
    if let (1.., Some(why)) = (report.n_failures, &report.last_failure) {
        let n = count(report.n_failures, "save");
        ui.note(format_args!("the last {n} failed: {why}"));
    }
    if report.ending.reason().is_some() && report.last.is_some() {
        ui.note(format_args!("`biv session recover {}` brings it back", report.session.handle));
    }
    ui.data(&json!({
        "session": contract::Session::from(&report.session),
        "ending": report.ending,
        "exit_code": report.ending.exit_code(),
        "last_checkpoint": report.last.as_ref().map(|last| contract::Checkpoint::new(last, false)),
        "failed_saves": report.n_failures,
        "last_failure": report.last_failure,
    }))?;
    Ok(())
}

/// Leads the terminal of a supervised command, if that is what we were started for.
pub fn lead_terminal(words: &[OsString]) -> Option<Exit> {
    let word = words.get(1)?;
    let (terminal, rest) = words.get(2..)?.split_first()?;
    if word != LEADER || rest.first()? != "--" {
        return None;
    }
    let command: Vec<String> =
        rest[1..].iter().map(|word| word.to_string_lossy().into_owned()).collect();
    Some(match lead(Path::new(terminal), &command) {
        Ok(code) => Exit::Code(code),
        Err(error) => {
            let error = Error::Engine(error.into());
            report::error(&error, &mut Ui::new(crate::ui::Form::Text))
        }
    })
}
