//! `biv resume`, as far as no agent is needed

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::json;

use crate::git_env;

const ID: &str = "11111111-0000-4000-8000-000000000001";

#[test]
fn without_a_conversation_it_starts_from_what_is_known() {
    let env = git_env();
    env.write("a", "1");
    env.biv(&["session", "new", "--agent", "codex", "--name", "auth"]).ok();
    env.biv(&["checkpoint", "create"]).ok();
    let text = env.run("resume auth --print");
    assert!(text.contains("BIV_SESSION=") && text.contains(" codex\n"), "{text}");
    assert!(text.contains("brief: a new conversation"), "{text}");
    assert_snapshot!(env.run("resume auth --native --print"), @"
    exit 1
    error: checkpoint cp-20260121-001 holds no conversation
    hint: `biv resume --brief` starts a new conversation from what is known
    ");
    assert_snapshot!(env.run("resume auth"), @"
    exit 1
    error: `codex` is not on the `PATH`
    hint: install it, or see the command with `--print`
    ");
}

#[test]
fn a_torn_conversation_comes_back_to_its_last_whole_record_and_moves_with_its_folder() {
    let env = git_env();
    let folder = env.home().join(".claude/projects/-w");
    fs::create_dir_all(&folder).unwrap();
    let transcript = folder.join(format!("{ID}.jsonl"));
    let record = |text: &str| {
        json!({ "type": "user", "uuid": "u1", "cwd": env.work(), "message": { "content": text } })
            .to_string()
    };
    fs::write(
        &transcript,
        format!("\0\0{}\n{}\n{{\"type\":\"assist", record("one"), record("two")),
    )
    .unwrap();
    env.write("a", "1");
    let input = json!({ "session_id": ID, "transcript_path": transcript, "cwd": env.work(), "prompt": "one" });
    env.hook("claude-code", "UserPromptSubmit", input.to_string()).ok();
    env.hook("claude-code", "Stop", input.to_string()).ok();
    // The agent forgets it; we do not.
    fs::remove_file(&transcript).unwrap();
    let run = env.biv(&["resume", "--into", "../elsewhere", "--print", "--force", "--json"]).ok();
    assert!(
        run.stderr.contains("its last record was torn: 15 bytes were left out"),
        "{}",
        run.stderr
    );
    let plan: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(plan["command"][0], "claude");
    let copy = fs::read_to_string(PathBuf::from(plan["command"][2].as_str().unwrap())).unwrap();
    let elsewhere = env.root().canonicalize().unwrap().join("elsewhere");
    assert_eq!(copy.lines().count(), 2, "{copy}");
    assert!(copy.contains(elsewhere.to_str().unwrap()) && !copy.contains("/project\""), "{copy}");
    assert_eq!(fs::read_to_string(elsewhere.join("a")).unwrap(), "1");
}

#[test]
fn a_running_twin_is_refused() {
    let env = git_env();
    env.write("a", "1");
    // The hook's parent is this test, which runs.
    let input = json!({ "session_id": ID, "cwd": env.work(), "prompt": "one" });
    env.hook("claude-code", "UserPromptSubmit", input.to_string()).ok();
    let text = env.run("resume --print");
    assert!(
        text.starts_with(
            "exit 1\nerror: Claude Code is still running in session task-00000001 (process "
        ),
        "{text}"
    );
    env.biv(&["resume", "--print", "--force"]).ok();
}

#[test]
fn an_agent_that_is_too_old_is_told_what_is_possible_instead() {
    let mut env = git_env();
    let transcript = env.home().join(format!("{ID}.jsonl"));
    fs::write(
        &transcript,
        "{\"type\":\"user\",\"uuid\":\"u1\",\"message\":{\"content\":\"one\"}}\n",
    )
    .unwrap();
    let input = json!({ "session_id": ID, "transcript_path": transcript, "cwd": env.work(), "prompt": "one" });
    env.hook("claude-code", "UserPromptSubmit", input.to_string()).ok();
    env.hook("claude-code", "SessionEnd", input.to_string()).ok();
    let bin = env.root().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("claude"), "#!/bin/sh\necho '2.0.14 (Claude Code)'\n").unwrap();
    fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    env.set("PATH", path);
    assert_snapshot!(env.run("resume"), @"
    exit 1
    error: `claude` 2.0.14 is too old: conversations come back from 2.1.197 on
    hint: upgrade it, or start a new conversation from what is known with `--brief`
    ");
    env.biv(&["resume", "--brief"]).ok();
}

#[test]
fn a_damaged_conversation_is_passed_over() {
    let env = git_env();
    let transcript = env.home().join(format!("{ID}.jsonl"));
    let turn = |words: &str| {
        let record = json!({ "type": "user", "uuid": words, "message": { "content": words } });
        let before = fs::read_to_string(&transcript).unwrap_or_default();
        fs::write(&transcript, format!("{before}{record}\n")).unwrap();
        let input = json!({ "session_id": ID, "transcript_path": transcript, "cwd": env.work(), "prompt": words });
        env.hook("claude-code", "UserPromptSubmit", input.to_string()).ok();
        env.hook("claude-code", "Stop", input.to_string()).ok();
    };
    turn("one");
    turn("two");
    fs::remove_file(&transcript).unwrap();
    let packs = fs::read_dir(env.store().join("packs")).unwrap().map(|it| it.unwrap().path());
    let newest = packs.max().unwrap();
    let mut bytes = fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::remove_file(&newest).unwrap();
    fs::write(&newest, bytes).unwrap();
    let run = env.biv(&["resume", "--print", "--force"]).ok();
    let note = "note: the conversation of cp-20260121-002 is damaged, so an earlier one is taken";
    assert!(run.stderr.contains(note), "{}", run.stderr);
    assert!(run.stderr.contains("from cp-20260121-001 (TURN)"), "{}", run.stderr);
}
