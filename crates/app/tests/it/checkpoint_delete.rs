//! `biv checkpoint delete`

use insta::assert_snapshot;

use crate::env;

#[test]
fn all_words_are_understood_before_the_first_goes() {
    let env = env();
    env.write("a", "1");
    for _ in 0..3 {
        env.biv(&["checkpoint", "create"]).ok();
    }
    assert_snapshot!(env.run("checkpoint delete cp-001 cp-009"), @"
    exit 1
    error: there is no checkpoint `cp-009`
    hint: `biv checkpoint list --all` shows all checkpoints
    ");
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 3);
    assert_snapshot!(env.run("checkpoint delete cp-001 cp-002"), @"
    Deleted cp-20260121-001
    Deleted cp-20260121-002
    ");
    assert_snapshot!(env.run("checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-003  task-00000001        MANUAL     2026-01-21 14:32
    ");
    // A handle is never given out twice.
    assert_snapshot!(env.run("checkpoint create"), @"Saved checkpoint cp-20260121-004 of task-00000001: 1 file, nothing changed");
}

#[test]
fn a_pinned_one_stays() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["checkpoint", "pin", "cp-001"]).ok();
    assert_snapshot!(env.run("checkpoint delete cp-001"), @"
    exit 1
    error: checkpoint cp-20260121-001 is pinned
    hint: `biv checkpoint unpin` it first
    ");
}

#[test]
fn saving_goes_on_after_the_last_one_was_deleted_and_swept() {
    let env = env();
    env.write("a", "unchanged").write("b", "unchanged too");
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["checkpoint", "delete", "latest"]).ok();
    env.biv(&["gc"]).ok();
    let tree = env.tree();
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["verify"]).ok();
    env.remove("a").remove("b");
    env.biv(&["checkpoint", "rollback", "latest", "--yes"]).ok();
    assert_eq!(env.tree(), tree);
}
