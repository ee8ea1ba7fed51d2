//! `biv session recover`: what can be done about a session that stopped.

use bivouac_core::agent::AgentKind;
use bivouac_core::recovery::Action;
use bivouac_core::session::Status;
use bivouac_core::text::Note;
use bivouac_engine::Engine;
use bivouac_engine::recover::Recovery;
use bivouac_engine::supervise::RunOrder;
use bivouac_journal::runs::KnownRun;
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::cli::checkpoint::show;
use crate::cli::resume::{ResumeArgs, become_agent, drift_lines, run_as};
use crate::cli::run::carry_out;
use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Choose what to do about a session that failed or was interrupted
///
/// Shows why it stopped and what is kept of it, and asks. Keys: a number or a first letter chooses, arrows
/// move, Enter takes the number in brackets, Escape cancels.
#[derive(Debug, clap::Args)]
pub struct RecoverArgs {
    /// Its id, handle, name or `latest`; the one at hand if left out
    #[arg(add = complete::sessions())]
    session: Option<String>,
    /// Do this without asking: resume, fresh, view or cancel
    #[arg(long)]
    action: Option<Action>,
    /// Do what is recommended, without asking
    #[arg(long, short, conflicts_with = "action")]
    yes: bool,
}

const LETTERS: [char; 4] = ['r', 's', 'v', 'c'];

pub fn run(args: &RecoverArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let given = args.action.or(args.yes.then_some(Action::Resume));
    if given.is_none() && !ui.can_ask() && !ui.is_json() {
        return Err(Error::NeedsAction { handle: session.handle.to_string() });
    }
    engine.check_stopped(&session)?;
    let recovery = engine.plan_recovery(&session)?;
    let is_stopped = matches!(session.status, Status::Failed | Status::Interrupted);
    if !is_stopped {
        let (handle, status) = (&session.handle, session.status);
        ui.note(format_args!("session {handle} is {status}, neither failed nor interrupted"));
    }
    say_screen(&recovery, ui)?;
    match given {
        Some(action) => act(action, &recovery, engine, ui),
        // Programs may ask what there is to choose from.
        None if ui.is_json() => {
            ui.data(&document(&recovery, None))?;
            Ok(Exit::Done)
        }
        None => loop {
            say_actions(ui)?;
            let chosen = ui.choose("Select action", &LETTERS)?;
            let action = chosen.map_or(Action::Cancel, |number| Action::ALL[number]);
            if action != Action::View {
                return act(action, &recovery, engine, ui);
            }
            act(action, &recovery, engine, ui)?;
            ui.say("")?;
        },
    }
}

fn say_screen(recovery: &Recovery, ui: &mut Ui) -> Result<(), Error> {
    let session = &recovery.session;
    ui.say(format_args!("Session Recovery: {}", session.handle.style(looks::handle())))?;
    ui.say("==============================\n")?;
    ui.say(format_args!("Status: {}", session.status.as_str().to_uppercase()))?;
    if let Some(reason) = &session.reason {
        ui.say(format_args!("  Reason: {}", reason.headline()))?;
    }
    let distance = recovery.distance.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    let last = recovery.checkpoint.as_ref().map(|kept| kept.taken.checkpoint.handle.to_string());
    let last = last.unwrap_or_else(|| "none".to_owned());
    ui.say(format_args!("  Last checkpoint: {}{distance}", last.style(looks::handle())))?;
    if let Some(line) = recovery.fallback() {
        ui.say(format_args!("  {line}"))?;
    }
    Ok(ui.say("")?)
}

fn say_actions(ui: &mut Ui) -> Result<(), Error> {
    ui.say("Available Actions:")?;
    for (place, action) in Action::ALL.iter().enumerate() {
        ui.say(format_args!("  [{}] {}", place + 1, action.title()))?;
    }
    Ok(ui.say("")?)
}

