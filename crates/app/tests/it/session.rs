//! `biv session`

use insta::assert_snapshot;

use crate::env;

#[test]
fn a_session_is_opened_listed_and_shown() {
    let env = env();
    assert_snapshot!(env.run("session list"), @"No sessions found. Run `biv session new` or `biv checkpoint create` to make one.");
    assert_snapshot!(env.run("session new --agent claude-code --task \"Refactor auth\" --name auth-refactor"), @"Opened session task-00000001");
    assert_snapshot!(env.run("session new --task \"Write the docs\""), @"Opened session task-00000001");
    assert_snapshot!(env.run("session list"), @"
    ID               Agent        Status     Updated           Name           Task
    task-00000001    claude-code  active     2026-01-21 14:31  auth-refactor  Refactor auth
    task-00000002    manual       active     2026-01-21 14:32                 Write the docs
    ");
    assert_snapshot!(env.run("session show auth-refactor"), @"
    Session task-00000001
      Id           id-1
      Name         auth-refactor
      Agent        claude-code
      Task         Refactor auth
      Status       active
      Workspace    [root]/project
      Created      2026-01-21 14:31
      Updated      2026-01-21 14:31
      Checkpoints  0
    ");
    assert_snapshot!(env.run("session list --status paused"), @"No sessions found.");
    assert_snapshot!(env.run("session list --status sleeping"), @"
    exit 2
    error: invalid value 'sleeping' for '--status <STATUS>': there is no status `sleeping`; a session is active, paused, interrupted, completed or failed

    For more information, try '--help'.
    ");
}

#[test]
fn json_has_the_keys_programs_rely_on() {
    let env = env();
    let words = ["session", "new", "--agent", "codex", "--task", "Do it", "--name", "it"];
    let run = env.biv(&[&words[..], &["--metadata", "{\"n\": 1}", "--json"]].concat()).ok();
    let new: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    for key in [
        "id",
        "handle",
        "name",
        "agent_type",
        "task_description",
        "status",
        "created_at",
        "updated_at",
    ] {
        assert!(new.get(key).is_some_and(|value| value.is_string()), "{key}");
    }
    assert_eq!(new["agent_type"], "codex");
    assert_eq!(new["status"], "active");
    assert_eq!(new["metadata"]["n"], 1);
    assert!(new["handle"].as_str().unwrap().starts_with("task-"));
    assert_eq!(env.json("session list")[0], new);
}

#[test]
fn a_session_is_found_by_any_of_its_words() {
    let env = env();
    let one = env.json("session new --name one");
    env.json("session new --name two");
    let (id, handle) = (one["id"].as_str().unwrap(), one["handle"].as_str().unwrap());
    for word in [id, handle, "one", &handle[..11]] {
        assert_eq!(env.json(&format!("session show {word}"))["id"], one["id"], "{word}");
    }
    assert_eq!(env.json("session show latest")["name"], "two");
    assert_eq!(env.json("session show")["name"], "two");
    assert_snapshot!(env.run("session show three"), @"
    exit 1
    error: there is no session `three`
    hint: `biv session list --all` shows all sessions
    ");
}

#[test]
fn two_sessions_of_one_name_are_told_apart() {
    let env = env();
    env.json("session new --name same");
    env.json("session new --name same");
    assert_snapshot!(env.run("session show same"), @"
    exit 1
    error: `same` can be several sessions:
      task-00000001  same
      task-00000002  same
    hint: write more of it, or its full id
    ");
    let env = crate::env();
    assert_snapshot!(env.run("session show"), @"
    exit 1
    error: there is no session in this workspace yet
    hint: `biv checkpoint create` makes one, or `biv session new`
    ");
}

#[test]
fn the_name_can_change() {
    let env = env();
    env.json("session new --name old");
    assert_snapshot!(env.run("session rename old new"), @"Session task-00000001 is now called new");
    assert_eq!(env.json("session show new")["name"], "new");
    assert_snapshot!(env.run("session rename old new"), @"
    exit 1
    error: there is no session `old`
    hint: `biv session list --all` shows all sessions
    ");
    assert_snapshot!(env.run("session rename new cp-001"), @"
    exit 2
    error: invalid value 'cp-001' for '<NAME>': `cp-001` looks like an id, so it cannot be a name

    For more information, try '--help'.
    ");
}

#[test]
fn it_is_paused_resumed_completed_and_failed() {
    let env = env();
    env.write("a", "1");
    env.json("session new --name work");
    assert_snapshot!(env.run("session pause work --reason \"lunch\""), @"Session task-00000001 is paused");
    assert_snapshot!(env.run("session pause work"), @"
    exit 1
    error: session task-00000001 is already paused
    ");
    assert_snapshot!(env.run("session resume work"), @"Session task-00000001 is active");
    assert_snapshot!(env.run("session complete work"), @"
    Session task-00000001 is completed
    note: saved cp-20260121-001
    ");
    assert_snapshot!(env.run("session fail work"), @"
    exit 1
    error: session task-00000001 is already completed
    ");
    assert_snapshot!(env.run("session resume work"), @"Session task-00000001 is active");
    env.write("a", "2");
    assert_snapshot!(env.run("session fail work --reason \"tests never passed\""), @"
    Session task-00000001 is failed
    note: saved cp-20260121-002
    ");
    assert_snapshot!(env.run("session show work"), @"
    Session task-00000001
      Id           id-1
      Name         work
      Agent        manual
      Status       failed: tests never passed
      Workspace    [root]/project
      Created      2026-01-21 14:30
      Updated      2026-01-21 14:37
      Checkpoints  2, the last is cp-20260121-002 (2026-01-21 14:37)
    ");
    assert_snapshot!(env.run("session log work"), @"
    When              Level    What
    2026-01-21 14:30  info     session created for manual
    2026-01-21 14:31  info     session paused: lunch
    2026-01-21 14:33  info     session resumed
    2026-01-21 14:34  info     saved cp-20260121-001 (COMPLETE)
    2026-01-21 14:34  info     session completed
    2026-01-21 14:36  info     session resumed
    2026-01-21 14:37  info     saved cp-20260121-002 (ERROR)
    2026-01-21 14:37  error    session failed: tests never passed
    ");
    assert_snapshot!(env.run("checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        COMPLETE   2026-01-21 14:34
    cp-20260121-002  task-00000001        ERROR      2026-01-21 14:37
    ");
}

#[test]
fn the_log_is_one_document_for_programs() {
    let env = env();
    env.json("session new --name work");
    let log = env.json("session log");
    assert_eq!(log[0]["message"], "session created for manual");
    assert_eq!(log[0]["level"], "info");
}
