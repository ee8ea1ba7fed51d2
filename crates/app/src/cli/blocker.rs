//! `biv blocker`: what stands in the way.

use bivouac_core::text::{Note, words_in};
use bivouac_core::work::{Blocker, Item, Noun, key_in};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Args, Subcommand};

use crate::cli::Error;
use crate::cli::saying::{self, Listing, Saying, key_of};
use crate::report::Exit;
use crate::ui::Ui;

/// Record what stands in the way
#[derive(Debug, Subcommand)]
pub enum BlockerCommand {
    /// Record a blocker
    Add(AddArgs),
    /// Say that a blocker is gone
    Resolve(ResolveArgs),
    /// List the blockers
    List(Listing),
}

#[derive(Debug, Args)]
pub struct AddArgs {
    /// What stands in the way
    #[arg(value_parser = words_in)]
    what: Note,
    /// What to call it by; the next number if left out
    #[arg(long, value_parser = key_in)]
    id: Option<String>,
    /// What would unblock it
    #[arg(long, value_name = "TEXT")]
    needs: Option<Note>,
    /// Where it is written down, such as DLQ-17
    #[arg(long, value_name = "WORD")]
    reference: Option<String>,
    #[command(flatten)]
    saying: Saying,
}

#[derive(Debug, Args)]
pub struct ResolveArgs {
    /// Its id, or what it is
    blocker: String,
    /// How it was resolved
    #[arg(long, value_name = "TEXT", default_value = "resolved")]
    how: Note,
    #[command(flatten)]
    saying: Saying,
}

impl BlockerCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::List(_) => Need::Read,
            _ => Need::Write,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::Add(args) => {
                let blocker = Blocker {
                    blocker: args.id.clone().unwrap_or_default(),
                    what: Some(args.what.clone()),
                    needs: args.needs.clone(),
                    reference: args.reference.clone(),
                    ..Blocker::default()
                };
                args.saying.add(Item::Blocker(Box::new(blocker)), engine, ui)
            }
            Self::Resolve(args) => args.saying.say_of(Noun::Blocker, engine, ui, |work| {
                let blocker = Blocker {
                    blocker: key_of(&work.blockers, Noun::Blocker, &args.blocker)?,
                    resolution: Some(args.how.clone()),
                    ..Blocker::default()
                };
                Ok(Item::Blocker(Box::new(blocker)))
            }),
            Self::List(args) => saying::list(args, Noun::Blocker, engine, ui),
        }
    }
}
