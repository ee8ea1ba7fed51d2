//! A workspace that was moved or renamed, and handles after an older store was put back

use std::fs;
use std::path::{Path, PathBuf};

use bivouac_testkit::{TestEnv, bytes, left_out};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::hook::Claude;
use crate::{env, git_env};

fn moved(env: &TestEnv, name: impl AsRef<std::ffi::OsStr>) -> PathBuf {
    let new = env.root().join(name.as_ref());
    fs::rename(env.work(), &new).unwrap();
    new
}

/// Not every file system knows when a folder was made.
fn has_birth_times(env: &TestEnv) -> bool {
    fs::metadata(env.root()).unwrap().created().is_ok()
}

fn run(env: &TestEnv, folder: &Path, line: &str) -> String {
    env.biv_in(folder, &line.split(' ').collect::<Vec<_>>()).text()
}

#[test]
fn a_renamed_folder_is_told_where_its_sessions_are_and_gets_them() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create", "-m", "first"]).ok();
    env.write("a", "2");
    let new = moved(&env, "renamed");
    assert_snapshot!(run(&env, &new, "checkpoint list"), @"
    No checkpoints found. Run `biv checkpoint create` to create one.
    note: this folder was [root]/project when its last checkpoint was taken; `biv init --moved-from [root]/project` brings its sessions and checkpoints here
    ");
    assert_snapshot!(run(&env, &new, "init --moved-from ../project"), @"
    Brought 1 session with 1 checkpoint here from [root]/project
    Workspace [root]/renamed
    ");
    // Nothing was written into the folder.
    assert_eq!(fs::read_dir(&new).unwrap().count(), 1);
    assert_snapshot!(run(&env, &new, "checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        MANUAL     2026-01-21 14:30  first
    ");
    env.biv_in(&new, &["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(fs::read_to_string(new.join("a")).unwrap(), "1");
    env.biv_in(&new, &["undo", "--yes"]).ok();
    assert_eq!(fs::read_to_string(new.join("a")).unwrap(), "2");
    // The tables say the same when they are made from the events again.
    env.biv_in(&new, &["reconcile"]).ok();
    env.biv_in(&new, &["verify"]).ok();
    env.biv_in(&new, &["redo", "--yes"]).ok();
    assert_eq!(fs::read_to_string(new.join("a")).unwrap(), "1");
}

/// What was done before the move can be taken back after it.
#[test]
fn a_rollback_is_undone_after_the_move() {
    let env = git_env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    env.biv(&["checkpoint", "rollback", "latest", "--yes"]).ok();
    let new = moved(&env, "renamed");
    env.biv_in(&new, &["init", "--moved-from", "../project"]).ok();
    env.biv_in(&new, &["undo", "--yes"]).ok();
    assert_eq!(fs::read_to_string(new.join("a")).unwrap(), "2");
}

#[test]
fn a_folder_on_another_disk_is_known_by_its_commit_and_its_names() {
    let env = git_env();
    env.write("a", "1");
    env.git(&["add", "a"]);
    env.git(&["commit", "-qm", "one"]);
    env.biv(&["checkpoint", "create"]).ok();
    // A copy, and the original gone: as `mv` does from one disk to another.
    let new = env.root().join("copied");
    let copied = env.command("cp", env.root()).args(["-r", "project", "copied"]).status();
    assert!(copied.unwrap().success());
    fs::remove_dir_all(env.work()).unwrap();
    let hint = "this folder looks like [root]/project, which is gone; `biv init --moved-from [root]/project`";
    assert!(run(&env, &new, "status").contains(hint));
    // Another project is another one.
    fs::create_dir(env.root().join("other")).unwrap();
    fs::write(env.root().join("other/b"), "1").unwrap();
    assert!(!run(&env, &env.root().join("other"), "status").contains("moved-from"));
    env.biv_in(&new, &["init", "--moved-from", "../project"]).ok();
    assert_eq!(list(&env, &new).len(), 1);
}

/// Someone put another folder in the place of the old one.
#[test]
fn a_folder_that_still_exists_keeps_its_sessions_unless_asked_twice() {
    let env = env();
    if !has_birth_times(&env) {
        return left_out("this file system does not know when a folder was made");
    }
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let new = moved(&env, "renamed");
    env.write("other", "work");
    assert!(run(&env, &new, "status").contains("moved-from"));
    assert_snapshot!(run(&env, &new, "init --moved-from ../project"), @"
    exit 1
    error: `[root]/project` still exists and has files in it
    hint: pass `--yes` to bring its sessions here all the same; that folder then has none
    ");
    // Sessions that begin here do not hide the older ones.
    env.biv_in(&new, &["checkpoint", "create"]).ok();
    assert!(run(&env, &new, "status").contains("moved-from"));
    let mut within_agent = env.biv_command(&new, &["init", "--moved-from", "../project", "--yes"]);
    let refused = env.run_command(within_agent.env("CLAUDECODE", "1"));
    assert!(refused.stderr.contains("an agent cannot bring the sessions"), "{}", refused.stderr);
    env.biv_in(&new, &["init", "--moved-from", "../project", "--yes"]).ok();
    assert_eq!(list(&env, &new).len(), 2);
    assert_eq!(list(&env, &env.work()).len(), 0);
    assert!(run(&env, &new, "init --moved-from .").contains("that is this folder"));
    assert_snapshot!(run(&env, &new, "init --moved-from ../nonsense"), @"
    exit 1
    error: no session belongs to `[root]/nonsense`
    hint: `biv session list --all --json` shows the paths of all sessions; a store in `.agents/` has to be adopted first (`biv init --local --adopt`)
    ");
}

fn list(env: &TestEnv, folder: &Path) -> Vec<Value> {
    let run = env.biv_in(folder, &["checkpoint", "list", "--json"]).ok();
    serde_json::from_str(&run.stdout).unwrap()
}

/// All sessions move, or none.
#[test]
fn a_move_that_fails_changes_nothing_and_can_be_tried_again() {
    let env = env();
    env.write("a", "1");
    for _ in 0..3 {
        env.biv(&["session", "new"]).ok();
        env.biv(&["checkpoint", "create"]).ok();
    }
    let new = moved(&env, "renamed");
    let limit = "cd \"$0\" && ulimit -f 0 && exec \"$@\"";
    let before = ["sh", "-c", limit, new.to_str().unwrap()].map(str::to_owned);
    fs::create_dir(env.work()).unwrap();
    let mut command = env.biv_under(&before, &["init", "--moved-from", "../project"]);
    assert_eq!(env.run_command(&mut command).code, 1);
    assert_eq!((list(&env, &new).len(), list(&env, &env.work()).len()), (0, 3));
    env.biv_in(&new, &["init", "--moved-from", "../project"]).ok();
    assert_eq!((list(&env, &new).len(), list(&env, &env.work()).len()), (3, 0));
    env.biv_in(&new, &["verify"]).ok();
}

/// A folder that was not moved, and has no sessions, is told nothing.
#[test]
fn a_new_folder_is_told_nothing() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a"), "1").unwrap();
    assert!(!run(&env, &other, "status").contains("moved-from"));
}

/// Workspaces below the folder moved with it.
#[test]
fn workspaces_below_come_along() {
    let env = env();
    env.write("a", "1").write("below/b", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["--root", "below", "checkpoint", "create"]).ok();
    let new = moved(&env, bytes(b"odd-\xff"));
    let report = env.biv_in(&new, &["init", "--moved-from", "../project", "--json"]).ok();
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!((report["checkpoints"].clone(), list(&env, &new).len()), (json!(2), 1));
    let below = env.biv_in(&new, &["--root", "below", "checkpoint", "list", "--json"]).ok();
    assert_eq!(serde_json::from_str::<Vec<Value>>(&below.stdout).unwrap().len(), 1);
}

/// A journal that is lost is made of the packs again: the checkpoint after the move knows the new path.
#[test]
fn the_move_outlives_the_journal() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let new = moved(&env, "renamed");
    env.biv_in(&new, &["init", "--moved-from", "../project"]).ok();
    fs::write(new.join("a"), "2").unwrap();
    env.biv_in(&new, &["checkpoint", "create"]).ok();
    for name in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
        let _there_may_be_none = fs::remove_file(env.store().join(name));
    }
    env.biv_in(&new, &["reconcile"]).ok();
    assert_eq!(list(&env, &new).len(), 2);
}

/// The agent starts in the new place before anybody moved the sessions: its session says what is missing.
#[test]
fn a_session_that_an_agent_begins_there_says_so() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    claude.turn(1, "one", "One.");
    let new = moved(&claude.env, "renamed");
    let input = json!({ "session_id": "another", "cwd": new, "prompt": "two" }).to_string();
    fs::create_dir(claude.env.work()).unwrap();
    claude.env.hook("claude-code", "UserPromptSubmit", input).ok();
    fs::remove_dir(claude.env.work()).unwrap();
    let status = run(&claude.env, &new, "status");
    assert!(status.contains("this folder was [root]/project"), "{status}");
    run(&claude.env, &new, "init --moved-from ../project");
    let sessions = claude.env.biv_in(&new, &["session", "list", "--json"]).ok().stdout;
    assert_eq!(serde_json::from_str::<Vec<Value>>(&sessions).unwrap().len(), 2);
}

/// The conversation comes back in the new place, and speaks of it.
#[test]
fn a_conversation_is_resumed_in_the_new_place() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    claude.turn(1, "look at PLACE", "One.");
    let transcript =
        claude.env.home().join(format!(".claude/projects/-w/{}.jsonl", crate::hook::ID));
    let old = claude.env.work().canonicalize().unwrap();
    let text = fs::read_to_string(&transcript).unwrap();
    fs::write(&transcript, text.replace("PLACE", old.join("a").to_str().unwrap())).unwrap();
    claude.turn(2, "again", "Two.");
    let new = moved(&claude.env, "renamed").canonicalize().unwrap();
    claude.env.biv_in(&new, &["init", "--moved-from", "../project"]).ok();
    let words = ["resume", "--print", "--force", "--json"];
    let plan = claude.env.biv_in(&new, &words).ok();
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!((plan["mode"].as_str(), plan["folder"].as_str()), (Some("native"), new.to_str()));
    let copy = fs::read_to_string(plan["command"][2].as_str().unwrap()).unwrap();
    assert!(copy.contains(new.join("a").to_str().unwrap()), "{copy}");
    assert!(!copy.contains(old.to_str().unwrap()), "{copy}");
}

/// People have seen the numbers that were given out after the copy was made.
#[test]
fn no_handle_is_used_twice_after_an_older_store_was_put_back() {
    let env = env();
    let save = |contents: &str| {
        env.write("a", contents);
        env.json("checkpoint create")["handle"].as_str().unwrap().to_owned()
    };
    assert_eq!(save("1"), "cp-20260121-001");
    let copy = env.root().join("backup");
    let copied = env.command("cp", env.root()).arg("-a").arg(env.store()).arg(&copy).status();
    assert!(copied.unwrap().success());
    assert_eq!([save("2"), save("3")], ["cp-20260121-002", "cp-20260121-003"]);
    fs::remove_dir_all(env.store()).unwrap();
    fs::rename(&copy, env.store()).unwrap();
    assert_eq!(save("4"), "cp-20260121-004");
    assert_eq!(list(&env, &env.work()).len(), 2);
    // Without the mark, numbers follow from the store alone; another store has numbers of its own.
    fs::remove_dir_all(env.home().join(".local/state/bivouac")).unwrap();
    assert_eq!(save("5"), "cp-20260121-005");
    let other = env.biv(&["--store", "../other", "checkpoint", "create", "--json"]).ok();
    assert!(other.stdout.contains("cp-20260121-001"), "{}", other.stdout);
}
