//! `biv checkpoint restore`

use std::path::PathBuf;

use bivouac_core::size::Bytes;
use bivouac_core::text::count;
use bivouac_engine::Engine;
use serde_json::json;

use crate::cli::Error;
use crate::cli::checkpoint::Which;
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Write the files of a checkpoint into another folder
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    #[command(flatten)]
    which: Which,
    /// Where to: a new or an empty folder
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
}

pub fn run(args: &RestoreArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let kept = engine.checkpoint(&args.which.checkpoint, args.which.session.as_deref())?;
    let written = engine.restore_into(&kept, &args.into)?;
    let handle = &kept.taken.checkpoint.handle;
    ui.say(format_args!(
        "Wrote {} of {handle} ({}) into {}",
        count(written.n_files, "file"),
        Bytes(written.size_bytes),
        args.into.display()
    ))?;
    ui.data(&json!({
        "checkpoint": contract::Checkpoint::from(&kept),
        "into": contract::path(&args.into),
        "files": written.n_files,
        "size_bytes": written.size_bytes,
    }))?;
    Ok(Exit::Done)
}
