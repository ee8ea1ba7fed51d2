//! `biv checkpoint list`

use insta::assert_snapshot;

use crate::env;

#[test]
fn nothing_yet_says_what_to_do() {
    let env = env();
    assert_snapshot!(env.run("checkpoint list"), @"No checkpoints found. Run `biv checkpoint create` to create one.");
    assert_eq!(env.json("checkpoint list"), serde_json::json!([]));
    assert!(!env.store().exists(), "looking makes no store");
}

#[test]
fn filters_narrow_the_list() {
    let env = env();
    env.write("a", "1");
    env.biv(&["session", "new", "--name", "one"]).ok();
    env.biv(&["checkpoint", "create", "one", "-m", "by hand"]).ok();
    env.write("a", "2");
    env.biv(&["checkpoint", "create", "one", "--trigger", "detach"]).ok();
    env.biv(&["session", "new", "--name", "two"]).ok();
    env.biv(&["checkpoint", "create", "two", "--name", "label", "-m", "first line\nsecond line"])
        .ok();
    assert_snapshot!(env.run("checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        MANUAL     2026-01-21 14:31  by hand
    cp-20260121-002  task-00000001        DETACH     2026-01-21 14:32
    cp-20260121-003  task-00000002        MANUAL     2026-01-21 14:34  [label] first line
    ");
    assert_snapshot!(env.run("checkpoint list --session two"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-003  task-00000001        MANUAL     2026-01-21 14:34  [label] first line
    ");
    assert_snapshot!(env.run("checkpoint list --trigger manual --reverse"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-003  task-00000001        MANUAL     2026-01-21 14:34  [label] first line
    cp-20260121-001  task-00000002        MANUAL     2026-01-21 14:31  by hand
    ");
    assert_snapshot!(env.run("checkpoint list --older-than 4m"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        MANUAL     2026-01-21 14:31  by hand
    cp-20260121-002  task-00000001        DETACH     2026-01-21 14:32
    ");
    assert_snapshot!(env.run("checkpoint list --older-than 7d"), @"No checkpoints found.");
    assert_snapshot!(env.run("checkpoint list --older-than soon"), @"
    exit 2
    error: invalid value 'soon' for '--older-than <AGE>': `soon` is not a length of time; write it as `30s`, `15m`, `24h`, `7d` or `2w`

    For more information, try '--help'.
    ");
}

#[test]
fn json_is_oldest_first() {
    let env = env();
    env.write("a", "1");
    for message in ["one", "two", "three"] {
        env.biv(&["checkpoint", "create", "-m", message]).ok();
    }
    let list = env.json("checkpoint list");
    let messages: Vec<&str> =
        list.as_array().unwrap().iter().map(|it| it["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["one", "two", "three"]);
}

#[test]
fn other_workspaces_are_shown_on_request() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let other = env.root().join("other");
    std::fs::create_dir(&other).unwrap();
    env.biv_in(&other, &["checkpoint", "create"]).ok();
    let list = |folder: &std::path::Path, all: &str| {
        env.biv_in(folder, &["checkpoint", "list", "--json", all])
            .ok()
            .stdout
            .matches("\"handle\"")
            .count()
    };
    assert_eq!(list(&other, "--reverse"), 1);
    assert_eq!(list(&other, "--all"), 2);
}

#[test]
fn hostile_text_cannot_command_the_terminal() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create", "-m", "red\u{1b}[31m\u{202e}evil"]).ok();
    assert_snapshot!(env.run("checkpoint list"), @r"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        MANUAL     2026-01-21 14:30  red\u{1b}[31m\u{202e}evil
    ");
}
