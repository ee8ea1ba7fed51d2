//! `biv status`

use insta::assert_snapshot;

use crate::{env, git_env};

#[test]
fn it_tells_how_things_stand() {
    let env = git_env();
    env.write("a", "1").write(".gitignore", "*.log\n").write("x.log", "");
    assert_snapshot!(env.run("status"), @"
    Workspace  [root]/project
    Session    none yet; `biv checkpoint create` makes one
    Changes    2 new, 0 modified, 0 deleted to save
    Coverage   2 files, 7 B; left out: 1 ignored
    ");
    assert!(!env.store().exists(), "looking makes no store");
    env.biv(&["session", "new", "--task", "Refactor auth"]).ok();
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2").write("b", "2").remove(".gitignore");
    assert_snapshot!(env.run("status"), @"
    Workspace  [root]/project
    Session    task-00000001 (active): Refactor auth
    Last       cp-20260121-001 (MANUAL), 1 minute ago
    Changes    2 new, 1 modified, 1 deleted since then
    Coverage   3 files, 2 B; nothing left out
    ");
    env.biv(&["checkpoint", "rollback", "latest", "--yes"]).ok();
    env.biv(&["undo", "--yes"]).ok();
    let status = env.json("status");
    assert_eq!(status["can_undo"], false);
    assert_eq!(status["can_redo"], true);
    assert_eq!(status["session"]["task_description"], "Refactor auth");
}

#[test]
fn failures_are_shown_until_they_are_old_news() {
    let mut env = env();
    env.write("a", "1");
    env.biv(&["session", "new"]).ok();
    env.set("BIV_STORE_BUDGET", "0").set("BIV_CHECKPOINT_TRIGGERS", "turn");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    let skipped = env.run("checkpoint create --trigger turn");
    assert!(skipped.starts_with("exit 3\nnote: no checkpoint taken: the store has "), "{skipped}");
    let status = env.run("status");
    assert!(
        status.contains("warning    2026-01-21 14:32 no TURN checkpoint: the store has "),
        "{status}"
    );
    assert_eq!(env.json("status")["troubles"][0]["level"], "warning");
}
