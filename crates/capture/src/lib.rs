//! OBSERVE: the only crate that knows foreign formats.
//!
//! - [`agents`]: what the agents say, keep and understand
//! - [`dotenv`], [`pipeline`]: files that projects keep
//! - [`git`]: what git says about a workspace, read without writing so much as its index
//! - [`memory`]: a server that remembers things across sessions
//! - [`process`]: running other programs, with a clean environment and a deadline
//! - [`running`]: which processes run

pub mod agents;
pub mod dotenv;
mod error;
pub mod git;
pub mod memory;
pub mod pipeline;
pub mod process;
pub mod running;

pub use error::{Error, Result};
