//! A restore destroys nothing that cannot be given back, whatever happens around it.

use std::fs;

use bivouac_testkit::TestEnv;
use insta::assert_snapshot;

use crate::env;

/// Flips one byte in the middle of the newest pack.
fn damage_newest_pack(env: &TestEnv) {
    let mut packs: Vec<_> = fs::read_dir(env.store().join("packs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension() == Some("pack".as_ref()))
        .collect();
    packs.sort();
    let newest = packs.pop().unwrap();
    let mut bytes = fs::read(&newest).unwrap();
    bytes[60] ^= 1;
    fs::write(&newest, bytes).unwrap();
}

#[test]
fn the_only_good_copy_of_a_file_is_never_replaced() {
    let env = env();
    env.write("f", "v0");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("f", "v1");
    env.biv(&["checkpoint", "create"]).ok();
    damage_newest_pack(&env);
    let run = env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]);
    assert_ne!(run.code, 0, "{}", run.stdout);
    assert_eq!(env.read("f"), "v1");
}

#[test]
fn after_a_loss_what_is_still_in_the_workspace_is_saved_again() {
    let env = env();
    env.write("f", "v0").write("g", "w0");
    env.biv(&["checkpoint", "create"]).ok();
    damage_newest_pack(&env);
    assert_eq!(env.biv(&["reconcile"]).code, 3);
    let saved = env.json("checkpoint create");
    let out = env.root().join("out");
    let id = saved["id"].as_str().unwrap();
    env.biv(&["checkpoint", "restore", id, "--into", out.to_str().unwrap()]).ok();
    assert_eq!(fs::read_to_string(out.join("f")).unwrap(), "v0");
    assert!(env.run("status").contains("is no longer whole"), "{}", env.run("status"));
    // The lost one can be let go, and then all is well.
    env.biv(&["checkpoint", "delete", "cp-001", "--yes"]).ok();
    env.biv(&["gc"]).ok();
    env.biv(&["verify"]).ok();
}

/// Holds the lock of the workspace, as another `biv` would, while `act` runs.
fn while_locked(env: &TestEnv, act: impl FnOnce()) {
    let lock = fs::read_dir(env.store().join("index"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension() == Some("lock".as_ref()))
        .unwrap();
    let file = fs::File::options().read(true).write(true).open(lock).unwrap();
    file.lock().unwrap();
    act();
    file.unlock().unwrap();
}

#[test]
fn what_came_to_be_ignored_since_the_plan_was_made_stays() {
    let env = env();
    env.write("notes.txt", "old").write("other.txt", "old");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("notes.txt", "new").write("other.txt", "new");
    let mut child = None;
    while_locked(&env, || {
        child = Some(env.start(&["checkpoint", "rollback", "cp-001", "--yes"]));
        // It has made its plan once it waits for the lock; nothing else takes it this long.
        std::thread::sleep(std::time::Duration::from_secs(2));
        env.write(".gitignore", "notes.txt\n");
    });
    let run = env.finish(child.unwrap());
    assert_eq!(run.code, 3, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("left alone: notes.txt"), "{}", run.stdout);
    assert_eq!((env.read("notes.txt"), env.read("other.txt")), ("new".into(), "old".into()));
}

#[test]
fn a_rollback_does_not_let_its_own_target_go() {
    let mut env = env();
    for n in 0..8u8 {
        env.write(
            "a",
            (0..30_000u32).map(|k| (k.wrapping_mul(k) >> 3) as u8 ^ n).collect::<Vec<_>>(),
        );
        env.biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    }
    let handles = env.json("checkpoint list");
    env.set("BIV_STORE_BUDGET", "10KB");
    env.biv(&["checkpoint", "rollback", "cp-005", "--yes"]).ok();
    let after = env.json("checkpoint list");
    assert_eq!(after.as_array().unwrap().len(), handles.as_array().unwrap().len() + 1);
}

#[test]
fn a_disk_that_others_filled_costs_no_history() {
    let mut env = env();
    for n in 0..16 {
        env.write("a", format!("{n}"));
        env.biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    }
    env.set("BIV_STORE_MIN_FREE", "900TB");
    for n in 0..5 {
        env.write("a", format!("more {n}"));
        assert_eq!(env.biv(&["checkpoint", "create", "--trigger", "turn"]).code, 3);
    }
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 16);
}

#[test]
fn a_sweep_obeys_the_settings_of_each_workspace() {
    let env = env();
    env.write("bivouac.toml", "[checkpoint]\nmax_per_session = 100\n");
    for n in 0..26 {
        env.write("a", format!("{n}"));
        env.biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    }
    let elsewhere = env.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    env.biv(&["-C", elsewhere.to_str().unwrap(), "gc"]).ok();
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 26);
}

#[test]
fn a_damaged_parent_does_not_stop_saving() {
    let env = env();
    env.write("d/f", "v0");
    env.biv(&["checkpoint", "create"]).ok();
    for pack in fs::read_dir(env.store().join("packs")).unwrap() {
        let path = pack.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() - 80;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    env.write("d/f", "v1");
    env.biv(&["reconcile"]);
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    env.biv(&["status"]).ok();
}

#[test]
fn an_empty_file_in_place_of_the_journal_is_not_a_new_store() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    for suffix in ["", "-wal", "-shm"] {
        let _may_be_missing = fs::remove_file(env.store().join(format!("sessions.db{suffix}")));
    }
    fs::write(env.store().join("sessions.db"), "").unwrap();
    assert_snapshot!(env.run("checkpoint list"), @"
    exit 1
    error: the store has packs but no journal
    hint: run `biv reconcile` to rebuild the journal from the packs
    ");
    env.biv(&["reconcile"]).ok();
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 1);
}

/// SQLite takes so short a file for a new one.
#[test]
fn a_single_byte_in_place_of_the_journal_is_not_a_new_store() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    fs::write(env.store().join("sessions.db"), "S").unwrap();
    assert_eq!(env.biv(&["checkpoint", "list"]).code, 1);
    env.biv(&["reconcile"]).ok();
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 1);
}

#[test]
fn an_event_that_was_changed_is_not_believed() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create", "-m", "one"]).ok();
    env.biv(&["checkpoint", "create", "-m", "two"]).ok();
    env.biv(&["checkpoint", "pin", "cp-002"]).ok();
    env.sql(
        "DROP TRIGGER events_never_change;
         UPDATE events SET data = replace(data, '\"one\"', '\"ONE\"') WHERE kind = 'checkpoint.taken'",
    )
    .unwrap();
    assert_eq!(env.biv(&["verify"]).code, 1);
    env.biv(&["reconcile"]);
    let list = env.run("checkpoint list");
    assert!(list.contains("one") && !list.contains("ONE"), "{list}");
    // The pin was recorded after it, and is still known.
    assert!(env.json("checkpoint show cp-002")["pinned"].as_bool().unwrap());
    env.biv(&["verify"]).ok();
}

#[test]
fn a_reused_name_does_not_stop_a_rebuild() {
    let env = env();
    for (n, name) in ["x", "x", "y"].iter().enumerate() {
        env.write("a", format!("{n}"));
        env.biv(&["checkpoint", "save", name]).ok();
        if n == 0 {
            env.biv(&["checkpoint", "delete", "x", "--yes"]).ok();
        }
    }
    for suffix in ["", "-wal", "-shm"] {
        let _may_be_missing = fs::remove_file(env.store().join(format!("sessions.db{suffix}")));
    }
    env.biv(&["reconcile"]).ok();
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 3);
    env.biv(&["checkpoint", "show", "y"]).ok();
}
