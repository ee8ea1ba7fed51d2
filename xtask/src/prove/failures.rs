//! Every call that changes something fails once, in every way it can: the disk is full or broken, nothing may be
//! opened, someone interrupts, only half is written, or it is said to be written and is not.

use std::time::Instant;

use super::judge::Outcome;
use super::kills::recorded;
use super::operations::{Kind, OPERATIONS, Operation};
use super::stage::Stage;
use super::strace::{Call, Fate, Traced};
use super::table::Row;
use super::trials::{Tried, trials};
use super::{Proof, Result};

const PART: &str = "failures";

/// What goes wrong.
#[derive(Clone, Debug)]
enum Trouble {
    Call(Call, Fate),
    /// No file may grow beyond so many blocks.
    Short(u32),
}

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for operation in OPERATIONS.iter().filter(|it| proof.wants_some_of(it.name)) {
        let is_wanted = proof.is_full || matches!(operation.name, "create" | "rollback" | "hook");
        if !is_wanted {
            continue;
        }
        let calls = {
            let (mut stage, _) = operation.stage(&proof.binary);
            // As in every trial: what a cache knows of files no longer holds for copies of them.
            stage.keep()?;
            stage.bring_back()?;
            recorded(&stage, |before| operation.command(&stage, before))?
        };
        for (what, troubles) in troubles(proof, operation, &calls) {
            // Not every operation writes packs, or that much.
            let row = tried(proof, operation, what, &troubles);
            rows.extend((row.n_tried > 0 || !row.broken.is_empty()).then_some(row));
            if proof.has_enough(&rows) {
                return Ok(rows);
            }
        }
    }
    Ok(rows)
}

/// What can go wrong with an operation, by what it is called in the table. In the quick form a full disk is tried at
/// every call that changes something, and so is a broken one, the rest at some.
fn troubles(
    proof: &Proof,
    operation: &Operation,
    calls: &[Call],
) -> Vec<(&'static str, Vec<Trouble>)> {
    let looks = proof.size(10, 1);
    let is_wanted = |call: &&Call| !call.is_look() || call.nth.is_multiple_of(looks);
    let fails = |error: &'static str, step: usize| {
        let may = calls.iter().filter(is_wanted).filter(|call| is_possible(&call.name, error));
        may.step_by(step).map(|call| Trouble::Call(call.clone(), Fate::Fails(error))).collect()
    };
    let every = if operation.kind == Kind::Hook { proof.size(6, 1) } else { 1 };
    let some = proof.size(3, 1);
    let lies = calls.iter().filter(|call| call.is_into_pack);
    let most_blocks = proof.size(0..400, 0..800);
    vec![
        ("ENOSPC", fails("ENOSPC", every)),
        ("EIO", fails("EIO", every)),
        ("EACCES", fails("EACCES", some)),
        ("EMFILE", fails("EMFILE", 1)),
        ("EINTR", fails("EINTR", some)),
        ("short writes", most_blocks.step_by(proof.size(40, 16)).map(Trouble::Short).collect()),
        ("lying writes", lies.map(|call| Trouble::Call(call.clone(), Fate::Lies)).collect()),
    ]
}

/// Can a call of this name fail like this?
fn is_possible(name: &str, error: &str) -> bool {
    let opens = matches!(name, "openat" | "openat2");
    let writes = name.contains("write")
        || matches!(name, "copy_file_range" | "sendfile" | "fallocate" | "ftruncate");
    let syncs = matches!(name, "fsync" | "fdatasync" | "syncfs");
    match error {
        "EMFILE" => opens,
        "ENOSPC" => !syncs && !matches!(name, "openat2" | "unlink" | "unlinkat" | "rmdir"),
        "EACCES" => !syncs && !writes,
        "EINTR" => opens || writes || syncs,
        _ => true,
    }
}

fn tried(proof: &Proof, operation: &Operation, what: &str, troubles: &[Trouble]) -> Row {
    let name = |trouble: &Trouble| match trouble {
        Trouble::Call(call, fate) => format!("{} {fate} {call}", operation.name),
        Trouble::Short(blocks) => format!("{} short {blocks}", operation.name),
    };
    let points: Vec<&Trouble> = troubles.iter().filter(|it| proof.wants(&name(it))).collect();
    let into = |stage: &Stage, trouble: &Trouble| meet(operation, stage, trouble);
    let Tried { n_met, broken } = trials(proof, (PART, operation), &points, name, into);
    Row {
        what: format!("{}: `biv {}` with {what}", operation.name, operation.words.join(" ")),
        n_tried: n_met,
        broken,
        figures: String::new(),
    }
}

/// Runs an operation into its trouble. `None` if that did not come.
fn meet(operation: &Operation, stage: &Stage, trouble: &Trouble) -> Option<Outcome> {
    let traced = match trouble {
        Trouble::Call(call, fate) => Traced::fated(&stage.trace(), call, *fate),
        Trouble::Short(blocks) => Traced::limited(&stage.trace(), *blocks),
    };
    let started = Instant::now();
    let run = stage.env.run_command(&mut operation.command(stage, &traced.words));
    let outcome = Outcome { run, time: started.elapsed(), lived: true };
    let is_look = matches!(trouble, Trouble::Call(call, _) if call.is_look());
    (traced.was_met() && (!is_look || traced.was_met_once())).then_some(outcome)
}
