//! All a fresh agent needs to know, from the outside.

use bivouac_testkit::TestEnv;
use insta::assert_snapshot;

use crate::{env, git_env};

/// A checkpoint, and then another branch, a commit and a new file.
fn drifted() -> TestEnv {
    let env = git_env();
    env.write("src/a.rs", "1");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "first"]);
    env.run("session new --name work --task \"Build it\"");
    env.run("task add one --file src/a.rs --file src/gone.rs");
    env.run("worktree set feat/never-was");
    env.run("checkpoint create");
    env.git(&["checkout", "-q", "-b", "other"]);
    env.write("src/a.rs", "2");
    env.git(&["commit", "-qam", "second"]);
    env.write("src/b.rs", "3");
    env
}

#[test]
fn it_is_checked_against_the_workspace() {
    let env = drifted();
    assert_snapshot!(env.run("rehydrate"), @"
    Rehydrated: work

      Task: Build it
      Session: task-00000001 · agent: manual · status: active
      Last checkpoint: cp-20260121-001 (MANUAL, 2026-01-21 14:33)
      Branch: other (SHA: d6f32c79 → current: 9dae59ae)

      Tasks:
        001 one:  pending

      Branches:
        feat/never-was (missing) (active)

      Commits since checkpoint:
        9dae59a second

      Drift:
        branch: main → other
        1 commit since the checkpoint
        1 path uncommitted
        src/gone.rs is named and not there
        feat/never-was is named and not there
        2 files changed since the checkpoint
        changed: src/a.rs
        changed: src/b.rs

      Recent events:
        task.added (001-one)
        worktree.active (feat/never-was)

      Next: Start task 001 one.

      Context cost: ~N tokens
    ");
}

#[test]
fn it_comes_as_markdown_and_as_a_document_too() {
    let env = drifted();
    assert_snapshot!(env.run("rehydrate --format markdown"), @"
    ## Session Resumed

    **Last checkpoint**: cp-20260121-001 (MANUAL, 2026-01-21 14:33)

    **Task**: Build it
    **Branch**: other (SHA: d6f32c79 → current: 9dae59ae)
    **Phase**: none yet
    **Session**: task-00000001 · agent: manual · status: active

    ### What's Done

    Nothing on record

    ### What's Remaining

    - [ ] 001 one

    ### Blockers

    None

    ### Commits Since Checkpoint

    - 9dae59a second

    ### Branches

    - feat/never-was (missing) (active)

    ### Drift

    - branch: main → other
    - 1 commit since the checkpoint
    - 1 path uncommitted
    - src/gone.rs is named and not there
    - feat/never-was is named and not there
    - 2 files changed since the checkpoint
    - changed: src/a.rs
    - changed: src/b.rs

    ### Recent Events

    - task.added (001-one)
    - worktree.active (feat/never-was)

    ### Suggested Next Action

    Start task 001 one.

    Context cost: ~N tokens
    ");
    let document = env.json("rehydrate --format json");
    assert_eq!(document["briefing"]["next"], "Start task 001 one.");
    assert_eq!(document["briefing"]["tasks"][0]["status"], "pending");
}

#[test]
fn a_budget_that_is_too_small_names_the_least() {
    let env = env();
    env.run("task add one");
    assert_snapshot!(env.run("rehydrate --budget 10"), @"
    exit 1
    error: 10 tokens cannot hold what must be told; the least that is possible is N
    hint: raise `--budget`
    ");
    assert_snapshot!(env.run("rehydrate --budget many"), @"
    exit 2
    error: invalid value 'many' for '--budget <TOKENS>': invalid digit found in string

    For more information, try '--help'.
    ");
    assert_snapshot!(env.run("rehydrate nowhere"), @"
    exit 1
    error: there is no session `nowhere`
    hint: `biv session list --all` shows all sessions
    ");
}
