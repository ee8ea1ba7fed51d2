//! The `biv` command.

use std::process::ExitCode;

use bivouac::cli::run::lead_terminal;
use bivouac::cli::{Cli, run_hook};
use bivouac::report;
use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;

fn main() -> ExitCode {
    sabotage();
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

/// A mistake to make on purpose, if `cargo xtask prove` wants to see it found. No released binary asks.
fn sabotage() {
    #[cfg(debug_assertions)]
    if let Some(fault) = std::env::var("BIV_SABOTAGE").ok().and_then(|it| it.parse().ok()) {
        bivouac_core::sabotage::commit(fault);
    }
}
