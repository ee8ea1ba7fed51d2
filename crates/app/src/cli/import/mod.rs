//! `biv import`: what others wrote down, taken in.

pub mod bundle;
pub mod document;

use bivouac_engine::Engine;
use bivouac_engine::export::Document;
use bivouac_engine::open::Need;
use clap::Subcommand;

use crate::cli::Error;
use crate::report::Exit;
use crate::ui::Ui;

/// Take in what people and other tools wrote down
#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Take in a SESSION-CHECKPOINT.md
    SessionCheckpoint(document::DocumentArgs),
    /// Take in the block of a HANDOFF.md
    Handoff(document::DocumentArgs),
    /// Take in a checkpoint file
    CheckpointMd(document::DocumentArgs),
    Bundle(bundle::BundleArgs),
}

impl ImportCommand {
    pub fn need(&self) -> Need {
        Need::Write
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::SessionCheckpoint(args) => {
                document::run(args, Document::SessionCheckpoint, engine, ui)
            }
            Self::Handoff(args) => document::run(args, Document::Handoff, engine, ui),
            Self::CheckpointMd(args) => document::run(args, Document::CheckpointMd, engine, ui),
            Self::Bundle(args) => bundle::run(args, engine, ui),
        }
    }
}
