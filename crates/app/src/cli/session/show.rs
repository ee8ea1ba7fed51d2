//! `biv session show`

use bivouac_core::text::printable;
use bivouac_engine::Engine;
use owo_colors::OwoColorize;
use serde::Serialize;

use crate::cli::progress::say_tree;
use crate::cli::session::{ahead, standing};
use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Show one session
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Its id, handle, name or `latest`; the one at hand if left out
    #[arg(add = complete::sessions())]
    session: Option<String>,
}

#[derive(Serialize)]
struct Details {
    #[serde(flatten)]
    session: contract::Session,
    checkpoints: u64,
    last_checkpoint: Option<contract::Checkpoint>,
    can_go_on_at: Option<String>,
    progress: serde_json::Value,
}

pub fn run(args: &ShowArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let last = engine.last_checkpoint(&session)?;
    let n_checkpoints = engine.n_checkpoints(&session)?;
    let at = |moment| engine.clock.local(moment).strftime("%Y-%m-%d %H:%M").to_string();
    ui.say(format_args!("Session {}", session.handle.style(looks::handle())))?;
    let mut line = |title: &str, text: String| ui.say(format_args!("  {title:12} {text}"));
    line("Id", session.id.to_string())?;
    if let Some(name) = &session.name {
        line("Name", name.to_string())?;
    }
    line("Agent", printable(&session.agent_type))?;
    if let Some(task) = &session.task_description {
        line("Task", task.to_string())?;
    }
    let reason = session.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    line("Status", format!("{}{reason}", standing(&session, engine)))?;
    let limit_ends = engine.limit_ahead(&session)?;
    if let Some(ends) = limit_ends {
        line("Limit", format!("can go on at {}", ahead(ends, engine)))?;
    }
    line("Workspace", session.workspace.to_string())?;
    line("Created", at(session.created_at))?;
    line("Updated", at(session.updated_at))?;
    let newest = last.as_ref().map(|last| {
        let checkpoint = &last.taken.checkpoint;
        format!(", the last is {} ({})", checkpoint.handle, at(checkpoint.taken_at))
    });
    line("Checkpoints", format!("{n_checkpoints}{}", newest.unwrap_or_default()))?;
    let work = engine.work(&session)?;
    if !work.is_empty() {
        ui.say("\nProgress:".style(looks::heading()))?;
        say_tree(&session, &work, ui)?;
    }
    ui.data(&Details {
        can_go_on_at: limit_ends.map(|ends| ends.to_string()),
        progress: contract::progress(&work),
        session: contract::Session::from(&session),
        checkpoints: n_checkpoints,
        last_checkpoint: last.as_ref().map(contract::Checkpoint::from),
    })?;
    Ok(Exit::Done)
}
