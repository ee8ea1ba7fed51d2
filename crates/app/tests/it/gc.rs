//! `biv gc`

use bivouac_testkit::until;
use insta::assert_snapshot;

use crate::env;

/// Bytes that do not compress.
fn noise(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).max(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

fn pack_bytes(env: &bivouac_testkit::TestEnv) -> u64 {
    let packs = std::fs::read_dir(env.store().join("packs")).unwrap();
    packs.map(|it| it.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn bytes_nothing_needs_come_back() {
    let env = env();
    env.write("kept", noise(1, 100_000));
    env.biv(&["checkpoint", "create"]).ok();
    env.write("big", noise(2, 1_500_000));
    env.biv(&["checkpoint", "create"]).ok();
    env.remove("big");
    env.biv(&["checkpoint", "create"]).ok();
    assert_snapshot!(env.run("gc"), @"Nothing to give back");
    env.biv(&["checkpoint", "delete", "cp-002", "--yes"]).ok();
    let before = pack_bytes(&env);
    assert_snapshot!(env.run("gc --dry-run"), @"Would give back about 1.5 MB: 3 packs would become 2");
    assert_eq!(pack_bytes(&env), before);
    assert_snapshot!(env.run("gc"), @"Gave back 1.5 MB: 3 packs became 2");
    assert!(pack_bytes(&env) < 150_000);
    env.biv(&["verify"]).ok();
    env.remove("kept");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(std::fs::read(env.path("kept")).unwrap(), noise(1, 100_000));
}

#[test]
fn what_is_needed_again_meanwhile_stays_and_the_rest_goes() {
    let env = env();
    for n in 1..=4 {
        env.write("a", noise(n, 50_000));
        env.biv(&["checkpoint", "create"]).ok();
    }
    for gone in ["cp-001", "cp-002", "cp-003"] {
        env.biv(&["checkpoint", "delete", gone, "--yes"]).ok();
    }
    let in_use = std::fs::File::open(env.store().join("store.lock")).unwrap();
    in_use.lock_shared().unwrap();
    let sweep = env.start(&["gc"]);
    // Who closes the gate has marked what is needed, and waits to be alone.
    let gate = env.store().join("gate.lock");
    until("the sweep to wait", || std::fs::read_to_string(&gate).is_ok_and(|it| !it.is_empty()));
    env.write("a", noise(2, 50_000));
    env.biv(&["checkpoint", "create"]).ok();
    drop(in_use);
    assert_eq!(env.finish(sweep).code, 0);
    let bytes = pack_bytes(&env);
    assert!((100_000..110_000).contains(&bytes), "{bytes}");
    env.biv(&["verify"]).ok();
    env.write("a", "");
    env.biv(&["checkpoint", "rollback", "cp-005", "--yes"]).ok();
    assert_eq!(std::fs::read(env.path("a")).unwrap(), noise(2, 50_000));
}

#[test]
fn many_small_packs_become_one() {
    let env = env();
    for n in 0..12 {
        env.write("a", n.to_string());
        env.biv(&["checkpoint", "create"]).ok();
    }
    assert_eq!(std::fs::read_dir(env.store().join("packs")).unwrap().count(), 12);
    let report = env.json("gc");
    assert_eq!(report["packs_after"], 1);
    env.biv(&["verify"]).ok();
    for n in 0..12 {
        env.biv(&["checkpoint", "rollback", &format!("cp-{:03}", n + 1), "--yes"]).ok();
        assert_eq!(env.read("a"), n.to_string());
    }
}

#[test]
fn leftovers_of_a_crash_are_swept() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let packs = env.store().join("packs");
    std::fs::write(packs.join("01a1e145-5575-7972-892e-7729ef49ad8d.pack.tmp"), "half a pack")
        .unwrap();
    env.biv(&["gc"]).ok();
    assert_eq!(std::fs::read_dir(&packs).unwrap().count(), 1);
    // A pack that cannot be read might hold something, so it stays.
    std::fs::write(packs.join("01a1e145-5575-7972-892e-7729ef49ad8d.pack"), "not a pack").unwrap();
    assert_snapshot!(env.run("gc"), @"
    Nothing to give back
    note: [root]/home/.local/share/bivouac/packs/id-1.pack may hold a checkpoint the journal does not know; `biv reconcile` takes it in
    ");
    assert_eq!(std::fs::read_dir(&packs).unwrap().count(), 2);
}

#[test]
fn nothing_is_removed_when_something_cannot_be_read() {
    let env = env();
    env.write("a", noise(1, 50_000));
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", noise(2, 50_000));
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["checkpoint", "delete", "cp-002", "--yes"]).ok();
    let pack = std::fs::read_dir(env.store().join("packs"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .min()
        .unwrap();
    let mut bytes = std::fs::read(&pack).unwrap();
    let middle = bytes.len() - 200;
    bytes[middle] ^= 1;
    std::fs::write(&pack, bytes).unwrap();
    let run = env.biv(&["gc"]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert_eq!(std::fs::read_dir(env.store().join("packs")).unwrap().count(), 2);
}

#[test]
fn it_runs_by_itself_when_there_are_many_packs() {
    let mut env = env();
    for n in 0..100 {
        env.write("a", n.to_string());
        env.biv(&["checkpoint", "create"]).ok();
    }
    env.set("BIV_STORE_AUTO_GC", "true");
    env.write("a", "last");
    env.biv(&["checkpoint", "create"]).ok();
    // The sweep is a process of its own; this only ends when it has done its work.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while std::fs::read_dir(env.store().join("packs")).unwrap().count() > 5 {
        assert!(std::time::Instant::now() < deadline, "the sweep never came");
        std::thread::yield_now();
    }
    env.biv(&["gc"]).ok();
    env.biv(&["verify"]).ok();
}
