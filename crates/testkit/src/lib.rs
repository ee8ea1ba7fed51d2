//! Dev only.
