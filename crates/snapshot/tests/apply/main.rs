//! Applying a plan: after an interruption at any point, while another user interferes, and with databases

#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod databases;
mod hostile;
mod interrupted;
mod stage;
