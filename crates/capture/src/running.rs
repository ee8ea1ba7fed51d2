//! Which processes run, and which of them are agents. Told by `/proc`; elsewhere nothing is known.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bivouac_core::agent::{AgentKind, ProcessId};
use bivouac_core::liveness::Life;

use crate::agents;

/// The agent that started us: the nearest ancestor that is no shell.
pub fn agent_process() -> Option<ProcessId> {
    let mut pid = parent_of(std::process::id())?;
    for _ in 0..8 {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        if !matches!(name.trim_end(), "sh" | "bash" | "dash" | "zsh" | "env" | "timeout") {
            return if is_foster(pid, name.trim_end()) { None } else { identify(pid) };
        }
        pid = parent_of(pid)?;
    }
    None
}

/// Is it one that takes in the children of the dead? Then who started us is gone. In a container, an agent
/// itself may be the first process.
fn is_foster(pid: u32, name: &str) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_agent = |word: &[u8]| {
        let name = Path::new(OsStr::from_bytes(word)).file_stem().unwrap_or_default();
        AgentKind::ALL.into_iter().any(|kind| name == agents::of(kind).program())
    };
    match name {
        "systemd" | "init" | "tini" | "dumb-init" | "docker-init" | "catatonit" => true,
        _ => pid == 1 && !words.split(|byte| *byte == 0).any(is_agent),
    }
}

/// Is it still the same process?
pub fn is_running(process: &ProcessId) -> bool {
    identify(process.pid).is_some_and(|now| now == *process)
}

/// What can be told of it from here. Where nothing is known of us, nothing is known of others.
pub fn life(process: &ProcessId) -> Life {
    match identify(std::process::id()) {
        None => Life::Unknown,
        Some(_) if is_running(process) => Life::Runs,
        Some(_) => Life::Gone,
    }
}

/// Processes that run a command line below a folder, with their numbers.
pub fn running(command: &str, folder: &Path) -> Vec<u32> {
    let start: String = command.trim().chars().take(80).collect();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let runs_it = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&words).replace('\0', " ");
        let is_here =
            fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        *pid != std::process::id() && is_here && !start.is_empty() && line.contains(&start)
    };
    let mut found: Vec<u32> = numbers.filter(runs_it).collect();
    found.sort_unstable();
    found
}

/// The machine whose process numbers ours are.
pub fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// How often the kernel ended a process for want of memory: in our own group of processes where that is
/// counted, else on the whole machine.
pub fn oom_kills() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let events = own.map(|own| format!("/sys/fs/cgroup{own}/memory.events"));
    let count = |text: String| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.parse().ok()
    };
    let in_group = events.and_then(|path| fs::read_to_string(path).ok()).and_then(count);
    in_group.or_else(|| fs::read_to_string("/proc/vmstat").ok().and_then(count))
}

/// What stands in the foreground of the terminal a process leads: its words and where it works. A command of
/// ours that is there for a moment is passed over for what started it.
pub(crate) fn in_foreground(leader: u32) -> Option<(Vec<String>, String)> {
    let own = rustix::process::getpgrp().as_raw_nonzero().get();
    let group: i32 = field_of(leader, 5)?;
    let pid = u32::try_from(group).ok().filter(|_| group > 0 && group != own).unwrap_or(leader);
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.strip_suffix(b"\0").unwrap_or(&line).split(|byte| *byte == 0);
    let words = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let cwd = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    Some((words, cwd.to_string_lossy().into_owned()))
}

/// How much processor time a process has used, if all its threads sleep. `None` if one is at work or waits for a
/// disk, or if nothing is known.
pub(crate) fn sleeping(pid: u32) -> Option<u64> {
    let mut used = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
        let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
        if fields.next()? != "S" {
            return None;
        }
        let times = fields.skip(10).take(2);
        used += times.filter_map(|it| it.parse::<u64>().ok()).sum::<u64>();
    }
    Some(used)
}

/// What tells a process from a later one with the same number. `None` when it is gone.
pub fn identify(pid: u32) -> Option<ProcessId> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold blanks and brackets; fields are counted from its end.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    if matches!(fields.first(), Some(&("Z" | "X"))) {
        return None;
    }
    let started = fields.get(19)?.parse().ok()?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim_end().to_owned();
    Some(ProcessId { pid, started, boot })
}

fn parent_of(pid: u32) -> Option<u32> {
    field_of(pid, 1)
}

/// A field of its state, counted from the end of its name.
fn field_of<T: std::str::FromStr>(pid: u32, number: usize) -> Option<T> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 1..].split_whitespace().nth(number)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_more_than_its_number() {
        let own = identify(std::process::id()).unwrap();
        assert!(is_running(&own));
        assert_eq!(life(&own), Life::Runs);
        assert_eq!(life(&ProcessId { boot: "another".to_owned(), ..own.clone() }), Life::Gone);
        assert!(!is_running(&ProcessId { started: own.started + 1, ..own.clone() }));
        assert!(!is_running(&ProcessId { boot: "another".to_owned(), ..own }));
    }
}
