//! DECIDE: the words of Bivouac and what follows from them. Pure: no I/O, no clock, no randomness.
//!
//! - [`id`], [`time`], [`size`], [`path`], [`text`]: the words everything else is made of
//! - [`event`], [`session`], [`checkpoint`], [`operation`], [`run`], [`git`], [`environment`], [`terminal`]: what
//!   can happen, and what things are
//! - [`agent`], [`conversation`], [`observation`]: what agents do, and what we do about it
//! - [`liveness`], [`limit`], [`recovery`]: whether work goes on, when it can, and what can be done
//! - [`work`], [`replay`], [`context`]: what a session's progress is made of, and what follows from it
//! - [`autosave`], [`retention`], [`risk`]: what follows from it
//! - [`settings`]: what a workspace's configuration file may decide without the user's consent
//! - [`redact`], [`budget`], [`briefing`]: what a model is told, and what nobody is
//! - [`export`]: progress as files, and files as progress
//! - [`progress`]: how long work tells how far it is
//! - [`sabotage`]: mistakes that are made on purpose, to see them found

pub mod agent;
pub mod autosave;
pub mod briefing;
pub mod budget;
pub mod checkpoint;
pub mod context;
pub mod conversation;
pub mod environment;
pub mod event;
pub mod export;
pub mod git;
pub mod id;
pub mod limit;
pub mod liveness;
pub mod observation;
pub mod operation;
pub mod path;
pub mod progress;
pub mod recovery;
pub mod redact;
pub mod replay;
pub mod retention;
pub mod risk;
pub mod run;
pub mod sabotage;
pub mod session;
pub mod settings;
pub mod size;
pub mod terminal;
pub mod text;
pub mod time;
pub mod work;
