//! The released agents themselves, against a scripted model on this machine: a session that writes files by
//! tool and by shell, a kill in the middle of a turn, and a resume whose every message is proven from what the
//! model was sent. `cargo xtask check` installs the agents; without them these tests say what they leave out.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod commands;
mod memory;
mod packages;
mod screen;
mod sdk;
mod tools;
mod tui;

use std::path::{Path, PathBuf};

use bivouac_testkit::agents::{Installed, Lab};
use bivouac_testkit::left_out;

/// What the scripted turn of `BUILD` looks like to a model, whatever the agent: who spoke, and what was said
/// or done.
const BUILD: [&str; 5] = [
    "user: BUILD it",
    "assistant: I will write a file. +tool",
    "assistant: Now I run it. +tool",
    "assistant:  +tool",
    "assistant: BUILD-DONE: wrote hello.txt and bash.txt.",
];

/// The agent, if `cargo xtask check` could install it.
fn agent(name: &str) -> Option<Installed> {
    let folder = std::env::var_os("BIV_AGENTS").map(PathBuf::from);
    let biv = Path::new(env!("CARGO_BIN_EXE_biv"));
    let found = folder.and_then(|it| Installed::find(&it, name, biv));
    if found.is_none() {
        left_out(&format!(
            "{name}: the released agent is not installed (`cargo xtask check` does that)"
        ));
    }
    found
}

fn whole_story(name: &str) {
    let Some(agent) = agent(name) else {
        return;
    };
    let lab = Lab::new(agent);
    lab.agent("BUILD it");
    assert_eq!(
        (lab.read("hello.txt"), lab.read("bash.txt")),
        ("hello two\n".into(), "from-bash\n".into())
    );
    let saved = lab.json(&["checkpoint", "list"]);
    let newest = saved.as_array().unwrap().last().unwrap();
    assert_eq!(newest["conversation"]["agent"], name, "{saved}");
    assert_eq!(newest["conversation"]["turns"], 1, "{saved}");
    assert!(newest["conversation"]["tokens"].as_u64().unwrap() > 0, "{saved}");
    // Killed while a command runs: what it had written by then is in the workspace and comes along.
    lab.kill_during("SLOWTOOL now", "slow.txt");
    if name == "claude-code" {
        let told = lab.talk(&["resume", "--print"]);
        let orphan =
            "`echo begun > slow.txt; sleep 30; echo ended >> slow.txt` still runs (process ";
        assert!(told.contains(orphan), "{told}");
    }
    lab.end_orphans();
    let before = lab.tree();
    lab.resume(&[], "RECALL one");
    let asked = lab.last_request();
    let said: Vec<String> = asked.conversation();
    assert_eq!(said[..5], BUILD, "{name}: {said:#?}");
    assert_eq!(said[5], "user: SLOWTOOL now", "{name}: {said:#?}");
    assert_eq!(said.last().unwrap(), "user: RECALL one", "{name}: {said:#?}");
    assert!(asked.heard("Rehydrated: "), "{name} was not briefed");
    assert_eq!(lab.tree(), before);
    // Files and conversation of the first turn, in another folder and with an empty home.
    let first =
        saved.as_array().unwrap().iter().rev().find(|it| it["conversation"]["turns"] == 1).unwrap();
    let elsewhere = lab.with_empty_home();
    let into = lab.root().join("elsewhere");
    let handle = first["handle"].as_str().unwrap();
    elsewhere.resume(&["--checkpoint-id", handle, "--into", into.to_str().unwrap()], "RECALL two");
    let asked = lab.last_request();
    let said = asked.conversation();
    assert_eq!(said[..5], BUILD, "{name}: {said:#?}");
    assert_eq!(said[5..], ["user: RECALL two"], "{name}: {said:#?}");
    assert_eq!(std::fs::read_to_string(into.join("hello.txt")).unwrap(), "hello two\n");
    // Here all of it is one session; in another folder it is one of its own, which is saved as well.
    let sessions = lab.json(&["session", "list", "--all"]);
    assert_eq!(sessions.as_array().unwrap().len(), 2, "{sessions}");
    let there = lab.json(&["-C", into.to_str().unwrap(), "checkpoint", "list"]);
    let newest = there.as_array().unwrap().last().unwrap();
    assert_eq!(newest["conversation"]["turns"], 2, "{there}");
    lab.biv(&["verify"]);
}

#[test]
fn claude_code() {
    whole_story("claude-code");
}

#[test]
fn codex() {
    whole_story("codex");
}

