//! `biv export handoff`, `session-checkpoint`, `memory` and `checkpoint-md`

use std::path::{Path, PathBuf};

use bivouac_engine::Engine;
use bivouac_engine::export::{Document, ExportRequest};
use serde_json::json;

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub struct DocumentArgs {
    /// The session; the one at hand if left out
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
    /// Write it here instead; `-` is stdout
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// What to call this moment; made of what is being worked on if left out
    #[arg(long)]
    label: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct SessionCheckpointArgs {
    #[command(flatten)]
    document: DocumentArgs,
    /// Even if somebody changed it since; what they wrote is kept beside it
    #[arg(long)]
    force: bool,
    /// Put the file away instead: the feature is complete
    #[arg(long, conflicts_with_all = ["file", "force", "label"])]
    archive: bool,
}

pub fn run(
    args: &DocumentArgs,
    kind: Document,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    write(args, kind, &ExportRequest::default(), engine, ui)
}

pub fn run_session_checkpoint(
    args: &SessionCheckpointArgs,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    if args.archive {
        return archive(&args.document, engine, ui);
    }
    let request = ExportRequest { force: args.force, ..ExportRequest::default() };
    write(&args.document, Document::SessionCheckpoint, &request, engine, ui)
}

fn write(
    args: &DocumentArgs,
    kind: Document,
    request: &ExportRequest,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    if args.file.as_deref() == Some(Path::new("-")) {
        let text = engine.document(&session, kind, args.label.as_deref())?;
        ui.data(&json!({ "text": text }))?;
        ui.say(text.trim_end())?;
        return Ok(Exit::Done);
    }
    let request =
        ExportRequest { label: args.label.clone(), file: args.file.clone(), ..request.clone() };
    let exported = engine.export(&session, kind, &request)?;
    let path = exported.path.display();
    if let Some(kept) = &exported.kept {
        ui.note(format_args!("what somebody else wrote there is in {}", kept.display()));
    }
    match exported.is_changed {
        true => ui.say(format_args!("Wrote {path}"))?,
        false => ui.say(format_args!("Nothing changed in {path}"))?,
    }
    ui.data(
        &json!({ "path": contract::path(&exported.path), "changed": exported.is_changed, "kept": exported.kept.as_ref().map(contract::path) }),
    )?;
    Ok(Exit::Done)
}

fn archive(args: &DocumentArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let archived = engine.archive_session_checkpoint(&session)?;
    match &archived {
        Some(path) => ui.say(format_args!("Archived as {}", path.display()))?,
        None => ui.say("There is nothing to archive.")?,
    }
    ui.data(&json!({ "path": archived.as_ref().map(contract::path) }))?;
    Ok(Exit::Done)
}
