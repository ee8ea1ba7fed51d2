//! `biv worktree`: branches that are worked on in folders of their own.

use bivouac_core::work::{Item, Noun, Worktree, WorktreeStatus, key_in};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Args, Subcommand};

use crate::cli::Error;
use crate::cli::saying::{self, Listing, Saying};
use crate::report::Exit;
use crate::ui::Ui;

/// Keep track of branches and their folders; git's own worktrees are seen by themselves
#[derive(Debug, Subcommand)]
pub enum WorktreeCommand {
    /// Say how a branch stands
    Set(SetArgs),
    /// List the branches
    List(Listing),
}

#[derive(Debug, Args)]
pub struct SetArgs {
    /// The branch
    #[arg(value_parser = key_in)]
    branch: String,
    /// active, merged or removed
    #[arg(long, default_value = "active")]
    status: WorktreeStatus,
    /// Where it is checked out
    #[arg(long)]
    path: Option<String>,
    #[command(flatten)]
    saying: Saying,
}

impl WorktreeCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::Set(_) => Need::Write,
            Self::List(_) => Need::Read,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        let args = match self {
            Self::Set(args) => args,
            Self::List(args) => return saying::list(args, Noun::Worktree, engine, ui),
        };
        let worktree = Worktree {
            branch: args.branch.clone(),
            path: args.path.clone(),
            status: Some(args.status),
            ..Worktree::default()
        };
        args.saying.say(Item::Worktree(Box::new(worktree)), engine, ui)
    }
}
