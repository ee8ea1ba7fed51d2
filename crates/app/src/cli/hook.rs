//! `biv hook`: what agents call. It never fails, gives up soon after its deadline, and prints nothing but an answer in
//! the agent's own form; where nothing can be kept of what it was told, that on stderr.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bivouac_core::agent::AgentKind;
use bivouac_core::sabotage::{self, Fault};
use bivouac_engine::home::Wishes;
use bivouac_engine::observe::{self, Hook, Reached};

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
    rest: Vec<String>,
}

/// More is not read.
const MAX_INPUT: u64 = 32 << 20;
const READING: Duration = Duration::from_secs(5);
const DEADLINE: Duration = Duration::from_secs(25);
/// Agents do not wait long when they end.
const DEADLINE_AT_END: Duration = Duration::from_millis(2_500);

pub fn run(args: &HookArgs, wishes: &Wishes) -> Exit {
    // A program of ours that runs an agent's or git's hooks must not lead back here.
    if std::env::var_os(observe::WITHIN).is_some() {
        return Exit::Done;
    }
    let (Ok(agent), Some(input)) = (args.agent.parse::<AgentKind>(), read_input(MAX_INPUT)) else {
        return Exit::Done;
    };
    let hook = Hook::new(agent, args.event.clone(), input);
    let answer = within_deadline(&hook, wishes);
    if answer.is_none() && sabotage::is(Fault::HookFails) {
        return Exit::Failed;
    }
    if let Some(answer) = answer.filter(|it| !it.is_empty()) {
        let _the_agent_is_gone = writeln!(io::stdout(), "{answer}");
    }
    Exit::Done
}

/// The agent may leave its end of the pipe open, or never write to it.
pub(super) fn read_input(most: u64) -> Option<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = io::stdin().take(most).read_to_end(&mut bytes);
        let _nobody_waits = sender.send(read.map(|_| bytes));
    });
    let bytes = receiver.recv_timeout(READING).ok()?.ok()?;
    String::from_utf8(bytes).ok()
}

/// `None` for what could not be put on record in time, or at all: it is kept for the next command.
fn within_deadline(hook: &Hook, wishes: &Wishes) -> Option<String> {
    let is_end = matches!(hook.event.to_ascii_lowercase().as_str(), "sessionend" | "interrupt");
    let deadline = if is_end { DEADLINE_AT_END } else { DEADLINE };
    let on_record = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let (own_hook, own_wishes, recorded) = (hook.clone(), wishes.clone(), Arc::clone(&on_record));
    thread::spawn(move || {
        let mark = || recorded.store(true, Ordering::SeqCst);
        let answer = observe::run(&own_hook, &own_wishes, &mark);
        let _nobody_waits = sender.send(answer);
    });
    let outcome = receiver.recv_timeout(deadline);
    let is_late = outcome.is_err();
    let answer = outcome.ok().and_then(Result::ok);
    match (answer.is_some(), on_record.load(Ordering::SeqCst)) {
        (false, false) => put_aside(hook, Reached::Nothing, wishes),
        // It was still saving, and that ends with us.
        (false, true) if is_late => put_aside(hook, Reached::Record, wishes),
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
