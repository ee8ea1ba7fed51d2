//! `biv session new`

use bivouac_core::checkpoint::State;
use bivouac_core::text::{Name, Note};
use bivouac_engine::Engine;
use bivouac_engine::session::SessionDraft;
use owo_colors::OwoColorize;

use crate::cli::Error;
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Open a new session in this workspace
#[derive(Debug, clap::Args)]
pub struct NewArgs {
    /// Which agent works in it, such as claude-code or codex
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// What is to be done
    #[arg(long, value_name = "TEXT")]
    task: Option<Note>,
    /// A name to call it by
    #[arg(long)]
    name: Option<Name>,
    /// JSON to keep with it
    #[arg(long, value_name = "JSON")]
    metadata: Option<State>,
}

pub fn run(args: &NewArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.new_session(SessionDraft {
        agent_type: args.agent.clone(),
        task_description: args.task.clone(),
        name: args.name.clone(),
        metadata: args.metadata.clone(),
    })?;
    ui.say(format_args!("Opened session {}", session.handle.style(looks::handle())))?;
    ui.data(&contract::Session::from(&session))?;
    Ok(Exit::Done)
}
