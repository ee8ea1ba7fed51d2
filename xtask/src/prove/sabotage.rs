//! Would the proof notice? Every deliberate fault is committed in turn, by a build that can, and the part that is
//! there for it must find something. A fault that nobody finds is what counts as broken here.

use std::fs;
use std::path::Path;

use bivouac_core::sabotage::Fault;

use super::table::Row;
use super::{Proof, Result};
use crate::tools::{cargo, command, root, show};

const PART: &str = "sabotage";

/// Which part is there for a fault, and which of its trials.
fn catcher(fault: Fault) -> (&'static str, &'static str) {
    match fault {
        Fault::PackNotSynced | Fault::PackNameNotSynced | Fault::JournalNotSynced => {
            ("power", "create")
        }
        Fault::StagedNotSynced | Fault::SwapNotSynced => ("power", "rollback"),
        Fault::PackNotReadBack => ("failures", "create lies"),
        Fault::HashesNotChecked => ("damage", "pack-1"),
        Fault::ChainNotChecked => ("damage", "db forged"),
        Fault::LinksFollowed | Fault::ModeLost => ("model", ""),
        Fault::RecheckLost => ("races", "renameat2"),
        Fault::HealSkipped => ("kills", "rollback renameat2"),
        Fault::HalfLeft => ("failures", "rollback ENOSPC renameat2"),
        Fault::PacksRemovedFirst => ("kills", "gc unlink"),
        Fault::SpoolRemovedFirst => ("kills", "spool fsync"),
        Fault::SpoolTakenTwice => ("kills", "spool unlink"),
        Fault::HookFails => ("failures", "hook EIO"),
        Fault::LockIgnored => ("crowd", "crowd"),
        Fault::GitRefreshed => ("kills", "create fsync"),
    }
}

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    // A released binary must not even know the variable.
    let released = fs::read(&proof.binary)?;
    let mut rows = vec![Row {
        what: "the released binary knows no sabotage".to_owned(),
        n_tried: 1,
        broken: match contains(&released, b"BIV_SABOTAGE") {
            true => vec!["`BIV_SABOTAGE` is in it".to_owned()],
            false => Vec::new(),
        },
        figures: String::new(),
    }];
    show(&mut cargo(&["build", "--quiet", "--package", "bivouac"]))?;
    let binary = root().join("target/debug/biv");
    for fault in Fault::ALL.into_iter().filter(|it| proof.wants(&it.to_string())) {
        rows.push(caught(proof, fault, &binary)?);
    }
    Ok(rows)
}

/// Enough of a finding to know it by, without what differs from run to run.
fn short(finding: &str) -> String {
    let end = finding.char_indices().nth(90).map_or(finding.len(), |(at, _)| at);
    finding[..end]
        .split('`')
        .next()
        .unwrap_or_default()
        .trim_end_matches([' ', ':', ','])
        .to_owned()
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

/// Runs the part with the fault, until it finds something.
fn caught(proof: &Proof, fault: Fault, binary: &Path) -> Result<Row> {
    let (part, only) = catcher(fault);
    let mut prove = command(std::env::current_exe()?);
    prove.args(["prove", "--part", part, "--first", "--seed", &proof.seed.to_string()]);
    if !only.is_empty() {
        prove.args(["--only", only]);
    }
    prove.arg("--binary").arg(binary).env("BIV_SABOTAGE", fault.to_string());
    let output = prove.output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let found =
        said.lines().zip(said.lines().skip(1)).find(|(_, next)| next.trim().starts_with("again: "));
    let first =
        said.lines().position(|line| line.contains(" broken  ") && !line.contains(" 0 broken  "));
    let finding =
        first.and_then(|at| said.lines().nth(at + 1)).map(str::trim).filter(|_| found.is_some());
    Ok(Row {
        what: fault.to_string(),
        n_tried: 1,
        broken: match finding {
            Some(_) => Vec::new(),
            None => vec![proof.finding(
                PART,
                &fault.to_string(),
                &format!("`{part}` did not notice\n{said}"),
            )],
        },
        figures: finding
            .map(|it| format!("found by `{}`: {}", [part, only].join(" ").trim(), short(it)))
            .unwrap_or_default(),
    })
}
