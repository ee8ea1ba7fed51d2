//! `biv completions`: what a shell needs to complete our commands and ids.

use clap_complete::env::Shells;
use serde_json::json;

use crate::cli::Error;
use crate::report::Exit;
use crate::ui::Ui;

/// Print what a shell needs to complete commands and ids
///
/// For bash: `source <(biv completions bash)`; likewise for zsh and elvish. For fish:
/// `biv completions fish | source`
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    shell: String,
}

pub fn run(args: &CompletionsArgs, ui: &mut Ui) -> Result<Exit, Error> {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell).ok_or_else(|| Error::UnknownShell {
        shell: args.shell.clone(),
        known: shells.names().collect::<Vec<_>>().join(", "),
    })?;
    let mut script = Vec::new();
    shell.write_registration("COMPLETE", "biv", "biv", "biv", &mut script)?;
    ui.raw(&script)?;
    ui.data(&json!({ "shell": args.shell, "script": String::from_utf8_lossy(&script) }))?;
    Ok(Exit::Done)
}
