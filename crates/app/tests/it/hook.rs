//! `biv hook`: it understands every agent, keeps what matters, and never fails

use std::fs;
use std::path::PathBuf;

use bivouac_testkit::TestEnv;
use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::git_env;

/// Plays the part of Claude Code in the workspace: its transcript is a file we write.
pub(crate) struct Claude {
    pub(crate) env: TestEnv,
    transcript: PathBuf,
}

pub(crate) const ID: &str = "11111111-0000-4000-8000-000000000001";

impl Claude {
    pub(crate) fn new() -> Self {
        let env = git_env();
        let transcript = env.home().join(format!(".claude/projects/-w/{ID}.jsonl"));
        fs::create_dir_all(transcript.parent().unwrap()).unwrap();
        fs::write(&transcript, "").unwrap();
        Self { env, transcript }
    }

    /// Does something while the journal cannot be read.
    fn while_deaf(&self, act: impl FnOnce()) {
        let journal = self.env.store().join("sessions.db");
        let good = fs::read(&journal).unwrap();
        fs::write(&journal, "this is not a database, but long enough to look like one").unwrap();
        act();
        fs::write(&journal, good).unwrap();
    }

    pub(crate) fn tell(&self, event: &str, more: &Value) -> String {
        let run = self.env.hook("claude-code", event, self.input(more)).ok();
        assert_eq!(run.stderr, "");
        run.stdout
    }

    fn input(&self, more: &Value) -> String {
        let mut input =
            json!({ "session_id": ID, "transcript_path": self.transcript, "cwd": self.env.work() });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input.to_string()
    }

    /// How often something that was said is on record.
    fn n_said(&self, words: &str) -> String {
        let like = format!("data LIKE '%{words}%'");
        self.env.sql_text(&format!("SELECT '' || count(*) FROM events WHERE {like}"))
    }

    fn write(&self, record: &Value) {
        let mut text = fs::read_to_string(&self.transcript).unwrap();
        text.push_str(&record.to_string());
        text.push('\n');
        fs::write(&self.transcript, text).unwrap();
    }

    /// A prompt and an answer, as hooks and transcript tell them.
    pub(crate) fn turn(&self, number: u32, prompt: &str, answer: &str) {
        let (asked, answered) = (format!("u{number}"), format!("a{number}"));
        let parent = (number > 1).then(|| format!("a{}", number - 1));
        self.tell("UserPromptSubmit", &json!({ "prompt": prompt }));
        self.write(&json!({ "type": "user", "uuid": asked, "parentUuid": parent, "message": { "content": prompt } }));
        self.write(&json!({ "type": "assistant", "uuid": answered, "parentUuid": asked, "version": "2.1.325", "message": {
            "id": format!("msg{number}"), "model": "claude-sonnet-4-5", "content": [{ "type": "text", "text": answer }],
            "usage": { "input_tokens": 1000, "output_tokens": 100, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0 } } }));
        self.tell("Stop", &json!({ "last_assistant_message": answer }));
    }
}

