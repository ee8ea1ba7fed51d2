//! What rollback, undo and redo have in common: show the plan, get consent, do it, tell what was done.

use bivouac_core::operation::{LeftAlone, OperationKind, Outcome};
use bivouac_core::path::RelPath;
use bivouac_core::text::count;
use bivouac_engine::Engine;
use bivouac_engine::excluded::Excluded;
use bivouac_engine::open::Need;
use bivouac_engine::rollback::{RestorePlan, RestoreReport};
use bivouac_snapshot::database::in_use::InUse;
use bivouac_snapshot::plan::Step;
use owo_colors::{OwoColorize, Style};

use crate::cli::Error;
use crate::cli::status::{by_patterns, note_ignored};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, looks};

#[derive(Debug, clap::Args)]
pub struct Consent {
    /// Only show what would be done
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
    /// Also make an entry in git's stash of what is uncommitted
    #[arg(long)]
    stash: bool,
    /// Only if it is the plan with this id, as `--dry-run --json` told it
    #[arg(long, value_name = "ID")]
    plan: Option<String>,
}

impl Consent {
    /// For what is part of something larger.
    pub fn given(yes: bool) -> Self {
        Self { dry_run: false, yes, stash: false, plan: None }
    }

    pub fn need(&self) -> Need {
        if self.dry_run { Need::Read } else { Need::Write }
    }
}

/// Plans longer than this are cut on the screen; `--dry-run` and `--json` show all.
const MANY: usize = 20;

pub fn run(
    plan: RestorePlan,
    consent: &Consent,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    let id = plan.id();
    if consent.plan.as_ref().is_some_and(|shown| *shown != id) {
        return Err(Error::OtherPlan { what: verb(plan.kind) });
    }
    let mut answer = planned(&plan, consent, id);
    if plan.kind == OperationKind::Rollback {
        note_ignored(&engine.config, ui);
    }
    let is_idle = plan.plan.is_empty() && plan.plan.left_alone.is_empty();
    // An undo that finds everything done already still counts: the next one goes further back.
    if is_idle && (consent.dry_run || plan.kind == OperationKind::Rollback) {
        ui.say(nothing_to_do(&plan))?;
        ui.data(&answer)?;
        return Ok(Exit::Done);
    }
    match engine.check_may_restore() {
        Err(refusal) if consent.dry_run => {
            ui.note(format_args!("this would be refused: {refusal}"));
        }
        other => other?,
    }
    let must_ask = !is_idle && !consent.yes && !consent.dry_run;
    if must_ask && !ui.can_ask() {
        return Err(Error::NeedsYes { what: verb(plan.kind) });
    }
    if consent.dry_run || must_ask {
        show_at_most(if consent.dry_run { usize::MAX } else { MANY }, &plan, engine, ui)?;
    }
    tell_in_use(&plan, ui);
    if consent.dry_run {
        ui.data(&answer)?;
        return Ok(Exit::Done);
    }
    if !must_ask {
        note_excluded(&plan, ui);
    }
    if must_ask && !ui.ask("Go ahead?")? {
        return Err(Error::Declined { what: verb(plan.kind) });
    }
    let stash = if consent.stash { engine.stash(&plan)? } else { None };
    let told = Told { kind: plan.kind, done: done(&plan), is_idle, in_use: plan.in_use.clone() };
    let report = engine.restore(plan)?;
    let exit = tell(&told, &report, ui)?;
    tell_stash(stash.as_deref(), consent, ui)?;
    answer.result = Some(result_of(&report, stash));
    ui.data(&answer)?;
    Ok(exit)
}

/// What is said of a plan once it is carried out.
struct Told {
    kind: OperationKind,
    done: String,
    is_idle: bool,
    in_use: Vec<InUse>,
}

