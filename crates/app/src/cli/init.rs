//! `biv init`: mark a folder as a workspace, or let it keep its own store.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bivouac_core::text::count;
use bivouac_engine::Engine;
use bivouac_engine::config::DEFAULTS;
use bivouac_engine::home::{Home, WORKSPACE_CONFIG, Wishes};
use bivouac_engine::local_store::{self, Making};
use bivouac_engine::moved::IfThere;
use bivouac_engine::open::Need;
use bivouac_journal::query::SessionFilter;
use serde_json::json;

use crate::cli::{Error, look, note_move, say_notices};
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Mark this folder as a workspace of its own
///
/// Writes a `bivouac.toml` with every setting a workspace can have and its default, commented out.
/// Only needed where there is no git repository, or to change settings: all other commands work
/// without it.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Keep the checkpoints in this folder, under `.agents/`, instead of with your other data
    ///
    /// The store stays out of git by an ignore file of its own, and is used only on this machine and by you:
    /// copies and clones of this folder do not use it
    #[arg(long)]
    local: bool,
    /// Use the store that is already in `.agents/`, even if you did not make it on this machine
    ///
    /// Only for a store whose origin you know: it decides which checkpoints there are, and what agents are told
    #[arg(long, requires = "local")]
    adopt: bool,
    /// Bring the sessions and checkpoints of a folder here that was moved or renamed
    #[arg(long, value_name = "DIR", conflicts_with = "local")]
    moved_from: Option<PathBuf>,
    /// With `--moved-from`: even if that folder still exists
    #[arg(long, short, requires = "moved_from")]
    yes: bool,
}

pub fn run(args: &InitArgs, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    let mut home = Home::find(wishes)?;
    if wishes.workspace.is_none() && home.repository().is_none() {
        home.workspace = home.folder.clone();
    }
    home.check_workspace()?;
    if let Some(old) = &args.moved_from {
        return bring_here(old, args, wishes, ui);
    }
    let mut wishes = wishes.clone();
    let usual = home.store.clone();
    if args.local {
        let making = if args.adopt { Making::Adopt } else { Making::New };
        local_store::make(&home, making)?;
        wishes.store = Some(home.local_store());
    }
    let config = home.workspace_config();
    let is_new = write_new(&config, &commented_defaults())
        .map_err(|source| Error::BadFile { path: config.clone(), source })?;
    let engine = Engine::open(&wishes, Need::Write, ui.progress())?;
    if args.adopt {
        say_adopted(&engine, ui)?;
    }
    if is_new {
        ui.say(format_args!(
            "Wrote {WORKSPACE_CONFIG}, with every setting of a workspace commented out"
        ))?;
    }
    if engine.home.store != usual && usual.join("sessions.db").exists() {
        ui.note(format_args!(
            "checkpoints taken before stay in {}; `--store` reaches them",
            usual.display()
        ));
    }
    ui.say(format_args!("Workspace {}", home.workspace.display()))?;
    ui.say(format_args!("Store     {}", engine.home.store.display()))?;
    ui.data(&json!({ "workspace": contract::path(&home.workspace), "store": contract::path(&engine.home.store), "config": contract::path(&config), "config_written": is_new }))?;
    Ok(Exit::Done)
}

/// What a store brought along that was made elsewhere, or by somebody else.
fn say_adopted(engine: &Engine, ui: &mut Ui) -> Result<(), Error> {
    let sessions = engine.sessions(&SessionFilter::default())?;
    let mut n_checkpoints = 0;
    for session in &sessions {
        n_checkpoints += engine.n_checkpoints(session)?;
    }
    ui.say(format_args!(
        "Adopted the store in `.agents/`: {}, {}",
        count(sessions.len() as u64, "session"),
        count(n_checkpoints, "checkpoint")
    ))?;
    note_move(engine.moved_from().as_ref(), ui);
    Ok(())
}

/// Nothing is written into the folder: what made it a workspace came with it.
fn bring_here(old: &Path, args: &InitArgs, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    let mut engine = look(wishes, Need::Write, ui)?;
    let if_there = if args.yes { IfThere::GoAhead } else { IfThere::Refuse };
    let report = engine.bring_here(old, if_there)?;
    say_notices(&mut engine, ui);
    ui.say(format_args!(
        "Brought {} with {} here from {}",
        count(report.sessions.len() as u64, "session"),
        count(report.n_checkpoints, "checkpoint"),
        report.from
    ))?;
    ui.say(format_args!("Workspace {}", engine.home.workspace.display()))?;
    ui.data(&json!({
        "workspace": contract::path(&engine.home.workspace),
        "store": contract::path(&engine.home.store),
        "moved_from": contract::path_bytes(report.from.as_bytes()),
        "sessions": report.sessions.iter().map(|it| it.handle.as_str()).collect::<Vec<_>>(),
        "checkpoints": report.n_checkpoints,
    }))?;
    Ok(Exit::Done)
}

/// Writes a file unless there is one, or a link in its place. Tells whether it did.
fn write_new(path: &Path, text: &str) -> io::Result<bool> {
    match File::options().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        file => file?.write_all(text.as_bytes()).map(|()| true),
    }
}

fn commented_defaults() -> String {
    // What belongs to the whole store cannot be set here, so it is not offered.
    let own = DEFAULTS.split("# About the whole store").next().unwrap_or(DEFAULTS);
    let own = own.replace(
        "with every key and its default",
        "with every key a workspace can set and its default",
    );
    let lines =
        own.trim_end().lines().map(|line| match line.starts_with(['#', '[']) || line.is_empty() {
            true => line.to_owned(),
            false => format!("# {line}"),
        });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}
