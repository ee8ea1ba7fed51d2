//! `biv partition`: which agent works on which paths.

use bivouac_core::work::{Item, Noun, Partition, key_in};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Args, Subcommand};

use crate::cli::Error;
use crate::cli::saying::{self, Listing, Saying};
use crate::report::Exit;
use crate::ui::Ui;

/// Say which agent works on which paths
#[derive(Debug, Subcommand)]
pub enum PartitionCommand {
    /// Give paths to an agent
    Set(SetArgs),
    /// List who has what
    List(Listing),
}

#[derive(Debug, Args)]
pub struct SetArgs {
    /// Who works on them
    #[arg(value_parser = key_in)]
    agent: String,
    /// The paths; none take them all away again
    paths: Vec<String>,
    #[command(flatten)]
    saying: Saying,
}

impl PartitionCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::Set(_) => Need::Write,
            Self::List(_) => Need::Read,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        let args = match self {
            Self::Set(args) => args,
            Self::List(args) => return saying::list(args, Noun::Partition, engine, ui),
        };
        let partition = Partition {
            agent: args.agent.clone(),
            paths: Some(args.paths.clone()),
            ..Partition::default()
        };
        args.saying.say(Item::Partition(Box::new(partition)), engine, ui)
    }
}
