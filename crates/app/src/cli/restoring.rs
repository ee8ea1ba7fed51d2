//! What rollback, undo and redo have in common: show the plan, get consent, do it, tell what was done.

use bivouac_core::operation::{OperationKind, Outcome};
use bivouac_core::text::count;
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use bivouac_engine::rollback::RestorePlan;
use bivouac_snapshot::plan::Step;
use owo_colors::{OwoColorize, Style};

use crate::cli::Error;
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
    let mut answer = contract::Restore {
        operation: plan.kind.as_str(),
        target: plan.target.as_ref().map(|target| contract::Checkpoint::new(target, false)),
        dry_run: consent.dry_run,
        plan: id,
        steps: plan.plan.changes().map(step).collect(),
        not_covered: plan.coverage.gaps.clone(),
        result: None,
    };
    let is_idle = plan.plan.is_empty() && plan.plan.left_alone.is_empty();
    // An undo that finds everything done already still counts: the next one goes further back.
    if is_idle && (consent.dry_run || plan.kind == OperationKind::Rollback) {
        ui.say(nothing_to_do(&plan))?;
        ui.data(&answer)?;
        return Ok(Exit::Done);
    }
    let must_ask = !is_idle && !consent.yes && !consent.dry_run;
    if must_ask && !ui.can_ask() {
        return Err(Error::NeedsYes { what: verb(plan.kind) });
    }
    if consent.dry_run || must_ask {
        show_at_most(if consent.dry_run { usize::MAX } else { MANY }, &plan, engine, ui)?;
    }
    if consent.dry_run {
        ui.data(&answer)?;
        return Ok(Exit::Done);
    }
    if must_ask && !ui.ask("Go ahead?")? {
        return Err(Error::Declined { what: verb(plan.kind) });
    }
    let stash = if consent.stash { engine.stash(&plan)? } else { None };
    let done = done(&plan);
    let report = engine.restore(plan)?;
    let (written, removed) = (report.outcome.n_written, report.outcome.n_removed);
    match is_idle {
        true => ui.say(format_args!("{done}: the files already were as they were before it"))?,
        false => {
            ui.say(format_args!("{done}: {} written, {removed} removed", count(written, "file")))?;
        }
    }
    tell_left_alone(&report.outcome, ui)?;
    ui.say(format_args!(
        "Everything as it was before is in {}",
        report.safety.handle.style(looks::handle())
    ))?;
    tell_stash(stash.as_deref(), consent, ui)?;
    let is_loose = report.outcome.left_alone.iter().any(|left| left.why.is_loose_end());
    answer.result = Some(contract::RestoreResult {
        operation_id: report.operation.to_string(),
        safety_checkpoint: contract::Checkpoint::new(&report.safety, false),
        written: report.outcome.n_written,
        removed: report.outcome.n_removed,
        left_alone: contract::left_alone(&report.outcome),
        stash,
    });
    ui.data(&answer)?;
    Ok(if is_loose { Exit::DoneInPart } else { Exit::Done })
}

/// What someone is asked about, on a screen.
pub fn show(plan: &RestorePlan, engine: &Engine, ui: &mut Ui) -> Result<(), Error> {
    show_at_most(MANY, plan, engine, ui)
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
        ui.say(format_args!("  = {} (stays: {})", left.path, left.why))?;
    }
    let gaps: Vec<String> =
        plan.coverage.gaps.iter().map(|(gap, count)| format!("{count} {gap}")).collect();
    if !gaps.is_empty() {
        ui.say(format_args!("\nNot covered and not touched: {}", gaps.join(", ")))?;
    }
    let back = if matches!(plan.kind, OperationKind::Undo { .. }) { "redo" } else { "undo" };
    ui.say(format_args!("Everything is saved first; `biv {back}` takes it back"))?;
    Ok(())
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
    contract::Step { path: contract::path(step.path.as_bytes()), action }
}

fn tell_left_alone(outcome: &Outcome, ui: &mut Ui) -> Result<(), Error> {
    for left in &outcome.left_alone {
        ui.say(format_args!("  left alone: {} ({})", left.path, left.why))?;
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
    match &plan.target {
        Some(target) => format!("Nothing to do: the workspace already is as in {}", target.handle),
        None => "Nothing to do: the files already are as they were before it".to_owned(),
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
