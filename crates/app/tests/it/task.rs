//! Tasks: added, found by anything people call them, and never confused.

use insta::assert_snapshot;
use serde_json::Value;

use crate::env;

#[test]
fn a_task_goes_from_added_to_done() {
    let env = env();
    env.write("a", "1");
    assert_snapshot!(env.run("task add email-sender --id 001 --issue TAS-12 --agent \"API Engineer\" --file src/mail.rs"), @"
    Recorded task.added (001-email-sender)
    note: opened session task-00000001
    ");
    assert_snapshot!(env.run("task add \"push notifier\" --after 001"), @"Recorded task.added (002-push notifier)");
    assert_snapshot!(env.run("task start email-sender"), @"Recorded task.started (001-email-sender)");
    assert_snapshot!(env.run("task done tas-12"), @"
    Recorded task.completed (001-email-sender)
    note: saved cp-20260121-001
    ");
    assert_snapshot!(env.run("task fail 2 --reason \"no APNS key\""), @"Recorded task.failed (002-push notifier)");
    assert_snapshot!(env.run("task block \"push\" --note \"asked ops\""), @"Recorded task.blocked (002-push notifier)");
    assert_snapshot!(env.run("task update 002 --status \"🔄 In Progress\" --title push-notifier"), @"Recorded task.started (002-push-notifier)");
    assert_snapshot!(env.run("task list"), @"
    ID   What           Status       About
    001  email-sender   completed    TAS-12 · API Engineer · src/mail.rs
    002  push-notifier  in-progress  asked ops · after 001
    ");
    assert_snapshot!(env.run("task list --open"), @"
    ID   What           Status       About
    002  push-notifier  in-progress  asked ops · after 001
    ");
    assert_snapshot!(env.run("task drop 002"), @"Recorded task.dropped (002-push-notifier)");
}

#[test]
fn what_is_not_there_or_not_clear_is_an_error() {
    let env = env();
    assert_snapshot!(env.run("task list"), @"
    exit 1
    error: there is no session in this workspace yet
    hint: `biv checkpoint create` makes one, or `biv session new`
    ");
    env.run("task add \"write tests\"");
    env.run("task add \"write docs\"");
    assert_snapshot!(env.run("task done 009"), @"
    exit 1
    error: there is no task `009`
    hint: `biv task list` shows all there are
    ");
    assert_snapshot!(env.run("task done write"), @"
    exit 1
    error: `write` can be several tasks:
      001  write tests
      002  write docs
    hint: write more of it, or its full id
    ");
    assert_snapshot!(env.run("task add again --id 001"), @"
    exit 1
    error: there is already a task `001`
    hint: choose another id, or change the one that is there
    ");
    assert_snapshot!(env.run("task update 001 --status maybe"), @"
    exit 2
    error: invalid value 'maybe' for '--status <STATUS>': `maybe` is no status; one is pending, in-progress, blocked, completed, failed or dropped

    For more information, try '--help'.
    ");
    assert_snapshot!(env.run("task add x --session nowhere"), @"
    exit 1
    error: there is no session `nowhere`
    hint: `biv session list --all` shows all sessions
    ");
}

#[test]
fn json_has_every_field_and_whose_it_is() {
    let env = env();
    let said =
        env.json("task add email-sender --issue #174 --agent A --file a --after 009 --note n");
    assert_eq!(said["recorded"][0]["by"], "person");
    let list = env.json("task list");
    let task = &list[0];
    for key in ["task", "subject", "status", "issue", "agent", "files", "depends_on", "note"] {
        assert!(task.get(key).is_some_and(|it| !it.is_null()), "{key}: {task}");
    }
    for key in ["created_at", "changed_at"] {
        assert!(task[key].as_str().unwrap().ends_with('Z'), "{key}");
    }
    env.json("task done 001");
    assert!(env.json("task list")[0]["ended_at"].is_string());
}

#[test]
fn a_model_that_speaks_is_told_from_a_person() {
    let mut env = env();
    env.set("CLAUDECODE", "1");
    assert_eq!(env.json("task add it")["recorded"][0]["by"], "model");
}

#[test]
fn saying_it_twice_with_a_key_does_nothing_the_second_time() {
    let env = env();
    let first = env.json("task add once --idempotency-key k1");
    let second = env.json("task add once --idempotency-key k1");
    assert_eq!(first["sequence"], second["sequence"]);
    assert_eq!(first["recorded"], second["recorded"]);
    assert_eq!(env.json("task list").as_array().unwrap().len(), 1);
}

#[test]
fn a_caller_can_insist_that_nothing_happened_in_between() {
    let env = env();
    let sequence = env.json("task add one")["sequence"].as_i64().unwrap();
    env.json("task add two");
    assert_snapshot!(env.run(&format!("task done 001 --expected-sequence {sequence}")), @"
    exit 1
    error: the session's last event is number 3, and 2 was expected
    hint: look at what happened since, then say it again
    ");
    let sequence = env.json("task list").as_array().map(|_| env.json("note x")["sequence"].clone());
    let line = format!("task start 001 --expected-sequence {}", sequence.unwrap_or(Value::Null));
    assert_eq!(env.json(&line)["recorded"][0]["status"], "in_progress");
}

#[test]
fn a_completed_task_is_worth_a_checkpoint() {
    let env = env();
    env.write("a", "1");
    env.run("task add it");
    let done = env.json("task done 001");
    let handle = done["checkpoint"].as_str().unwrap().to_owned();
    let shown = env.json(&format!("checkpoint show {handle}"));
    assert_eq!(shown["trigger"], "TASK");
    assert_eq!(shown["progress"]["tasks"][0]["status"], "completed");
}

#[test]
fn an_old_task_is_found_however_many_came_after_it() {
    let env = env();
    env.run("task add \"the oldest open task\"");
    let rows: String = (0..1_100).map(|n| format!("| task {n} | | | Done | |\n")).collect();
    let table = "| Task | Linear | Agent | Status | Files |\n|---|---|---|---|---|\n";
    env.write("many.md", format!("# Session Checkpoint\n\n## Completed Work\n\n{table}{rows}"));
    env.run("import session-checkpoint many.md");
    assert_eq!(env.json("task list --open").as_array().unwrap().len(), 1);
    assert!(env.run("rehydrate").contains("001 the oldest open task:"));
    assert!(env.run("task add impostor --id 001").contains("there is already a task `001`"));
    assert!(env.run("task start 001").contains("task.started (001-the oldest open task)"));
    // Read again, the file says nothing new.
    assert_eq!(env.run("import session-checkpoint many.md"), "Nothing in it is new.");
}

#[test]
fn an_id_is_given_once_even_to_those_who_ask_together() {
    let env = env();
    env.run("session new");
    let askers: Vec<_> =
        (0..8).map(|n| env.start(&["task", "add", &format!("t{n}"), "--id", "x"])).collect();
    let runs: Vec<_> = askers.into_iter().map(|it| env.finish(it)).collect();
    assert_eq!(runs.iter().filter(|run| run.code == 0).count(), 1);
    assert!(env.run("task add y --id \"a\nb\"").contains("an id is one line"));
}

#[test]
fn one_key_for_two_nouns_is_two_facts() {
    let env = env();
    env.run("task add one --idempotency-key k1");
    assert!(env.run("blocker add two --idempotency-key k1").contains("blocker.added (b1-two)"));
}
