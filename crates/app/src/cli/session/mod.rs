//! `biv session`: the pieces of work in a workspace.

pub mod describe;
pub mod end;
pub mod list;
pub mod log;
pub mod new;
pub mod recover;
pub mod rename;
pub mod show;

use std::time::Duration;

use bivouac_core::session::Session;
use bivouac_core::time::{Timestamp, in_words};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::Subcommand;

use crate::cli::Error;
use crate::cli::pause::{self, PauseArgs};
use crate::report::Exit;
use crate::ui::Ui;

/// Open, list and end sessions
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    New(new::NewArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Rename(rename::RenameArgs),
    Describe(describe::DescribeArgs),
    Pause(PauseArgs),
    Resume(end::ResumeArgs),
    Complete(end::CompleteArgs),
    Fail(end::FailArgs),
    Recover(recover::RecoverArgs),
    Log(log::LogArgs),
}

impl SessionCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::List(_) | Self::Show(_) | Self::Log(_) => Need::Read,
            Self::New(_)
            | Self::Rename(_)
            | Self::Describe(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::Complete(_)
            | Self::Fail(_)
            | Self::Recover(_) => Need::Write,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::New(args) => new::run(args, engine, ui),
            Self::List(args) => list::run(args, engine, ui),
            Self::Show(args) => show::run(args, engine, ui),
            Self::Rename(args) => rename::run(args, engine, ui),
            Self::Describe(args) => describe::run(args, engine, ui),
            Self::Pause(args) => pause::run(args, engine, ui),
            Self::Resume(args) => end::run_resume(args, engine, ui),
            Self::Complete(args) => end::run_complete(args, engine, ui),
            Self::Fail(args) => end::run_fail(args, engine, ui),
            Self::Recover(args) => recover::run(args, engine, ui),
            Self::Log(args) => log::run(args, engine, ui),
        }
    }
}

/// Its status, and until when where someone said so: `paused until 14:30 (in 2 hours)`.
pub fn standing(session: &Session, engine: &Engine) -> String {
    match session.until {
        Some(until) => format!("{} until {}", session.status, ahead(until, engine)),
        None => session.status.to_string(),
    }
}

const HALF_A_MINUTE: Duration = Duration::from_secs(30);

/// A moment to come: `14:30 (in 2 hours)`.
pub fn ahead(moment: Timestamp, engine: &Engine) -> String {
    let (at, now) = (engine.clock.in_short(moment), engine.clock.now());
    match moment > now {
        // To the nearest minute: two hours are not one because a second has passed.
        true => format!("{at} (in {})", in_words(moment.since(now) + HALF_A_MINUTE)),
        false => format!("{at} (over)"),
    }
}
