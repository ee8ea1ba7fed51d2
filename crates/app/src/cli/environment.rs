//! `biv environment`: what hooks do not wait for.

use bivouac_core::text::printable;
use bivouac_engine::Engine;

use crate::cli::{Error, complete};
use crate::report::Exit;
use crate::ui::Ui;

/// Ask the tools of this project for their versions, and remember them
#[derive(Debug, clap::Args)]
pub struct EnvironmentArgs {
    /// The session whose agent is asked as well
    #[arg(add = complete::sessions())]
    session: Option<String>,
}

pub fn run(args: &EnvironmentArgs, engine: &Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let environment = engine.learn_tools(&session);
    for (program, version) in &environment.tools {
        let version = version.as_deref().map_or_else(|| "is missing".to_owned(), printable);
        ui.say(format_args!("{} {version}", printable(program)))?;
    }
    ui.data(&environment)?;
    Ok(Exit::Done)
}
