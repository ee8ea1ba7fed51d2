//! Work whose process is gone: found by the next command, told once

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use bivouac_core::agent::ProcessId;
use bivouac_core::event::Event;
use bivouac_core::id::{EventId, SessionId};
use bivouac_core::run::RunStarted;
use bivouac_core::time::Timestamp;
use bivouac_journal::Journal;
use bivouac_journal::append::NewEvent;
use bivouac_testkit::TestEnv;
use insta::assert_snapshot;
use serde_json::json;

use crate::git_env;

const ID: &str = "11111111-0000-4000-8000-000000000001";

/// An agent that called hooks and waits for more to do. It is no shell by its name, so it is the process
/// that counts.
fn agent(env: &TestEnv, kind: &str, events: &[&str]) -> Child {
    let program = env.root().join("agent");
    if !program.exists() {
        fs::copy(fs::canonicalize("/bin/sh").unwrap(), &program).unwrap();
    }
    let input =
        json!({ "session_id": ID, "sessionID": ID, "cwd": env.work(), "prompt": "Build it" });
    fs::write(env.root().join("input"), input.to_string()).unwrap();
    let hook = |event: &&str| format!("\"$BIV\" hook {kind} {event} < ../input > ../answer\n");
    let script: String = events.iter().map(hook).collect();
    let mut command = env.command(program.to_str().unwrap(), &env.work());
    command.args(["-c", &format!("{script}echo told; read line")]);
    command.env("BIV", env!("CARGO_BIN_EXE_biv")).env("BIV_CLOCK", "2026-01-21T14:30:00Z");
    command.env("BIV_HOOK_WAITS", "1").env("BIV_STORE_MIN_FREE", "0");
    command.env("BIV_STORE_AUTO_GC", "false");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut told).unwrap();
    assert_eq!(told, "told\n");
    child
}

/// Ends it as `kill -9` does. Answers its number.
fn kill(mut child: Child) -> String {
    child.kill().unwrap();
    child.wait().unwrap();
    child.id().to_string()
}

/// A session whose agent was killed in the middle of a turn. Answers the number of its process.
pub(crate) fn killed(env: &TestEnv) -> String {
    kill(agent(env, "claude-code", &["UserPromptSubmit"]))
}

/// Puts a supervised run on record, as a supervisor does.
pub(crate) fn run_started(env: &TestEnv, child: Option<ProcessId>, at: &str) -> SessionId {
    let session = env.json("session show")["id"].as_str().unwrap().parse().unwrap();
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let gone = ProcessId { pid: 4711, started: 1, boot: "another".to_owned() };
    let event = Event::RunStarted(Box::new(RunStarted {
        command: vec!["claude".to_owned(), "-p".to_owned(), "Train for 24 hours".to_owned()],
        supervisor: gone,
        child,
        machine,
        timeout_seconds: Some(86_400),
        tmux: None,
        prompt: Some("Train for 24 hours".parse().unwrap()),
    }));
    let mut journal = Journal::open(&env.store().join("sessions.db")).unwrap();
    let id: EventId = "01990000-0000-7000-8000-000000000007".parse().unwrap();
    let now: Timestamp = at.parse().unwrap();
    journal.append(now, vec![NewEvent { id, session_id: session, event }], &[]).unwrap();
    session
}

/// The supervisor's lock, last touched at some moment.
pub(crate) fn heartbeat(env: &TestEnv, session: SessionId, at: &str) -> File {
    let file = File::create(env.store().join(format!("runs/{session}.lock"))).unwrap();
    let at: Timestamp = at.parse().unwrap();
    let since = Duration::from_millis(at.as_millis().unsigned_abs());
    file.set_modified(SystemTime::UNIX_EPOCH + since).unwrap();
    file
}

fn this_process() -> ProcessId {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 1..].split_whitespace().collect();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let started = fields[19].parse().unwrap();
    ProcessId { pid: std::process::id(), started, boot: boot.trim_end().to_owned() }
}

