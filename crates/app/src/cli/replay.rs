//! `biv replay`: try a failed step again, alone.

use std::io::IsTerminal;

use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use bivouac_engine::replay::check_replay;
use bivouac_engine::resume::{Mode, agent_of, check_agent};
use owo_colors::OwoColorize;
use serde_json::json;

use crate::cli::resume::become_agent;
use crate::cli::{Error, complete};
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Try a failed step again, with what the steps before it produced
///
/// Prints the prompt that asks for it, and says when replaying is not the right thing: the code has moved
/// on, three or more steps would be replayed, or what an earlier step produced is no longer there.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// The session; the one at hand if left out
    #[arg(add = complete::sessions())]
    session: Option<String>,
    /// Begin with this step instead of the first that failed
    #[arg(long, value_name = "STEP")]
    from: Option<String>,
    /// Print the prompt and nothing else
    #[arg(long, conflicts_with = "run")]
    print: bool,
    /// Start the agent with the prompt, and put the attempt on record
    #[arg(long)]
    run: bool,
    /// Even if it is probably not the right thing
    #[arg(long, requires = "run")]
    force: bool,
    /// Further arguments for the agent
    #[arg(last = true, value_name = "ARGS", requires = "run")]
    extra: Vec<String>,
}

impl ReplayArgs {
    pub fn need(&self) -> Need {
        if self.run { Need::Write } else { Need::Read }
    }
}

pub fn run(args: &ReplayArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let replay = engine.plan_replay(&session, args.from.as_deref())?;
    ui.data(&json!({
        "step": replay.step,
        "title": replay.title,
        "attempt": replay.attempt,
        "steps": replay.to_replay,
        "cautions": replay.cautions.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "prompt": replay.prompt,
    }))?;
    if args.run && !args.force {
        check_replay(&replay)?;
    }
    for caution in &replay.cautions {
        ui.note(caution);
    }
    if !args.run {
        if !args.print {
            let heading = format!("Step {}, attempt {}:", replay.step, replay.attempt);
            ui.say(format_args!("{}\n", heading.style(looks::heading())))?;
        }
        ui.say(replay.prompt.trim_end())?;
        return Ok(Exit::Done);
    }
    check_agent(agent_of(&session), Mode::Brief)?;
    let is_headless = !std::io::stdout().is_terminal();
    let launch = engine.start_replay(&session, &replay, (&args.extra, is_headless))?;
    let folder = engine.home.workspace.clone();
    Err(become_agent(&launch, &folder, session.id, ui))
}
