//! `biv run`: a command under supervision

use std::fs;
use std::time::{Duration, Instant};

use bivouac_testkit::{TestEnv, hang_up, terminate, until};
use serde_json::Value;

use crate::env;

fn shell<'s>(script: &'s str, options: &[&'s str]) -> Vec<&'s str> {
    [&["run"][..], options, &["--", "sh", "-c", script]].concat()
}

/// What is known about the newest session, and the triggers of its checkpoints.
fn story(env: &TestEnv) -> (Value, Vec<String>) {
    let session = env.json("session list")[0].clone();
    let checkpoints = env.json("checkpoint list");
    let triggers = checkpoints.as_array().unwrap().iter();
    (session, triggers.map(|it| it["trigger"].as_str().unwrap().to_owned()).collect())
}

/// Waits until a file is there: then the command is under way.
fn await_file(env: &TestEnv, path: &str) {
    until(path, || env.exists(path));
}

#[test]
fn a_command_is_saved_while_it_runs() {
    let env = env();
    let script = "for n in 1 2 3 4 5 6 7 8 9; do echo $n > count; sleep 0.4; done; echo > end";
    let run = env.live(&shell(script, &["--task", "Count", "--interval", "1s"])).ok();
    assert!(run.stderr.contains("saved every 1 second when something changed"), "{}", run.stderr);
    let (session, triggers) = story(&env);
    assert_eq!(session["status"], "completed");
    assert_eq!(session["task_description"], "Count");
    let n_periodic = triggers.iter().filter(|it| *it == "PERIODIC").count();
    assert!((2..=4).contains(&n_periodic), "{triggers:?}");
    // Its end is saved: as such, or by a save that was under way and saw all of it.
    let last = triggers.last().map(String::as_str);
    assert!(matches!(last, Some("COMPLETE" | "PERIODIC")), "{triggers:?}");
    env.biv(&["checkpoint", "restore", "latest", "--into", "../out"]).ok();
    assert_eq!(fs::read_to_string(env.root().join("out/count")).unwrap(), "9\n");
    assert!(env.root().join("out/end").exists());
}

#[test]
fn a_failure_is_saved_with_its_reason_and_its_exit_code_passed_on() {
    let env = env();
    let run = env.live(&shell("echo half > done; exit 3", &["--task", "Break it"]));
    assert_eq!(run.code, 3, "{}", run.stderr);
    let (session, triggers) = story(&env);
    assert_eq!(session["status"], "failed");
    assert_eq!(session["reason"], "Command ended with exit code 3");
    assert_eq!(triggers, ["ERROR"]);
    assert_eq!(env.json("checkpoint list")[0]["message"], "Command ended with exit code 3");
    let run = env.live(&shell("kill -9 $$", &[]));
    assert_eq!(run.code, 137, "{}", run.stderr);
    let reasons = env.json("session list");
    assert_eq!(reasons[1]["reason"], "Command was ended by SIGKILL");
}

#[test]
fn a_timeout_ends_it_with_the_words_people_know() {
    let env = env();
    let run = env.live(&shell("echo x > x; sleep 60", &["--timeout", "1s"]));
    assert_eq!(run.code, 124, "{}", run.stderr);
    let (session, triggers) = story(&env);
    assert_eq!(session["status"], "failed");
    assert_eq!(session["reason"], "Container timeout after 1 second");
    assert_eq!(triggers, ["ERROR"]);
}

#[test]
fn a_shutdown_saves_first_and_gives_the_command_its_time() {
    type Send = fn(i32);
    for (name, send, code) in [("SIGTERM", terminate as Send, 143), ("SIGHUP", hang_up, 129)] {
        let env = env();
        let script = "trap 'echo late > late; exit 0' TERM HUP; echo x > x
            while :; do sleep 0.05; done";
        let child = env.start_live(&shell(script, &[]));
        await_file(&env, "x");
        send(child.id().cast_signed());
        let run = env.finish(child);
        assert_eq!(run.code, code, "{}", run.stderr);
        let (session, triggers) = story(&env);
        assert_eq!(session["status"], "interrupted");
        assert_eq!(session["reason"], format!("Shut down by {name}"));
        // What it did with its time is saved, too.
        assert_eq!(triggers, ["SHUTDOWN", "SHUTDOWN"]);
        env.biv(&["checkpoint", "restore", "latest", "--into", "../out"]).ok();
        assert!(env.root().join("out/late").exists());
    }
}

#[test]
fn a_command_that_does_not_end_is_ended() {
    let mut env = env();
    env.set("BIV_RUN_GRACE_SECONDS", "1");
    let child =
        env.start_live(&shell("trap '' TERM; echo x > x; while :; do sleep 0.1; done", &[]));
    await_file(&env, "x");
    terminate(child.id().cast_signed());
    let started = Instant::now();
    assert_eq!(env.finish(child).code, 143);
    assert!(started.elapsed() < Duration::from_secs(8));
}

#[test]
fn a_command_that_runs_out_of_memory_is_known_for_it() {
    let env = env();
    if env.command("node", env.root()).arg("--version").output().is_err() {
        return bivouac_testkit::left_out("there is no node here to run out of memory");
    }
    let script = "const a = []; for (;;) a.push(new Array(1e5).fill(a.length + 0.5))";
    let words = ["run", "--", "node", "--max-old-space-size=24", "-e", script];
    let (code, shown) = env.live_dialog(&words, &[]);
    assert_eq!(code, 137, "{shown}");
    assert_eq!(story(&env).0["reason"], "Command ran out of memory");
}

#[test]
fn it_runs_on_a_terminal_of_its_own() {
    let env = env();
    let script = "test -t 0 && test -t 1 && echo a tty; stty size; echo ready; read line; echo \"you said $line\"";
    let (code, shown) = env.live_dialog(&shell(script, &[]), &[("ready", "hello\r")]);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("a tty"), "{shown}");
    assert!(shown.contains("you said hello"), "{shown}");
}

