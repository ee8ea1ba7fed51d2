//! `biv artifact`: documents and pull requests the work is about.

use bivouac_core::work::{Artifact, Item, Noun, key_in};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Args, Subcommand};

use crate::cli::Error;
use crate::cli::saying::{self, Listing, Saying, key_of};
use crate::report::Exit;
use crate::ui::Ui;

/// Keep track of documents and pull requests
#[derive(Debug, Subcommand)]
pub enum ArtifactCommand {
    /// Name a document or an address
    Add(AddArgs),
    /// Say that one no longer counts
    Remove(RemoveArgs),
    /// List them
    List(Listing),
}

#[derive(Debug, Args)]
pub struct AddArgs {
    /// What it is: design, plan, pr or any other word
    kind: String,
    /// A path in the workspace, or an address
    #[arg(value_parser = key_in)]
    place: String,
    #[command(flatten)]
    saying: Saying,
}

#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Its path, address or kind
    artifact: String,
    #[command(flatten)]
    saying: Saying,
}

impl ArtifactCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::List(_) => Need::Read,
            _ => Need::Write,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::Add(args) => {
                let artifact = Artifact {
                    place: args.place.clone(),
                    kind: Some(args.kind.clone()),
                    gone: Some(false),
                    ..Artifact::default()
                };
                args.saying.say(Item::Artifact(Box::new(artifact)), engine, ui)
            }
            Self::Remove(args) => args.saying.say_of(Noun::Artifact, engine, ui, |work| {
                let place = key_of(&work.artifacts, Noun::Artifact, &args.artifact)?;
                let artifact = Artifact { place, gone: Some(true), ..Artifact::default() };
                Ok(Item::Artifact(Box::new(artifact)))
            }),
            Self::List(args) => saying::list(args, Noun::Artifact, engine, ui),
        }
    }
}
