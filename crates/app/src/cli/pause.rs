//! `biv pause`, which is `biv session pause`: set a session aside.

use bivouac_core::text::Note;
use bivouac_engine::Engine;

use crate::cli::session::standing;
use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Set a session aside for a while
///
/// With a time, `biv status` says when it can go on, and a watcher takes it up by itself then: once, and
/// within a day.
#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    /// Its id, handle, name or `latest`; the one at hand if left out
    #[arg(add = complete::sessions())]
    session: Option<String>,
    /// Until `14:30`, for `2h`, until `2026-03-01 14:30`, or until the agent's usage limit ends: `reset`
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<Note>,
}

pub fn run(args: &PauseArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let until = args.until.as_deref().map(|text| engine.read_until(&session, text)).transpose()?;
    let session = engine.pause(&session, until, args.reason.clone())?;
    ui.say(format_args!("Session {} is {}", session.handle, standing(&session, engine)))?;
    ui.data(&contract::Session::from(&session))?;
    Ok(Exit::Done)
}
