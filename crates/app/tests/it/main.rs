//! The real binary, from the outside: one file per command, and one per promise.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod approval;
mod artifact;
mod attach;
mod blocker;
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
mod confirm;
mod contents;
mod context;
mod coverage;
mod damage;
mod decision;
mod delegation;
mod detach;
mod docs;
mod doctor;
mod du;
mod environment;
mod export_bundle;
mod export_document;
mod export_events;
mod failing_saves;
mod fork;
mod fork_point;
mod full_disk;
mod gate;
mod gc;
mod git_facts;
mod hook;
mod hooks_install;
mod hooks_remove;
mod hooks_status;
mod import_bundle;
mod import_document;
mod init;
mod interruption;
mod kills;
mod log;
mod mcp;
mod note;
mod packages;
mod partition;
mod pause;
mod phase;
mod progress;
mod reconcile;
mod rehydrate;
mod replay;
mod resume;
mod retention;
mod run;
mod safety;
mod search;
mod seeds;
mod session;
mod session_recover;
mod setup;
mod slash;
mod soak;
mod status;
mod step;
mod store;
mod submit;
mod task;
mod terminal;
mod tidy;
mod tour;
mod undo;
mod verify;
mod watch;
mod worktree;

use bivouac_testkit::TestEnv;

pub(crate) fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_biv"))
}

pub(crate) fn git_env() -> TestEnv {
    TestEnv::with_git(env!("CARGO_BIN_EXE_biv"))
}
