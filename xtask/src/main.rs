//! What is done to the project: checks, benchmarks, generated documents. `cargo xtask --help`.

#![expect(clippy::print_stdout, reason = "this tool talks to whoever works on the project")]

mod bench;
mod check;
mod docs;
mod packages;
mod prove;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Check, measure and document Bivouac
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check: format, lints, all tests, licences
    Check {
        /// Put what the proof came to into docs/proof.md and the README
        #[arg(long)]
        readme: bool,
    },
    /// Work for long under supervision, and see that nothing is lost or left behind
    Soak {
        #[arg(long, default_value_t = 10)]
        minutes: u32,
    },
    /// Measure against what people would use instead, side by side
    Bench(bench::BenchArgs),
    /// Try every promise on the released binary: killed, starved, cut off, damaged, crowded
    Prove(prove::ProveArgs),
    /// Write the packages that agents install
    Packages,
    /// Write docs/cli.md and the man pages
    Docs(docs::DocsArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Check { readme } => check::run(&prove::ProveArgs::quick(readme)),
        Command::Soak { minutes } => check::soak(minutes),
        Command::Bench(args) => bench::run(&args),
        Command::Prove(args) => prove::run(&args),
        Command::Packages => packages::run(),
        Command::Docs(args) => docs::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
