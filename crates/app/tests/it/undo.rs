//! `biv undo` and `biv redo`

use insta::assert_snapshot;

use crate::env;

#[test]
fn restores_are_taken_back_without_limit() {
    let env = env();
    let mut trees = Vec::new();
    for n in 0..4 {
        env.write("counter", n.to_string()).write(format!("file-{n}"), "x");
        env.biv(&["checkpoint", "create"]).ok();
        trees.push(env.tree());
    }
    env.biv(&["checkpoint", "rollback", "cp-003", "--yes"]).ok();
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.tree(), trees[0]);
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!(env.tree(), trees[2]);
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!(env.tree(), trees[3]);
    assert_snapshot!(env.run("undo --yes"), @"
    exit 1
    error: there is nothing to undo in this workspace
    hint: `biv checkpoint rollback CHECKPOINT` goes back to a checkpoint
    ");
    env.biv(&["redo", "--yes"]).ok();
    env.biv(&["redo", "--yes"]).ok();
    assert_eq!(env.tree(), trees[0]);
    assert_snapshot!(env.run("redo --yes"), @"
    exit 1
    error: there is nothing to redo in this workspace
    hint: `biv checkpoint rollback CHECKPOINT` goes back to a checkpoint
    ");
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!(env.tree(), trees[2]);
}

#[test]
fn only_what_the_rollback_touched_goes_back() {
    let env = env();
    env.write("a", "1").write("b", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    env.write("b", "edited since").write("c", "made since");
    assert_snapshot!(env.run("undo --dry-run"), @"
    Take back the last rollback

      M a
    Everything is saved first; `biv redo` takes it back
    ");
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!(
        (env.read("a"), env.read("b"), env.read("c")),
        ("2".into(), "edited since".into(), "made since".into())
    );
}

#[test]
fn an_edit_made_since_is_saved_and_comes_back_with_redo() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    env.write("a", "edited after the rollback");
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!(env.read("a"), "2");
    env.biv(&["redo", "--yes"]).ok();
    assert_eq!(env.read("a"), "edited after the rollback");
}

#[test]
fn an_undo_that_finds_everything_done_still_counts() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    env.write("b", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.remove("b");
    env.biv(&["checkpoint", "rollback", "latest", "--yes"]).ok();
    env.remove("b");
    assert_snapshot!(env.run("undo --yes"), @"
    Took back the last rollback: the files already were as they were before it
    Everything as it was before is in cp-20260121-005
    ");
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!(env.read("a"), "2");
}

#[test]
fn a_folder_someone_uses_since_stays() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("d/x", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.remove("d");
    env.biv(&["checkpoint", "rollback", "cp-002", "--yes"]).ok();
    env.write("d/mine", "2");
    assert_snapshot!(env.run("undo --yes"), @"
    Took back the last rollback: 0 files written, 1 removed
      left alone: d (still holds other files)
    Everything as it was before is in cp-20260121-004
    ");
    assert_eq!(env.read("d/mine"), "2");
    assert!(!env.exists("d/x"));
}

#[test]
fn it_asks_where_there_is_someone_to_ask() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_snapshot!(env.run("undo"), @"
    exit 2
    error: the undo needs a confirmation, and there is no terminal to ask on
    hint: look at what it would do, then pass `--yes`
    ");
    assert_eq!(env.read("a"), "1");
}

#[test]
fn without_the_safety_checkpoint_it_says_so() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    env.biv(&["checkpoint", "delete", "cp-002", "--yes"]).ok();
    assert_snapshot!(env.run("undo --yes"), @"
    exit 1
    error: the checkpoint that holds the state before was deleted, so this cannot be undone
    hint: `biv checkpoint list` shows what is still there to go back to
    ");
    assert_eq!(env.read("a"), "1");
}

#[test]
fn deleting_what_undo_needs_is_told() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    let run = env.biv(&["checkpoint", "delete", "cp-002", "cp-002", "--yes"]).ok();
    assert_eq!(run.stdout, "Deleted cp-20260121-002\n");
    assert!(run.stderr.contains("the last rollback can no longer be undone"), "{}", run.stderr);
    assert_eq!(env.json("status")["can_undo"], false);
}
