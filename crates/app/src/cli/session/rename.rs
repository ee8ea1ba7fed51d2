//! `biv session rename`

use bivouac_core::text::Name;
use bivouac_engine::Engine;

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Give a session another name
#[derive(Debug, clap::Args)]
pub struct RenameArgs {
    /// Its id, handle, name or `latest`
    #[arg(add = complete::sessions())]
    session: String,
    /// What to call it from now on
    name: Name,
}

pub fn run(args: &RenameArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(Some(&args.session))?;
    let session = engine.rename_session(&session, args.name.clone())?;
    ui.say(format_args!("Session {} is now called {}", session.handle, args.name))?;
    ui.data(&contract::Session::from(&session))?;
    Ok(Exit::Done)
}
