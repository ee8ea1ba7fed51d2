//! `biv session resume`, `complete` and `fail`: a session's status.

use bivouac_core::checkpoint::Trigger;
use bivouac_core::session::{Session, Status};
use bivouac_core::text::Note;
use bivouac_engine::Engine;
use bivouac_engine::save::{SaveRequest, Saved};
use bivouac_engine::session::check_change;

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Take up a session that was paused or had ended
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    which: Which,
}

/// Save a last checkpoint and call the work done
#[derive(Debug, clap::Args)]
pub struct CompleteArgs {
    #[command(flatten)]
    which: Which,
}

/// Save a last checkpoint and call the work failed
#[derive(Debug, clap::Args)]
pub struct FailArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Its id, handle, name or `latest`; the one at hand if left out
    #[arg(add = complete::sessions())]
    session: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<Note>,
}

pub fn run_resume(args: &ResumeArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.which.session.as_deref())?;
    change(&session, Status::Active, &args.which, engine, ui)
}

pub fn run_complete(args: &CompleteArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    end(Status::Completed, Trigger::Complete, &args.which, engine, ui)
}

pub fn run_fail(args: &FailArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    end(Status::Failed, Trigger::Error, &args.which, engine, ui)
}

/// A session that ends is saved first, if this is its workspace. Ending does not depend on it.
fn end(
    status: Status,
    trigger: Trigger,
    which: &Which,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    let session = engine.session(which.session.as_deref())?;
    check_change(&session, status)?;
    let mut exit = Exit::Done;
    if session.workspace != engine.home.workspace_path() {
        ui.note(format_args!("no last checkpoint: its workspace is {}", session.workspace));
    } else {
        match engine.save(Some(&session.id.to_string()), SaveRequest::new(trigger)) {
            Ok(Saved::Taken(report)) => ui.note(format_args!("saved {}", report.checkpoint.handle)),
            Ok(Saved::Skipped { why, .. } | Saved::Refused { why, .. }) => {
                ui.note(format_args!("no last checkpoint: {why}"));
            }
            Err(error) => {
                ui.note(format_args!("the last checkpoint failed: {error}"));
                exit = Exit::DoneInPart;
            }
        }
    }
    change(&session, status, which, engine, ui)?;
    let is_kept = engine.config.exports.iter().any(|it| it == "session-checkpoint");
    let is_here = session.workspace == engine.home.workspace_path();
    if status == Status::Completed
        && is_kept
        && is_here
        && let Some(path) = engine.archive_session_checkpoint(&session)?
    {
        ui.note(format_args!("archived as {}", path.display()));
    }
    Ok(exit)
}

fn change(
    session: &Session,
    status: Status,
    which: &Which,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    let session = engine.change_status(session, status, which.reason.clone())?;
    ui.say(format_args!("Session {} is {status}", session.handle))?;
    ui.data(&contract::Session::from(&session))?;
    Ok(Exit::Done)
}
