//! SPEAK: the doors. They ask the engine and say what it answered; they decide nothing.
//!
//! - [`cli`]: one file per command
//! - [`ui`]: what people see, and are asked; [`choice`], [`keyboard`]: one of several, by key
//! - [`mcp`]: the same commands, for models
//! - [`contract`]: JSON that leaves the process
//! - [`report`]: errors, printed in one place

pub mod choice;
pub mod cli;
pub mod contract;
pub mod keyboard;
pub mod mcp;
pub mod report;
pub mod ui;
