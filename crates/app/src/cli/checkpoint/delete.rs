//! `biv checkpoint delete`

use std::collections::HashSet;

use bivouac_engine::Engine;

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Let checkpoints go; their bytes come back with the next `biv gc`
#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// Their handles, ids or names
    #[arg(required = true, add = complete::checkpoints())]
    checkpoints: Vec<String>,
    /// Look for them in this session first
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
}

pub fn run(args: &DeleteArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    // All words are understood before the first checkpoint goes.
    let session = args.session.as_deref();
    let mut found: Vec<_> = args
        .checkpoints
        .iter()
        .map(|word| engine.checkpoint(word, session))
        .collect::<Result<_, _>>()?;
    let mut seen = HashSet::new();
    found.retain(|kept| seen.insert(kept.taken.checkpoint.id));
    let could_undo = engine.history()?.undo.is_some();
    if let Some(kept) = found.iter().find(|kept| kept.is_pinned) {
        let handle = kept.taken.checkpoint.handle.clone();
        return Err(bivouac_engine::Error::Pinned { handle }.into());
    }
    for kept in &found {
        engine.delete_checkpoint(kept)?;
        ui.say(format_args!("Deleted {}", kept.taken.checkpoint.handle))?;
    }
    if could_undo && engine.history()?.undo.is_none() {
        ui.note("the last rollback can no longer be undone");
    }
    ui.data(&found.iter().map(contract::Checkpoint::from).collect::<Vec<_>>())?;
    Ok(Exit::Done)
}
