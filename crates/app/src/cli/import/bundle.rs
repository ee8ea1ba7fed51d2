//! `biv import bundle`

use std::path::PathBuf;

use bivouac_core::text::{Name, count};
use bivouac_engine::Engine;
use bivouac_engine::bundle::Care;
use owo_colors::OwoColorize;
use serde_json::json;

use crate::cli::{Error, withheld};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Take in a bundle as a session of this workspace
///
/// All of it is checked first. Nothing in the workspace changes: its files come with a rollback or a
/// restore, its conversation with `biv resume`.
#[derive(Debug, clap::Args)]
pub struct BundleArgs {
    /// What `biv export bundle` wrote: a file or a directory
    path: PathBuf,
    /// What to call the session, instead of its own name
    #[arg(long)]
    name: Option<Name>,
}

pub fn run(args: &BundleArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let report = engine.import_bundle(&args.path, args.name.clone())?;
    let checkpoint = &report.checkpoint;
    let (session, handle) = (&report.session.handle, &checkpoint.handle);
    let talk = checkpoint.conversation.as_ref();
    let talk = talk.map(|it| format!(" and a conversation with {}", it.agent.title()));
    ui.say(format_args!(
        "Imported {} as {} of session {}: {}{}",
        report.from,
        handle.style(looks::handle()),
        session.style(looks::handle()),
        count(checkpoint.coverage.n_files, "file"),
        talk.unwrap_or_default(),
    ))?;
    ui.say(format_args!("Go on with `biv resume {session}`"))?;
    ui.say(format_args!("Bring its files with `biv checkpoint rollback {handle}`"))?;
    if report.care == Care::Redacted {
        ui.note(
            "it was written to be shared: secrets are blotted out of its conversation and progress",
        );
    }
    if !report.withheld.is_empty() {
        let withheld = withheld::sentence(&report.withheld);
        ui.note(format_args!(
            "the sender withheld {withheld}; a rollback leaves your files of these names alone"
        ));
    }
    ui.data(&json!({
        "session": contract::Session::from(&report.session),
        "checkpoint": contract::Checkpoint::new(checkpoint, false),
        "imported_from": report.from,
        "raw": report.care == Care::Raw,
        "withheld": withheld::documents(&report.withheld),
    }))?;
    Ok(Exit::Done)
}
