//! OBSERVE: the only crate that knows foreign formats.
//!
//! - [`agents`]: what the agents say, keep and understand
//! - [`bounded`]: files that others wrote, read without waiting and up to a size
//! - [`dotenv`], [`pipeline`]: files that projects keep
//! - [`environment`], [`tools`]: the variables that are set, and the versions of what a project uses
//! - [`folder`]: folders that outlive a power cut
//! - [`git`]: what git says about a workspace, read without writing so much as its index
//! - [`mcp`], [`memory`]: servers that agents talk to, and one that remembers things across sessions
//! - [`mounts`]: which file systems are mounted where, and when that changes
//! - [`notify`]: what the file system says about folders, as it happens
//! - [`process`], [`talk`]: running other programs, with a clean environment and a deadline
//! - [`pty`], [`signals`], [`supervised`]: a terminal for a program, and what becomes of it
//! - [`running`]: which processes run
//! - [`search_path`]: where programs are found that are called by their name
//! - [`tmux`]: the terminal an agent works in

pub mod agents;
pub mod bounded;
pub mod dotenv;
pub mod environment;
mod error;
pub mod folder;
pub mod git;
pub mod mcp;
pub mod memory;
pub mod mounts;
pub mod notify;
pub mod pipeline;
pub mod process;
pub mod pty;
pub mod running;
pub mod search_path;
pub mod signals;
pub mod supervised;
pub mod talk;
pub mod tmux;
pub mod tools;

pub use error::{Error, Result};
