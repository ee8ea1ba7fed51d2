//! The real binary, from the outside: one file per command, and one per promise.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod checkpoint_create;
mod checkpoint_delete;
mod checkpoint_diff;
mod checkpoint_list;
mod checkpoint_pin;
mod checkpoint_restore;
mod checkpoint_rollback;
mod checkpoint_show;
mod completions;
mod concurrency;
mod config;
mod contents;
mod coverage;
mod crash;
mod damage;
mod docs;
mod du;
mod fork;
mod full_disk;
mod gc;
mod git_facts;
mod hook;
mod hooks_install;
mod hooks_remove;
mod hooks_status;
mod init;
mod model;
mod reconcile;
mod resume;
mod retention;
mod safety;
mod seeds;
mod session;
mod status;
mod store;
mod terminal;
mod tidy;
mod tour;
mod undo;
mod verify;

use bivouac_testkit::TestEnv;

pub(crate) fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_biv"))
}

pub(crate) fn git_env() -> TestEnv {
    TestEnv::with_git(env!("CARGO_BIN_EXE_biv"))
}
