//! Many small trials on all cores. A trial that panics has found something, as one that answers an error.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// Is one finding enough?
pub(super) static FIRST: AtomicBool = AtomicBool::new(false);

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
        let mut own = stage();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let is_enough = FIRST.load(Ordering::Relaxed) && !lock(&found).is_empty();
            let Some(point) = points.get(at).filter(|_| !is_enough) else { break };
            if let Err(what) = tried(|| trial(&mut own, point)) {
                lock(&found).push((at, what));
                // Whatever went wrong, the next trial is not to inherit it.
                own = stage();
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
