//! `biv gate`: checks the work has to pass.

use bivouac_core::text::Note;
use bivouac_core::work::{Gate, Item, Noun, Verdict, key_in};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Args, Subcommand};

use crate::cli::Error;
use crate::cli::saying::{self, Listing, Saying};
use crate::report::Exit;
use crate::ui::Ui;

/// Record what a gate said
#[derive(Debug, Subcommand)]
pub enum GateCommand {
    /// It passed
    Pass(RanArgs),
    /// It failed
    Fail(RanArgs),
    /// List the gates
    List(Listing),
}

#[derive(Debug, Args)]
pub struct RanArgs {
    /// Its name, such as tdd-compliance
    #[arg(value_parser = key_in)]
    gate: String,
    /// What it found; can be given several times
    #[arg(long = "finding", value_name = "TEXT")]
    findings: Vec<Note>,
    /// The task it was about
    #[arg(long)]
    task: Option<String>,
    #[command(flatten)]
    saying: Saying,
}

impl GateCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::List(_) => Need::Read,
            _ => Need::Write,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::Pass(args) => ran(args, Verdict::Pass, engine, ui),
            Self::Fail(args) => ran(args, Verdict::Fail, engine, ui),
            Self::List(args) => saying::list(args, Noun::Gate, engine, ui),
        }
    }
}

fn ran(args: &RanArgs, verdict: Verdict, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let gate = Gate {
        gate: Gate::key_for(&args.gate, args.task.as_deref()),
        verdict: Some(verdict),
        // What an earlier run found is not what this one did.
        findings: Some(args.findings.clone()),
        task: args.task.clone(),
        ..Gate::default()
    };
    args.saying.say(Item::Gate(Box::new(gate)), engine, ui)
}
