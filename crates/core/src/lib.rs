//! DECIDE: the words of Bivouac and what follows from them. Pure: no I/O, no clock, no randomness.
//!
//! - [`id`], [`time`], [`size`], [`path`], [`text`]: the words everything else is made of
//! - [`event`], [`session`], [`checkpoint`], [`operation`], [`git`]: what can happen, and what things are
//! - [`autosave`], [`retention`]: what follows from it
//! - [`progress`]: how long work tells how far it is

pub mod autosave;
pub mod checkpoint;
pub mod event;
pub mod git;
pub mod id;
pub mod operation;
pub mod path;
pub mod progress;
pub mod retention;
pub mod session;
pub mod size;
pub mod text;
pub mod time;
