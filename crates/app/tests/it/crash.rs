//! Killed at any moment, the next command finishes or takes back what was begun.

use std::time::{Duration, Instant};

use bivouac_testkit::{Run, TestEnv};

use crate::env;

fn story(n_files: u32) -> (TestEnv, bivouac_testkit::Tree, bivouac_testkit::Tree) {
    let env = env();
    for n in 0..n_files {
        env.write(format!("d{}/f{n}", n % 7), format!("old {n}"));
    }
    env.link("link", "d0").write("becomes-folder", "x").write("becomes-file/x", "x");
    env.biv(&["checkpoint", "create"]).ok();
    let old = env.tree();
    for n in 0..n_files {
        match n % 3 {
            0 => env.write(format!("d{}/f{n}", n % 7), format!("new {n}")),
            1 => env.remove(format!("d{}/f{n}", n % 7)),
            _ => env.write(format!("later/f{n}"), format!("later {n}")),
        };
    }
    env.remove("becomes-folder")
        .write("becomes-folder/x", "y")
        .remove("becomes-file")
        .write("becomes-file", "y");
    let new = env.tree();
    (env, old, new)
}

/// Kills a command at `round` of `rounds` evenly spread moments of the time it usually takes.
fn kill_at(env: &TestEnv, words: &[&str], usual: Duration, (round, rounds): (u32, u32)) -> Run {
    let mut child = env.start(words);
    std::thread::sleep(usual * round / rounds);
    let _finished_already = child.kill();
    env.finish(child)
}

fn time(act: impl FnOnce()) -> Duration {
    let started = Instant::now();
    act();
    started.elapsed()
}

#[test]
fn a_killed_rollback_is_finished_or_never_happened() {
    let (env, old, new) = story(120);
    env.biv(&["checkpoint", "create"]).ok();
    let there = ["checkpoint", "rollback", "cp-001", "--yes"];
    let back = ["checkpoint", "rollback", "cp-002", "--yes"];
    let usual = time(|| drop(env.biv(&there).ok())).max(time(|| drop(env.biv(&back).ok())));
    let mut n_interrupted = 0;
    for round in 0..60 {
        let run = kill_at(&env, &there, usual, (round, 60));
        let after = env.biv(&["status"]).ok();
        n_interrupted += u32::from(after.stderr.contains("that was interrupted"));
        let tree = env.tree();
        assert!(
            tree == old || tree == new,
            "round {round}: half a rollback ({}{})",
            run.stdout,
            after.stderr
        );
        assert!(!tree.keys().any(|key| key.starts_with(b".biv-staging")), "round {round}");
        if tree == old {
            env.biv(&back).ok();
            assert_eq!(env.tree(), new);
        }
    }
    env.biv(&["verify"]).ok();
    assert!(n_interrupted > 0, "no round hit the middle of a rollback");
}

#[test]
fn a_killed_checkpoint_leaves_nothing_or_all_of_it() {
    let env = env();
    for n in 0..150 {
        env.write(format!("d{}/f{n}", n % 7), "x".repeat(n * 20));
    }
    let usual = time(|| drop(env.biv(&["checkpoint", "create"]).ok()));
    let mut acknowledged = 1;
    for round in 0..50 {
        env.write("counter", round.to_string());
        let run = kill_at(&env, &["checkpoint", "create"], usual, (round, 50));
        acknowledged += usize::from(run.stdout.contains("Saved checkpoint"));
        env.biv(&["checkpoint", "list"]).ok();
    }
    env.biv(&["verify"]).ok();
    let kept = env.json("checkpoint list").as_array().unwrap().len();
    assert!(kept >= acknowledged, "{acknowledged} were acknowledged and {kept} are there");
    env.biv(&["gc"]).ok();
    env.biv(&["verify"]).ok();
}

#[test]
fn a_killed_sweep_loses_nothing() {
    let env = env();
    let fill = |from: u32| {
        for n in from..from + 20 {
            env.write("a", n.to_string().repeat(5_000));
            env.biv(&["checkpoint", "create", "--name", &format!("n{n}")]).ok();
        }
    };
    fill(0);
    let usual = time(|| drop(env.biv(&["gc"]).ok()));
    fill(20);
    env.biv(&["checkpoint", "delete", "n3", "n7", "n22"]).ok();
    for round in 0..30 {
        kill_at(&env, &["gc"], usual, (round, 30));
        env.biv(&["verify"]).ok();
    }
    env.biv(&["checkpoint", "rollback", "n5", "--yes"]).ok();
    assert_eq!(env.read("a"), "5".repeat(5_000));
}
