//! The program on its stage: a terminal of its own behind ours, keys and signals handed on, and its end seen.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use bivouac_capture::process::Says;
use bivouac_capture::pty::{Pty, RawTerminal};
use bivouac_capture::running;
use bivouac_capture::signals::{
    SIGABRT, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGSEGV, SIGTERM, SIGUSR1,
    SIGUSR2, SIGWINCH, Signals,
};
use bivouac_capture::supervised::{Fate, Supervised, fates, suspend_job};
use bivouac_core::agent::ProcessId;
use bivouac_core::run::{Ending, says_out_of_memory};
use bivouac_snapshot::private::{self, Open};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::RunOrder;
use crate::{Error, Result};

pub(crate) struct Stage {
    supervised: Supervised,
    signals: Signals,
    raw: Option<RawTerminal>,
    /// Are keys still to be handed on?
    hears: bool,
    /// Keys the program has not taken yet.
    typed: VecDeque<u8>,
    output: Output,
    /// The last bytes it said: a program that dies often says why.
    tail: VecDeque<u8>,
    oom_kills: Option<u64>,
}

enum Output {
    Ours(Says),
    Log(File),
    /// Whoever looked is gone.
    Nobody,
}

/// What happened while we waited.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) fates: Vec<(Pid, Fate)>,
    pub(crate) ending: Option<Ending>,
    /// We were told to end by this signal.
    pub(crate) shutdown: Option<i32>,
}

const TAIL: usize = 4 << 10;
/// So much may be typed ahead of a program that does not listen.
const MANY_KEYS: usize = 64 << 10;
const CAUGHT: [i32; 9] =
    [SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT];

impl Stage {
    /// Starts the program: on a terminal of its own where ours is one, else with our input and output.
    pub(crate) fn set(
        order: &RunOrder,
        environment: &[(OsString, OsString)],
        workspace: &Path,
    ) -> Result<Self> {
        let folder = order.folder.clone().or_else(|| std::env::current_dir().ok());
        let folder = folder.unwrap_or_else(|| workspace.to_owned());
        let is_seen = io::stdin().is_terminal() && io::stdout().is_terminal();
        let pty = match is_seen || order.log.is_some() {
            true => Some(Pty::open().map_err(|source| Error::NoTerminal { source })?),
            false => None,
        };
        let output = match &order.log {
            Some(path) => {
                let file = private::open(path, Open::Append);
                Output::Log(file.map_err(Error::io(path))?)
            }
            None => Output::Ours(order.says),
        };
        let signals = Signals::catch(&CAUGHT).map_err(Error::io("signals"))?;
        let oom_kills = running::oom_kills();
        let supervised =
            Supervised::start(&order.command, &folder, environment, (pty, order.says))?;
        let hears = supervised.pty.is_some() && is_seen && order.log.is_none();
        let raw = if hears { RawTerminal::enter() } else { None };
        let (typed, tail) = (VecDeque::new(), VecDeque::new());
        Ok(Self { supervised, signals, raw, hears, typed, output, tail, oom_kills })
    }

    pub(crate) fn process(&self) -> Option<ProcessId> {
        self.supervised.process()
    }

    /// The terminal is ours again. Signals still wait to be looked at.
    pub(crate) fn leave(self) -> Signals {
        self.signals
    }

    pub(crate) fn signal(&self, signal: i32) {
        self.supervised.signal(signal);
    }

    pub(crate) fn kill(&self) {
        self.supervised.kill();
    }

    /// Hands on what there is until something happens that matters, or it is late.
    pub(crate) fn wait(&mut self, until: Instant) -> Seen {
        let mut seen = Seen::default();
        while seen.ending.is_none() && seen.shutdown.is_none() && seen.fates.is_empty() {
            let Some(ready) = self.poll(until) else { break };
            if ready.shown {
                self.show();
            }
            if ready.typed {
                self.listen(&mut seen);
            }
            self.hand_on();
            for signal in self.signals.take() {
                self.obey(signal, &mut seen);
            }
        }
        seen
    }

    /// `None` when it is late.
    fn poll(&self, until: Instant) -> Option<Ready> {
        let left = until.saturating_duration_since(Instant::now());
        let stdin = io::stdin();
        let mut waits = vec![PollFd::new(&self.signals, PollFlags::IN)];
        if let Some(pty) = &self.supervised.pty {
            let writing = if self.typed.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            waits.push(PollFd::new(pty, PollFlags::IN | writing));
            if self.hears && self.typed.len() < MANY_KEYS {
                waits.push(PollFd::new(&stdin, PollFlags::IN));
            }
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut waits, Some(&timeout)) {
            Ok(0) => None,
            Ok(_) => {
                let is_ready =
                    |at: usize| waits.get(at).is_some_and(|wait| !wait.revents().is_empty());
                Some(Ready { shown: is_ready(1), typed: is_ready(2) })
            }
            // A signal: it is looked at next.
            Err(_) => Some(Ready { shown: false, typed: false }),
        }
    }