fn tell(told: &Told, report: &RestoreReport, ui: &mut Ui) -> Result<Exit, Error> {
    let Told { kind, done, is_idle, in_use } = told;
    let outcome = &report.outcome;
    let n_loose = outcome.left_alone.iter().filter(|it| it.why.is_loose_end()).count() as u64;
    let (written, removed) = (count(outcome.n_written, "file"), outcome.n_removed);
    let files = format!("{written} written, {removed} removed");
    ui.say(match (n_loose > 0, outcome.n_written + removed) {
        _ if *is_idle => format!("{done}: the files already were as they were before it"),
        (true, 0) => format!("The {kind} changed no file"),
        (true, _) => format!("{done} in part: {files}"),
        (false, _) => format!("{done}: {files}"),
    })?;
    tell_left_alone(outcome, in_use, ui)?;
    ui.say(format_args!(
        "Everything as it was before is in {}",
        report.safety.handle.style(looks::handle())
    ))?;
    if n_loose == 0 {
        return Ok(Exit::Done);
    }
    let (paths, them) = (count(n_loose, "path"), if n_loose == 1 { "it" } else { "them" });
    ui.note(format_args!(
        "{paths} left alone; once nothing stands in the way, repeat the {kind} to restore {them}"
    ));
    Ok(Exit::DoneInPart)
}

fn result_of(report: &RestoreReport, stash: Option<String>) -> contract::RestoreResult {
    contract::RestoreResult {
        operation_id: report.operation.to_string(),
        safety_checkpoint: contract::Checkpoint::new(&report.safety, false),
        written: report.outcome.n_written,
        removed: report.outcome.n_removed,
        left_alone: contract::left_alone(&report.outcome),
        without_set_id: contract::paths(&report.outcome.without_set_id),
        stash,
    }
}

/// The answer for programs, before anything is done.
fn planned(plan: &RestorePlan, consent: &Consent, id: String) -> contract::Restore {
    contract::Restore {
        operation: plan.kind.as_str(),
        target: plan.target.as_ref().map(|target| contract::Checkpoint::new(target, false)),
        dry_run: consent.dry_run,
        plan: id,
        steps: plan.plan.changes().map(step).collect(),
        not_covered: plan.coverage.gaps.clone(),
        in_use: plan.in_use.iter().map(contract::InUse::from).collect(),
        excluded: (&plan.excluded).into(),
        result: None,
    }
}

/// What someone is asked about, on a screen.
pub fn show(plan: &RestorePlan, engine: &Engine, ui: &mut Ui) -> Result<(), Error> {
    show_at_most(MANY, plan, engine, ui)?;
    tell_in_use(plan, ui);
    Ok(())
}

fn show_at_most(
    most: usize,
    plan: &RestorePlan,
    engine: &Engine,
    ui: &mut Ui,
) -> Result<(), Error> {
    let heading = match &plan.target {
        Some(target) => {
            let when = engine.clock.local(target.taken_at).strftime("%Y-%m-%d %H:%M");
            format!("Rollback to {} ({when})", target.handle)
        }
        None => format!(
            "Take back the last {}",
            if plan.kind.as_str() == "undo" { "rollback" } else { "undo" }
        ),
    };
    ui.say(heading.style(looks::heading()))?;
    ui.say("")?;
    for it in plan.plan.changes().take(most) {
        let (sign, words, style) = sign(it);
        let slash =
            if it.before.or(it.after).is_some_and(|entry| entry.is_folder()) { "/" } else { "" };
        ui.say(format_args!("  {} {}{slash}{words}", sign.style(style), it.path))?;
    }
    let n_changes = plan.plan.changes().count();
    if n_changes > most {
        ui.say(format_args!("  … and {} more", n_changes - most))?;
    }
    for left in &plan.plan.left_alone {
        let why = why_left(left, &plan.in_use);
        ui.say(format_args!("  = {} (stays: {why})", left.path))?;
    }
    let gaps: Vec<String> =
        plan.coverage.gaps.iter().map(|(gap, count)| format!("{count} {gap}")).collect();
    if !gaps.is_empty() {
        ui.say(format_args!("\nNot covered and not touched: {}", gaps.join(", ")))?;
    }
    for line in excluded_lines(plan) {
        ui.say(line)?;
    }
    let back = if matches!(plan.kind, OperationKind::Undo { .. }) { "redo" } else { "undo" };
    ui.say(format_args!("Everything is saved first; `biv {back}` takes it back"))?;
    Ok(())
}

fn tell_in_use(plan: &RestorePlan, ui: &mut Ui) {
    for InUse { path, pid } in &plan.in_use {
        let by = pid.map_or("another program".to_owned(), |pid| format!("process {pid}"));
        let kind = plan.kind;
        ui.note(format_args!(
            "the database `{path}` is open in {by} and stays as it is; stop it and repeat the {kind}"
        ));
    }
}