#[test]
fn keys_reach_the_command_as_they_are() {
    let env = env();
    // Ctrl+C ends what is in front, not the supervisor.
    let script = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done";
    let (code, shown) = env.live_dialog(&shell(script, &[]), &[("ready", "\u{3}")]);
    assert_eq!(code, 5, "{shown}");
    assert!(shown.contains("interrupted"), "{shown}");
}

#[test]
fn the_command_finds_its_session() {
    let env = env();
    let binary = env!("CARGO_BIN_EXE_biv");
    let script = format!("echo $BIV_SESSION > ../id; {binary} note 'half way'");
    env.live(&shell(&script, &["--task", "Find it"])).ok();
    let id = fs::read_to_string(env.root().join("id")).unwrap();
    assert_eq!(env.json("session list")[0]["id"], id.trim());
    assert!(env.run("log").contains("half way"));
    let run = env.live(&shell("true", &["--session", id.trim()])).ok();
    assert!(run.stderr.contains("is completed"), "{}", run.stderr);
    assert_eq!(env.json("session list").as_array().unwrap().len(), 1);
}

#[test]
fn saving_can_be_left_to_the_person() {
    let env = env();
    let binary = env!("CARGO_BIN_EXE_biv");
    let script = format!("echo x > x; {binary} checkpoint create --trigger turn");
    env.live(&shell(&script, &["--no-checkpoint"])).ok();
    assert_eq!(story(&env).1, Vec::<String>::new());
}

#[test]
fn bad_orders_are_refused_before_anything_happens() {
    let env = env();
    insta::assert_snapshot!(env.run("run -- no-such-agent"), @"
    exit 127
    error: there is no program `no-such-agent`
    hint: check its name, and that it is installed and on the `PATH`
    ");
    insta::assert_snapshot!(env.run("run --interval 0s -- true"), @"
    exit 2
    error: invalid value '0s' for '--interval <TIME>': it is at least `1s`

    For more information, try '--help'.
    ");
    assert!(env.run("run").contains("required arguments were not provided"));
    assert_eq!(env.json("session list").as_array().unwrap().len(), 0);
}

#[test]
fn a_session_has_one_supervisor() {
    let env = env();
    let mut child = env.start_live(&shell("echo x > x; sleep 60", &[]));
    await_file(&env, "x");
    let id = env.json("session list")[0]["id"].as_str().unwrap().to_owned();
    let run = env.live(&shell("true", &["--session", &id]));
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("is already supervised by process"), "{}", run.stderr);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The first process of a container is given everyone's orphans.
#[test]
fn as_process_one_it_buries_the_dead() {
    let env = env();
    let script = "(sleep 0.1 & sleep 0.1 &); sleep 0.6; cat /proc/[0-9]*/stat | grep -c ') Z ' > zombies; true";
    let mut command = env.command("unshare", &env.work());
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]);
    command.args([env!("CARGO_BIN_EXE_biv"), "run", "--", "sh", "-c", script]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    if text.starts_with("unshare: ") {
        return bivouac_testkit::left_out("this kernel does not let us make a container");
    }
    assert!(output.status.success(), "{text}");
    assert_eq!(env.read("zombies"), "0\n");
}

#[test]
fn an_end_that_comes_with_the_shutdown_is_seen() {
    let env = env();
    let child = env.start_live(&shell("echo x > x; exec sleep 60", &["--interval", "1s"]));
    await_file(&env, "x");
    // As a service manager does: everyone at once, and a save may be under way.
    std::thread::sleep(Duration::from_millis(950));
    for (process, _) in env.processes() {
        terminate(process);
    }
    let started = Instant::now();
    let code = env.finish(child).code;
    assert!(matches!(code, 143), "{code}");
    assert!(started.elapsed() < Duration::from_secs(8));
}

#[test]
fn what_is_typed_ahead_does_not_hold_up_what_is_said() {
    let env = env();
    let script = "echo ready; for n in 1 2 3 4 5; do echo line $n; sleep 0.1; done; echo over";
    let paste = "x".repeat(40_000);
    let (code, shown) = env.live_dialog(&shell(script, &[]), &[("ready", &paste)]);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("over"), "{shown}");
}

