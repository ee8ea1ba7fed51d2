//! What models do with our tools in the released agents: every one is called, and what it did is there.

use bivouac_testkit::agents::Lab;
use serde_json::Value;

use crate::agent;

fn every_tool(name: &str) {
    let Some(agent) = agent(name) else {
        return;
    };
    let lab = Lab::new(agent);
    lab.biv(&["setup", "--agent", name, "--yes"]);
    lab.write("a.txt", "one\n");
    lab.agent("TOOLS now");
    let asked = lab.last_request();
    // Some agents wrap what tools say in JSON of their own.
    let answers: Vec<String> = asked.tool_results().iter().map(|it| it.replace('\\', "")).collect();
    let said = |words: &str| {
        assert!(
            answers.iter().any(|it| it.contains(words)),
            "{name}: no `{words}` in {answers:#?}"
        );
    };
    // What each of them answered, as the model was told.
    for words in [
        "\"name\":\"aside\"",
        "\"noun\":\"decision\"",
        "\"status\":\"failed\"",
        "\"name\":\"by-tool\"",
        "later.txt",
        "\"kind\":\"decision.made\"",
        "Use a parser: it is shorter (rejected: a regex: it is not)",
        "it reads nothing",
        "brief_tokens",
        "project-side",
    ] {
        said(words);
    }
    // A headless agent has nobody who could confirm: it says no for them, or cannot ask and gets the plan.
    let last = answers.last().unwrap();
    let is_refused = last.contains("was not confirmed") || last.contains("run `biv confirm`");
    assert!(is_refused, "{name}: {last}");
    assert_eq!(lab.read("later.txt"), "later\n", "{name} rolled back without a person");
    let forked = lab.root().join("project-side");
    assert_eq!(std::fs::read_to_string(forked.join("a.txt")).unwrap(), "one\n");
    assert!(!forked.join("later.txt").exists());
    // All of it belongs to the conversation's own session, not to the newest one.
    let sessions = lab.json(&["session", "list"]);
    let own = sessions.as_array().unwrap().iter().find(|it| it["name"] != "aside").unwrap();
    let own = own["handle"].as_str().unwrap();
    let decision = &lab.json(&["decision", "list", "--session", own])[0];
    assert_eq!(
        (&decision["title"], &decision["by"]),
        (&Value::from("Use a parser"), &Value::from("model"))
    );
    let list = lab.json(&["checkpoint", "list", "--session", own]);
    assert!(list.as_array().unwrap().iter().any(|it| it["name"] == "by-tool"), "{name}: {list}");
}

#[test]
fn claude_code_calls_them_all() {
    every_tool("claude-code");
}

#[test]
fn codex_calls_them_all() {
    every_tool("codex");
}

#[test]
fn gemini_calls_them_all() {
    every_tool("gemini");
}

#[test]
fn opencode_calls_them_all() {
    every_tool("opencode");
}

#[test]
fn copilot_calls_them_all() {
    every_tool("copilot");
}