fn why_left(left: &LeftAlone, in_use: &[InUse]) -> &'static str {
    match in_use.iter().any(|it| it.holds(&left.path)) {
        true => "another program has the database open",
        false => left.why.as_str(),
    }
}

/// Says what a rollback does not restore, where nobody is shown the plan.
pub fn note_excluded(plan: &RestorePlan, ui: &mut Ui) {
    for line in excluded_lines(plan) {
        ui.note(line);
    }
}

/// What is excluded, and so not restored, a line for each reason.
fn excluded_lines(plan: &RestorePlan) -> Vec<String> {
    let Excluded { now, patterns, then } = &plan.excluded;
    let mut lines = Vec::new();
    if let Some((names, are, they_are)) = in_words(now) {
        let by = by_patterns(patterns);
        lines.push(format!("{names} {are} excluded{by}, so {they_are} not restored"));
    }
    if let (Some(target), Some((names, ..))) = (&plan.target, in_words(then)) {
        let why = "excluded when it was taken, or withheld from the bundle it came in";
        lines.push(format!("{} does not hold {names} ({why})", target.handle));
    }
    lines
}

/// The first of some paths, with the verbs for their number. `None` if there are none.
fn in_words(paths: &[(RelPath, bool)]) -> Option<(String, &'static str, &'static str)> {
    const MANY: usize = 3;
    let name = |(path, is_folder): &(RelPath, bool)| {
        format!("`{path}{}`", if *is_folder { "/" } else { "" })
    };
    let names: Vec<String> = paths.iter().take(MANY).map(name).collect();
    let more = match paths.len().saturating_sub(MANY) as u64 {
        0 => String::new(),
        n_more => format!(" and {}", count(n_more, "other path")),
    };
    let (are, they_are) = match paths.len() {
        0 => return None,
        1 => ("is", "it is"),
        _ => ("are", "they are"),
    };
    Some((format!("{}{more}", names.join(", ")), are, they_are))
}

fn sign(step: &Step) -> (&'static str, &'static str, Style) {
    match (&step.before, &step.after) {
        (None, Some(_)) => ("+", " (comes back)", looks::new()),
        (Some(_), None) => ("D", " (born later)", looks::gone()),
        (Some(_), Some(_)) | (None, None) => ("M", "", looks::changed()),
    }
}

fn step(step: &Step) -> contract::Step {
    let action = match (&step.before, &step.after) {
        (None, Some(_)) => "create",
        (Some(_), None) => "remove",
        (Some(_), Some(_)) | (None, None) => "replace",
    };
    contract::Step { path: contract::path_bytes(step.path.as_bytes()), action }
}

fn tell_left_alone(outcome: &Outcome, in_use: &[InUse], ui: &mut Ui) -> Result<(), Error> {
    for left in &outcome.left_alone {
        ui.say(format_args!("  left alone: {} ({})", left.path, why_left(left, in_use)))?;
    }
    Ok(())
}

fn tell_stash(stash: Option<&str>, consent: &Consent, ui: &mut Ui) -> Result<(), Error> {
    match stash {
        Some(commit) => ui.say(format_args!(
            "git's stash has what was uncommitted in tracked files too, as {}",
            &commit[..commit.len().min(12)]
        ))?,
        None if consent.stash => ui.note("nothing was stashed: no tracked file differs from HEAD"),
        None => {}
    }
    Ok(())
}

fn nothing_to_do(plan: &RestorePlan) -> String {
    match (&plan.target, excluded_lines(plan).join("; ")) {
        (Some(target), excluded) if !excluded.is_empty() => {
            format!("Nothing to do for the paths that {} covers; {excluded}", target.handle)
        }
        (Some(target), _) => {
            format!("Nothing to do: the workspace already is as in {}", target.handle)
        }
        (None, _) => "Nothing to do: the files already are as they were before it".to_owned(),
    }
}

const fn verb(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Rollback => "the rollback",
        OperationKind::Undo { .. } => "the undo",
        OperationKind::Redo { .. } => "the redo",
    }
}

fn done(plan: &RestorePlan) -> String {
    match (&plan.target, plan.kind) {
        (Some(target), _) => format!("Rolled back to {}", target.handle),
        (None, OperationKind::Redo { .. }) => "Took back the last undo".to_owned(),
        (None, OperationKind::Undo { .. } | OperationKind::Rollback) => {
            "Took back the last rollback".to_owned()
        }
    }
}
