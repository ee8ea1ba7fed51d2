//! KEEP: a workspace as content-addressed trees, and back.
pub mod apply;
pub mod beneath;
pub mod block;
mod bytes;
pub mod checkout;
pub mod chunks;
pub mod diff;
pub mod displaced;
mod error;
mod node;
pub mod objects;
pub mod pack;
pub mod path_set;
pub mod plan;
pub mod rules;
pub mod scope;
pub mod stage;
pub mod stat_cache;
pub mod sweep;
pub mod take;
pub mod tree;
pub mod verify;
mod walk;

pub use error::{Error, Result, hint_for};
