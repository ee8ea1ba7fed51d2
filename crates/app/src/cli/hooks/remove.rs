//! `biv hooks remove`

use bivouac_core::agent::AgentKind;
use bivouac_engine::home::Home;
use bivouac_engine::hooks;

use super::{ScopeArg, as_json, carry_out};
use crate::cli::Error;
use crate::report::Exit;
use crate::ui::Ui;

/// Take our hooks out of the settings of agents
///
/// A file that nobody changed since is again what it was, to the byte. Hooks of others stay as they are.
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// Only for this agent
    #[arg(long)]
    agent: Vec<AgentKind>,
    /// For whom
    #[arg(long, value_enum, default_value = "user")]
    scope: ScopeArg,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

pub fn run(args: &RemoveArgs, home: &Home, ui: &mut Ui) -> Result<Exit, Error> {
    let agents = if args.agent.is_empty() { AgentKind::ALL.to_vec() } else { args.agent.clone() };
    let mut changes = Vec::new();
    for agent in agents {
        changes.extend(hooks::plan_remove(home, agent, args.scope.into())?);
    }
    if changes.is_empty() {
        ui.say("There are no hooks of ours")?;
        ui.data(&as_json(&changes))?;
        return Ok(Exit::Done);
    }
    let exit = carry_out(&changes, args.yes, home, ui)?;
    ui.say("Our hooks are gone")?;
    ui.data(&as_json(&changes))?;
    Ok(exit)
}
