//! `biv delegation`: work that was handed to another agent.

use bivouac_core::text::Note;
use bivouac_core::time::Age;
use bivouac_core::work::{Delegation, Item, Noun, TaskStatus, key_in};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Args, Subcommand};

use crate::cli::Error;
use crate::cli::saying::{self, Listing, Saying, key_of};
use crate::report::Exit;
use crate::ui::Ui;

/// Keep track of work that was handed over, and what it cost
#[derive(Debug, Subcommand)]
pub enum DelegationCommand {
    /// Hand work to an agent
    Start(StartArgs),
    /// Say how it ended
    Finish(FinishArgs),
    /// List the delegations
    List(Listing),
}

#[derive(Debug, Args)]
pub struct StartArgs {
    /// Who does it
    agent: String,
    /// What to call it by; the next number if left out
    #[arg(long, value_parser = key_in)]
    id: Option<String>,
    /// The issue it is about
    #[arg(long)]
    issue: Option<String>,
    /// The tier of the model, such as Standard
    #[arg(long)]
    tier: Option<String>,
    /// It is a review by a panel
    #[arg(long)]
    review: bool,
    #[command(flatten)]
    saying: Saying,
}

#[derive(Debug, Args)]
pub struct FinishArgs {
    /// Its number, its issue or who does it
    delegation: String,
    /// How it ended
    #[arg(long, default_value = "done")]
    status: TaskStatus,
    /// About how many tokens it took, such as 20K
    #[arg(long, value_parser = tokens)]
    tokens: Option<u64>,
    /// How long it took, such as 8m
    #[arg(long, value_name = "TIME")]
    took: Option<Age>,
    /// What else there is to say
    #[arg(long, value_name = "TEXT")]
    note: Option<Note>,
    #[command(flatten)]
    saying: Saying,
}

fn tokens(text: &str) -> Result<u64, String> {
    bivouac_core::work::tokens_in(text).ok_or_else(|| "write it as 20000 or 20K".to_owned())
}

impl DelegationCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::List(_) => Need::Read,
            _ => Need::Write,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::Start(args) => {
                let delegation = Delegation {
                    delegation: args.id.clone().unwrap_or_default(),
                    agent: Some(args.agent.clone()),
                    issue: args.issue.clone(),
                    tier: args.tier.clone(),
                    status: Some(TaskStatus::InProgress),
                    is_review: args.review.then_some(true),
                    ..Delegation::default()
                };
                args.saying.add(Item::Delegation(Box::new(delegation)), engine, ui)
            }
            Self::Finish(args) => args.saying.say_of(Noun::Delegation, engine, ui, |work| {
                let delegation = Delegation {
                    delegation: key_of(&work.delegations, Noun::Delegation, &args.delegation)?,
                    status: Some(args.status),
                    tokens: args.tokens,
                    seconds: args.took.map(|age| age.duration().as_secs()),
                    note: args.note.clone(),
                    ..Delegation::default()
                };
                Ok(Item::Delegation(Box::new(delegation)))
            }),
            Self::List(args) => saying::list(args, Noun::Delegation, engine, ui),
        }
    }
}
