//! `biv init`: mark a folder as a workspace, or let it keep its own store.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use bivouac_engine::Engine;
use bivouac_engine::config::DEFAULTS;
use bivouac_engine::home::{Home, STORE_NAMES, WORKSPACE_CONFIG, Wishes};
use bivouac_engine::open::Need;
use serde_json::json;

use crate::cli::Error;
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
    #[arg(long)]
    local: bool,
}

pub fn run(args: &InitArgs, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    let mut home = Home::find(wishes)?;
    if wishes.workspace.is_none() && home.repository().is_none() {
        home.workspace = home.folder.clone();
    }
    home.check_workspace()?;
    let mut wishes = wishes.clone();
    let usual = home.store.clone();
    let store = if args.local { Some(home.local_store()) } else { None };
    if let Some(store) = &store {
        make_local_store(store)?;
        wishes.store = Some(store.clone());
    }
    let config = home.workspace_config();
    let is_new = !config.exists();
    if is_new {
        fs::write(&config, commented_defaults())
            .map_err(|source| Error::BadFile { path: config.clone(), source })?;
    }
    let engine = Engine::open(&wishes, Need::Write, ui.progress())?;
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
    ui.data(&json!({ "workspace": home.workspace, "store": engine.home.store, "config": config, "config_written": is_new }))?;
    Ok(Exit::Done)
}

/// git need not see the store. What else the folder holds is the project's.
fn make_local_store(store: &Path) -> Result<(), Error> {
    let failed = |source| Error::BadFile { path: store.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(store).map_err(failed)?;
    let path = store.join(".gitignore");
    let mut text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.map_err(failed)?,
    };
    let own: &[&str] = if text.is_empty() { &[".gitignore"] } else { &[] };
    for name in STORE_NAMES.iter().chain(own) {
        let line = format!("/{name}");
        if !text.lines().any(|known| known == line) {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&line);
            text.push('\n');
        }
    }
    fs::write(path, text).map_err(failed)
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
