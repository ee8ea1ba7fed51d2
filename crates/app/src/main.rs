//! The `biv` command.

use std::process::ExitCode;

use bivouac::cli::run::lead_terminal;
use bivouac::cli::{Cli, hook};
use bivouac::report;
use bivouac_engine::survive_file_size_limit;
use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;

fn main() -> ExitCode {
    sabotage();
    survive_file_size_limit();
    keep_own_permissions();
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(exit) = hook::run_first(&words).or_else(|| lead_terminal(&words)) {
        return exit.into();
    }
    CompleteEnv::with_factory(Cli::command).complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report::usage(&error).into(),
    };
    let mut ui = cli.ui();
    let exit = match cli.run(&mut ui) {
        Ok(exit) => exit,
        Err(error) => report::error(&error, &mut ui),
    };
    match ui.finish() {
        Ok(()) => exit.into(),
        Err(error) => report::error(&error.into(), &mut ui).into(),
    }
}

/// With a umask that takes the owner's own bits away, nobody can enter the folders they make. No file of ours, and
/// no program that we start, has a use for that.
fn keep_own_permissions() {
    use rustix::fs::Mode;
    let umask = rustix::process::umask(Mode::empty());
    rustix::process::umask(umask & Mode::from_bits_truncate(0o077));
}

/// A mistake to make on purpose, if `cargo xtask prove` wants to see it found. No released binary asks.
fn sabotage() {
    #[cfg(debug_assertions)]
    if let Some(fault) = std::env::var("BIV_SABOTAGE").ok().and_then(|it| it.parse().ok()) {
        bivouac_core::sabotage::commit(fault);
    }
}
