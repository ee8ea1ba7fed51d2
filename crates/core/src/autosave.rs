//! Is a checkpoint due? Asked before the scan (was it wished for, is it time) and after it (did
//! anything change). What a person asks for is always due.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::checkpoint::Trigger;
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The least time between two periodic checkpoints.
    pub interval: Duration,
    /// The triggers that save at all.
    pub triggers: BTreeSet<Trigger>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Save,
    Skip(Skip),
}

/// Why no checkpoint is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Skip {
    #[error("{0} is not among `checkpoint.triggers`")]
    NotChosen(Trigger),
    #[error("the last checkpoint is younger than `checkpoint.auto_interval_seconds`")]
    TooSoon,
    #[error("nothing changed since the last checkpoint")]
    Unchanged,
}

/// Judges before anything is read. `last_at` is when the session was last saved.
pub fn before_scan(
    trigger: Trigger,
    last_at: Option<Timestamp>,
    now: Timestamp,
    policy: &Policy,
) -> Verdict {
    if !is_automatic(trigger) {
        return Verdict::Save;
    }
    // `error` stands for "before risky operations", so it covers RISK too.
    let covered = trigger == Trigger::Risk && policy.triggers.contains(&Trigger::Error);
    if !policy.triggers.contains(&trigger) && !covered {
        return Verdict::Skip(Skip::NotChosen(trigger));
    }
    let is_young =
        last_at.is_some_and(|last_at| last_at <= now && now.since(last_at) < policy.interval);
    if trigger == Trigger::Periodic && is_young {
        return Verdict::Skip(Skip::TooSoon);
    }
    Verdict::Save
}

/// Judges once it is known whether anything differs from the parent.
pub fn after_scan(trigger: Trigger, change: Change) -> Verdict {
    match change {
        Change::None if is_automatic(trigger) => Verdict::Skip(Skip::Unchanged),
        Change::None | Change::Some => Verdict::Save,
    }
}

/// Did anything change since the parent checkpoint?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    Some,
}

/// May a scan for this checkpoint skip what a watcher says did not change? inotify does not report writes
/// through a name outside the workspace, through a memory map or by asynchronous I/O before the file is closed, nor
/// by a loop device. So only checkpoints that come often rely on it: what one of them misses, the watcher's
/// rescan finds for a later one. What a person asks for, what a restore or a risky command needs to be safe, and
/// the last checkpoint before a pause or an end must hold everything.
pub fn may_rely_on_watcher(trigger: Trigger) -> bool {
    match trigger {
        Trigger::Periodic
        | Trigger::Turn
        | Trigger::Task
        | Trigger::Spawn
        | Trigger::Phase
        | Trigger::Compact => true,
        Trigger::Manual
        | Trigger::Safety
        | Trigger::Risk
        | Trigger::Error
        | Trigger::Detach
        | Trigger::Complete
        | Trigger::Shutdown
        | Trigger::End => false,
    }
}

/// Nobody asked for it: a timer or an event did.
pub fn is_automatic(trigger: Trigger) -> bool {
    !matches!(trigger, Trigger::Manual | Trigger::Safety)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: u32) -> Timestamp {
        format!("2026-01-21T14:{minute:02}:00Z").parse().unwrap()
    }

    #[test]
    fn a_checkpoint_is_due_when_chosen_and_time() {
        let policy = Policy {
            interval: Duration::from_secs(300),
            triggers: [Trigger::Periodic, Trigger::Error].into(),
        };
        let check = |trigger, last: Option<u32>, now, expected| {
            let verdict = before_scan(trigger, last.map(at), at(now), &policy);
            assert_eq!(verdict, expected, "{trigger} last at {last:?}, now {now}");
        };
        check(Trigger::Manual, Some(10), 10, Verdict::Save);
        check(Trigger::Safety, Some(10), 10, Verdict::Save);
        check(Trigger::Periodic, None, 10, Verdict::Save);
        check(Trigger::Periodic, Some(10), 15, Verdict::Save);
        check(Trigger::Periodic, Some(10), 14, Verdict::Skip(Skip::TooSoon));
        check(Trigger::Periodic, Some(20), 10, Verdict::Save); // the clock went backwards
        check(Trigger::Error, Some(10), 10, Verdict::Save);
        check(Trigger::Risk, Some(10), 10, Verdict::Save);
        check(Trigger::Turn, None, 10, Verdict::Skip(Skip::NotChosen(Trigger::Turn)));
    }

    #[test]
    fn only_frequent_checkpoints_rely_on_a_watcher() {
        use Trigger::{Compact, Periodic, Phase, Spawn, Task, Turn};
        let relying: Vec<Trigger> =
            Trigger::ALL.into_iter().filter(|it| may_rely_on_watcher(*it)).collect();
        assert_eq!(relying, [Periodic, Turn, Task, Spawn, Phase, Compact]);
    }

    #[test]
    fn nothing_changed_means_nothing_saved_unless_a_person_asks() {
        assert_eq!(after_scan(Trigger::Turn, Change::None), Verdict::Skip(Skip::Unchanged));
        assert_eq!(after_scan(Trigger::Turn, Change::Some), Verdict::Save);
        assert_eq!(after_scan(Trigger::Manual, Change::None), Verdict::Save);
        assert_eq!(after_scan(Trigger::Safety, Change::None), Verdict::Save);
    }
}
