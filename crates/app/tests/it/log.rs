//! Events as they were recorded.

use std::io::{BufRead, BufReader};

use insta::assert_snapshot;

use crate::env;

#[test]
fn events_are_listed_in_order() {
    let env = env();
    env.run("session new --name work");
    env.run("task add one");
    env.run("decision add two --why three");
    assert_snapshot!(env.run("log"), @"
    1  2026-01-21 14:30:00  session.created  work
    2  2026-01-21 14:31:00  task.added (001-one)
    3  2026-01-21 14:32:00  decision.made (d1-two)
    ");
    assert_snapshot!(env.run("log -n 1"), @"    3  2026-01-21 14:32:00  decision.made (d1-two)");
    assert_snapshot!(env.run("log --kind task.changed"), @"    2  2026-01-21 14:31:00  task.added (001-one)");
    let events = env.json("log");
    assert_eq!(events[1]["kind"], "task.changed");
    assert_eq!((&events[1]["sequence"], &events[1]["data"]["subject"]), (&2.into(), &"one".into()));
}

#[test]
fn following_shows_what_comes() {
    let env = env();
    env.run("session new --name work");
    let mut following = env.start(&["log", "--follow", "--json"]);
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("session.created"));
    env.run("note \"news\"");
    let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(line["data"]["text"], "news");
    following.kill().unwrap();
    following.wait().unwrap();
}
