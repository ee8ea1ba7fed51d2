//! `biv status`: how things stand here.

use bivouac_core::checkpoint::{Coverage, Gap};
use bivouac_core::session::Status;
use bivouac_core::text::{Note, count, printable};
use bivouac_core::time::in_words;
use bivouac_core::work::progress;
use bivouac_engine::Engine;
use bivouac_engine::config::Config;
use bivouac_engine::observe::MANY_FAILURES;
use bivouac_engine::status::{Changes, StatusReport};
use owo_colors::OwoColorize;
use serde_json::json;

use crate::cli::session::ahead;
use crate::cli::{Error, note_move};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Show how things stand in this workspace
#[derive(Debug, clap::Args)]
pub struct StatusArgs {}

pub fn run(_args: &StatusArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let report = engine.status()?;
    ui.say(format_args!("Workspace  {}", engine.home.workspace_path()))?;
    match &report.session {
        Some(session) => {
            let title = session.title().map(|title| format!(": {title}")).unwrap_or_default();
            let handle = session.handle.style(looks::handle());
            ui.say(format_args!("Session    {handle} ({}){title}", session.status))?;
        }
        None => ui.say("Session    none yet; `biv checkpoint create` makes one")?,
    }
    say_standing(&report, engine, ui)?;
    if let Some(last) = &report.last {
        let ago = in_words(engine.clock.now().since(last.taken_at));
        ui.say(format_args!(
            "Last       {} ({}), {ago} ago",
            last.handle.style(looks::handle()),
            last.trigger
        ))?;
    }
    ui.say(format_args!("Changes    {}", changes_line(&report)))?;
    say_coverage(&report, ui)?;
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
    note_ignored(&engine.config, ui);
    note_move(engine.left_behind().as_ref(), ui);
    ui.data(&json!({
        "workspace": contract::path(&engine.home.workspace),
        "store": contract::path(&engine.home.store),
        "session": report.session.as_ref().map(contract::Session::from),
        "checkpoints": report.n_checkpoints,
        "last_checkpoint": report.last.as_ref().map(|last| contract::Checkpoint::new(last, false)),
        "changes": report.changes.as_ref().ok().map(|it| {
            json!({ "new": it.n_new, "modified": it.n_modified, "deleted": it.n_deleted })
        }),
        "coverage": contract::CoverageCounts::from(&report.coverage),
        "excluded_by": report.excluded_by,
        "ignored_settings": engine.config.ignored().iter().map(|it| &it.key).collect::<Vec<_>>(),
        "progress": contract::progress(&report.work),
        "approvals": report.approvals,
        "can_go_on_at": report.limit_ends.map(|ends| ends.to_string()),
        "failed_saves": report.failures.number,
        "can_undo": report.history.undo.is_some(),
        "can_redo": report.history.redo.is_some(),
        "troubles": report.troubles.iter().map(contract::Log::from).collect::<Vec<_>>(),
    }))?;
    Ok(Exit::Done)
}

/// Says which settings of the workspace's file are ignored, and what to do about it.
pub fn note_ignored(config: &Config, ui: &mut Ui) {
    if let Some(notice) = config.ignored_notice() {
        ui.note(notice);
    }
}

fn changes_line(report: &StatusReport) -> String {
    let since = if report.last.is_some() { "since then" } else { "to save" };
    match &report.changes {
        Ok(Changes { n_new, n_modified, n_deleted }) => {
            format!("{n_new} new, {n_modified} modified, {n_deleted} deleted {since}")
        }
        Err(error) => format!("cannot be told: {error}"),
    }
}

fn say_coverage(report: &StatusReport, ui: &mut Ui) -> Result<(), Error> {
    ui.say(format_args!("Coverage   {}", coverage_line(&report.coverage)))?;
    if let Some(line) = excluded_line(&report.coverage, &report.excluded_by) {
        ui.say(format_args!("Excluded   {line}"))?;
    }
    Ok(())
}

/// What keeps the session from going on, or from being saved.
fn say_standing(report: &StatusReport, engine: &Engine, ui: &mut Ui) -> Result<(), Error> {
    let session = report.session.as_ref();
    if let Some(session) = session.filter(|session| session.status == Status::Interrupted) {
        let handle = &session.handle;
        ui.say(format_args!("Recover    `biv session recover {handle}` brings it back"))?;
    }
    if let Some(until) = session.and_then(|session| session.until) {
        ui.say(format_args!("Paused     until {}", ahead(until, engine)))?;
    }
    if let Some(ends) = report.limit_ends {
        ui.say(format_args!("Limit      can go on at {}", ahead(ends, engine)))?;
    }
    if let Some(pid) = report.orphan {
        ui.say(format_args!("Run        its supervisor is gone; process {pid} still runs"))?;
    }
    let failures = &report.failures;
    if failures.number >= MANY_FAILURES {
        let error = failures.last_error.as_ref().map(Note::headline).unwrap_or_default();
        ui.say(format_args!(
            "{}    the last {} saves failed: {error}; next try at the next change",
            "Warning".style(looks::gone()),
            failures.number
        ))?;
    }
    Ok(())
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

/// How many paths `workspace.exclude` leaves out, and with which patterns. `None` if there are none.
pub fn excluded_line(coverage: &Coverage, patterns: &[String]) -> Option<String> {
    let number = coverage.gaps.get(&Gap::Excluded).filter(|number| **number > 0)?;
    Some(format!("{}{}", count(*number, "path"), by_patterns(patterns)))
}

/// Which patterns leave something out, where there are any.
pub fn by_patterns(patterns: &[String]) -> String {
    const MANY: usize = 5;
    if patterns.is_empty() {
        return String::new();
    }
    let shown: Vec<String> =
        patterns.iter().take(MANY).map(|pattern| format!("`{}`", printable(pattern))).collect();
    let more = match patterns.len().saturating_sub(MANY) {
        0 => String::new(),
        n_more => format!(" and {n_more} more"),
    };
    format!(" by `workspace.exclude` ({}{more})", shown.join(", "))
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
