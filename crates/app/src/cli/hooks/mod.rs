//! `biv hooks`: being told by the agents, or no longer.

pub mod install;
pub mod remove;
pub mod status;

use bivouac_core::agent::AgentKind;
use bivouac_engine::home::{Home, Wishes};
use bivouac_engine::hooks;
use bivouac_engine::setup::{self, Change, Scope};
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::cli::Error;
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Let agents tell Bivouac what they do, so that every turn is saved
#[derive(Debug, Subcommand)]
pub enum HooksCommand {
    Install(install::InstallArgs),
    Status(status::StatusArgs),
    Remove(remove::RemoveArgs),
}

impl HooksCommand {
    pub fn run(&self, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
        let home = Home::find(wishes)?;
        match self {
            Self::Install(args) => install::run(args, &home, ui),
            Self::Status(args) => status::run(args, &home, ui),
            Self::Remove(args) => remove::run(args, &home, ui),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScopeArg {
    /// For you, in every project
    User,
    /// For everyone who works in this project
    Project,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::User => Self::User,
            ScopeArg::Project => Self::Project,
        }
    }
}

/// Those named, or those on this machine.
fn agents(named: &[AgentKind]) -> Vec<AgentKind> {
    if named.is_empty() { hooks::present() } else { named.to_vec() }
}

/// Shows changes, asks, and makes them.
fn carry_out(changes: &[Change], yes: bool, home: &Home, ui: &mut Ui) -> Result<Exit, Error> {
    for change in changes {
        let what = match (&change.before, &change.after) {
            (None, _) => "make",
            (_, None) => "remove",
            (Some(_), Some(_)) => "change",
        };
        ui.say(format_args!("{:12} {what} {}", change.agent, change.path.display()))?;
    }
    if !yes {
        if !ui.can_ask() {
            return Err(Error::NeedsYes { what: "changing the settings of agents" });
        }
        if !ui.ask("Go ahead?")? {
            return Err(Error::Declined { what: "the change" });
        }
    }
    make(home, changes, ui)?;
    Ok(Exit::Done)
}

fn as_json(changes: &[Change]) -> Value {
    let one = |change: &Change| json!({ "agent": change.agent, "path": contract::path(&change.path), "removed": change.after.is_none() });
    changes.iter().map(one).collect()
}

/// Makes changes, and tells where what a person wrote into files of ours is now.
pub fn make(home: &Home, changes: &[Change], ui: &mut Ui) -> Result<(), Error> {
    for kept in setup::apply(home, changes)? {
        ui.note(format_args!("what you changed in a file of ours is in `{}`", kept.display()));
    }
    Ok(())
}
