//! `biv checkpoint create` and `save`

use insta::assert_snapshot;
use serde_json::json;

use crate::{env, git_env};

#[test]
fn the_first_checkpoint_needs_no_set_up() {
    let env = env();
    env.write("notes.md", "first");
    assert_snapshot!(env.run("checkpoint create -m \"first light\""), @"Saved checkpoint cp-20260121-001 of task-00000001: 1 file");
    assert_snapshot!(env.run("checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        MANUAL     2026-01-21 14:30  first light
    ");
    assert_snapshot!(env.run("session list"), @"
    ID               Agent        Status     Updated           Name  Task
    task-00000001    manual       active     2026-01-21 14:30
    ");
}

#[test]
fn it_goes_into_the_session_named() {
    let env = env();
    env.write("notes.md", "first");
    let session = env.json("session new --agent claude-code --task \"Refactor auth\" --name auth");
    env.json("session new --name other");
    let saved = env.json("checkpoint create auth -m \"Before refactoring auth\"");
    assert_eq!(saved["session_id"], session["id"]);
    let saved = env.json(&format!("checkpoint create {}", session["handle"].as_str().unwrap()));
    assert_eq!(saved["session_id"], session["id"]);
    let mut env = env;
    env.set("BIV_SESSION", session["id"].as_str().unwrap());
    assert_eq!(env.json("checkpoint create")["session_id"], session["id"]);
}

#[test]
fn an_ended_session_is_not_continued_by_accident() {
    let env = env();
    env.write("notes.md", "first");
    let first = env.json("checkpoint create");
    env.biv(&["session", "complete"]).ok();
    let second = env.json("checkpoint create");
    assert_ne!(first["session_id"], second["session_id"]);
    // Named, it is what was asked for.
    let third = env.json(&format!("checkpoint create {}", first["session_id"].as_str().unwrap()));
    assert_eq!(third["session_id"], first["session_id"]);
}

#[test]
fn json_has_the_keys_programs_rely_on() {
    let env = git_env();
    env.write("notes.md", "first").git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    env.write("new.txt", "uncommitted");
    let saved = env.json("checkpoint create -m why --name before");
    let keys = [
        "id",
        "handle",
        "session_id",
        "name",
        "trigger",
        "created_at",
        "message",
        "git_branch",
        "git_uncommitted",
    ];
    for key in keys {
        assert!(saved.get(key).is_some(), "{key}");
    }
    assert_eq!(saved["name"], "before");
    assert_eq!(saved["trigger"], "MANUAL");
    assert_eq!(saved["created_at"], "2026-01-21T14:30:00.000Z");
    assert_eq!(saved["git_branch"], "main");
    assert_eq!(saved["git_uncommitted"], 1);
    assert_eq!(saved["id"].as_str().unwrap().len(), 36);
}

#[test]
fn state_is_kept_to_the_letter() {
    let env = env();
    let state = r#"{"open":[{"file":"a.rs","line":3}],"z":1,"big":12345678901234567890}"#;
    env.write("notes.md", "x").write("state.json", state);
    env.biv(&["checkpoint", "create", "--state", state]).ok();
    env.biv(&["checkpoint", "create", "--state", "@state.json"]).ok();
    for handle in ["cp-001", "cp-002"] {
        let shown = env.biv(&["checkpoint", "show", handle, "--json"]).ok();
        assert!(shown.stdout.contains("12345678901234567890"), "{}", shown.stdout);
        let value: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!(value["state"]["open"][0]["line"], json!(3));
    }
}

#[test]
fn bad_state_is_refused_and_nothing_is_made() {
    let env = env();
    env.write("notes.md", "x");
    let broken = env.biv(&["checkpoint", "create", "--state", "{broken"]);
    assert_snapshot!(broken.text(), @r#"
    exit 2
    error: the JSON is not valid: key must be a string at line 1 column 2
    hint: pass JSON such as '{"key": 1}', or `@FILE`
    "#);
    assert_snapshot!(env.run("checkpoint create --state @missing.json"), @"
    exit 1
    error: could not read `missing.json`
    cause: No such file or directory (os error 2)
    ");
    assert_snapshot!(env.run("checkpoint list"), @"No checkpoints found. Run `biv checkpoint create` to create one.");
}

#[test]
fn a_name_is_used_once_in_a_session() {
    let env = env();
    env.write("notes.md", "x");
    env.biv(&["checkpoint", "create", "--name", "before"]).ok();
    assert_snapshot!(env.run("checkpoint create --name before"), @"
    exit 1
    error: the name `before` is already taken in this session
    hint: choose another name, or leave it out
    ");
    assert_snapshot!(env.run("checkpoint save before"), @"
    exit 1
    error: the name `before` is already taken in this session
    hint: choose another name, or leave it out
    ");
    // Another session has names of its own.
    env.json("session new --name other");
    env.biv(&["checkpoint", "create", "other", "--name", "before"]).ok();
    assert_snapshot!(env.run("checkpoint create --name latest"), @"
    exit 2
    error: invalid value 'latest' for '--name <NAME>': `latest` looks like an id, so it cannot be a name

    For more information, try '--help'.
    ");
}

#[test]
fn save_is_another_word_for_it() {
    let env = env();
    env.write("notes.md", "x");
    assert_snapshot!(env.run("checkpoint save auth-middleware"), @"
    Saved checkpoint cp-20260121-001 of task-00000001: 1 file
    Label: auth-middleware
    To resume later: `biv resume task-00000001`
    note: opened session task-00000001
    ");
    assert_snapshot!(env.run("checkpoint save"), @"
    Saved checkpoint cp-20260121-002 of task-00000001: 1 file, nothing changed
    Label: checkpoint
    To resume later: `biv resume task-00000001`
    ");
    assert_snapshot!(env.run("checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        MANUAL     2026-01-21 14:30  [auth-middleware]
    cp-20260121-002  task-00000001        MANUAL     2026-01-21 14:31  [checkpoint]
    ");
}

#[test]
fn an_automatic_one_is_skipped_when_nothing_changed() {
    let env = env();
    env.write("notes.md", "x");
    env.biv(&["checkpoint", "create"]).ok();
    assert_snapshot!(env.run("checkpoint create --trigger turn"), @"No checkpoint taken: nothing changed since cp-20260121-001");
    assert_eq!(env.json("checkpoint create --trigger turn")["skipped"], true);
    // A person's is always recorded.
    assert_snapshot!(env.run("checkpoint create"), @"Saved checkpoint cp-20260121-002 of task-00000001: 1 file, nothing changed");
    env.write("notes.md", "y");
    assert_snapshot!(env.run("checkpoint create --trigger turn"), @"Saved checkpoint cp-20260121-003 of task-00000001: 1 file, 1 changed");
}

#[test]
fn something_ignored_that_came_or_went_is_no_change() {
    let env = env();
    env.write(".gitignore", "*.log\n").write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("x.log", "noise");
    assert_snapshot!(env.run("checkpoint create --trigger turn"), @"No checkpoint taken: nothing changed since cp-20260121-001");
}

#[test]
fn the_triggers_and_the_interval_are_obeyed() {
    let env = env();
    env.write(
        "bivouac.toml",
        "[checkpoint]\nauto_interval_minutes = 5\ntriggers = [\"periodic\", \"error\"]\n",
    );
    env.biv(&["config", "trust", "--yes"]).ok();
    assert_snapshot!(env.run("checkpoint create --trigger periodic"), @"Saved checkpoint cp-20260121-001 of task-00000001: 1 file");
    env.write("a", "1");
    assert_snapshot!(env.run("checkpoint create --trigger periodic"), @"No checkpoint taken: the last checkpoint is younger than `checkpoint.auto_interval_seconds`");
    assert_snapshot!(env.run("checkpoint create --trigger turn"), @"No checkpoint taken: TURN is not among `checkpoint.triggers`");
    assert_snapshot!(env.run("checkpoint create --trigger risk"), @"Saved checkpoint cp-20260121-002 of task-00000001: 2 files, 1 changed");
    for _ in 0..3 {
        env.run("status");
    }
    env.write("a", "2");
    assert_snapshot!(env.run("checkpoint create --trigger periodic"), @"No checkpoint taken: the last checkpoint is younger than `checkpoint.auto_interval_seconds`");
    assert_snapshot!(env.run("checkpoint create --trigger sometimes"), @"
    exit 2
    error: invalid value 'sometimes' for '--trigger <TRIGGER>': there is no trigger `sometimes`; the triggers are periodic, detach, manual, error, complete, shutdown, risk, safety, turn, task, spawn, phase, compact, end

    For more information, try '--help'.
    ");
}

#[test]
fn an_empty_folder_can_be_saved() {
    let env = env();
    assert_snapshot!(env.run("checkpoint create"), @"Saved checkpoint cp-20260121-001 of task-00000001: 0 files");
    env.write("later.txt", "x");
    env.biv(&["checkpoint", "rollback", "latest", "--yes"]).ok();
    assert!(!env.exists("later.txt"));
}

#[test]
fn the_root_and_the_home_folder_are_refused() {
    let env = env();
    std::fs::write(env.home().join("x"), "x").unwrap();
    assert_snapshot!(env.biv_in(&env.home(), &["checkpoint", "create"]).text(), @"
    exit 1
    error: `[root]/home` is your home folder, which cannot be a workspace
    hint: change to a project folder, or name one with `-C`
    ");
    assert_snapshot!(env.biv(&["checkpoint", "create", "-C", "/"]).text(), @"
    exit 1
    error: `/` is the root of the file system, which cannot be a workspace
    hint: change to a project folder, or name one with `-C`
    ");
    assert_snapshot!(env.biv(&["checkpoint", "create", "-C", "no/such/folder"]).text(), @"
    exit 1
    error: could not use `no/such/folder`
    cause: No such file or directory (os error 2)
    ");
}

#[test]
fn a_session_of_another_workspace_is_refused() {
    let env = env();
    env.write("a", "1");
    env.biv(&["session", "new", "--name", "here"]).ok();
    let other = env.root().join("other");
    std::fs::create_dir(&other).unwrap();
    assert_snapshot!(env.biv_in(&other, &["checkpoint", "create", "here"]).text(), @"
    exit 1
    error: session task-00000001 belongs to another workspace, `[root]/project`
    hint: go there, or leave the session out
    ");
}

#[test]
fn an_unknown_session_is_an_error() {
    let env = env();
    assert_snapshot!(env.run("checkpoint create no-such-session"), @"
    exit 1
    error: there is no session `no-such-session`
    hint: `biv session list --all` shows all sessions
    ");
}

#[test]
fn a_home_folder_that_is_a_repository_is_not_the_workspace() {
    let env = env();
    // Many people keep their settings so, with everything else ignored.
    let project = env.home().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(env.home().join(".gitignore"), "*\n").unwrap();
    let init = env.command("git", &env.home()).args(["init", "-q"]).status().unwrap();
    assert!(init.success());
    std::fs::write(project.join("code.rs"), "fn main() {}").unwrap();
    assert_snapshot!(env.biv_in(&project, &["checkpoint", "create"]).text(), @"Saved checkpoint cp-20260121-001 of task-00000001: 1 file");
}
