//! `biv export`: what is known, in the forms that people and other tools keep.

pub mod bundle;
pub mod document;
pub mod events;

use bivouac_engine::Engine;
use bivouac_engine::export::Document;
use bivouac_engine::open::Need;
use clap::Subcommand;

use crate::cli::Error;
use crate::report::Exit;
use crate::ui::Ui;

/// Write what is known into files that people and other tools keep
#[derive(Debug, Subcommand)]
pub enum ExportCommand {
    /// Keep a part of HANDOFF.md up to date; every other byte of it stays
    Handoff(document::DocumentArgs),
    /// Write docs/SESSION-CHECKPOINT.md
    SessionCheckpoint(document::SessionCheckpointArgs),
    /// Keep the Working State in Claude Code's MEMORY.md up to date; every other byte of it stays
    Memory(document::DocumentArgs),
    /// Write a file of its own for this moment: checkpoints/DATE-LABEL.md
    CheckpointMd(document::DocumentArgs),
    Bundle(bundle::BundleArgs),
    Events(events::EventsArgs),
}

impl ExportCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::Bundle(_) | Self::Events(_) => Need::Read,
            Self::Handoff(_)
            | Self::SessionCheckpoint(_)
            | Self::Memory(_)
            | Self::CheckpointMd(_) => Need::Write,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::Handoff(args) => document::run(args, Document::Handoff, engine, ui),
            Self::SessionCheckpoint(args) => document::run_session_checkpoint(args, engine, ui),
            Self::Memory(args) => document::run(args, Document::Memory, engine, ui),
            Self::CheckpointMd(args) => document::run(args, Document::CheckpointMd, engine, ui),
            Self::Bundle(args) => bundle::run(args, engine, ui),
            Self::Events(args) => events::run(args, engine, ui),
        }
    }
}
