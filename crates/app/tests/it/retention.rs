//! Which automatic checkpoints stay

use insta::assert_snapshot;

use crate::env;

fn handles(env: &bivouac_testkit::TestEnv) -> Vec<String> {
    let list = env.json("checkpoint list");
    list.as_array()
        .unwrap()
        .iter()
        .map(|it| it["handle"].as_str().unwrap()[12..].to_owned())
        .collect()
}

#[test]
fn max_per_session_thins_so_that_the_session_is_spanned() {
    let mut env = env();
    env.set("BIV_CHECKPOINT_MAX_PER_SESSION", "5");
    for n in 0..30 {
        env.write("a", n.to_string());
        env.biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    }
    let left = handles(&env);
    assert_eq!(left.len(), 5);
    assert_eq!((left[0].as_str(), left[4].as_str()), ("001", "030"));
    assert!(left[1..4].iter().any(|it| ("010".."025").contains(&it.as_str())), "{left:?}");
    assert!(env.run("session log").contains("(thinned)"));
}

#[test]
fn what_someone_cares_about_stays() {
    let mut env = env();
    env.set("BIV_CHECKPOINT_MAX_PER_SESSION", "2").set("BIV_CHECKPOINT_RETENTION_DAYS", "0");
    let change = |n: u32| {
        env.write("a", n.to_string());
    };
    change(1);
    env.biv(&["checkpoint", "create", "-m", "by hand"]).ok();
    change(2);
    env.biv(&["checkpoint", "create", "--trigger", "turn", "--name", "named"]).ok();
    change(3);
    env.biv(&["checkpoint", "create", "--trigger", "turn", "-m", "pinned"]).ok();
    env.biv(&["checkpoint", "pin", "latest"]).ok();
    change(4);
    env.biv(&["checkpoint", "create", "--trigger", "error"]).ok();
    for n in 5..10 {
        change(n);
        env.biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    }
    env.biv(&["checkpoint", "rollback", "named", "--yes"]).ok();
    env.biv(&["session", "complete"]).ok();
    assert_snapshot!(env.run("checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        MANUAL     2026-01-21 14:30  by hand
    cp-20260121-002  task-00000001        TURN       2026-01-21 14:31  [named]
    cp-20260121-003  task-00000001        TURN       2026-01-21 14:32  (pinned) pinned
    cp-20260121-004  task-00000001        ERROR      2026-01-21 14:34
    cp-20260121-005  task-00000001        TURN       2026-01-21 14:35
    cp-20260121-009  task-00000001        TURN       2026-01-21 14:39
    cp-20260121-010  task-00000001        SAFETY     2026-01-21 14:40  before rollback to cp-20260121-002
    cp-20260121-011  task-00000001        COMPLETE   2026-01-21 14:41
    ");
    env.biv(&["gc"]).ok();
    assert_snapshot!(env.run("checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        MANUAL     2026-01-21 14:30  by hand
    cp-20260121-002  task-00000001        TURN       2026-01-21 14:31  [named]
    cp-20260121-003  task-00000001        TURN       2026-01-21 14:32  (pinned) pinned
    cp-20260121-004  task-00000001        ERROR      2026-01-21 14:34
    cp-20260121-010  task-00000001        SAFETY     2026-01-21 14:40  before rollback to cp-20260121-002
    cp-20260121-011  task-00000001        COMPLETE   2026-01-21 14:41
    ");
}

#[test]
fn retention_days_lets_go_in_ended_sessions_only() {
    let mut env = env();
    for n in 0..3 {
        env.write("a", n.to_string());
        env.biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    }
    let later = |env: &mut bivouac_testkit::TestEnv| {
        env.set("BIV_CLOCK", "2026-02-21T12:00:00Z");
    };
    later(&mut env);
    env.biv(&["gc"]).ok();
    assert_eq!(handles(&env).len(), 3, "the session is still active");
    env.biv(&["session", "complete"]).ok();
    env.biv(&["gc"]).ok();
    assert_eq!(handles(&env), ["003"], "the last one always stays");
}

#[test]
fn over_its_budget_the_store_thins_automatic_ones_first() {
    let mut env = env();
    let noise = |n: u32| {
        (0..40_000u32)
            .flat_map(|k| (k.wrapping_mul(n * 7 + 13) ^ (k << 7)).to_le_bytes())
            .collect::<Vec<u8>>()
    };
    for n in 0..6 {
        env.write("a", noise(n));
        env.biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    }
    let used = env.json("du")["pack_bytes"].as_u64().unwrap();
    env.set("BIV_STORE_BUDGET", (used * 4 / 5).to_string());
    env.write("a", noise(100));
    let run = env.biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    assert!(run.stdout.contains("Saved checkpoint"), "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("automatic checkpoints were thinned"), "{}", run.stderr);
    // By hand there is nothing left to thin, and the person is told.
    env.set("BIV_STORE_BUDGET", "1KB");
    assert_snapshot!(env.run("checkpoint create").replace(|letter: char| letter.is_ascii_digit(), "N"), @"
    exit N
    note: the store is short of room: N automatic checkpoints were thinned
    error: the store has NNN KB, and `store.budget` is N.N KB
    hint: delete checkpoints and run `biv gc`, or raise `store.budget`
    ");
    assert!(env.run("session log").contains("saved"));
}

#[test]
fn the_free_disk_floor_holds() {
    let mut env = env();
    env.write("a", "1");
    env.set("BIV_STORE_MIN_FREE", "900TB");
    let run = env.biv(&["checkpoint", "create"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("`store.min_free` is 900 TB"), "{}", run.stderr);
    // Nobody waits for this one, and whoever started it has to know.
    let run = env.biv(&["checkpoint", "create", "--trigger", "turn"]);
    assert_eq!(run.code, 3);
    assert!(run.stderr.starts_with("note: no checkpoint taken: only"), "{}", run.stderr);
    assert!(env.run("session log").contains("no TURN checkpoint: only"));
}
