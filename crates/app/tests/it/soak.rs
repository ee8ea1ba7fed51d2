//! Hours of work in a small while: nothing is lost, and nothing is left behind. `cargo xtask soak` is the long form

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::git_env;

fn seconds() -> u64 {
    std::env::var("BIV_SOAK_SECONDS").ok().and_then(|it| it.parse().ok()).unwrap_or(15)
}

fn n_open(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

fn memory_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).unwrap_or(0)
}

fn files_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(files_below(&entry.path())),
            false => found.push(entry.path().display().to_string()),
        }
    }
    found
}

#[test]
fn an_editor_that_never_rests_loses_nothing_and_leaves_nothing() {
    let mut env = git_env();
    env.set("BIV_CHECKPOINT_MAX_PER_SESSION", "1000000");
    let stop = env.root().join("stop");
    let script = "n=0; while [ ! -e ../stop ]; do n=$((n + 1)); echo $n > count
        mkdir -p d$((n % 7)); echo $n > d$((n % 7))/f$((n % 31)); mv count counted
        [ $((n % 50)) = 0 ] && rm -rf d3; sleep 0.05; done; echo $n > last";
    let mut child = env.start_live(&["run", "--interval", "1s", "--", "sh", "-c", script]);
    let started = Instant::now();
    let wait = Duration::from_secs(seconds());
    std::thread::sleep(Duration::from_secs(4).min(wait / 2));
    let (open_before, memory_before) = (n_open(child.id()), memory_kb(child.id()));
    while started.elapsed() < wait {
        std::thread::sleep(Duration::from_millis(500));
        assert!(child.try_wait().unwrap().is_none(), "the supervisor ended by itself");
    }
    let (open_after, memory_after) = (n_open(child.id()), memory_kb(child.id()));
    fs::write(stop, "").unwrap();
    let run = env.finish(child).ok();
    assert!(!run.stderr.contains("failed"), "{}", run.stderr);
    // A save may be under way at either moment.
    assert!(open_after <= open_before + 3, "{open_before} files open, then {open_after}");
    assert!(memory_after < memory_before + 8_000, "{memory_before} kB, then {memory_after}");
    assert!(memory_after < 30_000, "{memory_after} kB of memory");
    let checkpoints = env.json("checkpoint list");
    let checkpoints = checkpoints.as_array().unwrap();
    let n_due = seconds() / 3;
    assert!(checkpoints.len() as u64 >= n_due, "only {} checkpoints", checkpoints.len());
    assert!(checkpoints.iter().all(|it| it["trigger"] != "ERROR"));
    env.biv(&["checkpoint", "restore", "latest", "--into", "../out"]).ok();
    assert_eq!(bivouac_testkit::read_tree(&env.root().join("out")), env.tree());
    let left = files_below(&env.store());
    let left: Vec<&String> = left
        .iter()
        .filter(|it| it.contains(".tmp") || it.contains(".part") || it.contains(".sock"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(env.processes(), []);
    assert!(env.run("verify").contains("All is as it was written"));
}
