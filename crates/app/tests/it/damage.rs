//! Files of the store, damaged: found, never believed. Every single byte is tried by `cargo xtask prove --part damage`.

use std::fs;
use std::path::PathBuf;

use bivouac_testkit::TestEnv;

use crate::env;

fn small_store() -> TestEnv {
    let env = env();
    env.write("a.txt", "one").write("dir/b.txt", "two").link("l", "a.txt");
    env.biv(&["checkpoint", "create", "-m", "first"]).ok();
    env.write("a.txt", "three").write("c.txt", "four");
    env.biv(&["checkpoint", "create", "-m", "second"]).ok();
    env
}

/// A changed event breaks its chain, whatever else was made to fit.
#[test]
fn a_changed_event_is_found() {
    let env = small_store();
    env.sql("DROP TRIGGER events_never_change; UPDATE events SET data = replace(data, 'second', 'secund')").unwrap();
    let verify = env.biv(&["verify"]);
    assert_eq!(verify.code, 1);
    assert!(
        verify.stdout.contains("(checkpoint.taken) is not what was written"),
        "{}",
        verify.stdout
    );
}

#[test]
fn a_removed_event_is_found() {
    let env = small_store();
    env.biv(&["session", "pause"]).ok();
    env.sql("DROP TRIGGER events_never_go; DELETE FROM events WHERE sequence = 2").unwrap();
    assert_eq!(env.biv(&["verify"]).code, 1);
}

#[test]
fn events_refuse_to_be_changed() {
    let env = small_store();
    assert_eq!(env.sql("UPDATE events SET kind = 'x'").unwrap_err(), "events never change");
    assert_eq!(env.sql("DELETE FROM events").unwrap_err(), "events are never removed");
}

/// A name that became another one is no fault to SQLite.
#[test]
fn a_changed_table_is_found_and_made_anew() {
    let env = small_store();
    let before = env.json("checkpoint list");
    for (table, column, from, to) in [
        ("session_checkpoints", "sql", "message", "massage"),
        ("packs", "sql", "size_bytes", "sise_bytes"),
        ("sqlite_sequence", "sql", "(name", "(nbme"),
        ("search_config", "sql", "k PRIMARY", "l PRIMARY"),
        ("search_config", "name", "config", "confih"),
        ("search_docsize", "tbl_name", "docsize", "docsizf"),
    ] {
        env.sql(&format!(
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET {column} = replace({column}, '{from}', '{to}')
             WHERE name = '{table}'"
        ))
        .unwrap();
        let verify = env.biv(&["verify"]);
        assert_eq!(verify.code, 1, "{}", verify.stdout);
        let text = verify.stdout + &verify.stderr;
        assert!(text.contains("journal"), "{text}");
        env.biv(&["reconcile"]).ok();
        env.biv(&["verify"]).ok();
        assert_eq!(env.json("checkpoint list"), before);
    }
}

/// To SQLite, a log ends where it is damaged, whatever was committed behind that.
#[test]
fn a_damaged_log_of_the_journal_is_found_and_kept() {
    let env = small_store();
    let database = env.store().join("sessions.db");
    let log = env.store().join("sessions.db-wal");
    let (before, mut after) = env.while_read(|| {
        for name in ["third", "fourth", "fifth"] {
            env.biv(&["checkpoint", "create", "-m", name]).ok();
        }
        (fs::read(&database).unwrap(), fs::read(&log).unwrap())
    });
    after[32 + 24 + 100] ^= 1;
    fs::write(&database, before).unwrap();
    fs::write(&log, &after).unwrap();
    let verify = env.biv(&["verify"]);
    assert_eq!(verify.code, 1, "{}", verify.stdout);
    assert!(verify.stdout.contains("journal: its log is damaged"), "{}", verify.stdout);
    env.biv(&["reconcile"]).ok();
    assert!(files(&env, "damaged").iter().any(|path| fs::read(path).unwrap() == after));
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 5);
    env.biv(&["verify"]).ok();
}

#[test]
fn a_log_whose_journal_is_gone_is_not_taken_for_that_of_the_new_one() {
    let env = small_store();
    let log = env.store().join("sessions.db-wal");
    let left = env.while_read(|| {
        env.biv(&["checkpoint", "create", "-m", "third"]).ok();
        fs::read(&log).unwrap()
    });
    fs::remove_file(env.store().join("sessions.db")).unwrap();
    fs::write(&log, &left).unwrap();
    env.biv(&["reconcile"]).ok();
    assert!(files(&env, "damaged").iter().any(|path| fs::read(path).unwrap() == left));
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 3);
    env.biv(&["verify"]).ok();
}

#[test]
fn a_missing_pack_is_an_error_and_not_an_empty_folder() {
    let env = small_store();
    let pack = files(&env, "packs").into_iter().min().unwrap();
    fs::rename(&pack, env.root().join("away")).unwrap();
    let before = env.tree();
    let rollback = env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]);
    assert_eq!(rollback.code, 1);
    assert!(rollback.stderr.contains("the pack is gone"), "{}", rollback.stderr);
    assert_eq!(env.tree(), before);
    assert_eq!(env.biv(&["verify"]).code, 1);
    fs::rename(env.root().join("away"), &pack).unwrap();
    env.biv(&["verify"]).ok();
}

fn files(env: &TestEnv, folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(env.store().join(folder)).unwrap();
    entries.map(|it| it.unwrap().path()).filter(|it| it.is_file()).collect()
}
