//! `biv confirm`: only a person can; the rest is with `biv mcp`.

use insta::assert_snapshot;
use serde_json::json;

use crate::env;

#[test]
fn where_nothing_is_asked_there_is_nothing_to_confirm() {
    assert_snapshot!(env().run("confirm"), @"No agent asks for anything here");
}

#[test]
fn it_needs_a_terminal_and_shows_what_would_be_done() {
    let env = env();
    env.write("a.txt", "one").run("checkpoint create");
    env.write("a.txt", "two").write("b.txt", "new");
    env.mcp_with(&json!({})).call("checkpoint_rollback", &json!({ "checkpoint": "cp-001" }));
    assert_snapshot!(env.live(&["confirm"]).text(), @"
    exit 2
    error: only a person at a terminal can confirm what an agent asks for
    hint: open a terminal of your own in this folder, and run `biv confirm` there
    ");
    let (code, shown) = env.live_dialog(&["confirm"], &[("[y/N]", "n\n")]);
    assert_eq!(code, 1);
    assert!(
        shown.contains("a.txt") && shown.contains("b.txt") && !shown.contains("this code"),
        "{shown}"
    );
    env.write("c.txt", "since then");
    let (code, shown) = env.live_dialog(&["confirm"], &[]);
    assert_eq!(code, 1);
    assert!(shown.contains("would no longer do what was shown"), "{shown}");
}
