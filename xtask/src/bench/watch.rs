//! With a watcher alive: what a checkpoint costs, what the watcher costs, and what supervision costs.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::measure::{Measured, clock, median, run_measured};
use super::peers::{Biv, Git, Peer};
use super::table::Row;
use super::workspace::Workspace;
use crate::Result;
use crate::tools::command;

/// How long an idle watcher is looked at.
const IDLE: Duration = Duration::from_secs(30);

/// Measures, and answers the rows and what else was seen.
pub(super) fn run(
    folder: &Path,
    source: &Path,
    biv: &Path,
    rounds: usize,
) -> Result<(Vec<Row>, String)> {
    let (ours, theirs) = (folder.join("watched"), folder.join("shadow"));
    let mut workspace = Workspace::copy(source, &ours.join("work"))?;
    let mut others = Workspace::copy(source, &theirs.join("work"))?;
    let biv_peer = Biv::new(&ours.join("work"), &ours.join("store"), biv);
    let git = Git::new(&theirs.join("work"), &theirs.join("store"));
    biv_peer.prepare()?;
    git.prepare()?;
    git.save()?;
    save(&biv_peer)?;
    let watcher = Watcher::start(&biv_peer)?;
    // One full scan after the start; from then on only what changed is looked at.
    save(&biv_peer)?;
    let names = || vec!["biv".to_owned(), "shadow git".to_owned()];
    let mut idle = Row::new("nothing changed, watched", names());
    let mut edited = Row::new("10 files edited, 1 new, 1 gone, watched", names());
    for (row, n_edits) in [(&mut idle, 0), (&mut edited, 10)] {
        let (mut own, mut git_times) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            if n_edits > 0 {
                workspace.edit(n_edits, round)?;
                others.edit(n_edits, round)?;
            }
            own.push(save(&biv_peer)?);
            git_times.push(git.save()?.measured);
        }
        row.cells = vec![median(own), median(git_times)];
    }
    let idle_watcher = watcher.cost()?;
    drop(watcher);
    let supervised = supervised(&ours.join("work"), &biv_peer, rounds)?;
    Ok((vec![idle, edited, supervised], idle_watcher))
}

/// What a supervisor does once in a while.
fn save(biv: &Biv) -> Result<Measured> {
    Ok(run_measured(&mut biv.command(&["checkpoint", "create", "--trigger", "turn"]))?.1)
}

struct Watcher {
    child: Child,
}

impl Watcher {
    fn start(biv: &Biv) -> Result<Self> {
        let mut watch = biv.command(&["watch", "--interval", "1h"]);
        let child = watch.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        for _ in 0..600 {
            let status = run_measured(&mut biv.command(&["watch", "--status", "--json"]))?.0;
            let status: serde_json::Value = serde_json::from_str(&status)?;
            if status["watcher"]["n_folders"].as_u64().is_some_and(|n| n > 1) {
                return Ok(Self { child });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err("the watcher did not come up".into())
    }

    /// Processor time and memory, while nothing happens.
    fn cost(&self) -> Result<String> {
        let ticks = || -> Result<u64> {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
            let fields: Vec<&str> =
                stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            Ok(fields[11].parse::<u64>()? + fields[12].parse::<u64>()?)
        };
        let (before, started) = (ticks()?, Instant::now());
        std::thread::sleep(IDLE);
        let share = (ticks()? - before) as f64 / started.elapsed().as_secs_f64();
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
        let kilobytes: f64 = line.split_whitespace().nth(1).unwrap_or("0").parse()?;
        Ok(format!(
            "An idle watcher takes {share:.2} % of a core and {:.0} MB of memory.",
            kilobytes / 1e3
        ))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A command that reads and writes a lot, bare and under supervision.
fn supervised(work: &Path, biv: &Biv, rounds: usize) -> Result<Row> {
    const SCRIPT: &str = "for n in 1 2 3; do tar cf - . | cksum; done; seq 200000 | tail -n 100000";
    let mut row =
        Row::new("a busy command under `biv run`", vec!["biv".to_owned(), "bare".to_owned()]);
    let (mut own, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut run = biv.command(&["run", "--interval", "1s", "--", "sh", "-c", SCRIPT]);
        own.push(run_measured(&mut run)?.1);
        bare.push(clock(|| {
            let mut shell = command("sh");
            run_measured(shell.args(["-c", SCRIPT]).current_dir(work)).map(drop)
        })?);
    }
    row.cells = vec![median(own), median(bare)];
    Ok(row)
}
