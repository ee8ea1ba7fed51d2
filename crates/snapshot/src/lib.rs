//! KEEP: a workspace as content-addressed trees, and back.
//!
//! - [`beneath`], [`ownership`], `renames`: the only way we touch a workspace
//! - [`scope`], [`rules`], [`since`], `file_system`, `place`, `walk`, [`stat_cache`], `steady`, [`take`]: from files
//!   to a tree
//! - [`tree`], [`chunks`], [`block`], [`pack`], [`objects`]: what is stored, and how
//! - [`diff`], [`plan`], [`stage`], [`apply`], `swap`, `refusal`, [`displaced`], [`checkout`], `sparse`: from a
//!   tree back to files
//! - [`database`]: SQLite databases, whose files belong together
//! - [`growing`]: files that are not part of the workspace, and grow
//! - [`private`]: the only way we touch our own store
//! - [`sweep`], [`verify`]: looking after the packs

pub mod apply;
pub mod beneath;
pub mod block;
mod bytes;
pub mod checkout;
pub mod chunks;
pub mod database;
pub mod diff;
pub mod displaced;
mod error;
mod file_system;
pub mod growing;
mod node;
pub mod objects;
pub mod ownership;
pub mod pack;
pub mod path_set;
mod pieces;
mod place;
pub mod plan;
pub mod private;
mod refusal;
mod renames;
pub mod rules;
pub mod scope;
pub mod since;
mod sink;
mod sparse;
pub mod stage;
pub mod stat_cache;
mod steady;
mod swap;
pub mod sweep;
pub mod take;
pub mod tree;
pub mod verify;
mod walk;

pub use error::{Error, Result, hint_for};
