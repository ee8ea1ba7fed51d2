//! Which automatic checkpoints may go. What a person made, named or pinned stays; so do the last
//! one, the final one, those taken at an error and those our own restores took.

use std::time::Duration;

use crate::autosave::is_automatic;
use crate::checkpoint::Trigger;
use crate::id::CheckpointId;
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How many automatic checkpoints a session keeps.
    pub max_per_session: usize,
    /// How long those of an ended session are kept.
    pub max_age: Duration,
}

/// What has to be known about a checkpoint to judge it.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub id: CheckpointId,
    pub trigger: Trigger,
    pub is_named: bool,
    pub is_pinned: bool,
    pub taken_at: Timestamp,
}

impl Candidate {
    fn may_go(&self) -> bool {
        let is_final = matches!(self.trigger, Trigger::Complete | Trigger::Error);
        is_automatic(self.trigger) && !is_final && !self.is_named && !self.is_pinned
    }
}

/// How many automatic checkpoints a session has that may go one day.
pub fn n_thinnable(session: &[Candidate]) -> usize {
    session.iter().filter(|it| it.may_go()).count()
}

/// The checkpoints of one session (oldest first) that are too many. The first and the last automatic
/// ones stay, and those between go where they stand closest together, so that what is left spans
/// the whole session: densely of late, sparsely long ago.
pub fn thin(session: &[Candidate], max: usize) -> Vec<CheckpointId> {
    let mut kept: Vec<&Candidate> = without_last(session).iter().filter(|it| it.may_go()).collect();
    let Some(newest) = session.last().map(|it| it.taken_at) else {
        return Vec::new();
    };
    // The last checkpoint stays whatever its kind; when it is automatic, it is one of the allowed number.
    let max = max.saturating_sub(usize::from(session.last().is_some_and(Candidate::may_go)));
    let mut gone = Vec::new();
    while kept.len() > max {
        gone.push(kept.remove(most_crowded(&kept, newest)).id);
    }
    gone
}

/// The checkpoints of one ended session (oldest first) that have outlived `max_age`.
pub fn expire(session: &[Candidate], max_age: Duration, now: Timestamp) -> Vec<CheckpointId> {
    let old =
        without_last(session).iter().filter(|it| it.may_go() && now.since(it.taken_at) > max_age);
    old.map(|it| it.id).collect()
}

fn without_last(session: &[Candidate]) -> &[Candidate] {
    session.split_last().map_or(&[], |(_, rest)| rest)
}

/// The one whose absence leaves the smallest hole for its age.
fn most_crowded(kept: &[&Candidate], newest: Timestamp) -> usize {
    if kept.len() < 3 {
        return kept.len() - 1;
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
    (1..kept.len()).min_by_key(hole_for_age).expect("there are at least two places after the first")
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
        let gone = minutes(&thin(&session, 20));
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
            let gone = thin(&session, 10);
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
        assert_eq!(minutes(&thin(&session, 0)), [12]);
        let now = candidate(100_000, Trigger::Turn).taken_at;
        assert_eq!(minutes(&expire(&session, Duration::from_secs(60), now)), [12]);
    }

    #[test]
    fn small_numbers_are_honoured() {
        let session: Vec<Candidate> =
            (0..5).map(|minute| candidate(minute, Trigger::Turn)).collect();
        let check =
            |max: usize, left: usize| assert_eq!(5 - thin(&session, max).len(), left, "max {max}");
        check(0, 1);
        check(1, 1);
        check(2, 2);
        check(3, 3);
        check(9, 5);
        assert!(thin(&[], 0).is_empty());
    }

    #[test]
    fn a_clock_that_went_backwards_expires_nothing() {
        let session: Vec<Candidate> =
            (10..20).map(|minute| candidate(minute, Trigger::Turn)).collect();
        let now = candidate(0, Trigger::Turn).taken_at;
        assert!(expire(&session, Duration::ZERO, now).is_empty());
    }
}
