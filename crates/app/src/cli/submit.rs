//! `biv submit`: a prompt for an agent that works it off by itself, under supervision.

use bivouac_core::agent::AgentKind;
use bivouac_core::text::Note;
use bivouac_engine::home::Wishes;
use bivouac_engine::open::Need;
use bivouac_engine::resume::headless;
use bivouac_engine::supervise::RunOrder;

use crate::cli::run::{How, start};
use crate::cli::{Error, open};
use crate::report::Exit;
use crate::ui::Ui;

/// Give an agent a prompt to work off by itself
///
/// Starts the agent's own command for that, under supervision, as a new session.
#[derive(Debug, clap::Args)]
pub struct SubmitArgs {
    /// What is to be done
    prompt: Note,
    /// Which agent
    #[arg(long, default_value = "claude-code")]
    agent: AgentKind,
    #[command(flatten)]
    how: How,
    /// Further arguments for the agent
    #[arg(last = true, value_name = "ARGS")]
    extra: Vec<String>,
}

pub fn run(args: &SubmitArgs, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    let order = RunOrder {
        prompt: Some(args.prompt.clone()),
        ..args.how.order(headless(args.agent, args.prompt.as_str(), &args.extra))
    };
    if args.prompt.as_str().trim().is_empty() {
        return Err(Error::NothingToDo);
    }
    let mut engine = open(wishes, Need::Write, ui)?;
    args.how.check()?;
    let session = engine.session_for_run(&order)?;
    start(&order, &args.how, &session, &mut engine, ui)
}
