//! The phase the work is in.

use insta::assert_snapshot;

use crate::env;

#[test]
fn a_phase_replaces_the_one_before() {
    let env = env();
    env.run("session new --name work");
    assert_snapshot!(env.run("phase set planning --number 1 --of 3 --about \"find out what is there\""), @"Recorded phase.changed (planning)");
    assert_snapshot!(env.run("progress"), @"
    Session: work
    Phase: planning (1 of 3) — find out what is there
    ");
    env.run("phase set delegate --number 2");
    assert_snapshot!(env.run("progress"), @"
    Session: work
    Phase: delegate (2 of 3)
    ");
    assert_snapshot!(env.run("phase set review --number 5 --of 3"), @"
    exit 2
    error: there is no phase 5 of 3
    ");
    assert!(env.run("phase set \"\"").starts_with("exit 2"));
    assert_snapshot!(env.run("status"), @"
    Workspace  [root]/project
    Session    task-00000001 (active): work
    Changes    0 new, 0 modified, 0 deleted to save
    Coverage   0 files, 0 B; nothing left out
    Phase      delegate
    ");
}
