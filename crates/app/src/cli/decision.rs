//! `biv decision`: what was decided, and why.

use bivouac_core::text::{Note, words_in};
use bivouac_core::work::{Decision, Item, Noun, key_in};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Args, Subcommand};

use crate::cli::Error;
use crate::cli::saying::{self, Listing, Saying, some};
use crate::report::Exit;
use crate::ui::Ui;

/// Record decisions
#[derive(Debug, Subcommand)]
pub enum DecisionCommand {
    /// Record a decision
    Add(AddArgs),
    /// List the decisions
    List(Listing),
}

#[derive(Debug, Args)]
pub struct AddArgs {
    /// What was decided
    #[arg(value_parser = words_in)]
    title: Note,
    /// What to call it by; the next number if left out
    #[arg(long, value_parser = key_in)]
    id: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    why: Option<Note>,
    /// What was not chosen, and why; can be given several times
    #[arg(long, value_name = "TEXT")]
    rejected: Vec<Note>,
    #[command(flatten)]
    saying: Saying,
}

impl DecisionCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::Add(_) => Need::Write,
            Self::List(_) => Need::Read,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        let args = match self {
            Self::Add(args) => args,
            Self::List(args) => return saying::list(args, Noun::Decision, engine, ui),
        };
        let decision = Decision {
            decision: args.id.clone().unwrap_or_default(),
            title: Some(args.title.clone()),
            why: args.why.clone(),
            rejected: some(&args.rejected),
            ..Decision::default()
        };
        args.saying.add(Item::Decision(Box::new(decision)), engine, ui)
    }
}
