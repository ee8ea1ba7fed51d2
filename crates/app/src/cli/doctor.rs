//! `biv doctor`

use std::thread;

use bivouac_core::agent::AgentKind;
use bivouac_engine::doctor::{self, Depth, Health, Link};
use bivouac_engine::home::{Home, Wishes};
use bivouac_engine::hooks;
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::cli::Error;
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Check every link between the agents on this machine and Bivouac, by trying it
///
/// Hooks are called and the server is started as each agent does it, with a store that is thrown away. Says what to
/// do about what does not hold. Exits with 3 if something does not.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Only this agent: claude-code, codex, gemini, opencode or copilot
    #[arg(long)]
    agent: Vec<AgentKind>,
    /// Also start each agent once and ask its model one question; this costs a few tokens
    #[arg(long)]
    live: bool,
}

pub fn run(args: &DoctorArgs, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    let home = Home::find(wishes)?;
    let depth = if args.live { Depth::Live } else { Depth::Links };
    let agents = if args.agent.is_empty() { hooks::present() } else { args.agent.clone() };
    let store = doctor::check_store(wishes);
    say(&store, "", ui)?;
    let settings = doctor::check_settings(&home);
    if let Some(settings) = &settings {
        say(settings, "", ui)?;
    }
    let mut is_whole = store.health != Health::Bad;
    let mut examined = Vec::new();
    for (agent, links) in agents.iter().zip(check_all(&home, &agents, depth)) {
        let links = links?;
        ui.say(agent.style(looks::heading()))?;
        for link in &links {
            say(link, "  ", ui)?;
            is_whole &= link.health != Health::Bad;
        }
        examined.push(
            json!({ "agent": agent, "links": links.iter().map(as_json).collect::<Vec<_>>() }),
        );
    }
    if agents.is_empty() {
        ui.say("No agent was found on this machine; name one with `--agent`")?;
    }
    ui.data(&json!({
        "whole": is_whole,
        "store": as_json(&store),
        "settings": settings.as_ref().map(as_json),
        "agents": examined,
    }))?;
    Ok(if is_whole { Exit::Done } else { Exit::DoneInPart })
}

/// All at once: agents take their time to start.
fn check_all(
    home: &Home,
    agents: &[AgentKind],
    depth: Depth,
) -> Vec<Result<Vec<Link>, bivouac_engine::Error>> {
    let check = |agent: &AgentKind| doctor::check_agent(home, *agent, depth);
    thread::scope(|scope| {
        let threads: Vec<_> =
            agents.iter().map(|agent| scope.spawn(move || check(agent))).collect();
        threads.into_iter().map(|it| it.join().expect("a check does not panic")).collect()
    })
}

fn say(link: &Link, indent: &str, ui: &mut Ui) -> Result<(), Error> {
    let (mark, style) = match link.health {
        Health::Good => ("ok", looks::new()),
        Health::Bad => ("bad", looks::gone()),
        Health::Unknown => ("?", looks::changed()),
    };
    // Colours have no width.
    let mark = format!("{}{:width$}", mark.style(style), "", width = 4 - mark.len());
    ui.say(format_args!("{indent}{mark}{:9} {}", link.name, link.fact))?;
    if let Some(remedy) = &link.remedy {
        ui.say(format_args!("{indent}{:14}{}", "", remedy.style(looks::faint())))?;
    }
    Ok(())
}

fn as_json(link: &Link) -> Value {
    let health = match link.health {
        Health::Good => "good",
        Health::Bad => "bad",
        Health::Unknown => "unknown",
    };
    json!({ "link": link.name, "health": health, "fact": link.fact, "remedy": link.remedy })
}
