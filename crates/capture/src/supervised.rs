//! A program that runs under supervision: started, told to end, and seen to end.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use bivouac_core::agent::ProcessId;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_current_process_group, kill_process, kill_process_group,
    wait, waitpid,
};

use crate::process::{Group, Says, start_child};
use crate::pty::{self, Pty};
use crate::running;
use crate::{Error, Result};

/// The word that starts our own binary as the leader of a new terminal.
pub const LEADER: &str = "lead-terminal";

/// A program on a terminal of its own, or on ours.
pub struct Supervised {
    pub pty: Option<Pty>,
    /// What we started: the program, or the leader of its terminal.
    started: Pid,
    /// The program itself.
    program: Pid,
    group: Group,
}

/// What became of a process of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Stopped,
    Exited(i32),
    Signalled(i32),
}

impl Supervised {
    /// Starts a program. With a terminal of its own if there is one to give.
    pub fn start(
        command: &[String],
        folder: &Path,
        environment: &[(OsString, OsString)],
        (pty, says): (Option<Pty>, Says),
    ) -> Result<Self> {
        let Some(pty) = pty else {
            // Where a terminal controls us, it must be able to control the program, and its signals reach
            // our whole group by themselves.
            let has_terminal = fs::File::open("/dev/tty").is_ok();
            let group = if has_terminal { Group::Ours } else { Group::Own };
            let started = pid(start_child(command, folder, environment, (group, says))?)?;
            return Ok(Self { pty: None, started, program: started, group });
        };
        let own = std::env::current_exe().map_err(Error::io("biv"))?;
        let leader = [own.into(), LEADER.into(), pty.path.clone().into(), "--".into()];
        let command: Vec<OsString> =
            leader.into_iter().chain(command.iter().map(OsString::from)).collect();
        let started = pid(start_child(&command, folder, environment, (Group::Ours, Says::Out))?)?;
        let program = child_of(started).unwrap_or(started);
        Ok(Self { pty: Some(pty), started, program, group: Group::Own })
    }

    /// What identifies the program.
    pub fn process(&self) -> Option<ProcessId> {
        running::identify(self.program.as_raw_nonzero().get().unsigned_abs())
    }

    pub fn is(&self, process: Pid) -> bool {
        process == self.started
    }

    /// Sends a signal on to the program and all it started.
    pub fn signal(&self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        let _gone = match self.group {
            Group::Own => kill_process_group(self.program, signal),
            Group::Ours => kill_process(self.program, signal),
        };
    }

    /// Sends on what the terminal did not send to it already.
    pub fn signal_apart(&self, signal: i32) {
        if self.group == Group::Own {
            self.signal(signal);
        }
    }

    /// Lets a program go on that was stopped.
    pub fn proceed(&self) {
        let _gone = kill_process(self.started, Signal::CONT);
    }

    /// Ends it for good.
    pub fn kill(&self) {
        self.signal(Signal::KILL.as_raw());
        if self.started != self.program {
            let _gone = kill_process(self.started, Signal::KILL);
        }
    }
}

/// Every process of ours that something became of. As process 1 of a container, others' orphans are ours,
/// too.
pub fn fates() -> Vec<(Pid, Fate)> {
    let mut found = Vec::new();
    while let Ok(Some((process, status))) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
        let fate = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Fate::Exited(code),
            (None, Some(signal)) => Fate::Signalled(signal),
            (None, None) => Fate::Stopped,
        };
        found.push((process, fate));
    }
    found
}

/// Runs a program on our own terminal, until it ends.
pub fn look_at(command: &[String], folder: &Path) -> Result<()> {
    let program = pid(start_child(command, folder, &[], (Group::Ours, Says::Out))?)?;
    while matches!(waitpid(Some(program), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
    Ok(())
}

/// What became of one process of ours, if anything. Others are left to those who ask for them.
pub fn fate_of(process: u32) -> Option<Fate> {
    let status = waitpid(Some(pid(process).ok()?), WaitOptions::NOHANG).ok()??.1;
    Some(match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Fate::Exited(code),
        (None, signal) => Fate::Signalled(signal.unwrap_or(0)),
    })
}

/// Suspends our whole job, as a shell expects. Goes on when it is continued; at once, where no shell would
/// ever do that.
pub fn suspend_job() {
    let _stopped_for_a_while = kill_current_process_group(Signal::TSTP);
}

/// Stops this process alone, for whoever waits for it to see.
fn stop() {
    let _stopped_for_a_while = kill_process(getpid(), Signal::STOP);
}

/// Leads a terminal: takes it over, runs the program as its job in front, and ends as the program does. One
/// more process than seems needed: without it, nobody could suspend the program.
pub fn lead(terminal: &Path, command: &[String]) -> Result<u8> {
    pty::take_over(terminal).map_err(Error::io(terminal))?;
    let folder = std::env::current_dir().map_err(Error::io("."))?;
    let program = pid(start_child(command, &folder, &[], (Group::Own, Says::Out))?)?;
    let to_front = || {
        let _only_while_we_lead = rustix::termios::tcsetpgrp(io::stdin(), program);
        let _gone = kill_process_group(program, Signal::CONT);
    };
    to_front();
    loop {
        let status = match waitpid(Some(program), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) => status,
            Ok(None) | Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return Ok(1),
        };
        if let Some(code) = status.exit_status() {
            return Ok((code & 0xff) as u8);
        }
        if let Some(signal) = status.terminating_signal() {
            end_like(signal);
            return Ok(128 + (signal & 0x7f) as u8);
        }
        match status.stopping_signal().and_then(Signal::from_named_raw) {
            // It wanted the terminal before it was in front.
            Some(Signal::TTIN | Signal::TTOU) => to_front(),
            _ => {
                stop();
                let _gone = kill_process_group(program, Signal::CONT);
            }
        }
    }
}

/// Ends by the same signal, so that whoever waits for us sees what happened.
fn end_like(signal: i32) {
    use rustix::process::{Resource, Rlimit, setrlimit};
    // One memory image is enough.
    let _only_tidiness = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _did_not_end_us = kill_process(getpid(), signal);
    }
}

/// The first process that another one started, waited for a moment.
fn child_of(parent: Pid) -> Option<Pid> {
    let parent = parent.as_raw_nonzero();
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(2) {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        if let Some(first) = children.split_whitespace().next().and_then(|it| it.parse().ok()) {
            return Pid::from_raw(first);
        }
        // It may have failed at once.
        running::identify(parent.get().unsigned_abs())?;
        thread::sleep(Duration::from_millis(1));
    }
    None
}

fn pid(number: u32) -> Result<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw).ok_or(Error::NotText)
}
