//! `biv attach`: look at the agent of a session.

use std::fmt::Display;
use std::io::{IsTerminal, stdin, stdout};

use bivouac_engine::Engine;
use bivouac_engine::resume::Launch;
use bivouac_engine::terminal::become_tmux;
use serde_json::json;

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, quote};

/// Look at a session that runs in tmux
///
/// `Ctrl+B D`, or `biv detach`, leaves it again: a checkpoint is saved, and the agent goes on.
#[derive(Debug, clap::Args)]
pub struct AttachArgs {
    /// Its id, handle, name or `latest`; the one at hand if left out
    #[arg(add = complete::sessions())]
    session: Option<String>,
}

pub fn run(args: &AttachArgs, engine: &Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let launch = engine.plan_attach(&session)?;
    ui.data(&json!({ "session": contract::Session::from(&session), "command": launch.command }))?;
    let command: Vec<String> = launch.command.iter().map(|word| quote(word)).collect();
    look(&launch, format_args!("From a terminal: {}", command.join(" ")), ui)
}

/// Goes there from a terminal, and says how to from anywhere else.
pub(super) fn look(launch: &Launch, otherwise: impl Display, ui: &mut Ui) -> Result<Exit, Error> {
    if !ui.is_json() && stdin().is_terminal() && stdout().is_terminal() {
        return Err(become_tmux(launch).into());
    }
    ui.say(otherwise)?;
    Ok(Exit::Done)
}
