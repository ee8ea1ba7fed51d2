//! Files that someone edits while a rollback is held up at one of its renames: no edit is lost, whatever moment it
//! falls into.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bivouac_testkit::read_tree;

use super::crew;
use super::kills::recorded;
use super::stage::Stage;
use super::strace::{Call, Fate, Traced, WAIT_MS};
use super::table::Row;
use super::{Proof, Result};

const PART: &str = "races";
const N_FILES: usize = 40;
const ROLLBACK: [&str; 4] = ["checkpoint", "rollback", "one", "--yes"];

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    let calls = {
        let stage = stage(proof);
        recorded(&stage, |before| stage.env.biv_under(before, &ROLLBACK))?
    };
    let renames = calls.iter().filter(|call| call.name.starts_with("renameat2"));
    let wanted = renames.filter(|call| proof.wants(&call.to_string()));
    let points: Vec<&Call> = wanted.step_by(proof.size(6, 1)).collect();
    let n_met = AtomicU64::new(0);
    let found = crew::each(&points, || stage(proof), |stage, call| trial(stage, call, &n_met));
    let broken =
        found.into_iter().map(|(at, what)| proof.finding(PART, &points[at].to_string(), &what));
    Ok(vec![Row {
        what: format!("{N_FILES} files edited while a rollback is held up at a rename"),
        n_tried: n_met.into_inner(),
        broken: broken.collect(),
        figures: String::new(),
    }])
}

fn stage(proof: &Proof) -> Stage {
    let mut stage = Stage::new(&proof.binary);
    for n in 0..N_FILES {
        stage.env.write(format!("d/f{n:02}"), "old");
    }
    stage.env.biv(&["checkpoint", "create", "--name", "one"]).ok();
    for n in 0..N_FILES {
        stage.env.write(format!("d/f{n:02}"), "new");
    }
    stage.keep().expect("a stage can be copied");
    stage
}

fn trial(stage: &Stage, call: &Call, n_met: &AtomicU64) -> std::result::Result<(), String> {
    stage.bring_back().map_err(|error| error.to_string())?;
    let traced = Traced::fated(&stage.trace(), call, Fate::Waits);
    let mut rollback = stage.env.biv_under(&traced.words, &ROLLBACK);
    let child =
        rollback.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    while !traced.has_come(call) && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(Duration::from_millis(2));
    }
    let mut edits = BTreeSet::new();
    // One edit of each file, from the moment it is held up until a little after.
    for n in 0..N_FILES {
        let edit = format!("edited {n}");
        fs::write(stage.env.path(format!("d/f{n:02}")), &edit)
            .map_err(|error| error.to_string())?;
        edits.insert(edit.into_bytes());
        thread::sleep(Duration::from_millis(WAIT_MS * 6 / 5 / N_FILES as u64));
    }
    let run = stage.env.finish(child);
    if run.code != 0 && run.code != 3 {
        return Err(format!("the rollback says {}", run.text()));
    }
    n_met.fetch_add(u64::from(traced.was_met()), Ordering::Relaxed);
    let mut kept: BTreeSet<Vec<u8>> = stage.env.tree().into_values().map(|it| it.2).collect();
    for checkpoint in stage.env.json("checkpoint list").as_array().into_iter().flatten() {
        let id = checkpoint["id"].as_str().unwrap_or_default();
        let out = stage.env.root().join("out");
        stage.env.biv(&["checkpoint", "restore", id, "--into", &out.to_string_lossy()]).ok();
        kept.extend(read_tree(&out).into_values().map(|it| it.2));
        fs::remove_dir_all(&out).map_err(|error| error.to_string())?;
    }
    match edits.difference(&kept).next() {
        None => Ok(()),
        Some(lost) => Err(format!("I4: `{}` is nowhere any more", String::from_utf8_lossy(lost))),
    }
}