#[test]
fn gemini() {
    whole_story("gemini");
}

#[test]
fn opencode() {
    whole_story("opencode");
}

#[test]
fn copilot() {
    whole_story("copilot");
}

/// A new conversation in the same folder is told in three lines; one that is meant to go on is briefed.
#[test]
fn a_new_conversation_is_told_of_unfinished_work() {
    let Some(agent) = agent("claude-code") else {
        return;
    };
    let lab = Lab::new(agent);
    lab.agent("BUILD it");
    lab.agent("RECALL something else");
    let asked = lab.last_request();
    assert!(asked.heard("Active session detected: BUILD it"), "no notice");
    assert!(!asked.heard("Rehydrated:"), "a notice, not a briefing");
    let sessions = lab.json(&["session", "list"]);
    assert_eq!(sessions.as_array().unwrap().len(), 2, "{sessions}");
    lab.resume(&["--brief"], "RECALL one");
    let asked = lab.last_request();
    assert_eq!(asked.conversation(), ["user: RECALL one"]);
    assert!(asked.heard("Rehydrated: "));
}

/// Compaction: saved before, briefed after, and the full conversation comes back from before it.
#[test]
fn a_compaction_is_survived() {
    let Some(agent) = agent("claude-code") else {
        return;
    };
    let lab = Lab::new(agent);
    lab.agent("BUILD it");
    let id = lab.json(&["checkpoint", "show", "latest"])["conversation"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    lab.agent_with(&["--resume", &id], "/compact");
    let log = lab.biv(&["session", "log"]);
    assert!(log.contains("conversation compacted"), "{log}");
    // Nothing had changed since the end of the first turn, so that is the checkpoint before it.
    let list = lab.json(&["checkpoint", "list"]);
    let before = list.as_array().unwrap().iter().find(|it| it["trigger"] == "END").unwrap();
    lab.agent_with(&["--resume", &id], "RECALL one");
    let asked = lab.last_request();
    assert!(asked.heard("FAKE-SUMMARY") && asked.heard("Rehydrated: "));
    lab.resume(&["--checkpoint-id", before["handle"].as_str().unwrap()], "RECALL two");
    let said = lab.last_request().conversation();
    assert_eq!(said[..5], BUILD, "{said:#?}");
}

/// The same in Codex, which compacts by itself when a limit is passed.
#[test]
fn a_compaction_by_itself_is_survived() {
    let Some(agent) = agent("codex") else {
        return;
    };
    let lab = Lab::new(agent);
    lab.agent("BUILD it");
    let shown = lab.json(&["checkpoint", "show", "latest"]);
    let id = shown["conversation"]["id"].as_str().unwrap();
    let before = shown["handle"].as_str().unwrap();
    lab.agent_before(&["-c", "model_auto_compact_token_limit=1000", "resume", id], "RECALL one");
    let asked = lab.last_request();
    assert!(asked.heard("FAKE-SUMMARY") && asked.heard("Rehydrated: "));
    let list = lab.json(&["checkpoint", "list"]);
    assert!(list.as_array().unwrap().iter().any(|it| it["trigger"] == "COMPACT"), "{list}");
    lab.resume(&["--checkpoint-id", before], "RECALL two");
    let said = lab.last_request().conversation();
    assert_eq!(said[..5], BUILD, "{said:#?}");
    assert_eq!(said[5..], ["user: RECALL two"], "{said:#?}");
}

/// A failed step is tried again by the released agent, with what the step before it produced.
#[test]
fn a_failed_step_is_tried_again() {
    let Some(agent) = agent("claude-code") else {
        return;
    };
    let lab = Lab::new(agent);
    lab.agent("BUILD it");
    lab.biv(&["step", "start", "Write the greeting"]);
    lab.biv(&[
        "step",
        "finish",
        "1",
        "--output",
        "created hello.txt",
        "--cached",
        "It says hello.",
    ]);
    lab.biv(&["step", "start", "RECALL the greeting"]);
    lab.biv(&["step", "fail", "2", "--error", "nobody answered"]);
    lab.biv(&["replay", "--run"]);
    let asked = lab.last_request();
    for words in [
        "**Retry: Step 2 (attempt 2)**",
        "- Step 1 produced: It says hello.",
        "Step 2 failed with: nobody answered",
        "Your task: RECALL the greeting",
        "Rehydrated: ",
    ] {
        assert!(asked.heard(words), "{words}");
    }
    assert_eq!(lab.json(&["step", "list"])[1]["attempt"], 2);
}
