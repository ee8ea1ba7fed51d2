//! `biv reconcile`

use insta::assert_snapshot;

use crate::env;

#[test]
fn tables_that_were_edited_or_deleted_come_back_identical() {
    let env = env();
    env.write("a", "1");
    env.biv(&["session", "new", "--name", "work", "--task", "t"]).ok();
    env.biv(&["checkpoint", "create", "--name", "label", "-m", "m"]).ok();
    env.write("a", "2");
    env.biv(&["checkpoint", "rollback", "label", "--yes"]).ok();
    env.biv(&["session", "pause"]).ok();
    let all = || {
        (
            env.run("checkpoint list"),
            env.run("session log"),
            env.json("session show"),
            env.run("undo -n"),
        )
    };
    let before = all();
    assert_snapshot!(env.run("reconcile"), @"Rebuilt all tables from 6 events");
    assert_eq!(all(), before);
    env.sql("DELETE FROM session_logs; DELETE FROM session_checkpoints; UPDATE sessions SET name = 'x', status = 'failed'").unwrap();
    assert_snapshot!(env.run("reconcile"), @"
    Rebuilt all tables from 6 events
      mended 1 row of `sessions`
      mended 2 rows of `session_checkpoints`
      mended 6 rows of `session_logs`
    ");
    assert_eq!(all(), before);
    env.sql("DROP TABLE operations; DROP TABLE session_logs; DROP TABLE handle_days").unwrap();
    assert_snapshot!(env.run("session log"), @"
    exit 1
    error: could not use the journal
    cause: no such table: operations
    cause: Error code 1: SQL logic error
    hint: run `biv reconcile` to rebuild the tables from the events
    ");
    assert_snapshot!(env.run("reconcile"), @"
    Rebuilt all tables from 6 events
      mended 1 row of `handle_days`
      mended 6 rows of `session_logs`
      mended 1 row of `operations`
    ");
    assert_eq!(all(), before);
}

#[test]
fn a_lost_journal_is_rebuilt_from_the_packs() {
    let env = env();
    env.write("a", "1");
    env.biv(&["session", "new", "--name", "work", "--task", "the task"]).ok();
    env.biv(&["checkpoint", "create", "--name", "label", "-m", "m", "--state", "{\"n\": 1}"]).ok();
    env.write("a", "2").write("b", "2");
    env.biv(&["checkpoint", "create"]).ok();
    let before = env.json("checkpoint list");
    let tree = env.tree();
    for suffix in ["", "-wal", "-shm"] {
        let _not_there = std::fs::remove_file(env.store().join(format!("sessions.db{suffix}")));
    }
    // Nothing goes on as if there had been nothing.
    assert_snapshot!(env.run("checkpoint list"), @"
    exit 1
    error: the store has packs but no journal
    hint: run `biv reconcile` to rebuild the journal from the packs
    ");
    assert_snapshot!(env.run("checkpoint create"), @"
    exit 1
    error: the store has packs but no journal
    hint: run `biv reconcile` to rebuild the journal from the packs
    ");
    assert_snapshot!(env.run("reconcile"), @"
    Rebuilt all tables from 3 events
    Rebuilt the object index from the packs
    Took in 2 checkpoints from packs the journal did not know
    ");
    assert_eq!(env.json("checkpoint list"), before);
    assert_eq!(env.json("session show")["task_description"], "the task");
    env.biv(&["verify"]).ok();
    env.remove("a").remove("b");
    env.biv(&["checkpoint", "rollback", "latest", "--yes"]).ok();
    assert_eq!(env.tree(), tree);
}

#[test]
fn a_damaged_journal_is_moved_aside_and_read_as_far_as_it_goes() {
    let env = env();
    env.write("a", "1");
    env.biv(&["session", "new", "--name", "work"]).ok();
    for n in 0..40 {
        env.write("a", n.to_string());
        env.biv(&["checkpoint", "create", "-m", &format!("number {n}")]).ok();
    }
    env.biv(&["session", "rename", "work", "renamed"]).ok();
    let before = env.json("checkpoint list");
    let path = env.store().join("sessions.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let page = 4096;
    for at in (8 * page..9 * page).chain(12 * page..13 * page) {
        bytes[at] = 0xAA;
    }
    std::fs::write(&path, &bytes).unwrap();
    let run = env.biv(&["reconcile"]);
    assert!(
        run.stdout.contains("The journal was damaged and is now at"),
        "{}{}",
        run.stdout,
        run.stderr
    );
    let aside = std::fs::read_dir(env.store())
        .unwrap()
        .any(|it| it.unwrap().file_name().to_string_lossy().contains("damaged"));
    assert!(aside);
    let ids = |list: &serde_json::Value| {
        let mut ids: Vec<String> =
            list.as_array().unwrap().iter().map(|it| it["id"].to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&env.json("checkpoint list")), ids(&before));
    env.biv(&["verify"]).ok();
}

#[test]
fn a_pack_nobody_recorded_is_taken_in() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let saved = env.store().with_extension("copy");
    copy(&env.store(), &saved);
    env.write("a", "2");
    env.biv(&["checkpoint", "create", "-m", "lost by an older copy of the journal"]).ok();
    // The journal of yesterday with the packs of today.
    std::fs::copy(saved.join("sessions.db"), env.store().join("sessions.db")).unwrap();
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 1);
    env.biv(&["gc"]).ok();
    assert_snapshot!(env.run("reconcile"), @"
    Rebuilt all tables from 3 events
    Rebuilt the object index from the packs
    Took in 1 checkpoint from packs the journal did not know
    ");
    assert_snapshot!(env.run("checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        MANUAL     2026-01-21 14:30
    cp-20260121-002  task-00000001        MANUAL     2026-01-21 14:31  lost by an older copy of the journal
    ");
    env.biv(&["verify"]).ok();
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// A flipped bit can make a text something that is none. Here it takes the session with it, and not its checkpoints.
#[test]
fn what_a_lost_event_took_with_it_comes_back_from_the_packs() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create", "-m", "kept"]).ok();
    let tree = env.tree();
    env.sql("DROP TRIGGER events_never_change; UPDATE events SET data = CAST(x'7bff7d' AS TEXT) WHERE sequence = 1").unwrap();
    assert_eq!(env.biv(&["verify"]).code, 1);
    let told = env.biv(&["reconcile"]);
    assert_eq!(told.code, 3, "{}", told.stderr);
    assert!(told.stdout.contains("Event 2 cannot be used"), "{}", told.stdout);
    assert!(told.stdout.contains("Took in 1 checkpoint"), "{}", told.stdout);
    env.biv(&["verify"]).ok();
    env.remove("a");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.tree(), tree);
}
