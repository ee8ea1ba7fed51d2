//! The stories that were asked for, from beginning to end

use bivouac_testkit::TestEnv;
use insta::assert_snapshot;

use crate::{env, git_env};

/// A session for auth, checkpoints by timer, by hand and at detach, a look at the difference, back and forth.
#[test]
fn a_refactoring_goes_wrong_and_comes_back() {
    let env = git_env();
    env.write("src/auth/session.py", (1..=60).map(|n| format!("line {n}\n")).collect::<String>());
    env.write("tests/test_auth.py", "def test_one(): pass\n");
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "start"]);
    let session =
        env.json("session new --agent claude-code --task \"Refactor auth\" --name auth-refactor");
    let task = session["handle"].as_str().unwrap();
    env.biv(&["checkpoint", "create", task, "--trigger", "periodic"]).ok();
    env.write("notes", "thinking");
    env.biv(&["checkpoint", "create", task, "-m", "Before refactoring auth"]).ok();
    env.write("src/auth/login.py", "def login(): ...\n");
    let kept: String = (13..=60).map(|n| format!("line {n}\n")).collect();
    let added: String = (1..=45).map(|n| format!("new {n}\n")).collect();
    env.write("src/auth/session.py", kept + &added).remove("notes");
    env.write(
        "tests/test_auth.py",
        "def test_one(): pass\n".to_owned() + &"def more(): pass\n".repeat(30),
    );
    env.biv(&["checkpoint", "create", task, "--trigger", "detach"]).ok();
    assert_snapshot!(env.run(&format!("checkpoint list --session {task}")), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        PERIODIC   2026-01-21 14:31
    cp-20260121-002  task-00000001        MANUAL     2026-01-21 14:32  Before refactoring auth
    cp-20260121-003  task-00000001        DETACH     2026-01-21 14:33
    ");
    assert_snapshot!(env.run("checkpoint diff cp-001 cp-003"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-001 (2026-01-21 14:31)
    To:   cp-20260121-003 (2026-01-21 14:33)

    Files Changed:
      + src/auth/login.py (new)
      M src/auth/session.py (+45, -12)
      M tests/test_auth.py (+30, -0)
    ");
    assert_snapshot!(env.run("checkpoint rollback cp-20260121-001 --yes"), @"
    Rolled back to cp-20260121-001: 2 files written, 1 removed
    Everything as it was before is in cp-20260121-004
    ");
    assert_snapshot!(env.git(&["status", "--porcelain"]), @"");
    assert_snapshot!(env.run("undo --yes"), @"
    Took back the last rollback: 3 files written, 0 removed
    Everything as it was before is in cp-20260121-005
    ");
    assert_snapshot!(env.run("checkpoint delete cp-20260121-002 --yes"), @"Deleted cp-20260121-002");
    assert_snapshot!(env.run("checkpoint list --older-than 7d"), @"No checkpoints found.");
}

/// Save under a name, list what there is, load it by its name, go on with the session by its id.
#[test]
fn a_session_manager_has_its_five_verbs() {
    let env = env();
    env.write("work.txt", "half done");
    let session = env.json("session new --agent implementer --task \"Long task\"");
    let id = session["id"].as_str().unwrap();
    let state = r#"{"task":{"progress":0.5},"memory":["mem-1"],"open_files":[{"path":"work.txt","cursor":[1,5]}]}"#;
    env.biv(&["checkpoint", "create", id, "--name", "halfway", "--state", state]).ok();
    env.biv(&["session", "pause", id]).ok();
    assert_eq!(env.json("session list --status paused")[0]["id"], session["id"]);
    let list = env.json(&format!("checkpoint list --session {id}"));
    assert_eq!(list[0]["name"], "halfway");
    env.write("work.txt", "ruined");
    env.biv(&["session", "resume", id]).ok();
    let loaded = env.json("checkpoint show halfway");
    assert_eq!(loaded["state"]["open_files"][0]["cursor"][1], 5);
    env.biv(&["checkpoint", "rollback", "halfway", "--yes"]).ok();
    assert_eq!(env.read("work.txt"), "half done");
    assert_eq!(env.json("session list --status active")[0]["id"], session["id"]);
}

/// The four keys of the configuration that was asked for, as they were written.
#[test]
fn the_configuration_that_was_asked_for_is_obeyed() {
    let env = env();
    env.write(
        "bivouac.toml",
        "[checkpoint]\n# Periodic checkpoints\nauto_interval_minutes = 5\n\n# Maximum checkpoints per session\nmax_per_session = 20\n\n\
         # Retention policy\nretention_days = 7\n\n# Checkpoint on these triggers\ntriggers = [\"periodic\", \"detach\", \"error\", \"complete\"]\n",
    );
    // Two of them would save less often, so the user has to agree once.
    assert_snapshot!(env.run("config show").lines().last().unwrap(), @"note: ignored in `[root]/project/bivouac.toml`: checkpoint.auto_interval_seconds, checkpoint.triggers; these would save or keep less, or act outside the workspace; `biv config trust` shows and allows them");
    env.biv(&["config", "trust", "--yes"]).ok();
    let config = env.json("config show");
    assert_eq!(config["checkpoint.auto_interval_seconds"]["value"], 300);
    assert_eq!(config["checkpoint.max_per_session"]["value"], 20);
    assert_eq!(config["checkpoint.retention_days"]["value"], 7);
    for n in 0..30 {
        env.write("a", n.to_string());
        env.biv(&["checkpoint", "create", "--trigger", "detach"]).ok();
    }
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 20);
    assert!(
        env.run("checkpoint create --trigger turn")
            .contains("TURN is not among `checkpoint.triggers`")
    );
}

/// Two of five tasks are done, two under way.
fn build_notifications(env: &TestEnv) {
    env.write("docs/designs/2026-03-07-notifications.md", "design");
    env.write("docs/plans/2026-03-07-notifications.md", "plan");
    env.run("session new --name notification-system --agent claude-code");
    env.run("session describe --type feature");
    env.run("phase set delegate");
    env.run("artifact add design docs/designs/2026-03-07-notifications.md");
    env.run("artifact add plan docs/plans/2026-03-07-notifications.md");
    for (id, title) in [
        ("001", "email-sender"),
        ("002", "push-notifier"),
        ("003", "notification-prefs"),
        ("004", "notification-router"),
        ("005", "integration-tests"),
    ] {
        env.run(&format!("task add {title} --id {id}"));
    }
    env.run("worktree set feat/001-email-sender --status merged");
    env.run("worktree set feat/003-notification-prefs --status merged");
    env.run("task start 002");
    env.run("task start 004");
    env.run("task done 001");
    env.run("gate pass tdd-compliance --task 001");
    env.run("task done 003");
    env.run("gate pass tdd-compliance --task 003");
}

/// A feature with five tasks: saved before a meeting, taken up the next day.
#[test]
fn five_tasks_of_a_notification_system_survive_the_night() {
    let env = env();
    build_notifications(&env);
    assert_snapshot!(env.run("checkpoint create"), @"
    Saved checkpoint cp-20260121-003 of task-00000001: 2 files, nothing changed
    Session: notification-system (feature)
    Phase: delegate
    Tasks: 2 completed, 2 in-progress, 1 pending
    Artifacts:
      Design: docs/designs/2026-03-07-notifications.md
      Plan: docs/plans/2026-03-07-notifications.md
      Branches: feat/001-email-sender (merged), feat/003-notification-prefs (merged)
    ");
    // The next morning, in a new conversation.
    let new = serde_json::json!({ "session_id": "22222222-0000-4000-8000-000000000002", "cwd": env.work(), "source": "startup" });
    let noticed = env.hook("claude-code", "SessionStart", new.to_string()).ok().stdout;
    let noticed: serde_json::Value = serde_json::from_str(&noticed).unwrap();
    let words = noticed["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    let lines: Vec<&str> = words.lines().collect();
    assert_eq!(lines[0], "Active session detected: notification-system (delegate phase)");
    assert_eq!(lines[1], "  2 tasks completed, 2 in-progress, 1 pending");
    assert!(lines[2].starts_with("Run `biv rehydrate task-"), "{words}");
    assert_snapshot!(env.run("rehydrate"), @"
    Rehydrated: notification-system

      Type: feature
      Phase: delegate
      Design: docs/designs/2026-03-07-notifications.md
      Plan: docs/plans/2026-03-07-notifications.md
      Session: task-00000001 · agent: claude-code · status: active
      Last checkpoint: cp-20260121-003 (MANUAL, 2026-01-21 14:48)

      Tasks:
        001 email-sender:         completed  ✓
        002 push-notifier:        in-progress (check status)
        003 notification-prefs:   completed  ✓
        004 notification-router:  in-progress (check status)
        005 integration-tests:    pending

      Gates and tests:
        tdd-compliance (001): pass (unverified)
        tdd-compliance (003): pass (unverified)

      Branches:
        feat/001-email-sender (merged)
        feat/003-notification-prefs (merged)

      Recent events:
        task.added (002-push-notifier)
        task.added (003-notification-prefs)
        task.added (004-notification-router)
        task.added (005-integration-tests)
        worktree.merged (feat/001-email-sender)
        worktree.merged (feat/003-notification-prefs)
        task.started (002-push-notifier)
        task.started (004-notification-router)
        task.completed (001-email-sender)
        gate.executed (tdd-compliance: pass)
        task.completed (003-notification-prefs)
        gate.executed (tdd-compliance: pass)

      Next: Check how far task 002 push-notifier is, and finish it.

      Context cost: ~N tokens
    ");
}

/// The file of a team that keeps its checkpoints by hand, with the letters broken as they arrived.
#[test]
fn a_session_checkpoint_written_by_hand_is_taken_in_and_written_back() {
    let env = env();
    let text = include_str!("data/SESSION-CHECKPOINT.md");
    env.write("docs/SESSION-CHECKPOINT.md", text);
    assert_snapshot!(env.run("import session-checkpoint docs/SESSION-CHECKPOINT.md"), @"
    Recorded session.described
    Recorded phase.changed (Build the senders)
    Recorded task.completed (001-Email sender)
    Recorded task.started (002-Push notifier)
    Recorded task.added (003-Router)
    Recorded approval.requested (a1-Run migration on production?)
    Recorded decision.made (d1-Use a queue)
    Recorded blocker.added (b1-No APNS key)
    Recorded delegation.completed (1-Content Engineer)
    Recorded delegation.failed (3-UI Expert)
    Recorded partition.changed (Agent A)
    Recorded partition.changed (Agent B)
    Recorded fork_point.opened (f1-Delivery)
    Recorded step.completed (1-Write the schema)
    Recorded step.failed, attempt 1 (2-Write the API)
    note: opened session task-00000001
    ");
    let tasks = env.json("task list");
    assert_eq!(
        (&tasks[1]["status"], &tasks[1]["issue"]),
        (&"in_progress".into(), &"TAS-13".into())
    );
    assert_eq!(tasks[2]["depends_on"][0], "TAS-13");
    assert_eq!(env.json("delegation list")[1]["status"], "failed");
    assert_eq!(env.json("step list")[0]["checks"][2]["name"], "Build");
    // Written anew it has whole letters, and read again it says nothing new.
    env.run("export session-checkpoint");
    let written = env.read("docs/SESSION-CHECKPOINT.md");
    assert!(written.contains("✅ Done") && !written.contains('‚'), "{written}");
    assert_snapshot!(env.run("import session-checkpoint docs/SESSION-CHECKPOINT.md"), @"Nothing in it is new.");
    assert_snapshot!(env.run("replay --print"), @"
    **Retry: TAS-13 (attempt 2)**

    Previous steps completed successfully. Here is the cached context:
    - Step 1 produced: Users, orders and items, keyed by uuid.

    Step 2 failed with: type error in api.ts

    Your task: Write the API
    Do only this step: the earlier ones are done. Deal with the cause of the error above first.
    note: step 1 produced db/schema.sql that is no longer there: replay from step 1 instead
    ");
}

/// Save, resume and list, as a slash command of an agent does.
#[test]
fn a_label_is_saved_listed_and_resumed() {
    let env = crate::git_env();
    assert_snapshot!(env.run("checkpoint list --format markdown"), @"No checkpoints found. Run `/checkpoint` to create one.");
    env.write("a", "1");
    env.git(&["checkout", "-q", "-b", "PROJ-123_add-auth"]);
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "first"]);
    let path = env.work().canonicalize().unwrap().to_string_lossy().into_owned();
    let name: String =
        path.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect();
    let folder = env.home().join(".claude/projects").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    env.run("session new --name auth --task \"Add authentication\"");
    env.run("task add \"Auth middleware\"");
    env.run("task start 001");
    let saved = env.run("checkpoint save \"Auth Middleware\"");
    assert!(saved.contains("Label: auth-middleware\n"), "{saved}");
    let file = folder.join("memory/checkpoints/2026-01-21-1434-auth-middleware.md");
    assert!(file.is_file(), "{saved}");
    let memory = std::fs::read_to_string(folder.join("memory/MEMORY.md")).unwrap();
    assert!(memory.starts_with("## Working State\n- **Branch**: PROJ-123_add-auth\n"), "{memory}");
    // Nothing was asked for, so it is called by what is being worked on.
    let saved = env.run("checkpoint save");
    assert!(saved.contains("Label: auth-middleware-2\n"), "{saved}");
    assert_snapshot!(env.run("checkpoint list --format markdown"), @"
    | # | Date | Label | Branch |
    |---|------|-------|--------|
    | 1 | 2026-01-21 14:35 | auth-middleware-2 | PROJ-123_add-auth |
    | 2 | 2026-01-21 14:34 | auth-middleware | PROJ-123_add-auth |
    ");
    let resumed = env.run("rehydrate --format markdown");
    assert!(
        resumed.starts_with(
            "## Session Resumed\n\n**Last checkpoint**: cp-20260121-002 \"auth-middleware-2\""
        ),
        "{resumed}"
    );
}
