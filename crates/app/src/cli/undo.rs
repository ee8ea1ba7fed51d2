//! `biv undo` and `biv redo`: taking restores back, without limit.

use bivouac_engine::Engine;

use crate::cli::Error;
use crate::cli::restoring::{self, Consent};
use crate::report::Exit;
use crate::ui::Ui;

/// Take back the last rollback
///
/// Every path it touched goes back to what it was. Other files stay as they are, and what changed since
/// is saved first. Repeat it to go further back.
#[derive(Debug, clap::Args)]
pub struct UndoArgs {
    #[command(flatten)]
    pub consent: Consent,
}

/// Take back the last undo
#[derive(Debug, clap::Args)]
pub struct RedoArgs {
    #[command(flatten)]
    pub consent: Consent,
}

pub fn run_undo(args: &UndoArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let plan = engine.plan_undo()?;
    restoring::run(plan, &args.consent, engine, ui)
}

pub fn run_redo(args: &RedoArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let plan = engine.plan_redo()?;
    restoring::run(plan, &args.consent, engine, ui)
}
