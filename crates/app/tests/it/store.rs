//! The store itself: private, versioned, and with the tables that were asked for

use std::fs;
use std::os::unix::fs::PermissionsExt;

use bivouac_core::event::Event;
use bivouac_journal::Journal;
use bivouac_journal::append::NewEvent;
use insta::assert_snapshot;

use crate::env;

#[test]
fn it_is_private_to_the_user() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let mut waiting = vec![env.store()];
    while let Some(path) = waiting.pop() {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            waiting.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
        } else {
            assert_eq!(mode & 0o077, 0, "{}", path.display());
        }
    }
}

#[test]
fn the_three_tables_answer_the_columns_that_were_asked_for() {
    let env = env();
    env.write("a", "1");
    env.biv(&["session", "new", "--agent", "claude-code", "--task", "t"]).ok();
    env.biv(&["checkpoint", "create", "--name", "n"]).ok();
    env.sql(
        "CREATE TEMP TABLE one AS SELECT id, agent_type, task_description, status, created_at, updated_at, metadata FROM sessions;
         CREATE TEMP TABLE two AS SELECT id, session_id, name, checkpoint_data, git_branch, git_uncommitted, created_at FROM session_checkpoints;
         CREATE TEMP TABLE three AS SELECT id, session_id, level, message, created_at FROM session_logs;
         CREATE TEMP TABLE joined AS SELECT json_extract(checkpoint_data, '$.checkpoint.id') FROM session_checkpoints c JOIN sessions s ON s.id = c.session_id",
    )
    .unwrap();
    let insert = "INSERT INTO session_checkpoints SELECT 'x', 'cp-x', session_id, name, is_named, \"trigger\", message, checkpoint_data,
         git_branch, git_uncommitted, is_pinned, workspace, created_at, sequence FROM session_checkpoints";
    assert_eq!(
        env.sql(insert).unwrap_err(),
        "UNIQUE constraint failed: session_checkpoints.session_id, session_checkpoints.name"
    );
}

#[test]
fn a_store_of_a_newer_version_is_only_read() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create", "-m", "kept"]).ok();
    env.sql("PRAGMA user_version = 999").unwrap();
    assert_snapshot!(env.run("checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        MANUAL     2026-01-21 14:30  kept
    ");
    assert_snapshot!(env.run("checkpoint create"), @"
    exit 1
    error: the store was written by a newer version (format 999; this one knows 4)
    hint: install the newer version of biv; until then the store can only be read
    ");
    assert_snapshot!(env.run("gc"), @"
    exit 1
    error: the store was written by a newer version (format 999; this one knows 4)
    hint: install the newer version of biv; until then the store can only be read
    ");
}

#[test]
fn what_a_newer_version_recorded_is_kept_and_passed_over() {
    let env = env();
    env.write("a", "1");
    env.biv(&["session", "new"]).ok();
    env.biv(&["checkpoint", "create"]).ok();
    let session = env.json("session show")["id"].as_str().unwrap().to_owned();
    let teleported = Event::Unknown {
        kind: "session.teleported".to_owned(),
        data: r#"{"to":"the moon"}"#.to_owned(),
    };
    let event = NewEvent {
        id: "01a1e145-5575-7972-892e-7729ef49ad8d".parse().unwrap(),
        session_id: session.parse().unwrap(),
        event: teleported,
    };
    let mut journal = Journal::open(&env.store().join("sessions.db")).unwrap();
    journal.append("2026-01-21T15:00:00Z".parse().unwrap(), vec![event], &[]).unwrap();
    drop(journal);
    env.biv(&["reconcile"]).ok();
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["verify"]).ok();
    let kept = env.sql_text("SELECT data FROM events WHERE kind = 'session.teleported'");
    assert_eq!(kept, r#"{"to":"the moon"}"#);
}

#[test]
fn garbage_in_place_of_the_journal_is_told() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    fs::write(
        env.store().join("sessions.db"),
        "this is not a database, but it is long enough to look like one. ".repeat(10),
    )
    .unwrap();
    assert_snapshot!(env.run("checkpoint list"), @"
    exit 1
    error: the journal is damaged
    cause: file is not a database
    cause: Error code 26: file is not a database
    hint: run `biv reconcile` to rebuild it from the packs; the damaged file is kept aside
    ");
    assert_snapshot!(env.run("checkpoint create"), @"
    exit 1
    error: the journal is damaged
    cause: file is not a database
    cause: Error code 26: file is not a database
    hint: run `biv reconcile` to rebuild it from the packs; the damaged file is kept aside
    ");
    env.biv(&["reconcile"]).ok();
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 1);
}

#[test]
fn the_store_is_where_it_is_said_to_be() {
    let mut env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create", "--store", "../by-flag"]).ok();
    assert!(env.root().join("by-flag/sessions.db").exists());
    env.set("BIV_STORE", "../by-variable");
    env.biv(&["checkpoint", "create"]).ok();
    assert!(env.root().join("by-variable/sessions.db").exists());
    assert!(!env.store().exists());
}
