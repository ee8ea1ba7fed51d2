//! `biv hooks status`

use bivouac_core::agent::AgentKind;
use bivouac_engine::home::Home;
use bivouac_engine::hooks;
use bivouac_engine::setup::{Scope, State};
use serde_json::json;

use crate::cli::Error;
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Show which agents tell Bivouac what they do
#[derive(Debug, clap::Args)]
pub struct StatusArgs {}

pub fn run(_args: &StatusArgs, home: &Home, ui: &mut Ui) -> Result<Exit, Error> {
    let present = hooks::present();
    let mut document = Vec::new();
    for agent in AgentKind::ALL {
        for (scope, whose) in [(Scope::User, "user"), (Scope::Project, "project")] {
            let Some((path, state)) = hooks::state(home, agent, scope)? else {
                continue;
            };
            let is_worth_a_line =
                state != State::Missing || (scope == Scope::User && present.contains(&agent));
            let words = match state {
                State::Installed => "installed",
                State::Outdated => "outdated; run `biv hooks install`",
                State::Missing => "not installed",
            };
            if is_worth_a_line {
                ui.say(format_args!("{agent:12} {whose:8} {words:14} {}", path.display()))?;
            }
            document.push(json!({
                "agent": agent, "scope": whose, "path": contract::path(&path), "present": present.contains(&agent),
                "installed": state == State::Installed, "outdated": state == State::Outdated,
            }));
        }
    }
    if present.is_empty() {
        ui.say("No agent was found on this machine")?;
    }
    ui.data(&document)?;
    Ok(Exit::Done)
}
