//! Is the work still being done? What is known about processes becomes an ending, or nothing at all: where
//! it is not certain, the work goes on.

use std::time::Duration;

use crate::agent::AgentKind;
use crate::run::Ending;
use crate::time::Timestamp;

/// What can be told about a process from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Runs,
    Gone,
    /// It is another machine's, or nobody wrote it down.
    Unknown,
}

/// A supervised run that nobody said ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRun {
    /// Does its supervisor hold its lock?
    pub is_supervised: bool,
    pub child: Life,
    pub started_at: Timestamp,
    pub timeout: Option<Duration>,
    /// When its supervisor last showed that it lives.
    pub last_sign: Option<Timestamp>,
}

impl OpenRun {
    /// How it ended, where it did.
    pub fn ending(&self, now: Timestamp) -> Option<Ending> {
        if self.is_supervised || self.child == Life::Runs || self.may_live_elsewhere(now) {
            return None;
        }
        match self.timeout.zip(self.last_sign) {
            Some((timeout, last)) if last.since(self.started_at) >= timeout => {
                Some(Ending::TimedOut { after_seconds: timeout.as_secs() })
            }
            _ => Some(Ending::Lost),
        }
    }
}

impl OpenRun {
    /// Locks are not shared by every disk, but the time of a file is.
    fn may_live_elsewhere(&self, now: Timestamp) -> bool {
        const SIGNS_COME: Duration = Duration::from_secs(60);
        let is_recent = |last: Timestamp| last > now || now.since(last) < SIGNS_COME;
        self.child == Life::Unknown && self.last_sign.is_some_and(is_recent)
    }
}

/// The newest conversation of a session, as nobody ended it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTalk {
    pub agent: AgentKind,
    pub pid: u32,
    pub life: Life,
    /// Does the agent tell when it ends?
    pub says_goodbye: bool,
    /// Was something asked that was not answered?
    pub is_turn_open: bool,
}

impl OpenTalk {
    /// Why the session counts as interrupted, where it does.
    pub fn interruption(&self) -> Option<String> {
        let (agent, pid) = (self.agent.title(), self.pid);
        match (self.life, self.says_goodbye) {
            (Life::Runs | Life::Unknown, _) => None,
            (Life::Gone, true) => {
                Some(format!("{agent} (process {pid}) is gone and did not say goodbye"))
            }
            // It ends without a word even when all is well.
            (Life::Gone, false) if !self.is_turn_open => None,
            (Life::Gone, false) => {
                Some(format!("{agent} (process {pid}) is gone in the middle of a turn"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_only_when_nobody_is_left() {
        let started_at: Timestamp = "2026-01-21T14:00:00Z".parse().unwrap();
        let check = |is_supervised: bool, child: Life, last: &str, expected: Option<Ending>| {
            let run = OpenRun {
                is_supervised,
                child,
                started_at,
                timeout: Some(Duration::from_secs(3_600)),
                last_sign: last.parse().ok(),
            };
            let now = "2026-01-21T18:00:00Z".parse().unwrap();
            assert_eq!(run.ending(now), expected, "{run:?}");
        };
        let timed_out = Some(Ending::TimedOut { after_seconds: 3_600 });
        check(true, Life::Gone, "2026-01-21T16:00:00Z", None);
        check(false, Life::Runs, "2026-01-21T16:00:00Z", None);
        check(false, Life::Gone, "2026-01-21T14:59:59Z", Some(Ending::Lost));
        // Another machine's, whose lock we may not see.
        check(false, Life::Unknown, "2026-01-21T17:59:30Z", None);
        check(false, Life::Unknown, "2026-01-21T14:59:59Z", Some(Ending::Lost));
        check(false, Life::Gone, "2026-01-21T15:00:00Z", timed_out);
        check(false, Life::Unknown, "2026-01-21T15:00:00Z", timed_out);
        check(false, Life::Unknown, "never", Some(Ending::Lost));
    }

    #[test]
    fn an_agent_that_never_says_goodbye_is_missed_only_in_the_middle_of_something() {
        let check = |life: Life, says_goodbye: bool, is_turn_open: bool, expected: Option<&str>| {
            let agent = AgentKind::ClaudeCode;
            let talk = OpenTalk { agent, pid: 4711, life, says_goodbye, is_turn_open };
            assert_eq!(talk.interruption().as_deref(), expected, "{talk:?}");
        };
        let silent = Some("Claude Code (process 4711) is gone and did not say goodbye");
        let torn = Some("Claude Code (process 4711) is gone in the middle of a turn");
        check(Life::Gone, true, false, silent);
        check(Life::Gone, true, true, silent);
        check(Life::Gone, false, true, torn);
        check(Life::Gone, false, false, None);
        check(Life::Runs, true, true, None);
        check(Life::Unknown, true, true, None);
    }
}
