//! An operation that meets a fault, again and again: the stage is brought back, the fault comes, the judge looks.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Proof;
use super::crew;
use super::judge::{Before, Outcome, judge};
use super::operations::{Operation, Scene};
use super::stage::Stage;

/// What came of it: how often the fault was met, and what was found.
pub(super) struct Tried {
    pub(super) n_met: u64,
    pub(super) broken: Vec<String>,
}

/// Tries an operation at every point. `meet` answers `None` where the fault did not come.
pub(super) fn trials<P: Sync>(
    proof: &Proof,
    (part, operation): (&str, &Operation),
    points: &[&P],
    name: impl Fn(&P) -> String,
    meet: impl Fn(&Stage, &P) -> Option<Outcome> + Sync,
) -> Tried {
    let n_met = AtomicU64::new(0);
    let trial = |(stage, scene): &mut (Stage, Scene), point: &&P| {
        stage.bring_back().map_err(|error| error.to_string())?;
        let before = Before::look(stage);
        let Some(outcome) = meet(stage, point) else { return Ok(()) };
        n_met.fetch_add(1, Ordering::Relaxed);
        judge(operation, (stage, scene), &before, &outcome)
    };
    let found = crew::each(points, || operation.stage(&proof.binary), trial);
    let broken = found.into_iter().map(|(at, what)| proof.finding(part, &name(points[at]), &what));
    Tried { broken: broken.collect(), n_met: n_met.into_inner() }
}