#[test]
fn what_is_sent_elsewhere_goes_elsewhere() {
    let env = env();
    let binary = env!("CARGO_BIN_EXE_biv");
    let line = format!("{binary} run -- sh -c 'echo out; echo err >&2' 2> {}", "../errors");
    let words = ["run", "--", "sh", "-c", &line];
    let (code, _) = env.live_dialog(&words, &[]);
    assert_eq!(code, 0);
    assert!(fs::read_to_string(env.root().join("errors")).unwrap().contains("err\n"));
}

#[test]
fn the_exit_code_is_the_commands_whatever_becomes_of_our_records() {
    let env = env();
    let store = env.store();
    let script = format!("mv {} {}.away; exit 5", store.display(), store.display());
    let run = env.live(&shell(&script, &["--no-checkpoint"]));
    assert_eq!(run.code, 5, "{}", run.stderr);
    assert!(run.stderr.contains("how it ended could not be put on record"), "{}", run.stderr);
}

#[test]
fn what_cannot_be_run_leaves_no_session_that_seems_to_work() {
    let env = env();
    env.write("broken", "no program at all").mode("broken", 0o755);
    env.folder("folder").write("text", "x");
    let run = env.live(&["run", "--", "./broken"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_eq!(story(&env).0["status"], "failed");
    for (word, what) in [("./folder", "a folder"), ("./text", "not executable")] {
        let run = env.live(&["run", "--", word]);
        assert_eq!(run.code, 126, "{}", run.stderr);
        assert!(run.stderr.contains(&format!("`{word}` is {what}")), "{}", run.stderr);
    }
    assert_eq!(env.json("session list").as_array().unwrap().len(), 1);
    assert!(env.run("run --timeout 0s -- true").contains("it is at least `1s`"));
    assert!(env.run("submit \" \"").contains("an empty prompt leaves nothing to do"));
}

#[test]
fn a_session_that_runs_is_not_resumed_beside_it() {
    let env = env();
    let mut child = env.start_live(&shell("echo x > x; sleep 60", &[]));
    await_file(&env, "x");
    let text = env.run("resume --print");
    assert!(text.contains("a supervised command still runs"), "{text}");
    child.kill().unwrap();
    child.wait().unwrap();
    env.kill_all();
}

/// A save that another session takes is none of ours.
#[test]
fn every_session_is_saved_for_itself() {
    let env = env();
    let other = env.json("session new")["id"].as_str().unwrap().to_owned();
    let binary = env!("CARGO_BIN_EXE_biv");
    let script = format!(
        "sleep 1.5; echo changed > x; {binary} checkpoint create {other} --trigger turn; sleep 2.5"
    );
    let child = env.start_live(&shell(&script, &["--interval", "1s"]));
    env.finish(child).ok();
    let id = env.json("session list")[1]["id"].as_str().unwrap().to_owned();
    let list = env.json(&format!("checkpoint list --session {id}"));
    let triggers: Vec<&str> =
        list.as_array().unwrap().iter().map(|it| it["trigger"].as_str().unwrap()).collect();
    assert!(triggers.iter().filter(|it| **it == "PERIODIC").count() >= 2, "{triggers:?}");
}

#[test]
fn an_answer_for_a_program_is_one_document() {
    let env = env();
    let run = env.live(&["run", "--json", "--", "sh", "-c", "echo hello; exit 4"]);
    assert_eq!(run.code, 4);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(answer["ending"]["code"], 4);
    assert!(run.stderr.contains("hello"), "{}", run.stderr);
}
