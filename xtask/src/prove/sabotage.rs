//! Would the proof notice? Every deliberate fault is committed in turn, by a build that can, and the part that is
//! there for it must find something. A fault that nobody finds is what counts as broken here.

use std::fs;
use std::path::Path;

use bivouac_core::sabotage::Fault;

use super::table::Row;
use super::{Proof, Result};
use crate::tools::{cargo, command, root, show};

const PART: &str = "sabotage";

/// Who notices a fault: a part, which of its trials, and what it has to say.
struct Catcher(&'static str, &'static str, &'static str);

fn catcher(fault: Fault) -> Catcher {
    match fault {
        Fault::PackNotSynced | Fault::PackNameNotSynced => Catcher("power", "create", "exits 1"),
        Fault::JournalNotSynced => Catcher("power", "create", "is lost"),
        Fault::StagedNotSynced | Fault::SwapNotSynced => {
            Catcher("power", "rollback", "the workspace is n")
        }
        Fault::PackNotReadBack => Catcher("failures", "create lies", "I2"),
        Fault::HashesNotChecked => Catcher("damage", "pack-1", "does not name it"),
        Fault::ChainNotChecked => Catcher("damage", "db forged", "changed an answer unseen"),
        Fault::LinksFollowed | Fault::ModeLost => Catcher("model", "", "is not exact"),
        Fault::RecheckLost => Catcher("races", "renameat2", "is nowhere any more"),
        Fault::HealSkipped => Catcher("kills", "rollback renameat2", "I4"),
        Fault::HalfLeft => Catcher("failures", "rollback ENOSPC renameat2", "I4"),
        Fault::PacksRemovedFirst => Catcher("kills", "gc unlinkat", "where the index says"),
        Fault::SpoolRemovedFirst => Catcher("kills", "spool fsync", "on record 0 times"),
        Fault::SpoolTakenTwice => Catcher("kills", "spool unlinkat", "on record 2 times"),
        Fault::HookFails => Catcher("failures", "hook EIO", "I8"),
        Fault::LockIgnored => Catcher("crowd", "crowd", "exit status: 1"),
        Fault::GitRefreshed => Catcher("kills", "create fsync", "I5"),
    }
}

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if proof.wants("released") {
        // It must not even know the variable.
        let released = fs::read(&proof.binary)?;
        rows.push(Row {
            what: "the released binary knows no sabotage".to_owned(),
            n_tried: 1,
            broken: match contains(&released, b"BIV_SABOTAGE") {
                true => vec!["`BIV_SABOTAGE` is in it".to_owned()],
                false => Vec::new(),
            },
            figures: String::new(),
        });
    }
    show(&mut cargo(&["build", "--quiet", "--package", "bivouac"]))?;
    let binary = root().join("target/debug/biv");
    for fault in Fault::ALL.into_iter().filter(|it| proof.wants(&it.to_string())) {
        rows.push(caught(proof, fault, &binary)?);
    }
    Ok(rows)
}

/// Enough of a finding to know it by, without what differs from run to run.
fn short(finding: &str) -> String {
    let finding = finding.lines().next().unwrap_or_default();
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
    let Catcher(part, only, word) = catcher(fault);
    let mut prove = command(std::env::current_exe()?);
    prove.args(["prove", "--part", part, "--first", "--seed", &proof.seed.to_string()]);
    if !only.is_empty() {
        prove.args(["--only", only]);
    }
    prove.arg("--binary").arg(binary).env("BIV_SABOTAGE", fault.to_string());
    let said = String::from_utf8_lossy(&prove.output()?.stdout).into_owned();
    let finding = finding(&said).filter(|it| it.contains(word));
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

/// The first thing that a run found: what stands between its row and the command that has it again.
fn finding(said: &str) -> Option<&str> {
    let is_broken = |line: &&str| line.contains(" broken  ") && !line.contains(" 0 broken  ");
    let row = said.lines().find(is_broken)?;
    let from = said.find(row)? + row.len();
    let to = from + said[from..].find("\n      again: ")?;
    Some(said[from..to].trim())
}
