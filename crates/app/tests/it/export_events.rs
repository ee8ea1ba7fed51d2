//! Events as lines of JSON.

use insta::assert_snapshot;

use crate::env;

#[test]
fn every_event_is_a_line() {
    let env = env();
    env.run("task add one");
    env.run("note two");
    let text = env.run("export events");
    let kinds: Vec<String> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|it| it["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["session.created", "task.changed", "note.added"]);
    assert_snapshot!(env.run("export events --file events.ndjson"), @"Wrote 3 events to [root]/project/events.ndjson");
    assert_eq!(env.read("events.ndjson").lines().count(), 3);
    assert_snapshot!(env.run("export events --file events.ndjson"), @"
    exit 1
    error: `[root]/project/events.ndjson` is already there
    ");
}
