//! Which automatic checkpoints may go. What a person made, named or pinned stays; so do the last
//! one, the final one, those taken at an error and those our own restores took.
//!
//! A checkpoint is kept by the more generous of two policies: the one that is configured now, and the one
//! that was in force when it was taken. Only the user's own configuration may lower what was promised by the
//! user's own configuration; a workspace's file may only lower what is promised to later checkpoints.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::autosave::is_automatic;
use crate::checkpoint::Trigger;
use crate::id::CheckpointId;
use crate::time::Timestamp;

/// How checkpoints are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How many automatic checkpoints a session keeps.
    pub max_per_session: Limit<u64>,
    /// How long those of an ended session are kept.
    pub max_age: Limit<Duration>,
}

/// One limit of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit<T> {
    /// What is configured for this workspace.
    pub now: T,
    /// What the user's own configuration says, without the workspace's file.
    pub own: T,
    /// It was said for this command alone (a variable, or the budget), so no promise stands against it.
    pub is_final: bool,
}

impl<T: Copy + Ord> Limit<T> {
    /// A limit that no promise stands against.
    pub const fn exactly(limit: T) -> Self {
        Self { now: limit, own: limit, is_final: true }
    }

    /// The limit for a checkpoint that was promised this much. One without a promise was taken under the
    /// user's own configuration alone, so it follows that configuration as it is now.
    fn given(&self, promised: Option<T>) -> T {
        match self.is_final {
            true => self.now,
            false => self.now.max(promised.unwrap_or(self.own)),
        }
    }
}

impl Policy {
    /// What a checkpoint that is taken now is promised, where that is not what the user's own configuration
    /// says.
    pub fn promise(&self) -> Option<Promise> {
        let Self { max_per_session, max_age } = self;
        let is_usual = max_per_session.now == max_per_session.own && max_age.now == max_age.own;
        (!is_usual).then_some(Promise {
            max_per_session: max_per_session.now,
            max_age_seconds: max_age.now.as_secs(),
        })
    }
}

/// The limits a checkpoint was taken under, kept with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    pub max_per_session: u64,
    pub max_age_seconds: u64,
}

/// What has to be known about a checkpoint to judge it.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub id: CheckpointId,
    pub trigger: Trigger,
    pub is_named: bool,
    pub is_pinned: bool,
    pub taken_at: Timestamp,
    pub promise: Option<Promise>,
}

impl Candidate {
    fn may_go(&self) -> bool {
        let is_final = matches!(self.trigger, Trigger::Complete | Trigger::Error);
        is_automatic(self.trigger) && !is_final && !self.is_named && !self.is_pinned
    }
}

/// How many automatic checkpoints a session has that may go one day.
pub fn n_thinnable(session: &[Candidate]) -> u64 {
    session.iter().filter(|it| it.may_go()).count() as u64
}

/// The checkpoints of one session (oldest first) that are too many. A checkpoint may go only while the session
/// has more of them than it was promised. Those with the lowest limit go first. The first and the last
/// automatic ones stay, and those between go where they stand closest together, so that what is left spans
/// the whole session: densely of late, sparsely long ago.
pub fn thin(session: &[Candidate], max: &Limit<u64>) -> Vec<CheckpointId> {
    let mut kept: Vec<&Candidate> = without_last(session).iter().filter(|it| it.may_go()).collect();
    let Some(last) = session.last() else {
        return Vec::new();
    };
    let limit = |it: &Candidate| max.given(it.promise.map(|promise| promise.max_per_session));
    // The last checkpoint stays whatever its kind; when it is automatic, it is one of the allowed number.
    let n_last = u64::from(last.may_go());
    let mut gone = Vec::new();
    while let Some(lowest) = kept.iter().map(|it| limit(it)).min()
        && kept.len() as u64 + n_last > lowest
    {
        let place = most_crowded(&kept, last.taken_at, |it| limit(it) == lowest);
        gone.push(kept.remove(place).id);
    }
    gone
}

