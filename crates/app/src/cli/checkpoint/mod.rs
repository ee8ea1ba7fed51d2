//! `biv checkpoint`: moments to come back to.

pub mod create;
pub mod delete;
pub mod diff;
pub mod list;
pub mod pin;
pub mod restore;
pub mod rollback;
pub mod show;

use bivouac_core::autosave::is_automatic;
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::Subcommand;

use crate::cli::{Error, complete};
use crate::report::Exit;
use crate::ui::Ui;

/// Save, compare and go back to checkpoints
#[derive(Debug, Subcommand)]
pub enum CheckpointCommand {
    Create(create::CreateArgs),
    Save(create::SaveArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Diff(diff::DiffArgs),
    Rollback(rollback::RollbackArgs),
    Restore(restore::RestoreArgs),
    Delete(delete::DeleteArgs),
    Pin(pin::PinArgs),
    Unpin(pin::UnpinArgs),
}

/// Which checkpoint is meant.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// Its handle, the end or beginning of it, its id, name or `latest`
    #[arg(add = complete::checkpoints())]
    pub checkpoint: String,
    /// Look for it in this session first
    #[arg(long, add = complete::sessions())]
    pub session: Option<String>,
}

impl CheckpointCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::List(_) | Self::Show(_) | Self::Diff(_) | Self::Restore(_) => Need::Read,
            Self::Rollback(args) => args.need(),
            Self::Create(_) if self.is_automatic() => Need::Record,
            Self::Create(_) | Self::Save(_) | Self::Delete(_) | Self::Pin(_) | Self::Unpin(_) => {
                Need::Write
            }
        }
    }

    /// Was it a timer or an event that asked?
    pub fn is_automatic(&self) -> bool {
        matches!(self, Self::Create(args) if is_automatic(args.trigger()))
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::Create(args) => create::run(args, engine, ui),
            Self::Save(args) => create::run_save(args, engine, ui),
            Self::List(args) => list::run(args, engine, ui),
            Self::Show(args) => show::run(args, engine, ui),
            Self::Diff(args) => diff::run(args, engine, ui),
            Self::Rollback(args) => rollback::run(args, engine, ui),
            Self::Restore(args) => restore::run(args, engine, ui),
            Self::Delete(args) => delete::run(args, engine, ui),
            Self::Pin(args) => pin::run_pin(args, engine, ui),
            Self::Unpin(args) => pin::run_unpin(args, engine, ui),
        }
    }
}
