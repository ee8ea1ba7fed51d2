//! Branches in folders of their own: told, and seen in git.

use insta::assert_snapshot;

use crate::{env, git_env};

#[test]
fn a_branch_is_active_merged_or_removed() {
    let env = env();
    assert_snapshot!(env.run("worktree set feat/001-email-sender --path ../app-001"), @"
    Recorded worktree.active (feat/001-email-sender)
    note: opened session task-00000001
    ");
    env.run("worktree set feat/001-email-sender --status merged");
    env.run("worktree set feat/002 --status removed");
    assert_snapshot!(env.run("worktree list"), @"
    ID                     What  Status   About
    feat/001-email-sender        merged   ../app-001
    feat/002                     removed
    ");
    assert_snapshot!(env.run("worktree set x --status sleeping"), @"
    exit 2
    error: invalid value 'sleeping' for '--status <STATUS>': `sleeping` is no status of a worktree; one is active, merged or removed

    For more information, try '--help'.
    ");
}

#[test]
fn gits_own_worktrees_are_seen_by_themselves() {
    let env = git_env();
    env.write("a", "1");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "first"]);
    env.git(&["worktree", "add", "-q", "-b", "feat/one", "../one"]);
    env.run("checkpoint create");
    let list = env.json("worktree list");
    assert_eq!((&list[0]["branch"], &list[0]["status"]), (&"feat/one".into(), &"active".into()));
    assert!(list[0]["by"].is_null(), "nobody said so");
    env.git(&["worktree", "remove", "../one"]);
    env.run("checkpoint create");
    assert_eq!(env.json("worktree list")[0]["status"], "merged");
}

#[test]
fn commits_are_seen_by_themselves() {
    let env = git_env();
    env.write("a", "1");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "first"]);
    env.run("checkpoint create");
    env.write("a", "2");
    env.git(&["commit", "-qam", "second: faster"]);
    env.run("checkpoint create");
    let commits = env.json("progress")["commits"].clone();
    assert_eq!(commits[0]["subject"], "second: faster");
    assert_eq!(commits.as_array().unwrap().len(), 1);
    assert!(env.run("search faster").contains("commit.seen"));
}
