//! KEEP: a workspace as content-addressed trees, and back.
//!
//! - [`beneath`]: the only way we touch a workspace
//! - [`scope`], [`rules`], [`since`], `walk`, [`stat_cache`], [`take`]: from files to a tree
//! - [`tree`], [`chunks`], [`block`], [`pack`], [`objects`]: what is stored, and how
//! - [`diff`], [`plan`], [`stage`], [`apply`], [`displaced`], [`checkout`]: from a tree back to files
//! - [`growing`]: files that are not part of the workspace, and grow
//! - [`sweep`], [`verify`]: looking after the packs

pub mod apply;
pub mod beneath;
pub mod block;
mod bytes;
pub mod checkout;
pub mod chunks;
pub mod diff;
pub mod displaced;
mod error;
pub mod growing;
mod node;
pub mod objects;
pub mod pack;
pub mod path_set;
mod pieces;
pub mod plan;
pub mod rules;
pub mod scope;
pub mod since;
pub mod stage;
pub mod stat_cache;
pub mod sweep;
pub mod take;
pub mod tree;
pub mod verify;
mod walk;

pub use error::{Error, Result, hint_for};
