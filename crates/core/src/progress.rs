//! How long work tells how far it is, and hears whether it is still wanted, without knowing whether anyone
//! looks.

use std::sync::Arc;

/// Told by the worker, shown by a door. Called from several threads at once.
pub trait Progress: Sync {
    /// A stretch of work begins; `total` is 0 where it is not known yet.
    fn begin(&self, what: &str, total: u64);
    fn add(&self, steps: u64);
    fn end(&self);

    /// Does nobody want it any more? Asked where work can stop without a trace.
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl<P: Progress + Send + Sync + ?Sized> Progress for Arc<P> {
    fn begin(&self, what: &str, total: u64) {
        (**self).begin(what, total);
    }

    fn add(&self, steps: u64) {
        (**self).add(steps);
    }

    fn end(&self) {
        (**self).end();
    }

    fn is_cancelled(&self) -> bool {
        (**self).is_cancelled()
    }
}

/// Nobody looks.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _what: &str, _total: u64) {}
    fn add(&self, _steps: u64) {}
    fn end(&self) {}
}
