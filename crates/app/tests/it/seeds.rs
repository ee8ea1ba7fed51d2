//! The stories that were asked for, from beginning to end

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
    assert_snapshot!(env.run("checkpoint delete cp-20260121-002"), @"Deleted cp-20260121-002");
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
