//! Scans of real files: whatever a scan is spared, it sees the very tree that a scan of everything sees.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod acts;
mod cache;
mod deep;
mod stage;
mod watched;
