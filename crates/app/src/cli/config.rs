//! `biv config`: what is configured, where, and which workspace's file is trusted.

use bivouac_core::text::printable;
use bivouac_core::work::Author;
use bivouac_engine::clock::Clock;
use bivouac_engine::config::{BadConfig, Claim, Config, WorkspaceFile, trust};
use bivouac_engine::home::{Home, WORKSPACE_CONFIG, Wishes};
use clap::Subcommand;
use serde_json::{Map, Value, json};

use crate::cli::Error;
use crate::cli::status::note_ignored;
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Show what is configured, and trust a workspace's file
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show every setting, its value and where that comes from
    Show {
        /// Show what holds where nothing is said, whatever the files say
        #[arg(long)]
        defaults: bool,
    },
    /// Show where the configuration files are
    Path,
    /// Allow this workspace's `bivouac.toml` to narrow protection
    ///
    /// Without your consent, the file may only widen it: save more often, capture more, keep longer. Shows what else
    /// the file would do, and asks. The consent holds for the file as it is: when it changes, it is asked for again.
    /// An agent cannot give it.
    Trust {
        /// Allow it without being asked
        #[arg(long, short)]
        yes: bool,
    },
    /// Take back what `trust` allowed in this workspace
    Distrust,
}

pub fn run(command: &ConfigCommand, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    let home = Home::find(wishes)?;
    Clock::from_env()?;
    match command {
        ConfigCommand::Show { defaults: true } => show(&Config::defaults(), ui),
        ConfigCommand::Show { defaults: false } => show(&load(&home)?, ui),
        ConfigCommand::Path => path(&home, ui),
        ConfigCommand::Trust { yes } => give_trust(&home, *yes, ui),
        ConfigCommand::Distrust => {
            let was_trusted = trust::take_back(&home, author(ui))?;
            ui.say(match was_trusted {
                true => "No configuration file of this workspace is trusted any more",
                false => "No configuration file of this workspace was trusted",
            })?;
            ui.data(&json!({ "was_trusted": was_trusted }))?;
            Ok(Exit::Done)
        }
    }
}

fn load(home: &Home) -> Result<Config, Error> {
    Ok(Config::load(home).map_err(bivouac_engine::Error::from)?)
}

/// Who asks. What another door passes on comes from a model.
fn author(ui: &Ui) -> Author {
    if ui.is_kept() { Author::Model } else { trust::author() }
}

fn show(config: &Config, ui: &mut Ui) -> Result<Exit, Error> {
    let mut section = "";
    let mut document = Map::new();
    for (key, setting) in &config.settings {
        let (own_section, name) = key.split_once('.').unwrap_or(("", key));
        if own_section != section {
            let gap = if section.is_empty() { "" } else { "\n" };
            ui.say(format_args!("{gap}[{own_section}]"))?;
            section = own_section;
        }
        let line = format!("{name} = {}", setting.value);
        ui.say(format_args!("{:44} # {}", printable(&line), setting.source))?;
        let mut entry =
            json!({ "value": as_json(&setting.value), "source": setting.source.to_string() });
        if let Some(claim) = config.ignored().iter().find(|claim| claim.key == *key) {
            entry["ignored"] = as_json(&claim.value);
        }
        document.insert(key.clone(), entry);
    }
    note_ignored(config, ui);
    ui.data(&document)?;
    Ok(Exit::Done)
}

fn path(home: &Home, ui: &mut Ui) -> Result<Exit, Error> {
    let (user, workspace) = (home.user_config.clone(), home.workspace_config());
    for (whose, path) in [("user", &user), ("workspace", &workspace)] {
        let state = if path.exists() { "" } else { "  (not there)" };
        ui.say(format_args!("{whose:9}  {}{state}", path.display()))?;
    }
    ui.data(&json!({ "user": contract::path(&user), "workspace": contract::path(&workspace) }))?;
    Ok(Exit::Done)
}

fn give_trust(home: &Home, yes: bool, ui: &mut Ui) -> Result<Exit, Error> {
    let by = author(ui);
    if by != Author::Person {
        return Err(bivouac_engine::Error::from(BadConfig::OnlyAPerson).into());
    }
    let Some(file) = load(home)?.workspace_file else {
        ui.say(format_args!("There is no `{WORKSPACE_CONFIG}` in this workspace"))?;
        ui.data(&Value::Null)?;
        return Ok(Exit::Done);
    };
    if file.claims.is_empty() {
        ui.say(format_args!("`{}` has no setting that needs your consent", file.path.display()))?;
    } else if file.is_trusted {
        ui.say(format_args!("`{}` is trusted already", file.path.display()))?;
    } else {
        say_claims(&file, ui)?;
        match (yes, ui.can_ask()) {
            (true, _) => {}
            (false, false) => return Err(Error::NeedsYes { what: "trusting this file" }),
            (false, true) if ui.ask("Allow this until the file changes?")? => {}
            (false, true) => return Err(Error::Declined { what: "trusting this file" }),
        }
        trust::give(home, &file, by)?;
        ui.say(format_args!("`{}` is trusted until it changes", file.path.display()))?;
    }
    ui.data(&json!({
        "file": contract::path(&file.path),
        "hash": file.hash.to_string(),
        "trusted": !file.claims.is_empty(),
        "claims": file.claims.iter().map(claim_as_json).collect::<Vec<_>>(),
    }))?;
    Ok(Exit::Done)
}

fn say_claims(file: &WorkspaceFile, ui: &mut Ui) -> Result<(), Error> {
    ui.say(format_args!("`{}` would change these settings:", file.path.display()))?;
    for claim in &file.claims {
        let (now, then) = (claim.own.to_string(), claim.value.to_string());
        ui.say(format_args!("  {}: {}", claim.key, claim.effect))?;
        ui.say(format_args!("    from {}", printable(&now)))?;
        ui.say(format_args!("    to   {}", printable(&then)))?;
    }
    Ok(())
}

fn claim_as_json(claim: &Claim) -> Value {
    json!({
        "key": claim.key, "effect": claim.effect,
        "from": as_json(&claim.own), "to": as_json(&claim.value),
    })
}

fn as_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