#[test]
fn an_agent_that_was_killed_is_missed_by_the_next_command_and_told_once() {
    let env = git_env();
    let child = agent(&env, "claude-code", &["UserPromptSubmit"]);
    assert_eq!(env.json("session show")["status"], "active");
    let pid = kill(child);
    assert_snapshot!(env.run("session list").replace(&pid, "PID"), @"
    ID               Agent        Status       Updated           Name  Task
    task-00000001    claude-code  interrupted  2026-01-21 14:31        Build it
    note: session task-00000001 was interrupted: Claude Code (process PID) is gone and did not say goodbye; `biv session recover task-00000001` brings it back
    ");
    assert_snapshot!(env.run("session list --status interrupted"), @"
    ID               Agent        Status       Updated           Name  Task
    task-00000001    claude-code  interrupted  2026-01-21 14:31        Build it
    ");
    assert_snapshot!(env.run("status").replace(&pid, "PID"), @"
    Workspace  [root]/project
    Session    task-00000001 (interrupted): Build it
    Recover    `biv session recover task-00000001` brings it back
    Changes    0 new, 0 modified, 0 deleted to save
    Coverage   0 files, 0 B; nothing left out
    warning    2026-01-21 14:31 session interrupted: Claude Code (process PID) is gone and did not say goodbye
    ");
    // An agent that comes back makes it active again.
    let child = agent(&env, "claude-code", &["UserPromptSubmit"]);
    assert_eq!(env.json("session show")["status"], "active");
    kill(child);
}

#[test]
fn an_agent_that_said_goodbye_is_not_missed() {
    let env = git_env();
    kill(agent(&env, "claude-code", &["UserPromptSubmit", "Stop", "SessionEnd"]));
    assert_eq!(env.json("session show")["status"], "active");
}

#[test]
fn an_agent_that_never_says_goodbye_is_missed_in_the_middle_of_a_turn_only() {
    let env = git_env();
    kill(agent(&env, "opencode", &["chat.message", "session.idle"]));
    assert_eq!(env.json("session show")["status"], "active");
    let pid = kill(agent(&env, "opencode", &["chat.message"]));
    assert_snapshot!(env.run("session show --json").replace(&pid, "PID").lines().last().unwrap(), @"note: session task-00000001 was interrupted: opencode (process PID) is gone in the middle of a turn; `biv session recover task-00000001` brings it back");
}

#[test]
fn many_commands_at_once_miss_it_once() {
    let env = git_env();
    killed(&env);
    let children: Vec<Child> = (0..6).map(|_| env.start(&["session", "list"])).collect();
    let told = children.into_iter().map(|child| env.finish(child).ok().stderr);
    assert_eq!(told.filter(|it| it.contains("was interrupted")).count(), 1);
    let n = env.sql_text("SELECT '' || count(*) FROM events WHERE kind = 'session.interrupted'");
    assert_eq!(n, "1");
}

#[test]
fn work_elsewhere_is_counted_only() {
    let env = git_env();
    let pid = killed(&env);
    let elsewhere = env.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    assert_snapshot!(env.biv_in(&elsewhere, &["session", "list"]).text(), @"
    No sessions found. Run `biv session new` or `biv checkpoint create` to make one.
    note: 1 session stopped in other workspaces; `biv session list --all --status interrupted` shows more
    ");
    assert!(env.run("status").contains(&format!("(process {pid}) is gone")));
}

#[test]
fn a_paused_session_is_left_alone() {
    let env = git_env();
    let child = agent(&env, "claude-code", &["UserPromptSubmit"]);
    env.biv(&["pause"]).ok();
    kill(child);
    assert_eq!(env.json("session show")["status"], "paused");
}

#[test]
fn a_run_that_nobody_saw_end_is_interrupted() {
    let env = git_env();
    env.write("a", "1");
    env.biv(&["session", "new"]).ok();
    let session = run_started(&env, None, "2026-01-21T14:31:00Z");
    let held = heartbeat(&env, session, "2026-01-21T14:32:00Z");
    held.lock().unwrap();
    assert_eq!(env.json("session show")["status"], "active");
    drop(held);
    assert_snapshot!(env.run("session list"), @"
    ID               Agent        Status       Updated           Name  Task
    task-00000001    manual       interrupted  2026-01-21 14:33
    note: session task-00000001 was interrupted: Process is gone, and nobody saw it end; `biv session recover task-00000001` brings it back
    ");
    assert_snapshot!(env.run("session log"), @"
    When              Level    What
    2026-01-21 14:30  info     session created for manual
    2026-01-21 14:31  info     running `claude -p Train for 24 hours`
    2026-01-21 14:33  info     Process is gone, and nobody saw it end
    2026-01-21 14:33  warning  session interrupted: Process is gone, and nobody saw it end
    ");
}

#[test]
fn a_run_that_lived_up_to_its_deadline_has_timed_out() {
    let env = git_env();
    env.write("a", "1");
    env.biv(&["session", "new"]).ok();
    let session = run_started(&env, None, "2026-01-20T14:31:00Z");
    drop(heartbeat(&env, session, "2026-01-21T14:31:00Z"));
    assert_snapshot!(env.run("session list"), @"
    ID               Agent        Status     Updated           Name  Task
    task-00000001    manual       failed     2026-01-21 14:32
    note: session task-00000001 failed: Container timeout after 24 hours; `biv session recover task-00000001` brings it back
    ");
}

#[test]
fn a_child_that_outlives_its_supervisor_keeps_the_session_active() {
    let env = git_env();
    env.write("a", "1");
    env.biv(&["session", "new"]).ok();
    let child = this_process();
    let pid = child.pid.to_string();
    run_started(&env, Some(child), "2026-01-21T14:31:00Z");
    assert_snapshot!(env.run("status").replace(&pid, "PID"), @"
    Workspace  [root]/project
    Session    task-00000001 (active)
    Run        its supervisor is gone; process PID still runs
    Changes    1 new, 0 modified, 0 deleted to save
    Coverage   1 file, 1 B; nothing left out
    ");
    let refused = env.run("session recover --action fresh").replace(&pid, "PID");
    assert_snapshot!(refused, @"
    exit 1
    error: a command still runs in session task-00000001 (process PID)
    hint: end it first; `biv resume --force` starts another beside it
    ");
}

#[test]
fn a_read_only_look_leaves_no_store_behind() {
    let env = git_env();
    env.biv(&["session", "list"]).ok();
    assert!(!Path::new(&env.store()).exists());
}
