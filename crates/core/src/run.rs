//! A command that ran under supervision, and how it ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::agent::ProcessId;
use crate::checkpoint::Trigger;
use crate::session::Status;
use crate::text::Note;
use crate::time::exactly_in_words;

/// Recorded when a command begins to run under supervision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStarted {
    pub command: Vec<String>,
    pub supervisor: ProcessId,
    pub child: Option<ProcessId>,
    /// The machine, whose process numbers these are.
    pub machine: String,
    pub timeout_seconds: Option<u64>,
    /// The tmux session it runs in.
    pub tmux: Option<String>,
    /// What an agent was told to do, when it was started for that alone.
    pub prompt: Option<Note>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnded {
    pub ending: Ending,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Ending {
    Exited {
        code: i32,
    },
    Signalled {
        signal: i32,
    },
    OutOfMemory,
    TimedOut {
        after_seconds: u64,
    },
    /// Its supervisor was told to stop, and stopped it.
    ShutDown {
        signal: i32,
    },
    /// Nobody saw it end.
    Lost,
}

impl Ending {
    /// What the session is now.
    pub const fn status(self) -> Status {
        match self {
            Self::Exited { code: 0 } => Status::Completed,
            Self::Exited { .. }
            | Self::Signalled { .. }
            | Self::OutOfMemory
            | Self::TimedOut { .. } => Status::Failed,
            Self::ShutDown { .. } | Self::Lost => Status::Interrupted,
        }
    }

    /// What the checkpoint at such an end is taken for.
    pub const fn trigger(self) -> Trigger {
        match self {
            Self::Exited { code: 0 } => Trigger::Complete,
            Self::ShutDown { .. } => Trigger::Shutdown,
            _ => Trigger::Error,
        }
    }

    /// Why, in words. `None` when all went well.
    pub fn reason(self) -> Option<String> {
        Some(match self {
            Self::Exited { code: 0 } => return None,
            Self::Exited { code } => format!("Command ended with exit code {code}"),
            Self::Signalled { signal } => format!("Command was ended by {}", signal_name(signal)),
            Self::OutOfMemory => "Command ran out of memory".to_owned(),
            Self::TimedOut { after_seconds } => {
                let span = exactly_in_words(Duration::from_secs(after_seconds));
                format!("Container timeout after {span}")
            }
            Self::ShutDown { signal } => format!("Shut down by {}", signal_name(signal)),
            Self::Lost => "Process is gone, and nobody saw it end".to_owned(),
        })
    }

    /// What a shell would answer for it.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Exited { code } => (code & 0xff) as u8,
            Self::Signalled { signal } | Self::ShutDown { signal } => 128 + (signal & 0x7f) as u8,
            Self::OutOfMemory => 137,
            // As `timeout` does.
            Self::TimedOut { .. } => 124,
            Self::Lost => 1,
        }
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

/// Did a program's last words say that there was no memory left? Only of one that died suddenly are they
/// taken for more than talk, except for the one line that Python ends with.
pub fn says_out_of_memory(tail: &str, is_sudden: bool) -> bool {
    const WORDS: [&str; 4] =
        ["heap out of memory", "memory allocation of ", "std::bad_alloc", "Cannot allocate memory"];
    let last = tail.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    (is_sudden && WORDS.iter().any(|words| tail.contains(words))) || last == "MemoryError"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_says_what_became_of_the_work() {
        let check = |ending: Ending, status: Status, reason: Option<&str>, code: u8| {
            assert_eq!(ending.status(), status, "{ending:?}");
            assert_eq!(ending.reason().as_deref(), reason);
            assert_eq!(ending.exit_code(), code, "{ending:?}");
        };
        check(Ending::Exited { code: 0 }, Status::Completed, None, 0);
        let failed = Some("Command ended with exit code 3");
        check(Ending::Exited { code: 3 }, Status::Failed, failed, 3);
        let killed = Some("Command was ended by SIGKILL");
        check(Ending::Signalled { signal: 9 }, Status::Failed, killed, 137);
        check(Ending::OutOfMemory, Status::Failed, Some("Command ran out of memory"), 137);
        let late = Some("Container timeout after 24 hours");
        check(Ending::TimedOut { after_seconds: 86_400 }, Status::Failed, late, 124);
        let down = Some("Shut down by SIGTERM");
        check(Ending::ShutDown { signal: 15 }, Status::Interrupted, down, 143);
        let lost = Some("Process is gone, and nobody saw it end");
        check(Ending::Lost, Status::Interrupted, lost, 1);
    }

    #[test]
    fn last_words_tell_of_missing_memory() {
        let check = |tail: &str, is_sudden: bool, expected: bool| {
            assert_eq!(says_out_of_memory(tail, is_sudden), expected, "{tail}");
        };
        let node =
            "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\r\n";
        check(node, true, true);
        check("the tests ran into a heap out of memory, I mended that\n", false, false);
        check("Traceback (most recent call last):\nMemoryError\n", false, true);
        check("memory allocation of 8589934592 bytes failed\n", true, true);
        check("done\n", true, false);
    }
}
