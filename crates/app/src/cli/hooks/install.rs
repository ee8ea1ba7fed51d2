//! `biv hooks install`

use bivouac_core::agent::AgentKind;
use bivouac_engine::home::Home;
use bivouac_engine::hooks;
use bivouac_engine::setup::Change;

use super::{ScopeArg, agents, as_json, carry_out};
use crate::cli::Error;
use crate::report::Exit;
use crate::ui::Ui;

/// Put our hooks into the settings of the agents on this machine
///
/// Shows first which files it changes. Hooks of others stay as they are, and `biv hooks remove` brings
/// back the files as they were.
#[derive(Debug, clap::Args)]
pub struct InstallArgs {
    /// Only for this agent: claude-code, codex, gemini, opencode or copilot
    #[arg(long)]
    agent: Vec<AgentKind>,
    /// For whom
    #[arg(long, value_enum, default_value = "user")]
    scope: ScopeArg,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

pub fn run(args: &InstallArgs, home: &Home, ui: &mut Ui) -> Result<Exit, Error> {
    let mut changes = Vec::new();
    for agent in agents(&args.agent) {
        let planned = hooks::plan_install(home, agent, args.scope.into())?;
        match (planned.is_empty(), planned.iter().any(Change::is_needed)) {
            (true, _) => ui.say(format_args!("{agent:12} knows no hooks of a project"))?,
            (false, false) => ui.say(format_args!("{agent:12} has our hooks already"))?,
            (false, true) => changes.extend(planned),
        }
    }
    if changes.is_empty() {
        if agents(&args.agent).is_empty() {
            ui.say("No agent was found on this machine; name one with `--agent`")?;
        }
        ui.data(&as_json(&changes))?;
        return Ok(Exit::Done);
    }
    let exit = carry_out(&changes, args.yes, home, ui)?;
    ui.say("Every turn of these agents is now saved")?;
    if changes.iter().any(|change| change.agent == AgentKind::Codex) {
        ui.note("Codex asks you to review new hooks once: start it, and say yes");
    }
    ui.data(&as_json(&changes))?;
    Ok(exit)
}
