//! How long work tells how far it is, without knowing whether anyone looks.

/// Told by the worker, shown by a door. Called from several threads at once.
pub trait Progress: Sync {
    /// A stretch of work begins; `total` is 0 where it is not known yet.
    fn begin(&self, what: &str, total: u64);
    fn add(&self, steps: u64);
    fn end(&self);
}

/// Nobody looks.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _what: &str, _total: u64) {}
    fn add(&self, _steps: u64) {}
    fn end(&self) {}
}
