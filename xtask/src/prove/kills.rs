//! Killed at every call that changes something, and again while the next command puts it right.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::crew;
use super::judge::{Before, Outcome, judge};
use super::operations::{OPERATIONS, Operation};
use super::stage::Stage;
use super::strace::{Call, Fate, Traced};
use super::table::Row;
use super::trials::{Tried, trials};
use super::{Proof, Result};

const PART: &str = "kills";

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for operation in OPERATIONS.iter().filter(|it| proof.wants_some_of(it.name)) {
        let calls = {
            let (stage, _) = operation.stage(&proof.binary);
            changing(&stage, |before| operation.command(&stage, before))?
        };
        rows.push(killed(proof, operation, &calls));
        if proof.has_enough(&rows) {
            break;
        }
        if proof.is_full || operation.heals() {
            rows.push(killed_twice(proof, operation, &calls));
        }
    }
    Ok(rows)
}

fn killed(proof: &Proof, operation: &Operation, calls: &[Call]) -> Row {
    let name = |call: &Call| format!("{} {call}", operation.name);
    let (points, one_in) = proof.some(calls, proof.size(90, usize::MAX), name);
    let at = |stage: &Stage, call: &Call| meet(operation, stage, call);
    let Tried { n_met, broken } = trials(proof, (PART, operation), &points, name, at);
    Row {
        what: format!("{}: `biv {}` killed", operation.name, operation.words.join(" ")),
        n_tried: n_met,
        broken,
        figures: format!("{one_in} of {} calls", calls.len()),
    }
}

/// Killed, and the command that comes next is killed at every call of its own.
fn killed_twice(proof: &Proof, operation: &Operation, calls: &[Call]) -> Row {
    let name = |call: &Call| format!("{} {call}, then", operation.name);
    let (points, one_in) = proof.some(calls, proof.size(2, 24), name);
    let most = proof.size(40, 100);
    let n_met = AtomicU64::new(0);
    let trial = |(): &mut (), first: &&Call| {
        let (mut stage, scene) = operation.stage(&proof.binary);
        let tree = stage.env.tree();
        let Some(outcome) = meet(operation, &stage, first) else { return Ok(()) };
        stage.keep().map_err(|error| error.to_string())?;
        let next = |before: &[String]| stage.env.biv_under(before, operation.next());
        let seconds = changing(&stage, next).map_err(|error| error.to_string())?;
        for second in seconds.iter().step_by(seconds.len().div_ceil(most).max(1)) {
            stage.bring_back().map_err(|error| error.to_string())?;
            let before = Before::look(&stage).with(&tree);
            let traced = Traced::fated(&stage.trace(), second, Fate::Killed);
            stage.env.run_command(&mut stage.env.biv_under(&traced.words, operation.next()));
            if traced.was_met() {
                n_met.fetch_add(1, Ordering::Relaxed);
                let judged = judge(operation, (&stage, &scene), &before, &outcome);
                judged.map_err(|what| format!("then {second}: {what}"))?;
            }
        }
        Ok(())
    };
    let found = crew::each(&points, || (), trial);
    let broken = found.into_iter().map(|(at, what)| proof.finding(PART, &name(points[at]), &what));
    Row {
        what: format!("{}: killed, and again while the next command heals", operation.name),
        n_tried: n_met.into_inner(),
        broken: broken.collect(),
        figures: format!("{one_in} of {} calls, each with up to {most} that heal", calls.len()),
    }
}

/// Those that change something: nothing has changed between two others when a look is the last of all.
fn changing(
    stage: &Stage,
    command: impl FnOnce(&[String]) -> std::process::Command,
) -> Result<Vec<Call>> {
    let mut calls = recorded(stage, command)?;
    calls.retain(|call| !call.is_look());
    Ok(calls)
}

/// The calls of a command, from a run in which nothing happens to it.
pub(super) fn recorded(
    stage: &Stage,
    command: impl FnOnce(&[String]) -> std::process::Command,
) -> Result<Vec<Call>> {
    let traced = Traced::recording(&stage.trace());
    let run = stage.env.run_command(&mut command(&traced.words));
    match run.code {
        0 => Ok(traced.calls()),
        _ => Err(format!("under strace: {}", run.text()).into()),
    }
}

/// Runs an operation until a call meets its fate. `None` if that call did not come.
fn meet(operation: &Operation, stage: &Stage, call: &Call) -> Option<Outcome> {
    let traced = Traced::fated(&stage.trace(), call, Fate::Killed);
    let started = Instant::now();
    let run = stage.env.run_command(&mut operation.installed(stage, &traced.words));
    let outcome = Outcome { run, time: started.elapsed(), lived: false };
    traced.was_met().then_some(outcome)
}
