//! `biv fork`: a second way from a checkpoint.

use std::path::PathBuf;

use bivouac_core::text::{Name, count};
use bivouac_engine::Engine;
use owo_colors::OwoColorize;
use serde_json::json;

use crate::cli::Error;
use crate::cli::checkpoint::Which;
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Start a second session from a checkpoint, in a folder of its own
///
/// It gets the files, the conversation and a clone of the repository as they were. The session it came
/// from stays untouched.
#[derive(Debug, clap::Args)]
pub struct ForkArgs {
    #[command(flatten)]
    which: Which,
    /// Where to: a new or an empty folder
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// What to call the new session
    #[arg(long)]
    name: Option<Name>,
}

pub fn run(args: &ForkArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let kept = engine.checkpoint(&args.which.checkpoint, args.which.session.as_deref())?;
    let report = engine.fork(&kept, &args.into, args.name.clone())?;
    let handle = &report.session.handle;
    let folder = args.into.display();
    ui.say(format_args!(
        "Forked {} into {folder}: session {}, {}{}",
        kept.taken.checkpoint.handle,
        handle.style(looks::handle()),
        count(report.n_files, "file"),
        if report.has_git { ", with the repository" } else { "" },
    ))?;
    ui.say(format_args!("Go on there with `biv -C {folder} resume {handle}`"))?;
    ui.data(&json!({
        "session": contract::Session::from(&report.session),
        "checkpoint": contract::Checkpoint::new(&report.checkpoint, false),
        "into": contract::path(&args.into),
        "files": report.n_files,
        "git": report.has_git,
    }))?;
    Ok(Exit::Done)
}
