//! Processes of a story, found by the home they all know.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::TestEnv;

impl TestEnv {
    /// All processes that live in this small world, with their command lines.
    pub fn processes(&self) -> Vec<(i32, String)> {
        processes_at(&self.home())
    }

    /// Ends all of them, however often they start others.
    pub fn kill_all(&self) {
        kill_all_at(&self.home());
    }
}

/// All processes that have this home, with their command lines.
fn processes_at(home: &Path) -> Vec<(i32, String)> {
    let home = format!("HOME={}\0", home.display());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let ours = numbers.filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&home)
    });
    let named = |pid: i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid, String::from_utf8_lossy(&words).replace('\0', " "))
    };
    ours.map(named).collect()
}

/// Ends all that have this home, however often they start others.
pub(crate) fn kill_all_at(home: &Path) {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(10) {
        let left = processes_at(home);
        if left.is_empty() {
            return;
        }
        left.iter().for_each(|(pid, _)| kill(*pid));
        thread::sleep(Duration::from_millis(2));
    }
    panic!("some will not go: {:?}", processes_at(home));
}

/// Waits for something that others do in their own time.
pub fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_there() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{what} did not come");
}

/// `kill -9`, and waits until the process is gone. The signal alone only begins its end: for a moment it still
/// counts as running and still holds its locks.
pub fn kill(process: i32) {
    send(process, Signal::KILL);
    until("the end of a killed process", || is_gone(process));
}

/// Has a process ended, with all its threads? Its environment cannot be read any more some time before that.
pub(crate) fn is_gone(process: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else {
        return true;
    };
    let state = stat.rfind(')').and_then(|at| stat[at + 1..].split_whitespace().next());
    let n_threads = fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
    matches!(state, Some("Z" | "X")) && n_threads <= 1
}

/// Asks a process to end.
pub fn terminate(process: i32) {
    send(process, Signal::TERM);
}

/// What a process hears when its terminal is gone.
pub fn hang_up(process: i32) {
    send(process, Signal::HUP);
}

fn send(process: i32, signal: Signal) {
    let _gone = Pid::from_raw(process).map(|pid| kill_process(pid, signal));
}
