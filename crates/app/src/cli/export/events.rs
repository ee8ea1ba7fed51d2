//! `biv export events`

use std::io::Write;
use std::path::{Path, PathBuf};

use bivouac_core::text::count;
use bivouac_engine::Engine;
use bivouac_journal::stored::StoredEvent;
use serde_json::json;

use crate::cli::log::document;
use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Write a session's events, one JSON document per line, without secrets
///
/// With `--json`, what goes to stdout is one document: a list of them.
#[derive(Debug, clap::Args)]
pub struct EventsArgs {
    /// The session; the one at hand if left out
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
    /// Write them here; `-` is stdout
    #[arg(long, value_name = "PATH", default_value = "-")]
    file: PathBuf,
}

pub fn run(args: &EventsArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let events = engine.events_after(&session, 0)?;
    if args.file == Path::new("-") {
        return print(&events, ui);
    }
    let path = engine.home.folder.join(&args.file);
    let bad = |source| Error::NotWritten { path: path.clone(), source };
    if path.symlink_metadata().is_ok() {
        return Err(Error::AlreadyThere { path });
    }
    let mut file = std::fs::File::create_new(&path).map_err(bad)?;
    for event in &events {
        let mut line = document(event);
        engine.redactor().redact_json(&mut line);
        writeln!(file, "{line}").map_err(bad)?;
    }
    file.sync_all().map_err(bad)?;
    ui.say(format_args!("Wrote {} to {}", count(events.len() as u64, "event"), path.display()))?;
    ui.data(&json!({ "path": contract::path(&path), "events": events.len() }))?;
    Ok(Exit::Done)
}

fn print(events: &[StoredEvent], ui: &mut Ui) -> Result<Exit, Error> {
    if ui.is_json() {
        ui.data(&events.iter().map(document).collect::<Vec<_>>())?;
        return Ok(Exit::Done);
    }
    ui.as_json();
    ui.streams();
    for event in events {
        ui.line(&document(event))?;
    }
    Ok(Exit::Done)
}
