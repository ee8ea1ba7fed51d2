//! `biv config`: what is configured, and where.

use bivouac_core::text::printable;
use bivouac_engine::clock::Clock;
use bivouac_engine::config::Config;
use bivouac_engine::home::{Home, Wishes};
use clap::Subcommand;
use serde_json::{Map, Value, json};

use crate::cli::Error;
use crate::report::Exit;
use crate::ui::Ui;

/// Show what is configured
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
}

pub fn run(command: &ConfigCommand, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    let home = Home::find(wishes)?;
    Clock::from_env()?;
    match command {
        ConfigCommand::Show { defaults: true } => show(&Config::defaults(), ui),
        ConfigCommand::Show { defaults: false } => {
            show(&Config::load(&home).map_err(bivouac_engine::Error::from)?, ui)
        }
        ConfigCommand::Path => path(&home, ui),
    }
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
        let value = serde_json::to_value(&setting.value).unwrap_or(Value::Null);
        document
            .insert(key.clone(), json!({ "value": value, "source": setting.source.to_string() }));
    }
    ui.data(&document)?;
    Ok(Exit::Done)
}

fn path(home: &Home, ui: &mut Ui) -> Result<Exit, Error> {
    let (user, workspace) = (home.user_config.clone(), home.workspace_config());
    for (whose, path) in [("user", &user), ("workspace", &workspace)] {
        let state = if path.exists() { "" } else { "  (not there)" };
        ui.say(format_args!("{whose:9}  {}{state}", path.display()))?;
    }
    ui.data(&json!({ "user": user, "workspace": workspace }))?;
    Ok(Exit::Done)
}
