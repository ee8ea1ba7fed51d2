//! A save that cannot see everything says so, and one that dies is on record

use std::fs;
use std::path::Path;

use bivouac_testkit::{TestEnv, kill, until};
use insta::assert_snapshot;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use serde_json::json;

use crate::env;
use crate::hook::Claude;

/// Makes a row of folders, deeper than any path can name, and writes a file into the innermost.
fn dig(work: &Path, depth: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat(CWD, work, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        mkdirat(&at, "dd", Mode::RWXU).unwrap();
        at = openat(&at, "dd", flags, Mode::empty()).unwrap();
    }
    openat(&at, "leaf", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
}

#[test]
fn a_path_of_2000_folders_is_a_gap_that_is_said_and_left_alone() {
    let env = env();
    env.write("a", "1");
    dig(&env.work(), 2_000);
    let first = env.biv(&["checkpoint", "create"]).ok();
    assert!(first.stderr.contains("not covered: 1 unreadable"), "{}", first.stderr);
    assert_eq!(env.json("checkpoint show latest")["coverage"]["not_covered"]["unreadable"], 1);
    env.write("a", "2");
    env.biv(&["checkpoint", "create"]).ok();
    assert_eq!(env.json("status")["coverage"]["not_covered"]["unreadable"], 1);
    env.biv(&["checkpoint", "diff", "cp-001"]).ok();
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.read("a"), "1");
    env.biv(&["undo", "--yes"]).ok();
    env.biv(&["verify"]).ok();
    env.biv(&["gc"]).ok();
    // What is too deep is still there.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat(CWD, env.work(), flags, Mode::empty()).unwrap();
    for _ in 0..2_000 {
        at = openat(&at, "dd", flags, Mode::empty()).unwrap();
    }
    openat(&at, "leaf", OFlags::RDONLY, Mode::empty()).unwrap();
}

/// What is within the limit goes away and comes back as a whole.
#[test]
fn a_path_of_500_folders_is_saved_restored_and_taken_back() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    dig(&env.work(), 500);
    let before = env.tree();
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert!(!env.exists("dd"));
    env.biv(&["undo", "--yes"]).ok();
    assert!(env.tree() == before);
    env.biv(&["verify"]).ok();
}

/// Starts a save that waits for the store, and kills it there.
fn killed_while_saving(env: &TestEnv) {
    let store = fs::File::options().write(true).open(env.store().join("store.lock")).unwrap();
    store.lock().unwrap();
    let child = env.start(&["checkpoint", "create", "--trigger", "turn"]);
    let is_marked = || {
        let index = fs::read_dir(env.store().join("index")).unwrap();
        let mut marks = index
            .map(|it| it.unwrap())
            .filter(|it| it.path().extension() == Some("saving".as_ref()));
        marks.any(|it| it.metadata().unwrap().len() > 0)
    };
    until("the save", is_marked);
    kill(i32::try_from(child.id()).unwrap());
    assert_eq!(env.finish(child).code, -1);
}

/// The number of a process differs from run to run.
fn without_number(text: &str) -> String {
    let words = text.split(' ').scan(false, |is_number, word| {
        let shown = if *is_number { "N," } else { word };
        *is_number = word == "process";
        Some(shown.to_owned())
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_save_whose_process_died_is_on_record_at_the_next_command() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    killed_while_saving(&env);
    let told = env.biv(&["session", "list"]).ok().stderr;
    assert_snapshot!(without_number(told.trim_end()), @"note: a TURN checkpoint failed: process N, which took it, ended before it was done (killed, crashed or out of memory)");
    assert_eq!(env.biv(&["session", "list"]).ok().stderr, "");
    assert_eq!(env.json("status")["failed_saves"], 1);
    let log = env.run("session log");
    assert_eq!(log.matches("error    a TURN checkpoint failed: process ").count(), 1, "{log}");
    // The next save finds nothing of it in its way.
    env.biv(&["checkpoint", "create"]).ok();
    assert_eq!(env.json("status")["failed_saves"], 0);
    env.biv(&["verify"]).ok();
}

#[test]
fn a_save_that_follows_a_dead_one_records_it_first() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    killed_while_saving(&env);
    env.biv(&["checkpoint", "create"]).ok();
    let log = env.run("session log");
    assert!(log.contains("a TURN checkpoint failed"), "{log}");
    assert_eq!(env.json("status")["failed_saves"], 0);
}

/// The hook knows that its save did not come to an end, and says so itself: once is enough.
#[test]
fn a_save_that_a_hook_gave_up_is_on_record_once() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    claude.turn(1, "one", "One.");
    claude.env.write("a", "2");
    let store = claude.env.store().join("store.lock");
    let store = fs::File::options().write(true).open(store).unwrap();
    store.lock().unwrap();
    assert_eq!(claude.tell("SessionEnd", &json!({ "reason": "other" })), "");
    drop(store);
    let log = claude.env.run("session log");
    assert_eq!(log.matches("checkpoint failed").count(), 1, "{log}");
    assert!(log.contains("the agent's hook ran out of time"), "{log}");
}
