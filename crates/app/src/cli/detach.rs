//! `biv detach`: leave the agent of a session alone.

use bivouac_core::text::{count, printable};
use bivouac_engine::Engine;
use serde_json::json;

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Leave a session that runs in tmux
///
/// Whoever looks at it is sent away, a checkpoint is saved, and the agent goes on.
#[derive(Debug, clap::Args)]
pub struct DetachArgs {
    /// Its id, handle, name or `latest`; the one at hand if left out
    #[arg(add = complete::sessions())]
    session: Option<String>,
}

pub fn run(args: &DetachArgs, engine: &Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let (name, n_clients) = engine.detach(&session)?;
    let name = printable(&name);
    match n_clients {
        0 => ui.say(format_args!("Nobody looks at tmux session {name}"))?,
        n => ui.say(format_args!(
            "Detached {} from tmux session {name}",
            count(n as u64, "terminal")
        ))?,
    }
    ui.data(&json!({
        "session": contract::Session::from(&session),
        "tmux": name,
        "detached": n_clients,
    }))?;
    Ok(Exit::Done)
}
