//! Every kind of file of the store, damaged: found, or harmless; never believed.

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

/// Any byte of any pack: `verify` finds it, and a restore gives the true bytes or none.
#[test]
fn one_byte_in_a_pack_is_always_found() {
    let env = small_store();
    let tree = env.tree();
    for pack in files(&env, "packs") {
        let good = fs::read(&pack).unwrap();
        for at in (0..good.len()).step_by(5) {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            fs::write(&pack, &bad).unwrap();
            let verify = env.biv(&["verify"]);
            assert_eq!(verify.code, 1, "byte {at} of {}: {}", pack.display(), verify.stdout);
            let out = env.root().join("out");
            let restore =
                env.biv(&["checkpoint", "restore", "cp-002", "--into", out.to_str().unwrap()]);
            if restore.code == 0 {
                assert_eq!(bivouac_testkit::read_tree(&out), tree, "byte {at}");
            }
            let _never_made = fs::remove_dir_all(&out);
        }
        fs::write(&pack, &good).unwrap();
    }
    env.biv(&["verify"]).ok();
}

/// The cache can be anything at all: the next checkpoint is right.
#[test]
fn a_damaged_cache_is_never_believed() {
    let env = small_store();
    let [cache] = files(&env, "index")
        .into_iter()
        .filter(|it| it.extension() == Some("stat".as_ref()))
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let good = fs::read(&cache).unwrap();
    let tree = env.tree();
    let mut variants = vec![Vec::new(), good[..good.len() / 2].to_vec(), vec![0; good.len()]];
    variants.extend((0..good.len()).step_by(7).map(|at| {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        bad
    }));
    for bad in variants {
        fs::write(&cache, &bad).unwrap();
        let saved = env.json("checkpoint create");
        let out = env.root().join("out");
        let id = saved["id"].as_str().unwrap();
        env.biv(&["checkpoint", "restore", id, "--into", out.to_str().unwrap()]).ok();
        assert_eq!(bivouac_testkit::read_tree(&out), tree);
        fs::remove_dir_all(&out).unwrap();
    }
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

/// Any byte of the database: found by `verify`, or changes nothing that is read; never a crash.
#[test]
fn one_byte_in_the_database_is_found_or_harmless() {
    let env = small_store();
    let path = env.store().join("sessions.db");
    let good = fs::read(&path).unwrap();
    let answers = |env: &TestEnv| {
        (env.biv(&["checkpoint", "list"]).stdout, env.biv(&["session", "log"]).stdout)
    };
    let expected = answers(&env);
    for at in (0..good.len()).step_by(499) {
        let mut bad = good.clone();
        bad[at] ^= 0x04;
        fs::write(&path, &bad).unwrap();
        let verify = env.biv(&["verify"]);
        assert!(
            verify.code == 0 || verify.code == 1,
            "byte {at}: {} {}",
            verify.code,
            verify.stderr
        );
        if verify.code == 0 {
            assert_eq!(answers(&env), expected, "byte {at} changed an answer unseen");
        }
        for suffix in ["-wal", "-shm"] {
            let _not_there = fs::remove_file(env.store().join(format!("sessions.db{suffix}")));
        }
    }
    fs::write(&path, &good).unwrap();
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
