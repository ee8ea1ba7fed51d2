//! `biv status`: how things stand here.

use bivouac_core::checkpoint::Coverage;
use bivouac_core::text::{Note, count, printable};
use bivouac_core::time::in_words;
use bivouac_core::work::progress;
use bivouac_engine::Engine;
use bivouac_engine::status::StatusReport;
use owo_colors::OwoColorize;
use serde_json::json;

use crate::cli::Error;
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Show how things stand in this workspace
#[derive(Debug, clap::Args)]
pub struct StatusArgs {}

pub fn run(_args: &StatusArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let report = engine.status()?;
    ui.say(format_args!("Workspace  {}", engine.home.workspace.display()))?;
    match &report.session {
        Some(session) => {
            let title = session.title().map(|title| format!(": {title}")).unwrap_or_default();
            let handle = session.handle.style(looks::handle());
            ui.say(format_args!("Session    {handle} ({}){title}", session.status))?;
        }
        None => ui.say("Session    none yet; `biv checkpoint create` makes one")?,
    }
    if let Some(last) = &report.last {
        let ago = in_words(engine.clock.now().since(last.taken_at));
        ui.say(format_args!(
            "Last       {} ({}), {ago} ago",
            last.handle.style(looks::handle()),
            last.trigger
        ))?;
    }
    let changes = &report.changes;
    let since = if report.last.is_some() { " since then" } else { " to save" };
    ui.say(format_args!(
        "Changes    {} new, {} modified, {} deleted{since}",
        changes.n_new, changes.n_modified, changes.n_deleted
    ))?;
    ui.say(format_args!("Coverage   {}", coverage_line(&report.coverage)))?;
    say_tasks(&report, ui)?;
    if report.history.undo.is_some() {
        ui.say("Undo       `biv undo` takes back the last rollback")?;
    }
    if report.history.redo.is_some() {
        ui.say("Redo       `biv redo` takes back the last undo")?;
    }
    for trouble in &report.troubles {
        let when = engine.clock.local(trouble.created_at).strftime("%Y-%m-%d %H:%M").to_string();
        ui.say(format_args!(
            "{:10} {when} {}",
            trouble.level.style(looks::gone()),
            trouble.message
        ))?;
    }
    ui.data(&json!({
        "workspace": engine.home.workspace,
        "store": engine.home.store,
        "session": report.session.as_ref().map(contract::Session::from),
        "checkpoints": report.n_checkpoints,
        "last_checkpoint": report.last.as_ref().map(|last| contract::Checkpoint::new(last, false)),
        "changes": { "new": changes.n_new, "modified": changes.n_modified, "deleted": changes.n_deleted },
        "coverage": contract::CoverageCounts::from(&report.coverage),
        "progress": contract::progress(&report.work),
        "approvals": report.approvals,
        "can_undo": report.history.undo.is_some(),
        "can_redo": report.history.redo.is_some(),
        "troubles": report.troubles.iter().map(contract::Log::from).collect::<Vec<_>>(),
    }))?;
    Ok(Exit::Done)
}

fn say_tasks(report: &StatusReport, ui: &mut Ui) -> Result<(), Error> {
    if let Some(phase) = report.work.phase().and_then(|phase| phase.name.as_deref()) {
        ui.say(format_args!("Phase      {}", printable(phase)))?;
    }
    if !report.work.tasks.is_empty() {
        ui.say(format_args!("Tasks      {}", progress(&report.work.tasks)))?;
    }
    for blocker in report.work.open_blockers() {
        let what = blocker.what.as_ref().map(Note::headline).unwrap_or_default();
        ui.say(format_args!("Blocked    {what}"))?;
    }
    for approval in report.work.pending_approvals() {
        let question = approval.question.as_ref().map(Note::headline).unwrap_or_default();
        ui.say(format_args!("Waiting    for an answer: {question}"))?;
    }
    for approval in &report.approvals {
        let line = approval.lines().next().unwrap_or_default();
        ui.say(format_args!("Waiting    for your leave: {}", printable(line)))?;
    }
    Ok(())
}

/// How much is covered, and what is not and why.
pub fn coverage_line(coverage: &Coverage) -> String {
    let size = bivouac_core::size::Bytes(coverage.size_bytes);
    let gaps: Vec<String> =
        coverage.gaps.iter().map(|(gap, count)| format!("{count} {gap}")).collect();
    let gaps = if gaps.is_empty() {
        "nothing left out".to_owned()
    } else {
        format!("left out: {}", gaps.join(", "))
    };
    format!("{}, {size}; {gaps}", count(coverage.n_files, "file"))
}
