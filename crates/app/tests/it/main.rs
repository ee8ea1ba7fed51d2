//! The real binary, from the outside: one file per command, and one per promise.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod approval;
mod artifact;
mod attach;
mod blocker;
mod blocking_git;
mod bytes_in_paths;
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
mod deep_trees;
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
mod foreign_file_systems;
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
mod live_databases;
mod live_files;
mod log;
mod mcp;
mod misleading_git;
mod moved_workspace;
mod note;
mod one_document;
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
mod search_path;
mod seeds;
mod session;
mod session_recover;
mod setup;
mod shared_bundles;
mod shared_workspace;
mod slash;
mod small_limits;
mod soak;
mod sparse_files;
mod status;
mod step;
mod store;
mod submit;
mod task;
mod terminal;
mod tidy;
mod tour;
mod undo;
mod unreadable_config;
mod untouchable;
mod untrusted_config;
mod untrusted_git;
mod untrusted_store;
mod verify;
mod watch;
mod watched_truth;
mod worktree;

use bivouac_testkit::TestEnv;

pub(crate) fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_biv"))
}

pub(crate) fn git_env() -> TestEnv {
    TestEnv::with_git(env!("CARGO_BIN_EXE_biv"))
}
