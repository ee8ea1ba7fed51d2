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
    assert_snapshot!(env.run("checkpoint delete cp-001 cp-009 --yes"), @"
    exit 1
    error: there is no checkpoint `cp-009`
    hint: `biv checkpoint list --all` shows all checkpoints
    ");
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 3);
    assert_snapshot!(env.run("checkpoint delete cp-001 cp-002 --yes"), @"
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
    assert_snapshot!(env.run("checkpoint delete cp-001 --yes"), @"
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
    env.biv(&["checkpoint", "delete", "latest", "--yes"]).ok();
    env.biv(&["gc"]).ok();
    let tree = env.tree();
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["verify"]).ok();
    env.remove("a").remove("b");
    env.biv(&["checkpoint", "rollback", "latest", "--yes"]).ok();
    assert_eq!(env.tree(), tree);
}

#[test]
fn it_shows_what_goes_and_asks() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create", "-m", "before the risk", "--name", "risky"]).ok();
    env.biv(&["checkpoint", "create"]).ok();
    assert_snapshot!(env.run("checkpoint delete risky latest"), @"
    exit 2
    Delete 2 checkpoints

      cp-20260121-001  2026-01-21 14:30  MANUAL of task-00000001  named risky  before the risk  (the session keeps no checkpoint)
      cp-20260121-002  2026-01-21 14:31  MANUAL of task-00000001  (the session keeps no checkpoint)

    This cannot be undone
    error: deleting checkpoints needs a confirmation, and there is no terminal to ask on
    hint: look at what it would do, then pass `--yes`
    ");
    let (code, shown) = env.dialog(&["checkpoint", "delete", "risky"], &[("good? [y/N]", "n\n")]);
    assert!(code == 1 && shown.contains("was not confirmed, so nothing was changed"), "{shown}");
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 2);
    let (code, shown) = env.dialog(&["checkpoint", "delete", "risky"], &[("good? [y/N]", "y\n")]);
    assert!(code == 0 && shown.contains("Deleted cp-20260121-001"), "{shown}");
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 1);
}

#[test]
fn an_agent_cannot_do_it() {
    let mut env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.set("CLAUDECODE", "1");
    assert_snapshot!(env.run("checkpoint delete latest --yes"), @"
    exit 1
    error: an agent cannot delete checkpoints
    hint: run it in a terminal of your own, outside the agent
    ");
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 1);
}