#[test]
fn a_turn_is_a_session_a_conversation_and_a_checkpoint() {
    let claude = Claude::new();
    assert_eq!(claude.tell("SessionStart", &json!({ "source": "startup" })), "");
    assert_eq!(
        claude.env.run("session list"),
        "No sessions found. Run `biv session new` or `biv checkpoint create` to make one."
    );
    claude.env.write("a.txt", "1");
    claude.turn(1, "Build it", "Done.");
    assert_snapshot!(claude.env.run("checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        TURN       2026-01-21 14:33  (1 turn, 1,100 tokens, $0.00)
    ");
    claude.turn(2, "And more", "Done, too.");
    claude.tell("SessionEnd", &json!({ "reason": "other" }));
    assert_snapshot!(claude.env.run("checkpoint diff cp-001 cp-002"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-001 (2026-01-21 14:33)
    To:   cp-20260121-002 (2026-01-21 14:36)

    No files changed

    Conversation:
      Turns: 1 → 2 (+1)
      Tokens: 1,100 → 2,200 (+1,100)

    Cost:
      $0.00 → $0.01 (+$0.00)
    ");
    assert_snapshot!(claude.env.run("session log"), @"
    When              Level    What
    2026-01-21 14:32  info     session created for claude-code: Build it
    2026-01-21 14:32  info     Claude Code conversation id-1 (seen)
    2026-01-21 14:33  info     saved cp-20260121-001 (TURN)
    2026-01-21 14:36  info     saved cp-20260121-002 (TURN)
    2026-01-21 14:37  info     conversation ended (other)
    ");
    let shown = claude.env.json("checkpoint show latest");
    assert_eq!(shown["conversation"]["turns"], 2);
    assert_eq!(shown["conversation"]["tokens_by_model"]["claude-sonnet-4-5"]["input"], 2000);
    claude.env.biv(&["verify"]).ok();
}

#[test]
fn what_can_destroy_work_is_saved_before() {
    let claude = Claude::new();
    claude.env.write("src/a.rs", "1");
    claude.tell("UserPromptSubmit", &json!({ "prompt": "clean up" }));
    let bash = |command: &str| json!({ "tool_name": "Bash", "tool_input": { "command": command } });
    claude.tell("PreToolUse", &bash("ls"));
    assert!(claude.env.json("checkpoint list").as_array().unwrap().is_empty());
    claude.tell("PreToolUse", &bash("cd . && rm -rf src"));
    let list = claude.env.json("checkpoint list");
    assert_eq!(list[0]["trigger"], "RISK");
    claude.env.remove("src");
    claude.env.biv(&["checkpoint", "rollback", "latest", "--yes"]).ok();
    assert_eq!(claude.env.read("src/a.rs"), "1");
}

#[test]
fn what_the_shell_changed_is_seen() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    claude.turn(1, "Build it", "Done.");
    claude.env.write("made/by-shell.txt", "x").write("a", "2");
    let input = json!({ "command": "make things" });
    claude.tell(
        "PostToolUse",
        &json!({ "tool_name": "Bash", "tool_input": input, "duration_ms": 82 }),
    );
    claude.tell(
        "PostToolUseFailure",
        &json!({ "tool_name": "Bash", "tool_input": input, "error": "Exit code 3" }),
    );
    let used = claude
        .env
        .sql_text("SELECT group_concat(data, char(10)) FROM events WHERE kind = 'tool.used'");
    let lines: Vec<Value> = used.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["files"], json!(["a", "made/by-shell.txt"]));
    assert_eq!(
        (&lines[0]["command"], &lines[0]["duration_ms"]),
        (&json!("make things"), &json!(82))
    );
    assert_eq!(lines[1]["error"], "Exit code 3");
}

#[test]
fn the_next_conversation_is_told_of_unfinished_work() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    claude.turn(1, "Build a notification system", "Half of it is done.");
    let task = |id: &str, status: &str| json!({ "tool_name": "TaskUpdate", "tool_input": { "taskId": id, "status": status, "subject": format!("Task {id}") } });
    claude.tell("PostToolUse", &task("1", "completed"));
    claude.tell("PostToolUse", &task("2", "in_progress"));
    claude.tell(
        "PermissionRequest",
        &json!({ "tool_name": "Bash", "tool_input": { "command": "git push" } }),
    );
    let status = claude.env.run("status");
    assert!(status.contains("Tasks      1 task completed, 1 in-progress, 0 pending"), "{status}");
    assert!(status.contains("Waiting    for your leave: Bash: git push"), "{status}");
    // The same conversation after a compaction gets the whole picture.
    let briefed = claude.tell("SessionStart", &json!({ "source": "compact" }));
    let briefed: Value = serde_json::from_str(&briefed).unwrap();
    let words = briefed["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    for part in [
        "Rehydrated: Build a notification system",
        "1 Task 1:  completed  ✓",
        "2 Task 2:  in-progress (check status)",
        "Bash: git push",
        "agent: Half of it is done.",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    // Its agent is gone: here that is this very test, which must not count as running.
    claude.tell("SessionEnd", &json!({ "reason": "other" }));
    // Another one, later, gets three lines.
    let other = json!({ "session_id": "22222222-0000-4000-8000-000000000002", "cwd": claude.env.work(), "source": "startup" });
    let noticed = claude.env.hook("claude-code", "SessionStart", other.to_string()).ok().stdout;
    let noticed: Value = serde_json::from_str(&noticed).unwrap();
    let words = noticed["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(words.starts_with("Active session detected: Build a notification system\n  1 task completed, 1 in-progress, 0 pending\nRun `biv rehydrate task-"), "{words}");
}

#[test]
fn going_back_in_the_conversation_is_noticed() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    claude.turn(1, "one", "One.");
    claude.env.write("a", "2");
    claude.turn(2, "two", "Two.");
    // The next prompt hangs on the first answer.
    claude.tell("UserPromptSubmit", &json!({ "prompt": "instead" }));
    claude.write(&json!({ "type": "user", "uuid": "u3", "parentUuid": "a1", "message": { "content": "instead" } }));
    claude.env.write("a", "3");
    claude.tell("Stop", &json!({}));
    assert!(
        claude.env.run("session log").contains("conversation went back from turn 2 to 1"),
        "{}",
        claude.env.run("session log")
    );
    assert_eq!(claude.env.json("checkpoint show latest")["conversation"]["turns"], 2);
}

/// The hook's parent is this test, both times: the same process goes on with the same work.
#[test]
fn after_a_clear_the_session_goes_on() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    claude.turn(1, "one", "One.");
    claude.tell("SessionEnd", &json!({ "reason": "clear" }));
    let new = "44444444-0000-4000-8000-000000000004";
    let input = json!({ "session_id": new, "cwd": claude.env.work(), "source": "clear" });
    let briefed = claude.env.hook("claude-code", "SessionStart", input.to_string()).ok().stdout;
    assert!(briefed.contains("Rehydrated: one"), "{briefed}");
    let input = json!({ "session_id": new, "cwd": claude.env.work(), "prompt": "two" });
    claude.env.hook("claude-code", "UserPromptSubmit", input.to_string()).ok();
    assert_eq!(claude.env.json("session list").as_array().unwrap().len(), 1);
}

#[test]
fn two_agents_in_one_folder_are_two_sessions() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    claude.turn(1, "one", "One.");
    let codex = json!({ "session_id": "33333333-0000-4000-8000-000000000003", "cwd": claude.env.work(), "prompt": "two" });
    claude.env.hook("codex", "UserPromptSubmit", codex.to_string()).ok();
    let sessions = claude.env.json("session list");
    let agents: Vec<&str> =
        sessions.as_array().unwrap().iter().map(|it| it["agent_type"].as_str().unwrap()).collect();
    assert_eq!(agents, ["claude-code", "codex"]);
}

#[test]
fn a_session_opened_beforehand_is_the_one() {
    let mut claude = Claude::new();
    claude.env.biv(&["session", "new", "--agent", "claude-code", "--name", "waiting"]).ok();
    claude.turn(1, "one", "One.");
    assert_eq!(claude.env.json("session list").as_array().unwrap().len(), 1);
    // And the variable goes over everything.
    claude.env.biv(&["session", "new", "--name", "mine"]).ok();
    claude.env.set("BIV_SESSION", "mine");
    claude.turn(2, "two", "Two.");
    assert!(claude.env.run("session log mine").contains("Claude Code conversation"));
}

#[test]
fn what_cannot_be_recorded_is_taken_in_later_and_once() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    claude.turn(1, "one", "One.");
    let said = json!({ "prompt": "said while the journal was damaged" });
    claude.while_deaf(|| assert_eq!(claude.tell("UserPromptSubmit", &said), ""));
    let spool = claude.env.store().join("spool");
    assert_eq!(fs::read_dir(&spool).unwrap().count(), 1);
    // It waits for a command in its own workspace.
    claude.env.biv_in(claude.env.root(), &["checkpoint", "create", "--root", "home/.claude"]).ok();
    assert_eq!(fs::read_dir(&spool).unwrap().count(), 1);
    claude.env.biv(&["checkpoint", "create"]).ok();
    claude.env.biv(&["checkpoint", "create"]).ok();
    assert_eq!(fs::read_dir(&spool).unwrap().count(), 0);
    assert_eq!(claude.n_said("said while the journal"), "1");
}

#[test]
fn what_came_through_after_its_hook_gave_up_is_not_taken_in_again() {
    let claude = Claude::new();
    claude.turn(1, "one", "One.");
    let said = json!({ "prompt": "said in time after all" });
    claude.tell("UserPromptSubmit", &said);
    let id = claude.env.sql_text("SELECT id FROM events WHERE data LIKE '%said in time%'");
    let (event, input) = ("UserPromptSubmit", claude.input(&said));
    let note = json!({ "id": id, "agent": "claude-code", "event": event, "input": input });
    let hash = blake3::hash(note.to_string().as_bytes()).to_hex();
    let spool = claude.env.store().join("spool");
    fs::create_dir_all(&spool).unwrap();
    fs::write(spool.join(format!("{id}-{}.hook", &hash[..16])), note.to_string()).unwrap();
    claude.env.biv(&["note", "next"]).ok();
    assert_eq!(fs::read_dir(&spool).unwrap().count(), 0);
    assert!(!claude.env.store().join("damaged").exists());
    assert_eq!(claude.n_said("said in time"), "1");
}

#[test]
fn what_many_commands_find_waiting_is_taken_in_once() {
    let claude = Claude::new();
    claude.turn(1, "one", "One.");
    claude.while_deaf(|| {
        for n in 0..20 {
            claude.tell("UserPromptSubmit", &json!({ "prompt": format!("said while deaf {n}.") }));
        }
    });
    let commands: Vec<_> = (0..8).map(|_| claude.env.start(&["note", "me too"])).collect();
    for command in commands {
        claude.env.finish(command).ok();
    }
    assert_eq!(claude.n_said("said while deaf"), "20");
}

#[test]
fn a_hook_that_can_keep_nothing_says_so_and_succeeds() {
    let claude = Claude::new();
    claude.turn(1, "one", "One.");
    let store = claude.env.store();
    fs::write(store.join("sessions.db"), "no database, but long enough to look like one").unwrap();
    let _none_yet = fs::remove_dir(store.join("spool"));
    fs::write(store.join("spool"), "in the way").unwrap();
    let input = json!({ "session_id": ID, "cwd": claude.env.work(), "prompt": "two" });
    let run = claude.env.hook("claude-code", "UserPromptSubmit", input.to_string());
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert!(run.stderr.contains("what the agent told could not be kept"), "{}", run.stderr);
}

fn samples() -> Vec<(String, String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/agents/samples");
    let mut found = Vec::new();
    for (name, agent) in [
        ("claude", "claude-code"),
        ("codex", "codex"),
        ("gemini", "gemini"),
        ("copilot", "copilot"),
        ("opencode", "opencode"),
    ] {
        for file in fs::read_dir(folder.join(name)).unwrap() {
            let path = file.unwrap().path();
            let stem = path.file_name().unwrap().to_str().unwrap().to_owned();
            if let Some(event) = stem.strip_suffix(".json") {
                let event =
                    if agent == "opencode" { event } else { event.split('.').next().unwrap() };
                found.push((
                    agent.to_owned(),
                    event.to_owned(),
                    fs::read_to_string(&path).unwrap(),
                ));
            }
        }
    }
    found
}

#[test]
fn every_recorded_sample_is_taken_without_a_word_of_complaint() {
    let env = git_env();
    let samples = samples();
    assert!(samples.len() > 100, "{}", samples.len());
    for (agent, event, input) in samples {
        let input = input.replace("/workspace/demo", env.work().to_str().unwrap());
        let run = env.hook(&agent, &event, &input);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{agent} {event}");
        if !run.stdout.is_empty() && agent != "opencode" {
            serde_json::from_str::<Value>(&run.stdout).unwrap();
        }
    }
    let agents = env.sql_text("SELECT group_concat(agent_type) FROM (SELECT DISTINCT agent_type FROM sessions ORDER BY 1)");
    assert_eq!(agents, "claude-code,codex,copilot,gemini");
    env.biv(&["verify"]).ok();
}

/// Any bytes, and real input with bytes changed: the exit is 0 and nothing is printed that no agent takes.
#[test]
fn hostile_input_never_fails() {
    let cases = std::env::var("BIV_HOOK_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(150);
    let env = git_env();
    let samples = samples();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let strategy = (
        0..samples.len(),
        proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        any::<bool>(),
    );
    runner
        .run(&strategy, |(which, changes, cut)| {
            let (agent, event, input) = &samples[which];
            let mut bytes =
                input.replace("/workspace/demo", env.work().to_str().unwrap()).into_bytes();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
                if cut {
                    bytes.truncate(at.max(1));
                }
            }
            let run = env.hook(agent, event, &bytes);
            prop_assert_eq!((run.code, run.stderr.as_str()), (0, ""));
            Ok(())
        })
        .unwrap();
    for (agent, event) in [("nobody", "Stop"), ("claude-code", "NoSuchEvent"), ("codex", "")] {
        assert_eq!(env.hook(agent, event, "{}").code, 0);
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(env.hook("claude-code", "Stop", deep).code, 0);
}

#[test]
fn only_regular_files_of_the_user_are_transcripts() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    let secret = claude.env.root().join("secret");
    fs::write(&secret, "not yours").unwrap();
    fs::remove_file(&claude.transcript).unwrap();
    std::os::unix::fs::symlink(&secret, &claude.transcript).unwrap();
    claude.tell("UserPromptSubmit", &json!({ "prompt": "one" }));
    claude.tell("Stop", &json!({ "last_assistant_message": "One." }));
    let list = claude.env.json("checkpoint list");
    assert_eq!((&list[0]["trigger"], &list[0]["conversation"]), (&json!("TURN"), &Value::Null));
    let status = claude.env.run("status");
    assert!(status.contains("the conversation could not be saved: could not use"), "{status}");
}

/// What is asked of us neither names the work nor is what to go on with.
#[test]
fn our_own_commands_are_no_requests() {
    let claude = Claude::new();
    claude.tell("UserPromptSubmit", &json!({ "prompt": "/checkpoint save first" }));
    assert_eq!(claude.env.json("session list")[0]["task_description"], json!(null));
    claude.tell("UserPromptSubmit", &json!({ "prompt": "Build it" }));
    claude.tell("UserPromptSubmit", &json!({ "prompt": "/rehydrate" }));
    let told = claude.env.run("rehydrate");
    assert!(told.contains("Build it") && !told.contains("/rehydrate"), "{told}");
}

/// Agents end many turns with the same words. Those of the turn before are not the ones that are waited for.
#[test]
fn the_same_last_words_are_waited_for_again() {
    const LOST: &str = "the agent's last message had not reached its file";
    let claude = Claude::new();
    let told = || {
        let turns = claude.env.json("checkpoint list --trigger turn");
        let last = turns.as_array().unwrap().last().unwrap()["handle"].as_str().unwrap().to_owned();
        claude.env.biv(&["resume", "--print", "--force", "--checkpoint-id", &last]).stderr
    };
    claude.env.write("a", "1");
    claude.turn(1, "Build it", "Done.");
    claude.tell("Stop", &json!({ "last_assistant_message": "Done." }));
    assert!(!told().contains(LOST), "one turn, told twice: {}", told());
    claude.tell("UserPromptSubmit", &json!({ "prompt": "And more" }));
    claude.write(&json!({ "type": "user", "uuid": "u2", "parentUuid": "a1", "message": { "content": "And more" } }));
    claude.env.write("a", "2");
    claude.tell("Stop", &json!({ "last_assistant_message": "Done." }));
    assert!(told().contains(LOST), "{}", told());
}

/// A list without ids is known by what it says: a shorter or longer one renames nothing.
#[test]
fn a_to_do_list_keeps_its_tasks_apart() {
    let claude = Claude::new();
    claude.tell("UserPromptSubmit", &json!({ "prompt": "go" }));
    let created = json!({ "tool_name": "TaskCreate", "tool_input": { "subject": "Write parser" }, "tool_response": { "task": { "id": "1" } } });
    claude.tell("PostToolUse", &created);
    let list = |todos: &[(&str, &str)]| {
        let todos: Vec<Value> = todos
            .iter()
            .map(|(content, status)| json!({ "content": content, "status": status }))
            .collect();
        json!({ "tool_name": "TodoWrite", "tool_input": { "todos": todos } })
    };
    claude.tell("PostToolUse", &list(&[("Todo one", "in_progress"), ("Todo two", "pending")]));
    claude.tell(
        "PostToolUse",
        &list(&[("New first", "pending"), ("Todo one", "completed"), ("Todo two", "in_progress")]),
    );
    claude.tell("PostToolUse", &list(&[("Todo two", "in_progress")]));
    assert_snapshot!(claude.env.run("task list"), @"
    ID   What          Status       About
    1    Write parser  pending
    002  Todo one      completed
    003  Todo two      in-progress
    004  New first     dropped
    ");
}
