//! `biv checkpoint pin` and `unpin`

use bivouac_engine::Engine;

use crate::cli::Error;
use crate::cli::checkpoint::Which;
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Keep a checkpoint until it is unpinned
#[derive(Debug, clap::Args)]
pub struct PinArgs {
    #[command(flatten)]
    which: Which,
}

/// Let retention decide about a checkpoint again
#[derive(Debug, clap::Args)]
pub struct UnpinArgs {
    #[command(flatten)]
    which: Which,
}

pub fn run_pin(args: &PinArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let kept = engine.checkpoint(&args.which.checkpoint, args.which.session.as_deref())?;
    let is_news = engine.pin(&kept)?;
    let words = if is_news { "Pinned" } else { "Already pinned:" };
    ui.say(format_args!("{words} {}", kept.taken.checkpoint.handle))?;
    ui.data(&contract::Checkpoint::new(&kept.taken.checkpoint, true))?;
    Ok(Exit::Done)
}

pub fn run_unpin(args: &UnpinArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let kept = engine.checkpoint(&args.which.checkpoint, args.which.session.as_deref())?;
    let is_news = engine.unpin(&kept)?;
    let words = if is_news { "Unpinned" } else { "Was not pinned:" };
    ui.say(format_args!("{words} {}", kept.taken.checkpoint.handle))?;
    ui.data(&contract::Checkpoint::new(&kept.taken.checkpoint, false))?;
    Ok(Exit::Done)
}
