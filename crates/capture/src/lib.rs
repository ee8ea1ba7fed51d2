//! OBSERVE: the only crate that knows foreign formats.
//!
//! - [`agents`]: where the agents keep their state
//! - [`git`]: what git says about a workspace, read without writing so much as its index
//! - [`process`]: running other programs, with a clean environment and a deadline

pub mod agents;
mod error;
pub mod git;
pub mod process;

pub use error::{Error, Result};
