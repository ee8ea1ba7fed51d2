//! ACT: one function per thing the product does.
//!
//! - [`home`], [`local_store`], [`config`], [`clock`], [`lock`]: where our files are, what was asked for, what time it is
//! - [`open`]: the store, ready for a command; [`select`]: from words to sessions and checkpoints
//! - [`consent`]: a person's word for what a model asks for
//! - [`session`], [`save`], [`compare`], [`rollback`], [`restore`], [`keep`]: what people do
//! - [`bundle`]: a checkpoint that leaves the store, and one that comes in
//! - [`observe`], [`hooks`], [`converse`], [`brief`], [`resume`], [`fork`], [`terminal`]: what agents do, and
//!   get back
//! - [`detect`], [`recover`], [`pause`]: work that stopped, and work that waits
//! - [`progress`], [`approvals`], [`replay`], [`export`], [`memory`]: what is said about the work, and what follows
//! - [`supervise`], [`watch`]: running an agent, or watching it run, and saving all the while
//! - [`excluded`]: what is left out of checkpoints on purpose
//! - [`moved`]: a workspace that has another path now; `marks`: numbers that were given out
//! - `look`, `surroundings`, `git`, `environment`, `heal`, `papers`, `room`, `saving`, `secrets`, `seen`, `spool`: what
//!   those need
//! - [`setup`], [`doctor`]: what agents get from us, and whether it holds
//! - [`sweep`], [`verify`], [`reconcile`], [`status`]: looking after the store

pub mod approvals;
pub mod brief;
pub mod bundle;
pub mod clock;
pub mod compare;
pub mod config;
pub mod consent;
pub mod converse;
pub mod detect;
pub mod doctor;
mod environment;
mod error;
pub mod excluded;
pub mod export;
pub mod fork;
mod git;
mod heal;
pub mod home;
pub mod hooks;
pub mod keep;
pub mod local_store;
pub mod lock;
mod look;
mod marks;
pub mod memory;
pub mod moved;
pub mod observe;
pub mod open;
mod papers;
pub mod pause;
pub mod progress;
pub mod reconcile;
pub mod recover;
pub mod replay;
pub mod restore;
pub mod resume;
pub mod rollback;
mod room;
pub mod save;
mod saving;
mod secrets;
mod seen;
pub mod select;
pub mod session;
pub mod setup;
mod spool;
pub mod status;
pub mod supervise;
mod surroundings;
pub mod sweep;
pub mod terminal;
pub mod verify;
pub mod watch;

use std::sync::{Mutex, OnceLock, Weak};

use bivouac_core::progress::Progress;
use bivouac_core::redact::Redactor;
use bivouac_core::work::Author;
use bivouac_journal::Journal;
use bivouac_snapshot::objects::Packs;

pub use bivouac_capture::signals::survive_file_size_limit;
pub use error::{Error, Kind, Result};

/// An open store, seen from a workspace.
pub struct Engine {
    pub home: home::Home,
    pub config: config::Config,
    /// Why the configuration could not be used; then `config` is what stands in for it.
    bad_config: Option<config::BadConfig>,
    pub clock: clock::Clock,
    /// Whose words it takes down.
    pub author: Author,
    /// How far a name reaches.
    pub reach: select::Reach,
    journal: Journal,
    packs: Packs,
    progress: Box<dyn Progress>,
    notices: Vec<String>,
    redactor: OnceLock<Redactor>,
    /// What is held while objects are relied upon.
    in_use: Mutex<Weak<lock::Lock>>,
}
