//! `biv setup`

use bivouac_core::agent::AgentKind;
use bivouac_engine::home::{Home, Wishes};
use bivouac_engine::hooks;
use bivouac_engine::setup::{self, Change, Part, Scope};
use serde_json::{Value, json};

use crate::cli::Error;
use crate::cli::hooks::make;
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Set up the agents on this machine: hooks, tools for the model, commands for you
///
/// Every turn is saved, the model can ask Bivouac through its MCP server, and you have `/checkpoint` and
/// `/rehydrate`. Shows first what changes in your settings; what others wrote stays, and `--remove` brings every
/// file back.
#[derive(Debug, clap::Args)]
pub struct SetupArgs {
    /// Only for this agent: claude-code, codex, gemini, opencode or copilot
    #[arg(long)]
    agent: Vec<AgentKind>,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
    /// Take all of it out again
    #[arg(long)]
    remove: bool,
    /// Only show what would change
    #[arg(long, short = 'n')]
    dry_run: bool,
}

pub fn run(args: &SetupArgs, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    let home = Home::find(wishes)?;
    let agents = match (args.agent.is_empty(), args.remove) {
        (false, _) => args.agent.clone(),
        (true, true) => AgentKind::ALL.to_vec(),
        (true, false) => hooks::present(),
    };
    let mut planned = Vec::new();
    for agent in &agents {
        planned.extend(match args.remove {
            true => setup::plan_remove(&home, *agent, Scope::User, &Part::ALL)?,
            false => setup::plan_install(&home, *agent, Scope::User, &Part::ALL)?,
        });
    }
    for change in planned.iter().filter(|change| change.is_left_alone()) {
        let path = change.path.display();
        ui.note(format_args!(
            "`{path}` is yours and stays; {} gets no such command from us",
            change.agent
        ));
    }
    let changes: Vec<Change> = planned.into_iter().filter(Change::is_needed).collect();
    if !changes.is_empty() {
        show(&changes, ui)?;
        if !args.dry_run {
            confirm(args, ui)?;
            make(&home, &changes, ui)?;
        }
    }
    if wishes.store.is_some() {
        ui.note("`--store` is for this command alone; set `BIV_STORE` where your agents run");
    }
    ui.data(&json!({
        "agents": agents, "removed": args.remove, "changes": changes.iter().map(as_json).collect::<Vec<_>>(),
    }))?;
    conclude(args, &agents, &changes, ui)?;
    Ok(Exit::Done)
}

/// Every line that changes in files of others, then all files in a line each.
fn show(changes: &[Change], ui: &mut Ui) -> Result<(), Error> {
    for change in changes.iter().filter(|change| change.is_shared) {
        ui.raw(change.diff().as_bytes())?;
        ui.say("")?;
    }
    for change in changes {
        ui.say(format_args!("{:12} {} {}", change.agent, verb(change), change.path.display()))?;
    }
    Ok(())
}

fn confirm(args: &SetupArgs, ui: &mut Ui) -> Result<(), Error> {
    match (args.yes, ui.can_ask()) {
        (true, _) => Ok(()),
        (false, false) => Err(Error::NeedsYes { what: "changing the settings of agents" }),
        (false, true) if ui.ask("Go ahead?")? => Ok(()),
        (false, true) => Err(Error::Declined { what: "the change" }),
    }
}

fn conclude(
    args: &SetupArgs,
    agents: &[AgentKind],
    changes: &[Change],
    ui: &mut Ui,
) -> Result<(), Error> {
    if args.dry_run && !changes.is_empty() {
        return Ok(());
    }
    if agents.is_empty() {
        return Ok(ui.say("No agent was found on this machine; name one with `--agent`")?);
    }
    match (args.remove, changes.is_empty()) {
        (true, true) => return Ok(ui.say("There is nothing of ours")?),
        (true, false) => return Ok(ui.say("\nAll of ours is gone")?),
        (false, true) => ui.say("All of it is there already")?,
        (false, false) => ui.say("\nDone. Agents that run already have to be started anew.")?,
    }
    ui.say("\nTry next:")?;
    for agent in agents {
        ui.say(format_args!("  in {}: {}checkpoint save first", agent.title(), sign(*agent)))?;
    }
    ui.say("  biv doctor")?;
    if agents.contains(&AgentKind::Codex) {
        ui.note(
            "Codex skips new hooks without a word until you trust them: start `codex` once, and choose to when \
             it asks",
        );
    }
    Ok(())
}

/// What a command begins with.
fn sign(agent: AgentKind) -> char {
    if agent == AgentKind::Codex { '$' } else { '/' }
}

fn verb(change: &Change) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "make",
        (_, None) => "remove",
        (Some(_), Some(_)) => "change",
    }
}

fn as_json(change: &Change) -> Value {
    json!({ "agent": change.agent, "path": contract::path(&change.path), "action": verb(change) })
}
