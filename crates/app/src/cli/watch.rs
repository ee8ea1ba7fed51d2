//! `biv watch`: saving beside an agent that was started by hand.

use bivouac_core::text::count;
use bivouac_core::time::{Age, exactly_in_words};
use bivouac_engine::home::{Home, Wishes};
use bivouac_engine::open::Need;
use bivouac_engine::supervise::{VigilEnd, keep_vigil};
use bivouac_engine::watch::{WatchStatus, ask_status, ask_to_stop};
use owo_colors::OwoColorize;
use serde_json::json;

use crate::cli::run::span;
use crate::cli::status::note_ignored;
use crate::cli::{Error, complete, open};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Save this workspace once in a while, beside an agent that was started by hand
///
/// Saves when something changed, until the session ends, or someone stops it. As long as it runs, periodic and
/// turn checkpoints cost what changed, not what is there; all others look at every file. There is one for each
/// workspace.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// The session to save; the one worked on if left out
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
    /// Save this often, such as `30s`, instead of as the settings say
    #[arg(long, value_name = "TIME", value_parser = span)]
    interval: Option<Age>,
    /// Say how the watcher of this workspace is doing
    #[arg(long, conflicts_with_all = ["stop", "interval", "session"])]
    status: bool,
    /// Stop the watcher of this workspace
    #[arg(long, conflicts_with_all = ["interval", "session"])]
    stop: bool,
}

pub fn run(args: &WatchArgs, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    let home = Home::find(wishes)?;
    if args.status {
        return say_status(&home, ui);
    }
    if args.stop {
        return stop(&home, ui);
    }
    home.check_workspace()?;
    if let Some(status) = ask_status(&home) {
        let owner = format!("process {}", status.process);
        return Err(bivouac_engine::Error::AlreadyWatched { owner }.into());
    }
    let engine = open(wishes, Need::Write, ui)?;
    let session = args.session.as_deref().map(|word| engine.session(Some(word))).transpose()?;
    let every = args.interval.map_or(engine.config.autosave.interval, Age::duration);
    note_ignored(&engine.config, ui);
    drop(engine);
    ui.note(format_args!(
        "watching {}; saved every {} when something changed",
        home.workspace.display(),
        exactly_in_words(every)
    ));
    let place = Wishes {
        folder: None,
        workspace: Some(home.workspace.clone()),
        store: Some(home.store.clone()),
    };
    let interval = args.interval.map(Age::duration);
    let end =
        keep_vigil(session.map(|it| it.id), interval, &place, &mut |news: &str| ui.note(news))?;
    let why = match &end {
        VigilEnd::Stopped => "stopped".to_owned(),
        VigilEnd::WorkEnded(session) => {
            format!("session {} is {}", session.handle.style(looks::handle()), session.status)
        }
        VigilEnd::WorkspaceGone => "the workspace is gone".to_owned(),
    };
    ui.note(format_args!("{why}; no longer watching"));
    ui.data(&json!({ "workspace": contract::path(&home.workspace), "end": why }))?;
    Ok(if matches!(end, VigilEnd::WorkspaceGone) { Exit::Failed } else { Exit::Done })
}

fn say_status(home: &Home, ui: &mut Ui) -> Result<Exit, Error> {
    let status = ask_status(home);
    match &status {
        None => ui.say("Nobody watches this workspace; `biv watch` does, and so does `biv run`")?,
        Some(status) => say_about(status, home, ui)?,
    }
    ui.data(&json!({ "workspace": contract::path(&home.workspace), "watcher": status }))?;
    Ok(Exit::Done)
}

fn say_about(status: &WatchStatus, home: &Home, ui: &mut Ui) -> Result<(), Error> {
    let folders = count(status.n_folders as u64, "folder");
    ui.say(format_args!("Watching   {folders}, by process {}", status.process))?;
    let place = Wishes { store: Some(home.store.clone()), ..Wishes::default() };
    let session = match &status.session {
        Some(id) => open(&place, Need::Read, ui)?.session(Some(id))?.handle.to_string(),
        None => "none yet".to_owned(),
    };
    ui.say(format_args!("Session    {}", session.style(looks::handle())))?;
    let seconds = std::time::Duration::from_secs(status.interval_seconds);
    let saves = count(status.n_saves, "time");
    ui.say(format_args!(
        "Saving     every {}; saved or found nothing new {saves}",
        exactly_in_words(seconds)
    ))?;
    match &status.trouble {
        Some(trouble) => ui.say(format_args!(
            "Trouble    {trouble}; so everything is looked at, and more rarely"
        ))?,
        None => say_rescan(status, ui)?,
    }
    if let (1.., Some(why)) = (status.n_failures, &status.last_failure) {
        ui.say(format_args!("Failed     {} in a row: {why}", count(status.n_failures, "save")))?;
    }
    Ok(())
}

/// What the watcher does not see, and how long that can stay unnoticed.
fn say_rescan(status: &WatchStatus, ui: &mut Ui) -> Result<(), Error> {
    let words = |seconds| exactly_in_words(std::time::Duration::from_secs(seconds));
    let last = status.last_rescan_seconds.map(|it| format!("; last {} ago", words(it)));
    ui.say(format_args!(
        "Rescan     every {} everything is looked at{}",
        words(status.rescan_seconds),
        last.unwrap_or_default()
    ))?;
    ui.say(
        "Blind to   writes through a hard link outside, a memory map, asynchronous I/O or a loop device; periodic and \
         turn checkpoints have them after the next rescan, all others at once",
    )?;
    Ok(())
}

fn stop(home: &Home, ui: &mut Ui) -> Result<Exit, Error> {
    let status = ask_status(home);
    match ask_to_stop(home) {
        None => return Err(Error::NoWatcher),
        Some(false) => {
            return Err(Error::MayNotStop { process: status.map_or(0, |it| it.process) });
        }
        Some(true) => ui.say("The watcher saves once more and stops")?,
    }
    ui.data(&json!({ "workspace": contract::path(&home.workspace), "stopped": status.map(|it| it.process) }))?;
    Ok(Exit::Done)
}
