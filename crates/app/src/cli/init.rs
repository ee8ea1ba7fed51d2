//! `biv init`: mark a folder as a workspace, or let it keep its own store.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use bivouac_engine::Engine;
use bivouac_engine::config::DEFAULTS;
use bivouac_engine::home::{Home, WORKSPACE_CONFIG, Wishes};
use bivouac_engine::open::Need;
use serde_json::json;

use crate::cli::Error;
use crate::report::Exit;
use crate::ui::Ui;

/// Mark this folder as a workspace of its own
///
/// Writes a `bivouac.toml` with every setting and its default, commented out. Only needed where there
/// is no git repository, or to change settings: all other commands work without it.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Keep the checkpoints in this folder, under `.agents/`, instead of with your other data
    #[arg(long)]
    local: bool,
}

pub fn run(args: &InitArgs, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    let here = match &wishes.workspace {
        Some(folder) => folder.clone(),
        None => std::env::current_dir()?,
    };
    let mut wishes = Wishes { workspace: Some(here), ..wishes.clone() };
    let home = Home::find(&wishes)?;
    home.check_workspace()?;
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
        ui.say(format_args!("Wrote {WORKSPACE_CONFIG}, with every setting commented out"))?;
    }
    ui.say(format_args!("Workspace {}", home.workspace.display()))?;
    ui.say(format_args!("Store     {}", engine.home.store.display()))?;
    ui.data(&json!({ "workspace": home.workspace, "store": engine.home.store, "config": config, "config_written": is_new }))?;
    Ok(Exit::Done)
}

/// git need not see the store.
fn make_local_store(store: &Path) -> Result<(), Error> {
    let failed = |source| Error::BadFile { path: store.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(store).map_err(failed)?;
    fs::write(store.join(".gitignore"), "*\n").map_err(failed)
}

fn commented_defaults() -> String {
    // What belongs to the whole store cannot be set here, so it is not offered.
    let own = DEFAULTS.split("# About the whole store").next().unwrap_or(DEFAULTS);
    let lines =
        own.trim_end().lines().map(|line| match line.starts_with(['#', '[']) || line.is_empty() {
            true => line.to_owned(),
            false => format!("# {line}"),
        });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}
