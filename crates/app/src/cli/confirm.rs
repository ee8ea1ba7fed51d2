//! `biv confirm`: a person's word for what a model asked for.

use bivouac_engine::Engine;
use bivouac_engine::consent::Asked;
use owo_colors::OwoColorize;

use crate::cli::{Error, restoring};
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Confirm the rollback that an agent asked for
///
/// Shows what it would do, asks, and shows a code. Tell the agent the code: it is good for this rollback,
/// once, within ten minutes. Needs a terminal, because it is you who is asked.
#[derive(Debug, clap::Args)]
pub struct ConfirmArgs {}

pub fn run(_args: &ConfirmArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let Some(asked) = engine.asked() else {
        ui.say("No agent asks for anything here")?;
        ui.data(&serde_json::Value::Null)?;
        return Ok(Exit::Done);
    };
    if !ui.can_ask() {
        return Err(Error::NeedsPerson);
    }
    engine.check_may_restore()?;
    let plan = plan_of(&asked, engine)?;
    restoring::show(&plan, engine, ui)?;
    if !ui.ask("Allow the agent to do this?")? {
        engine.refuse_consent()?;
        return Err(Error::Declined { what: "the rollback" });
    }
    let code = engine.give_consent(asked)?;
    ui.say(format_args!("\nTell the agent this code: {}", code.style(looks::handle())))?;
    ui.say("It is good for this rollback, once, within ten minutes")?;
    Ok(Exit::Done)
}

/// What the model was told, as long as it still is what would be done.
fn plan_of(asked: &Asked, engine: &Engine) -> Result<bivouac_engine::rollback::RestorePlan, Error> {
    let kept = engine.checkpoint(&asked.checkpoint.to_string(), None)?;
    let plan = engine.plan_rollback(&kept, Vec::new())?;
    match plan.id() == asked.plan {
        true => Ok(plan),
        false => Err(Error::OtherPlan { what: "the rollback" }),
    }
}
