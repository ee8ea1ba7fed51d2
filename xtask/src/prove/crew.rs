//! Many small trials on all cores. A trial that panics has found something, as one that answers an error.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::table::Row;

/// Is one finding enough?
pub(super) static FIRST: AtomicBool = AtomicBool::new(false);

/// Is what was found all that is wanted?
pub(super) fn has_enough<F>(found: &[F]) -> bool {
    FIRST.load(Ordering::Relaxed) && !found.is_empty()
}

/// Tries every point, each worker on a stage of its own. Answers what was found, by the number of the point.
pub(super) fn each<P: Sync, S>(
    points: &[P],
    stage: impl Fn() -> S + Sync,
    trial: impl Fn(&mut S, &P) -> Result<(), String> + Sync,
) -> Vec<(usize, String)> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    // What a trial says when it panics is kept; nobody needs to see it twice.
    let usual = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let work = || {
        let mut own = None;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let is_enough = has_enough(&lock(&found));
            let Some(point) = points.get(at).filter(|_| !is_enough) else { break };
            if let Err(what) = tried(|| trial(own.get_or_insert_with(&stage), point)) {
                lock(&found).push((at, what));
                // Whatever went wrong, the next trial is not to inherit it.
                own = None;
            }
        }
    };
    let n_workers = thread::available_parallelism().map_or(2, usize::from).min(points.len().max(1));
    thread::scope(|scope| (0..n_workers).for_each(|_| drop(scope.spawn(work))));
    panic::set_hook(usual);
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_unstable();
    found
}

/// A row for each thing, made side by side, in the order of the things. What could not be tried is in a row that
/// `failed` makes of it: it was not proved.
pub(super) fn rows<P: Sync>(
    things: &[P],
    make: impl Fn(&P) -> crate::Result<Row> + Sync,
    failed: impl Fn(&P, String) -> Row,
) -> Vec<Row> {
    let made = Mutex::new(Vec::new());
    let numbered: Vec<(usize, &P)> = things.iter().enumerate().collect();
    let trial = |(): &mut (), (at, thing): &(usize, &P)| {
        let row = make(thing).map_err(|error| error.to_string())?;
        lock(&made).push((*at, row));
        Ok(())
    };
    let found = each(&numbered, || (), trial);
    let mut rows = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.extend(found.into_iter().map(|(at, what)| (at, failed(&things[at], what))));
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a trial says, or what it cried when it panicked.
pub(super) fn tried(trial: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    panic::catch_unwind(AssertUnwindSafe(trial)).unwrap_or_else(|cry| {
        let words = cry.downcast_ref::<String>().cloned();
        Err(words
            .or_else(|| cry.downcast_ref::<&str>().map(|it| (*it).to_owned()))
            .unwrap_or_default())
    })
}
