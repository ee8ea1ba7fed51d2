//! The released memory server: what it is told about a checkpoint, and what it is asked for.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bivouac_testkit::{TestEnv, left_out};
use insta::assert_snapshot;
use serde_json::Value;

/// A workspace whose owner has this server configured.
fn env(command: &[&str]) -> TestEnv {
    let env = TestEnv::with_git(env!("CARGO_BIN_EXE_biv"));
    let folder = env.home().join(".config/bivouac");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), format!("[memory]\ncommand = {command:?}\n")).unwrap();
    env.write("a", "1").git(&["add", "."]);
    env.git(&["commit", "-qm", "start"]);
    env
}

fn released() -> Option<PathBuf> {
    let folder = std::env::var_os("BIV_AGENTS").map(PathBuf::from);
    let script = folder
        .map(|it| it.join("node_modules/@modelcontextprotocol/server-memory/dist/index.js"))
        .filter(|it| it.exists());
    if script.is_none() {
        left_out("the released memory server is not installed (`cargo xtask check` does that)");
    }
    script
}

/// What the server keeps, an entity to a line.
fn remembered(env: &TestEnv) -> Vec<Value> {
    let text = fs::read_to_string(env.root().join("memory.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_checkpoint_is_remembered_and_comes_back_as_a_record() {
    let Some(script) = released() else {
        return;
    };
    let mut env = env(&["node", script.to_str().unwrap()]);
    let file = env.root().join("memory.jsonl");
    env.set("MEMORY_FILE_PATH", file);
    let task = "Add login with password=hunter2secret";
    env.biv(&["session", "new", "--name", "auth", "--task", task]).ok();
    env.biv(&["phase", "set", "testing"]).ok();
    env.biv(&["task", "add", "Write the tests"]).ok();
    // Only what a person asks for is told.
    env.write("a", "2").biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    assert!(!env.root().join("memory.jsonl").exists());
    env.biv(&["checkpoint", "save", "auth-middleware"]).ok();
    let entities = remembered(&env);
    assert_eq!(entities.len(), 1, "{entities:?}");
    assert_eq!(entities[0]["name"], "checkpoint:auth-middleware");
    assert_eq!(entities[0]["entityType"], "checkpoint");
    let observations: Vec<&str> = entities[0]["observations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    assert_snapshot!(observations.join("\n"), @"
    Created: 2026-01-21T14:34:00.000Z
    Branch: main, SHA: 75b71a6
    Task: Add login with password=[redacted]
    Phase: testing
    Next: Start task 001 Write the tests.
    ");

    // Another session may use the name again: the server learns what is new.
    env.biv(&["session", "new", "--name", "second", "--task", "Another thing"]).ok();
    env.biv(&["checkpoint", "create", "--name", "auth-middleware"]).ok();
    let entities = remembered(&env);
    assert_eq!(entities.len(), 1, "{entities:?}");
    assert_eq!(entities[0]["observations"].as_array().unwrap().len(), 9, "{entities:?}");

    let told = env.run("rehydrate auth");
    assert!(told.contains("memory: checkpoint:auth-middleware: Created: 2026-01-21T"), "{told}");
    let told = env.biv(&["resume", "auth", "--print"]).ok().stderr;
    assert!(told.contains("note: remembered: checkpoint:auth-middleware: Created: "), "{told}");
}

#[test]
fn a_server_that_fails_is_told_and_harms_nothing() {
    let check = |command: &[&str], why: &str| {
        let env = env(command);
        let started = Instant::now();
        let run = env.biv(&["checkpoint", "create", "--name", "auth"]).ok();
        assert!(run.stdout.starts_with("Saved checkpoint cp-"), "{}", run.stdout);
        let expected = format!(
            "note: the memory server was not told: the memory server could not be used: {why} \
             (`memory.command` in your own configuration says what is started; `[]` is nothing)\n"
        );
        assert_eq!(run.stderr, expected);
        let run = env.biv(&["rehydrate"]).ok();
        assert!(run.stdout.contains("Next: Ask"), "{}", run.stdout);
        assert_eq!(run.stderr, expected.replace("not told", "not asked"));
        assert!(started.elapsed() < Duration::from_secs(60));
    };
    check(
        &["no-such-server"],
        "could not start `no-such-server`: No such file or directory (os error 2)",
    );
    check(&["sh", "-c", "exit 3"], "`sh` failed: it ended without an answer");
    check(
        &["sh", "-c", "echo garbage; echo '{}'; echo '['"],
        "`sh` failed: it ended without an answer",
    );
    check(&["sleep", "600"], "`sleep` did not answer within 15 seconds");
}

#[test]
fn nobody_is_started_where_nobody_is_configured() {
    let env = env(&[]);
    assert_snapshot!(env.run("checkpoint create --name auth"), @"Saved checkpoint cp-20260121-001 of task-00000001: 1 file");
    assert_eq!(env.biv(&["rehydrate"]).ok().stderr, "");
    // A project must not start programs.
    let env = TestEnv::with_git(env!("CARGO_BIN_EXE_biv"));
    env.write("bivouac.toml", "[memory]\ncommand = [\"touch\", \"started\"]\n");
    let run = env.biv(&["checkpoint", "create", "--name", "auth"]).ok();
    assert!(run.stderr.contains("`bivouac.toml` is not used"), "{}", run.stderr);
    assert!(!env.exists("started"));
}
