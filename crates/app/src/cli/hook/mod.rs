//! `biv hook`: what agents call. It never fails, gives up soon after its deadline, and prints nothing but an answer in
//! the agent's own form; where nothing can be kept of what it was told, that on stderr.
//!
//! - `apart`: the same where memory is limited, and running out of it would end this process

mod apart;

use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bivouac_core::agent::AgentKind;
use bivouac_core::sabotage::{self, Fault};
use bivouac_engine::home::Wishes;
use bivouac_engine::observe::{self, Hook, Reached};
use clap::{Parser, Subcommand};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cli::Global;
use crate::report::{self, Exit};
use crate::ui::{Form, Ui};

/// Take in what an agent tells (agents call this; see `biv hooks install`)
#[derive(Debug, clap::Args)]
pub struct HookArgs {
    /// The agent
    agent: String,
    /// Its event
    event: String,
    /// Whatever else it passes
    #[arg(hide = true, allow_hyphen_values = true, trailing_var_arg = true)]
    rest: Vec<OsString>,
}

/// The same with one command: an agent waits for its hooks, and making all others known first would cost
/// each of them milliseconds.
#[derive(Debug, Parser)]
struct HookCli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: HookCommand,
}

#[derive(Debug, Subcommand)]
enum HookCommand {
    Hook(HookArgs),
}

/// Runs a hook, if that is what was asked for. One whose words make no sense says so and succeeds: for some agents,
/// failing means to refuse what they are about to do.
pub fn run_first(words: &[OsString]) -> Option<Exit> {
    if words.get(1).is_none_or(|word| word != "hook") {
        return None;
    }
    let HookCli { global, command: HookCommand::Hook(args) } = match HookCli::try_parse_from(words)
    {
        Ok(parsed) => parsed,
        Err(error) => {
            let _nowhere_left_to_say_it = error.print();
            return Some(Exit::Done);
        }
    };
    let wishes = Wishes { folder: global.folder, workspace: global.root, store: global.store };
    Some(run(&args, &wishes))
}

/// More is not read.
const MAX_INPUT: usize = 32 << 20;
const READING: Duration = Duration::from_secs(5);
const DEADLINE: Duration = Duration::from_secs(25);
/// Agents do not wait long when they end.
const DEADLINE_AT_END: Duration = Duration::from_millis(2_500);

/// No agent sees anything but success, whatever happens in here.
pub fn run(args: &HookArgs, wishes: &Wishes) -> Exit {
    panic::catch_unwind(AssertUnwindSafe(|| take_in(args, wishes))).unwrap_or(Exit::Done)
}

fn take_in(args: &HookArgs, wishes: &Wishes) -> Exit {
    let part = apart::part();
    // A program of ours that runs an agent's or git's hooks must not lead back here.
    if std::env::var_os(observe::WITHIN).is_some() && part.is_none() {
        return Exit::Done;
    }
    let Ok(agent) = args.agent.parse::<AgentKind>() else {
        return Exit::Done;
    };
    let input = match read_input(MAX_INPUT) {
        Ok(input) => input,
        Err(Unread::Silence) => return Exit::Done,
        Err(Unread::NoMemory) => {
            apart::give_up(wishes);
            return Exit::Done;
        }
    };
    if part.is_none() && apart::is_memory_limited() {
        let deadline = deadline(&args.event);
        apart::run((args.agent.as_str(), args.event.as_str()), &input, deadline, wishes);
        return Exit::Done;
    }
    let mut hook = Hook::new(agent, args.event.clone(), text(input));
    let answer = match part {
        Some(part) => {
            hook.id = part.id;
            part.carry_out(&hook, wishes)
        }
        None => within_deadline(&hook, wishes),
    };
    if answer.is_none() && sabotage::is(Fault::HookFails) {
        return Exit::Failed;
    }
    if let Some(answer) = answer.filter(|it| !it.is_empty()) {
        let _the_agent_is_gone = writeln!(io::stdout(), "{answer}");
    }
    Exit::Done
}

/// Why there is nothing to take in.
pub(super) enum Unread {
    /// The agent leaves its end of the pipe open, and says no more.
    Silence,
    /// There is not enough memory for what it says.
    NoMemory,
}

/// What stdin has, up to `most` bytes. Without a thread: there may be none to have.
pub(super) fn read_input(most: usize) -> Result<Vec<u8>, Unread> {
    const CHUNK: usize = 64 << 10;
    let until = Instant::now() + READING;
    let (stdin, mut bytes) = (io::stdin(), Vec::new());
    while bytes.len() < most {
        bytes.try_reserve(CHUNK).map_err(|_| Unread::NoMemory)?;
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err(Unread::Silence),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return Err(Unread::Silence),
        }
        let (start, room) = (bytes.len(), CHUNK.min(most - bytes.len()));
        bytes.resize(start + room, 0);
        let read = rustix::io::read(&stdin, &mut bytes[start..]);
        bytes.truncate(start + read.unwrap_or(0));
        match read {
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => return Err(Unread::Silence),
        }
    }
    Ok(bytes)
}

/// JSON is UTF-8. Where an agent passes on a name that is not, the rest of what it says still counts.
pub(super) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn deadline(event: &str) -> Duration {
    let is_end = matches!(event.to_ascii_lowercase().as_str(), "sessionend" | "interrupt");
    if is_end { DEADLINE_AT_END } else { DEADLINE }
}

/// `None` for what could not be put on record in time, or at all: it is kept for the next command.
fn within_deadline(hook: &Hook, wishes: &Wishes) -> Option<String> {
    let on_record = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let (own_hook, own_wishes, recorded) = (hook.clone(), wishes.clone(), Arc::clone(&on_record));
    let started = thread::Builder::new().spawn(move || {
        let mark = || recorded.store(true, Ordering::SeqCst);
        let answer = observe::run(&own_hook, &own_wishes, &mark);
        let _nobody_waits = sender.send(answer);
    });
    // Where no thread can be started, the sender is gone, and nothing is waited for.
    let outcome = receiver.recv_timeout(deadline(&hook.event));
    let is_unfinished = started.is_err() || outcome.is_err();
    let answer = outcome.ok().and_then(Result::ok);
    match (answer.is_some(), on_record.load(Ordering::SeqCst)) {
        (false, false) => put_aside(hook, Reached::Nothing, wishes),
        // It was still saving, and that ends with us.
        (false, true) if is_unfinished => put_aside(hook, Reached::Record, wishes),
        _ => {}
    }
    answer
}

/// Where nothing can be kept at all, that is the last thing that can be said.
fn put_aside(hook: &Hook, reached: Reached, wishes: &Wishes) {
    if let Err(error) = observe::put_aside(hook, reached, wishes) {
        report::note("what the agent told could not be kept", &error, &mut Ui::new(Form::Text));
    }
}
