//! `biv checkpoint delete`

use bivouac_core::text::{Note, count};
use bivouac_engine::Engine;
use bivouac_engine::keep::Going;
use owo_colors::OwoColorize;

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Delete checkpoints; `biv gc` then frees their space
///
/// Shows what would go and asks. It cannot be undone, and an agent cannot do it.
#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// Their handles, ids or names
    #[arg(required = true, add = complete::checkpoints())]
    checkpoints: Vec<String>,
    /// Look for them in this session first
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

const WHAT: &str = "deleting checkpoints";

pub fn run(args: &DeleteArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let plan = engine.plan_delete(&args.checkpoints, args.session.as_deref())?;
    if !args.yes {
        show(&plan, engine, ui)?;
        if !ui.can_ask() {
            return Err(Error::NeedsYes { what: WHAT });
        }
        if !ui.ask("Delete for good?")? {
            return Err(Error::Declined { what: WHAT });
        }
    }
    let could_undo = engine.history()?.undo.is_some();
    for Going { kept, .. } in &plan {
        engine.delete_checkpoint(kept)?;
        ui.say(format_args!("Deleted {}", kept.taken.checkpoint.handle))?;
    }
    if could_undo && engine.history()?.undo.is_none() {
        ui.note("the last rollback can no longer be undone");
    }
    ui.data(&plan.iter().map(|it| contract::Checkpoint::from(&it.kept)).collect::<Vec<_>>())?;
    Ok(Exit::Done)
}

fn show(plan: &[Going], engine: &Engine, ui: &mut Ui) -> Result<(), Error> {
    let heading = format!("Delete {}", count(plan.len() as u64, "checkpoint"));
    ui.say(heading.style(looks::heading()))?;
    ui.say("")?;
    for Going { kept, session, is_last } in plan {
        let checkpoint = &kept.taken.checkpoint;
        let at = engine.clock.local(checkpoint.taken_at).strftime("%Y-%m-%d %H:%M").to_string();
        let name = checkpoint.name.as_ref().map(|name| format!("  named {name}"));
        let about = checkpoint.message.as_ref().map(Note::headline);
        let about = about.map(|about| format!("  {about}"));
        ui.say(format_args!(
            "  {}  {at}  {} of {}{}{}{}",
            checkpoint.handle.style(looks::handle()),
            checkpoint.trigger,
            session.handle,
            name.unwrap_or_default(),
            about.unwrap_or_default(),
            if *is_last { "  (the session keeps no checkpoint)" } else { "" },
        ))?;
    }
    ui.say("\nThis cannot be undone")?;
    Ok(())
}