    /// What the program says goes where people look.
    fn show(&mut self) {
        let mut buffer = [0; 16 << 10];
        let Some(n) = self.supervised.pty.as_ref().and_then(|pty| pty.read(&mut buffer)) else {
            return;
        };
        if n == 0 {
            // It closed its terminal. Its end is told by a signal.
            std::thread::sleep(std::time::Duration::from_millis(1));
            return;
        }
        self.tail.extend(&buffer[..n]);
        let too_many = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..too_many);
        let written = match &mut self.output {
            Output::Ours(Says::Out) => write_out(io::stdout().lock(), &buffer[..n]),
            Output::Ours(Says::Aside) => write_out(io::stderr().lock(), &buffer[..n]),
            Output::Log(file) => file.write_all(&buffer[..n]),
            Output::Nobody => Ok(()),
        };
        if written.is_err() {
            self.output = Output::Nobody;
        }
    }

    /// Gives the program the keys it has room for.
    fn hand_on(&mut self) {
        let Some(pty) = self.supervised.pty.as_ref().filter(|_| !self.typed.is_empty()) else {
            return;
        };
        let n = pty.write(self.typed.make_contiguous());
        self.typed.drain(..n);
    }

    fn listen(&mut self, seen: &mut Seen) {
        let mut buffer = [0; 4 << 10];
        match rustix::io::read(io::stdin(), &mut buffer) {
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Ok(n @ 1..) => self.typed.extend(&buffer[..n]),
            // Our terminal is gone, whether or not someone tells us.
            Ok(0) | Err(_) => {
                self.hears = false;
                seen.shutdown = Some(SIGHUP);
            }
        }
    }

    fn obey(&mut self, signal: i32, seen: &mut Seen) {
        match signal {
            SIGCHLD => self.look_after(seen),
            SIGWINCH => {
                if let Some(pty) = &self.supervised.pty {
                    pty.fit();
                }
            }
            SIGTERM | SIGHUP => seen.shutdown = Some(signal),
            SIGCONT => {}
            other => self.supervised.signal_apart(other),
        }
    }

    /// Our processes: the program, saves, and, as the first process of a container, everyone's orphans.
    fn look_after(&mut self, seen: &mut Seen) {
        for (process, fate) in fates() {
            match (self.supervised.is(process), fate) {
                (true, Fate::Stopped) => self.pause(),
                (true, fate) => {
                    while self.has_more() {
                        self.show();
                    }
                    seen.ending = Some(self.judge(fate));
                }
                (false, fate) => seen.fates.push((process, fate)),
            }
        }
    }

    /// Is there something it said that nobody has seen yet?
    fn has_more(&self) -> bool {
        let Some(pty) = &self.supervised.pty else { return false };
        let mut wait = [PollFd::new(pty, PollFlags::IN)];
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut wait, Some(&none)).is_ok() && wait[0].revents().contains(PollFlags::IN)
    }

    /// The program was suspended, so we are, until someone continues us.
    fn pause(&mut self) {
        if self.supervised.pty.is_none() {
            return;
        }
        // Where nobody types, nobody could continue us either.
        if let Some(raw) = &self.raw {
            raw.leave();
            suspend_job();
            raw.resume();
        }
        if let Some(pty) = &self.supervised.pty {
            pty.fit();
        }
        self.supervised.proceed();
    }

    fn judge(&self, fate: Fate) -> Ending {
        let (ending, is_sudden) = match fate {
            Fate::Exited(code) => (Ending::Exited { code }, code > 128),
            Fate::Signalled(signal) => {
                (Ending::Signalled { signal }, matches!(signal, SIGKILL | SIGABRT | SIGSEGV))
            }
            Fate::Stopped => unreachable!("a program that is stopped has not ended"),
        };
        let was_oom = is_sudden && running::oom_kills() > self.oom_kills;
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if was_oom || says_out_of_memory(&String::from_utf8_lossy(&tail), is_sudden) {
            return Ending::OutOfMemory;
        }
        ending
    }
}

struct Ready {
    shown: bool,
    typed: bool,
}

fn write_out(mut out: impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(bytes)?;
    out.flush()
}
