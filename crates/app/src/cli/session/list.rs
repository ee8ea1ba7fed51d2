//! `biv session list`

use bivouac_core::session::Status;
use bivouac_engine::Engine;
use bivouac_journal::query::SessionFilter;

use crate::cli::Error;
use crate::cli::session::standing;
use crate::contract;
use crate::report::Exit;
use crate::ui::{Cell, Table, Ui, looks};

/// List the sessions of this workspace, oldest first
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only those that are active, paused, interrupted, completed or failed
    #[arg(long)]
    status: Option<Status>,
    /// Those of all workspaces
    #[arg(long, short)]
    all: bool,
    /// Newest first
    #[arg(long)]
    reverse: bool,
}

pub fn run(args: &ListArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let workspace = if args.all { None } else { Some(engine.home.workspace_path()) };
    let mut sessions = engine.sessions(&SessionFilter { workspace, status: args.status })?;
    if args.reverse {
        sessions.reverse();
    }
    ui.data(&sessions.iter().map(contract::Session::from).collect::<Vec<_>>())?;
    if sessions.is_empty() {
        ui.say(match args.status {
            Some(_) => "No sessions found.",
            None => {
                "No sessions found. Run `biv session new` or `biv checkpoint create` to make one."
            }
        })?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new([
        ("ID", 15),
        ("Agent", 11),
        ("Status", 9),
        ("Updated", 16),
        ("Name", 0),
        ("Task", 0),
    ]);
    for session in &sessions {
        table.row([
            Cell::styled(&session.handle, looks::handle()),
            Cell::new(bivouac_core::text::printable(&session.agent_type)),
            Cell::new(standing(session, engine)),
            Cell::new(engine.clock.local(session.updated_at).strftime("%Y-%m-%d %H:%M")),
            Cell::new(session.name.as_ref().map(ToString::to_string).unwrap_or_default()),
            Cell::new(
                session.task_description.as_ref().map(|task| task.headline()).unwrap_or_default(),
            ),
        ]);
    }
    ui.say(table)?;
    Ok(Exit::Done)
}
