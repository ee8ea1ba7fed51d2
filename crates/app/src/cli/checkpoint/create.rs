//! `biv checkpoint create` and `save`

use std::path::PathBuf;

use bivouac_core::autosave::is_automatic;
use bivouac_core::checkpoint::{State, Trigger};
use bivouac_core::id::SessionId;
use bivouac_core::session::Session;
use bivouac_core::text::{Name, Note, count};
use bivouac_engine::Engine;
use bivouac_engine::export::{Document, ExportRequest};
use bivouac_engine::save::{SaveReport, SaveRequest, Saved};
use owo_colors::OwoColorize;

use crate::cli::progress::say_summary;
use crate::cli::status::{excluded_line, note_ignored};
use crate::cli::{Error, complete};
use crate::contract;
use crate::report::{self, Exit};
use crate::ui::{Ui, looks};

/// Save a checkpoint of this workspace
///
/// Goes into the session named, else the one active here, else a new one.
#[derive(Debug, clap::Args)]
pub struct CreateArgs {
    /// The session it belongs to: its id, handle, name or `latest`
    #[arg(add = complete::sessions())]
    session: Option<String>,
    /// Why this moment is worth keeping
    #[arg(short, long, value_name = "TEXT")]
    message: Option<Note>,
    /// A name to find it by, used once in a session
    #[arg(long)]
    name: Option<Name>,
    /// JSON to keep with it, or `@FILE`
    #[arg(long, value_name = "JSON|@FILE")]
    state: Option<String>,
    /// What caused it; an automatic one is skipped when nothing changed
    #[arg(long, default_value = "manual")]
    trigger: Trigger,
}

/// Save a checkpoint under a label
///
/// Where Claude Code has worked on this project, its memory is brought up to date as well: a file for this
/// moment, and the Working State in MEMORY.md.
#[derive(Debug, clap::Args)]
pub struct SaveArgs {
    /// A name to find it by, used once in a session; made of what is being worked on if left out
    label: Option<Name>,
    /// Why this moment is worth keeping
    #[arg(short, long, value_name = "TEXT")]
    message: Option<Note>,
    /// The session it belongs to
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
}

impl SaveArgs {
    pub fn of(session: SessionId, label: Option<Name>) -> Self {
        Self { label, message: None, session: Some(session.to_string()) }
    }
}

impl CreateArgs {
    pub fn trigger(&self) -> Trigger {
        self.trigger
    }
}

pub fn run(args: &CreateArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let state = args.state.as_deref().map(read_state).transpose()?;
    let request = SaveRequest {
        name: args.name.clone(),
        message: args.message.clone(),
        state,
        ..SaveRequest::new(args.trigger)
    };
    save(args.session.as_deref(), request, engine, ui)
}

pub fn run_save(args: &SaveArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session_for_work(args.session.as_deref())?;
    let label = engine.label(&session, args.label.as_ref().map(Name::as_str))?;
    let request = SaveRequest {
        name: Some(label.clone()),
        message: args.message.clone(),
        ..SaveRequest::new(Trigger::Manual)
    };
    save(Some(&session.id.to_string()), request, engine, ui)?;
    ui.say(format_args!("Label: {label}"))?;
    if engine.has_memory() {
        remember(&session, &label, engine, ui)?;
    }
    ui.say(format_args!("To resume later: `biv resume {}`", session.handle))?;
    Ok(Exit::Done)
}

/// The checkpoint is saved, whatever becomes of this.
fn remember(session: &Session, label: &Name, engine: &Engine, ui: &mut Ui) -> Result<(), Error> {
    let request =
        ExportRequest { label: Some(label.as_str().to_owned()), ..ExportRequest::default() };
    for (kind, what) in [(Document::CheckpointMd, "File"), (Document::Memory, "Working state")] {
        match engine.export(session, kind, &request) {
            Ok(exported) => ui.say(format_args!("{what}: {}", exported.path.display()))?,
            Err(error) => ui.note(format_args!("{} was not written: {error}", kind.as_str())),
        }
    }
    Ok(())
}

fn save(
    session: Option<&str>,
    request: SaveRequest,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    let is_automatic = is_automatic(request.trigger);
    let saved = engine.save(session, request)?;
    tell(&saved, engine, ui)?;
    // Nobody reads what an automatic save says.
    if !is_automatic {
        note_ignored(&engine.config, ui);
    }
    // What a person wants to find again is worth remembering beyond this store.
    if let Saved::Taken(report) = &saved
        && report.checkpoint.trigger == Trigger::Manual
        && let Err(error) = engine.tell_memory(report)
    {
        report::note("the memory server was not told", &error, ui);
    }
    Ok(if matches!(saved, Saved::Refused { .. }) { Exit::DoneInPart } else { Exit::Done })
}

fn read_state(text: &str) -> Result<State, Error> {
    let text = match text.strip_prefix('@') {
        Some(file) => {
            let path = PathBuf::from(file);
            std::fs::read_to_string(&path).map_err(|source| Error::BadFile { path, source })?
        }
        None => text.to_owned(),
    };
    Ok(text.parse::<State>().map_err(bivouac_engine::Error::from)?)
}

fn tell(saved: &Saved, engine: &Engine, ui: &mut Ui) -> Result<(), Error> {
    match saved {
        Saved::Taken(report) => {
            tell_taken(report, ui)?;
            let work = engine.work(&report.session)?;
            if !work.is_empty() {
                say_summary(&report.session, &work, ui)?;
            }
            ui.data(&contract::Saved {
                checkpoint: contract::Checkpoint::new(&report.checkpoint, false),
                session: contract::Session::from(&report.session),
                changed: report.n_changed,
                stored_bytes: report.stored_bytes,
                excluded_by: report.excluded_by.clone(),
            })?;
        }
        Saved::Skipped { session, why } | Saved::Refused { session, why } => {
            match saved {
                Saved::Refused { .. } => ui.note(format_args!("no checkpoint taken: {why}")),
                _ => ui.say(format_args!("No checkpoint taken: {why}"))?,
            }
            ui.data(&contract::NotSaved {
                skipped: true,
                reason: why.clone(),
                session: contract::Session::from(&**session),
            })?;
        }
    }
    Ok(())
}

fn tell_taken(report: &SaveReport, ui: &mut Ui) -> Result<(), Error> {
    let checkpoint = &report.checkpoint;
    let changed = match report.n_changed {
        Some(0) => ", nothing changed".to_owned(),
        Some(n_changed) => format!(", {n_changed} changed"),
        None => String::new(),
    };
    ui.say(format_args!(
        "Saved checkpoint {} of {}: {}{changed}",
        checkpoint.handle.style(looks::handle()),
        report.session.handle,
        count(checkpoint.coverage.n_files, "file")
    ))?;
    if let Some(excluded) = excluded_line(&checkpoint.coverage, &report.excluded_by) {
        ui.note(format_args!("left out: {excluded}"));
    }
    let surprising: Vec<String> = checkpoint
        .coverage
        .gaps
        .iter()
        .filter(|(gap, _)| gap.is_surprising())
        .map(|(gap, count)| format!("{count} {gap}"))
        .collect();
    if !surprising.is_empty() {
        let handle = &checkpoint.handle;
        ui.note(format_args!(
            "not covered: {}; `biv checkpoint show {handle} --coverage` lists them",
            surprising.join(", ")
        ));
    }
    Ok(())
}