fn act(
    action: Action,
    recovery: &Recovery,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    match action {
        Action::Resume => resume(recovery, engine, ui),
        Action::Fresh => start_afresh(recovery, engine, ui),
        Action::View => view(recovery, engine, ui),
        Action::Cancel => {
            ui.say("Nothing was changed")?;
            ui.data(&document(recovery, Some(action)))?;
            Ok(Exit::Done)
        }
    }
}

/// A damaged checkpoint is passed over; else the newest is what `biv resume` takes by itself.
fn resume(recovery: &Recovery, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    engine.note_fallback(recovery)?;
    // What is no agent has no conversation to go on with: its command is run again, in the same session.
    if let (Some(run), Err(_)) = (&recovery.run, recovery.session.agent_type.parse::<AgentKind>()) {
        let order = RunOrder { command: run.started.command.clone(), ..RunOrder::default() };
        engine.reopen(&recovery.session)?;
        return carry_out(&order, &recovery.session, engine, ui);
    }
    let kept = recovery.checkpoint.as_ref().filter(|_| recovery.damaged.is_some());
    let args = ResumeArgs::of(&recovery.session, kept.map(|kept| &kept.taken.checkpoint));
    run_as(&args, engine, ui, |launch| {
        let mut document = document(recovery, Some(Action::Resume));
        document["launch"] = launch;
        document
    })
}

fn start_afresh(recovery: &Recovery, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    if let Some(run) = &recovery.run {
        return run_again(recovery, run, engine, ui);
    }
    let (session, launch) = engine.start_afresh(&recovery.session)?;
    ui.note(format_args!("starting afresh as {}", session.handle.style(looks::handle())));
    let mut document = document(recovery, Some(Action::Fresh));
    document["fresh"] = json!({
        "session": contract::Session::from(&session),
        "command": launch.command,
    });
    ui.data(&document)?;
    Err(become_agent(&launch, &engine.home.workspace, session.id, ui))
}

/// Starts what was supervised once more, under supervision.
fn run_again(
    recovery: &Recovery,
    run: &KnownRun,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    let (session, order) = engine.run_afresh(&recovery.session, run)?;
    ui.note(format_args!("starting afresh as {}", session.handle.style(looks::handle())));
    carry_out(&order, &session, engine, ui)
}

/// What the checkpoint holds and does not hold, and what is no longer as it was then.
fn view(recovery: &Recovery, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = &recovery.session;
    let no_checkpoint = || bivouac_engine::Error::NoCheckpoint { handle: session.handle.clone() };
    let kept = recovery.checkpoint.as_ref().ok_or_else(no_checkpoint)?;
    let details = show::say(kept, &show::Parts { files: true, coverage: true }, engine, ui)?;
    let is_here = session.workspace == engine.home.workspace_path();
    let drift = is_here.then(|| engine.drift(kept)).transpose()?;
    let lines = drift.as_ref().map(drift_lines).unwrap_or_default();
    ui.say("\nSince then:".style(looks::heading()))?;
    let nothing = if is_here { "nothing changed" } else { "its workspace is elsewhere" };
    for line in lines.iter().map(String::as_str).chain(lines.is_empty().then_some(nothing)) {
        ui.say(format_args!("  {line}"))?;
    }
    let mut document = document(recovery, Some(Action::View));
    document["contents"] = serde_json::to_value(&details).unwrap_or_default();
    document["drift"] = json!(lines);
    ui.data(&document)?;
    Ok(Exit::Done)
}

fn document(recovery: &Recovery, chosen: Option<Action>) -> Value {
    let session = &recovery.session;
    json!({
        "session": contract::Session::from(session),
        "status": session.status,
        "reason": session.reason.as_ref().map(Note::as_str),
        "last_checkpoint": recovery.checkpoint.as_ref().map(contract::Checkpoint::from),
        "distance": recovery.distance,
        "fallback": recovery.fallback(),
        "actions": Action::ALL.map(Action::as_str),
        "chosen": chosen.map(Action::as_str),
    })
}
