//! The `biv` command.

use std::process::ExitCode;

use bivouac::cli::run::lead_terminal;
use bivouac::cli::{Cli, run_hook};
use bivouac::report;
use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(exit) = run_hook(&words).or_else(|| lead_terminal(&words)) {
        return exit.into();
    }
    CompleteEnv::with_factory(Cli::command).complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report::usage(&error).into(),
    };
    let mut ui = cli.ui();
    match cli.run(&mut ui) {
        Ok(exit) => exit.into(),
        Err(error) => report::error(&error, &mut ui).into(),
    }
}
