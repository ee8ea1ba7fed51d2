//! `biv session recover`: the wizard

use std::fs;
use std::os::unix::fs::PermissionsExt;

use bivouac_testkit::{Normalizer, TestEnv};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::git_env;
use crate::interruption::{heartbeat, killed, run_started};

/// A `claude` that says how it was started.
fn with_claude() -> TestEnv {
    let mut env = git_env();
    let bin = env.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo 2.1.325 && exit\necho \"claude was told: [$*]\"\n";
    fs::write(bin.join("claude"), script).unwrap();
    fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
    env.set("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    env
}

/// The story of the seed: a command ran for 24 hours, and five minutes before its end it was saved.
fn timed_out() -> TestEnv {
    let env = with_claude();
    env.write("a", "1");
    env.biv(&["session", "new", "--agent", "claude-code", "--task", "Train"]).ok();
    env.biv(&["checkpoint", "create"]).ok();
    let session = run_started(&env, None, "2026-01-20T14:36:00Z");
    drop(heartbeat(&env, session, "2026-01-21T14:36:00Z"));
    env.set_minute(10);
    env.biv(&["session", "list"]).ok();
    env
}

/// What was shown, with the random handle as the seed has it.
fn shown(env: &TestEnv, talk: &[(&str, &str)]) -> (i32, String) {
    let (code, shown) = env.dialog(&["session", "recover"], talk);
    let handle = env.json("session list")[0]["handle"].as_str().unwrap().to_owned();
    let plain: Vec<&str> = shown.split('\u{1b}').collect();
    let rest = plain[1..].iter().map(|it| it.split_once('m').map_or(*it, |(_, text)| text));
    let plain: String = std::iter::once(plain[0]).chain(rest).collect();
    (code, plain.replace(&handle, "task-abc12345"))
}

#[test]
fn the_screen_is_the_one_of_the_seed() {
    let env = timed_out();
    let (code, screen) = shown(&env, &[("Select action [1]: ", "4")]);
    assert_eq!(code, 0);
    assert_snapshot!(screen, @"
    Session Recovery: task-abc12345
    ==============================

    Status: FAILED
      Reason: Container timeout after 24 hours
      Last checkpoint: cp-20260121-001 (5 minutes before timeout)

    Available Actions:
      [1] Resume from checkpoint (recommended)
      [2] Start fresh session with same prompt
      [3] View checkpoint contents
      [4] Cancel

    Select action [1]: 4
    Nothing was changed
    ");
}

#[test]
fn enter_resumes_and_the_agent_is_started() {
    let env = timed_out();
    let (_, screen) = shown(&env, &[("Select action [1]: ", "\r")]);
    assert!(screen.contains("claude was told: []\n"), "{screen}");
    assert!(env.run("session log").contains("resumed in Claude Code from cp-20260121-001"));
}

#[test]
fn keys_move_through_the_choices() {
    let env = timed_out();
    let talk = [
        ("Select action [1]: ", "\u{1b}[B"),
        ("Select action [2]: ", "j"),
        ("Select action [3]: ", "\u{1b}[A"),
        ("Select action [2]: ", "x"),
    ];
    let (code, screen) = shown(&env, &[&talk[..], &[("", "q")]].concat());
    assert_eq!(code, 0);
    assert!(screen.ends_with("Nothing was changed\n"), "{screen}");
    for away in ["\u{1b}", "\u{3}", "c", "\u{4}"] {
        let (code, screen) = shown(&env, &[("Select action [1]: ", away)]);
        assert_eq!(code, 0, "{away:?}");
        assert!(screen.ends_with("Nothing was changed\n"), "{screen}");
    }
}

#[test]
fn the_contents_can_be_looked_at_before() {
    let env = timed_out();
    env.write("a", "2").write("b", "3");
    let (code, screen) = shown(&env, &[("Select action [1]: ", "v"), ("Select action [1]: ", "4")]);
    assert_eq!(code, 0);
    assert!(screen.contains("Since then:\n  2 files changed since\n"), "{screen}");
    assert_snapshot!(env.run("session recover --action view"), @"
    Session Recovery: task-00000001
    ==============================

    Status: FAILED
      Reason: Container timeout after 24 hours
      Last checkpoint: cp-20260121-001 (5 minutes before timeout)

    Checkpoint cp-20260121-001
      Id         id-1
      Session    task-00000001 (Train)
      Trigger    MANUAL
      Created    2026-01-21 14:31:00
      By         tester@here
      Coverage   1 file, 1 B; nothing left out
      Git        main at no commit yet
                 0 staged, 0 unstaged, 1 untracked
      Tools      claude 2.1.325
      Variables  3 kept

    Files:
      644      1 B a

    Not covered:

    Since then:
      2 files changed since
    ");
}

#[test]
fn a_fresh_start_is_told_the_same() {
    let env = timed_out();
    let text = env.run("session recover --action fresh");
    // The very command that was supervised, and supervised again.
    assert!(text.contains("claude was told: [-p Train for 24 hours]\n"), "{text}");
    let sessions = env.json("session list");
    let (old, new) = (&sessions[0], &sessions[1]);
    assert_eq!((&old["status"], &new["status"]), (&json!("failed"), &json!("completed")));
    assert_eq!(new["task_description"], "Train");
    let handle = |it: &Value| it["handle"].as_str().unwrap().to_owned();
    let log = |it: &Value| env.biv(&["session", "log", &handle(it)]).ok().stdout;
    assert!(log(old).contains(&format!("started afresh as {}", handle(new))), "{}", log(old));
    assert!(log(new).contains(&format!("a fresh start of {}", handle(old))), "{}", log(new));
}

#[test]
fn what_the_person_said_first_is_said_again() {
    let env = with_claude();
    killed(&env);
    let text = env.run("session recover --action fresh");
    assert!(text.contains("claude was told: [Build it]\n"), "{text}");
    // Nobody knows what this one was for.
    env.biv(&["session", "new", "--name", "empty", "--agent", "claude-code"]).ok();
    assert_snapshot!(env.run("session recover empty --action fresh"), @"
    exit 1
    Session Recovery: task-00000001
    ==============================

    Status: ACTIVE
      Last checkpoint: none

    note: session task-00000001 is active, neither failed nor interrupted
    error: nobody wrote down what session task-00000001 was to do
    hint: `biv resume` goes on from what is known
    ");
}

#[test]
fn a_damaged_checkpoint_is_passed_over() {
    let env = timed_out();
    env.biv(&["session", "resume"]).ok();
    env.write("b", "much later");
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["session", "fail", "--reason", "gave up"]).ok();
    let mut packs: Vec<_> =
        fs::read_dir(env.store().join("packs")).unwrap().map(|it| it.unwrap().path()).collect();
    packs.sort();
    let newest = packs.last().unwrap();
    let mut bytes = fs::read(newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::set_permissions(newest, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(newest, bytes).unwrap();
    let run = env.biv(&["session", "recover", "--yes"]).ok();
    let root = env.root().canonicalize().unwrap();
    assert_snapshot!(Normalizer::new(&root).apply(&run.stdout), @"
    Session Recovery: task-00000001
    ==============================

    Status: FAILED
      Reason: gave up
      Last checkpoint: cp-20260121-001 (12 minutes before it ended)
      cp-20260121-002 is damaged, so cp-20260121-001 is taken

    claude was told: []
    ");
    assert!(run.stderr.contains("from cp-20260121-001 (MANUAL)"), "{}", run.stderr);
    let log = env.run("session log");
    assert!(log.contains("cp-20260121-002 is damaged, so cp-20260121-001 is taken"), "{log}");
}

#[test]
fn without_a_terminal_it_wants_to_be_told_what_to_do() {
    let env = timed_out();
    assert_snapshot!(env.run("session recover"), @"
    exit 2
    error: what to do about session task-00000001 was not said, and there is no terminal to ask on
    hint: pass `--action resume`, `fresh`, `view` or `cancel`
    ");
    assert_snapshot!(env.run("session recover --action retry"), @"
    exit 2
    error: invalid value 'retry' for '--action <ACTION>': there is no action `retry`; the actions are resume, fresh, view and cancel

    For more information, try '--help'.
    ");
    let document = env.json("session recover");
    assert_eq!(document["status"], "failed");
    assert_eq!(document["reason"], "Container timeout after 24 hours");
    assert_eq!(document["last_checkpoint"]["handle"], "cp-20260121-001");
    assert_eq!(document["distance"], "5 minutes before timeout");
    assert_eq!(document["actions"], json!(["resume", "fresh", "view", "cancel"]));
    assert_eq!((&document["chosen"], &document["fallback"]), (&Value::Null, &Value::Null));
    assert_eq!(env.json("session recover --action cancel")["chosen"], "cancel");
    let viewed = env.json("session recover --action view");
    assert_eq!(viewed["contents"]["files"][0]["path"], "a");
}

#[test]
fn a_session_that_did_not_stop_is_offered_the_same() {
    let env = with_claude();
    env.write("a", "1");
    env.biv(&["session", "new"]).ok();
    assert_snapshot!(env.run("session recover --action cancel"), @"
    Session Recovery: task-00000001
    ==============================

    Status: ACTIVE
      Last checkpoint: none

    Nothing was changed
    note: session task-00000001 is active, neither failed nor interrupted
    ");
    env.biv(&["session", "complete"]).ok();
    assert_snapshot!(env.run("session recover --action cancel"), @"
    Session Recovery: task-00000001
    ==============================

    Status: COMPLETED
      Last checkpoint: cp-20260121-001 (when it ended)

    Nothing was changed
    note: session task-00000001 is completed, neither failed nor interrupted
    ");
}

#[test]
fn a_living_agent_is_not_recovered() {
    let env = with_claude();
    let input = json!({ "session_id": "c1", "cwd": env.work(), "prompt": "one" });
    env.hook("claude-code", "UserPromptSubmit", input.to_string()).ok();
    let own = std::process::id().to_string();
    assert_snapshot!(env.run("session recover --yes").replace(&own, "PID"), @"
    exit 1
    error: Claude Code still runs in session task-00000001 (process PID)
    hint: end it first; `biv resume --force` starts another beside it
    ");
}
