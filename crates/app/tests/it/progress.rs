//! How far the work is, everywhere it is shown.

use insta::assert_snapshot;

use crate::env;

#[test]
fn progress_is_shown_as_a_summary_a_tree_and_a_document() {
    let env = env();
    env.run("session new --name notification-system");
    assert_snapshot!(env.run("progress"), @"Session: notification-system");
    env.run("session describe --type feature --issue TAS-12 --next \"Start with the router\"");
    env.run("phase set delegate");
    env.run("task add email-sender");
    env.run("artifact add design docs/design.md");
    env.run("worktree set feat/001 --status merged");
    env.run("blocker add \"no key\"");
    assert_snapshot!(env.run("progress --format summary"), @"
    Session: notification-system (feature)
    Phase: delegate
    Tasks: 0 completed, 0 in-progress, 1 pending
    Artifacts:
      Design: docs/design.md
      Branches: feat/001 (merged)
    Also: 1 open blocker
    ");
    assert_snapshot!(env.run("progress --format tree"), @"
    notification-system (feature)
    ├─ Phase: delegate
    ├─ Artifacts (1)
    │  └─ docs/design.md design
    ├─ Tasks (1)
    │  └─ 001 email-sender: pending
    ├─ Blockers (1)
    │  └─ b1 no key: open
    └─ Worktrees (1)
       └─ feat/001: merged
    ");
    let document = env.json("progress");
    assert_eq!(document["phase"]["name"], "delegate");
    assert_eq!(document["outline"]["kind"], "feature");
    assert_eq!(document["tasks"][0]["subject"], "email-sender");
    assert_eq!(env.run("progress --format json"), env.run("progress --json"));
    assert!(env.run("rehydrate").contains("Next: Start with the router"));
}

#[test]
fn checkpoints_hold_it_and_a_comparison_shows_what_changed() {
    let env = env();
    env.write("a", "1");
    env.run("task add one");
    env.run("task add two");
    env.run("checkpoint create");
    env.run("task start one");
    env.run("decision add \"Use SQS\"");
    env.write("a", "2");
    env.run("checkpoint create");
    assert_snapshot!(env.run("checkpoint diff cp-001 cp-002"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-001 (2026-01-21 14:32)
    To:   cp-20260121-002 (2026-01-21 14:35)

    Files Changed:
      M a (+1, -1)

    Progress:
      M task 001 one: pending → in-progress
      + decision d1 Use SQS
    ");
    assert_snapshot!(env.run("checkpoint show cp-001"), @"
    Checkpoint cp-20260121-001
      Id         id-1
      Session    task-00000001
      Trigger    MANUAL
      Created    2026-01-21 14:32:00
      By         tester@here
      Coverage   1 file, 1 B; nothing left out
      Variables  3 kept

    Progress:
    task-00000001
    └─ Tasks (2)
       ├─ 001 one: pending
       └─ 002 two: pending
    ");
    assert_snapshot!(env.run("session show"), @"
    Session task-00000001
      Id           id-1
      Agent        manual
      Status       active
      Workspace    [root]/project
      Created      2026-01-21 14:30
      Updated      2026-01-21 14:35
      Checkpoints  2, the last is cp-20260121-002 (2026-01-21 14:35)

    Progress:
    task-00000001
    ├─ Tasks (2)
    │  ├─ 001 one: in-progress
    │  └─ 002 two: pending
    └─ Decisions (1)
       └─ d1 Use SQS
    ");
    let diff = env.json("checkpoint diff cp-001 cp-002");
    assert_eq!(diff["progress"][0]["to"], "in-progress");
    // What changed since is shown, too.
    env.run("task drop two");
    assert!(env.run("checkpoint diff cp-002").contains("M task 002 two: pending → dropped"));
}

#[test]
fn it_survives_the_loss_of_the_journal() {
    let env = env();
    env.write("a", "1");
    env.run("task add one --issue TAS-1");
    env.run("decision add \"Use SQS\" --why \"it retries\"");
    env.run("checkpoint create");
    for name in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
        let _may_be_missing = std::fs::remove_file(env.store().join(name));
    }
    env.run("reconcile");
    let progress = env.json("progress");
    assert_eq!(progress["tasks"][0]["issue"], "TAS-1");
    assert_eq!(progress["decisions"][0]["why"], "it retries");
}

#[test]
fn a_fork_takes_it_along() {
    let env = env();
    env.write("a", "1");
    env.run("task add one");
    env.run("checkpoint create");
    env.run("fork latest --into ../second");
    let there = env.biv_in(&env.root().join("second"), &["task", "list", "--json"]).ok();
    assert!(there.stdout.contains("\"subject\": \"one\""), "{}", there.stdout);
}

#[test]
fn an_agent_joins_the_session_whose_work_was_written_down() {
    let env = env();
    env.run("task add one");
    let input = serde_json::json!({ "session_id": "11111111-0000-4000-8000-000000000001", "cwd": env.work(), "prompt": "go" });
    env.hook("claude-code", "UserPromptSubmit", input.to_string()).ok();
    assert_eq!(env.json("session list").as_array().unwrap().len(), 1);
}

#[test]
fn a_row_that_cannot_be_read_is_told_and_comes_back() {
    let env = env();
    env.run("task add one");
    env.sql("UPDATE progress SET data = '{\"task\": 7}'").unwrap();
    for command in ["task list", "task start 001"] {
        let told = env.run(command);
        assert!(
            told.contains("a row of `progress` cannot be read") && told.contains("biv reconcile"),
            "{told}"
        );
    }
    env.run("reconcile");
    assert!(env.run("task list").contains("001  one"));
}