/// The checkpoints of one ended session (oldest first) that have outlived `max_age`.
pub fn expire(
    session: &[Candidate],
    max_age: &Limit<Duration>,
    now: Timestamp,
) -> Vec<CheckpointId> {
    let limit = |it: &Candidate| {
        max_age.given(it.promise.map(|promise| Duration::from_secs(promise.max_age_seconds)))
    };
    let is_old = |it: &&Candidate| it.may_go() && now.since(it.taken_at) > limit(it);
    without_last(session).iter().filter(is_old).map(|it| it.id).collect()
}

fn without_last(session: &[Candidate]) -> &[Candidate] {
    session.split_last().map_or(&[], |(_, rest)| rest)
}

/// Of those that may be chosen, the one whose absence leaves the smallest hole for its age.
fn most_crowded(
    kept: &[&Candidate],
    newest: Timestamp,
    may_choose: impl Fn(&Candidate) -> bool,
) -> usize {
    let mut places = (0..kept.len()).filter(|place| may_choose(kept[*place]));
    // The first one spans the session, so it is the last to be chosen.
    if kept.len() < 3 || !places.clone().any(|place| place > 0) {
        return places.next_back().unwrap_or(0);
    }
    let hole_for_age = |place: &usize| {
        let hole = kept
            .get(place + 1)
            .map_or(newest, |next| next.taken_at)
            .since(kept[place - 1].taken_at);
        let age = newest.since(kept[*place].taken_at);
        // Compared as integers: hole / age, scaled.
        hole.as_millis().saturating_mul(1_000_000) / (age.as_millis() + 1)
    };
    places.filter(|place| *place > 0).min_by_key(hole_for_age).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn candidate(minute: u32, trigger: Trigger) -> Candidate {
        let start: Timestamp = "2026-01-21T00:00:00Z".parse().unwrap();
        Candidate {
            id: CheckpointId::new(Uuid::from_u128(minute.into())),
            trigger,
            is_named: false,
            is_pinned: false,
            taken_at: Timestamp::new(start.jiff() + Duration::from_secs(60 * u64::from(minute))),
            promise: None,
        }
    }

    fn minutes(ids: &[CheckpointId]) -> Vec<u128> {
        let mut minutes: Vec<u128> = ids.iter().map(|id| id.uuid().as_u128()).collect();
        minutes.sort_unstable();
        minutes
    }

    #[test]
    fn what_is_left_spans_the_session() {
        let session: Vec<Candidate> =
            (0..100).map(|minute| candidate(minute, Trigger::Periodic)).collect();
        let gone = minutes(&thin(&session, &Limit::exactly(20)));
        assert_eq!(gone.len(), 80);
        let left: Vec<u128> = (0..100).filter(|minute| !gone.contains(minute)).collect();
        assert_eq!((left[0], left[19]), (0, 99));
        let recent = left.iter().filter(|minute| **minute >= 80).count();
        let long_ago = left.iter().filter(|minute| **minute < 50).count();
        assert!(recent >= 8 && long_ago >= 3, "{left:?}");
    }

    #[test]
    fn thinning_one_by_one_keeps_the_span_too() {
        let mut session: Vec<Candidate> = Vec::new();
        for minute in 0..1_000 {
            session.push(candidate(minute, Trigger::Turn));
            let gone = thin(&session, &Limit::exactly(10));
            session.retain(|it| !gone.contains(&it.id));
        }
        let left: Vec<u128> = session.iter().map(|it| it.id.uuid().as_u128()).collect();
        assert_eq!((left.len(), left[0], left[9]), (10, 0, 999));
        assert!(left.iter().any(|minute| (100..900).contains(minute)), "{left:?}");
    }

    #[test]
    fn what_someone_cares_about_is_never_thinned() {
        let kept = [Trigger::Manual, Trigger::Safety, Trigger::Complete, Trigger::Error];
        let mut session: Vec<Candidate> =
            kept.iter().zip(0..).map(|(trigger, minute)| candidate(minute, *trigger)).collect();
        session.push(Candidate { is_named: true, ..candidate(10, Trigger::Turn) });
        session.push(Candidate { is_pinned: true, ..candidate(11, Trigger::Turn) });
        session.push(candidate(12, Trigger::Turn));
        session.push(candidate(13, Trigger::Turn));
        assert_eq!(minutes(&thin(&session, &Limit::exactly(0))), [12]);
        let now = candidate(100_000, Trigger::Turn).taken_at;
        assert_eq!(minutes(&expire(&session, &Limit::exactly(Duration::from_secs(60)), now)), [12]);
    }

    #[test]
    fn small_numbers_are_honoured() {
        let session: Vec<Candidate> =
            (0..5).map(|minute| candidate(minute, Trigger::Turn)).collect();
        let check = |max: u64, left: usize| {
            assert_eq!(5 - thin(&session, &Limit::exactly(max)).len(), left, "max {max}");
        };
        check(0, 1);
        check(1, 1);
        check(2, 2);
        check(3, 3);
        check(9, 5);
        assert!(thin(&[], &Limit::exactly(0)).is_empty());
    }

    #[test]
    fn a_clock_that_went_backwards_expires_nothing() {
        let session: Vec<Candidate> =
            (10..20).map(|minute| candidate(minute, Trigger::Turn)).collect();
        let now = candidate(0, Trigger::Turn).taken_at;
        assert!(expire(&session, &Limit::exactly(Duration::ZERO), now).is_empty());
    }

    fn promised(minute: u32, max_per_session: u64) -> Candidate {
        let promise = Promise { max_per_session, max_age_seconds: max_per_session * 60 };
        Candidate { promise: Some(promise), ..candidate(minute, Trigger::Turn) }
    }

    /// The minutes that are left of a session that had 20 under the user's own configuration.
    fn left_of_twenty(max: Limit<u64>) -> usize {
        let session: Vec<Candidate> =
            (0..20).map(|minute| candidate(minute, Trigger::Turn)).collect();
        20 - thin(&session, &max).len()
    }

    #[test]
    fn a_workspace_lowers_nothing_that_was_promised_before() {
        assert_eq!(left_of_twenty(Limit { now: 1, own: 20, is_final: false }), 20);
        // The user's own configuration does, and so does a variable.
        assert_eq!(left_of_twenty(Limit { now: 5, own: 5, is_final: false }), 5);
        assert_eq!(left_of_twenty(Limit::exactly(3)), 3);
    }

    #[test]
    fn what_comes_after_a_lower_limit_goes_first() {
        let mut session: Vec<Candidate> =
            (0..20).map(|minute| candidate(minute, Trigger::Turn)).collect();
        session.extend((20..30).map(|minute| promised(minute, 1)));
        let gone = minutes(&thin(&session, &Limit { now: 1, own: 20, is_final: false }));
        assert_eq!(gone.len(), 10);
        assert!(gone.iter().filter(|minute| **minute < 20).count() == 1, "{gone:?}");
    }

    #[test]
    fn what_a_workspace_promised_stays_when_its_file_is_gone() {
        let session: Vec<Candidate> = (0..100).map(|minute| promised(minute, 100)).collect();
        assert!(thin(&session, &Limit { now: 20, own: 20, is_final: false }).is_empty());
        assert_eq!(thin(&session, &Limit::exactly(20)).len(), 80);
        let now = candidate(101, Trigger::Turn).taken_at;
        let max_age = Limit { now: Duration::ZERO, own: Duration::ZERO, is_final: false };
        assert_eq!(minutes(&expire(&session, &max_age, now)), [0]);
    }

    #[test]
    fn a_promise_is_kept_with_a_checkpoint_where_it_is_not_the_usual_one() {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        let policy = |now: u64, own: u64| Policy {
            max_per_session: Limit { now, own, is_final: false },
            max_age: Limit { now: days(7), own: days(7), is_final: false },
        };
        assert_eq!(policy(20, 20).promise(), None);
        let promise = Promise { max_per_session: 5, max_age_seconds: 7 * 86_400 };
        assert_eq!(policy(5, 20).promise(), Some(promise));
    }
}
