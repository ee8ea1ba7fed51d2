//! `biv checkpoint rollback`

use std::path::PathBuf;

use bivouac_engine::Engine;
use bivouac_engine::open::Need;

use crate::cli::Error;
use crate::cli::checkpoint::Which;
use crate::cli::restoring::{self, Consent};
use crate::report::Exit;
use crate::ui::Ui;

/// Make the workspace what it was at a checkpoint
///
/// Shows first what it would do. Saves everything before it starts, so that `biv undo` can take it back.
/// Files born later are removed; files that no checkpoint covers, and everything in `.git`, stay as they
/// are.
#[derive(Debug, clap::Args)]
pub struct RollbackArgs {
    #[command(flatten)]
    which: Which,
    /// Only these files or folders
    paths: Vec<PathBuf>,
    #[command(flatten)]
    consent: Consent,
}

impl RollbackArgs {
    pub fn need(&self) -> Need {
        self.consent.need()
    }
}

pub fn run(args: &RollbackArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let kept = engine.checkpoint(&args.which.checkpoint, args.which.session.as_deref())?;
    let paths = engine.paths_in_workspace(&args.paths)?;
    let plan = engine.plan_rollback(&kept, paths)?;
    restoring::run(plan, &args.consent, engine, ui)
}
