//! `biv session log`

use bivouac_core::text::printable;
use bivouac_engine::Engine;

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Cell, Table, Ui, looks};

/// Show what happened in a session
#[derive(Debug, clap::Args)]
pub struct LogArgs {
    /// Its id, handle, name or `latest`; the one at hand if left out
    #[arg(add = complete::sessions())]
    session: Option<String>,
}

pub fn run(args: &LogArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let lines = engine.session_log(&session)?;
    let mut table = Table::new([("When", 16), ("Level", 7), ("What", 0)]);
    for line in &lines {
        let style = if line.level == "info" { looks::faint() } else { looks::gone() };
        table.row([
            Cell::new(engine.clock.local(line.created_at).strftime("%Y-%m-%d %H:%M")),
            Cell::styled(&line.level, style),
            Cell::new(printable(&line.message)),
        ]);
    }
    ui.say(table)?;
    ui.data(&lines.iter().map(contract::Log::from).collect::<Vec<_>>())?;
    Ok(Exit::Done)
}
