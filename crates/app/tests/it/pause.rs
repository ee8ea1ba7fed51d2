//! `biv pause`: until when

use insta::assert_snapshot;
use serde_json::json;

use crate::{env, git_env};

#[test]
fn a_session_is_paused_until_some_time() {
    let env = env();
    env.write("a", "1");
    env.biv(&["session", "new", "--name", "work"]).ok();
    assert_snapshot!(env.run("pause --until 16:31 --reason \"lunch\""), @"Session task-00000001 is paused until 16:31 (in 2 hours)");
    assert_snapshot!(env.run("status"), @"
    Workspace  [root]/project
    Session    task-00000001 (paused): work
    Paused     until 16:31 (in 1 hour)
    Changes    1 new, 0 modified, 0 deleted to save
    Coverage   1 file, 1 B; nothing left out
    ");
    assert_snapshot!(env.run("session list"), @"
    ID               Agent        Status                          Updated           Name  Task
    task-00000001    manual       paused until 16:31 (in 1 hour)  2026-01-21 14:31  work
    ");
    assert_snapshot!(env.run("session show"), @"
    Session task-00000001
      Id           id-1
      Name         work
      Agent        manual
      Status       paused until 16:31 (in 1 hour): lunch
      Workspace    [root]/project
      Created      2026-01-21 14:30
      Updated      2026-01-21 14:31
      Checkpoints  0
    ");
    assert_eq!(env.json("session show")["until"], "2026-01-21T16:31:00.000Z");
    // The time comes.
    env.set_minute(200);
    assert_snapshot!(env.run("session list"), @"
    ID               Agent        Status                     Updated           Name  Task
    task-00000001    manual       paused until 16:31 (over)  2026-01-21 14:31  work
    ");
    env.biv(&["session", "resume"]).ok();
    assert!(env.json("session show")["until"].is_null());
}

#[test]
fn times_are_written_as_people_do() {
    let env = env();
    env.biv(&["session", "new"]).ok();
    for (text, until) in [
        ("2h", "2026-01-21T16:31:00.000Z"),
        ("14:00", "2026-01-22T14:00:00.000Z"),
        ("2026-01-25 08:00", "2026-01-25T08:00:00.000Z"),
    ] {
        env.set_minute(1);
        env.biv(&["session", "pause", "--until", text]).ok();
        assert_eq!(env.json("session show")["until"], until, "{text}");
        env.biv(&["session", "resume"]).ok();
    }
    assert_snapshot!(env.run("pause --until lunch"), @"
    exit 2
    error: `lunch` is no time
    hint: write it as `14:30`, `2h`, `2026-03-01 14:30` or `reset`
    ");
    assert_snapshot!(env.run("pause --until \"2026-01-20 08:00\""), @"
    exit 2
    error: `2026-01-20 08:00` is over already
    hint: name a time that is still to come, or leave `--until` out
    ");
    assert_snapshot!(env.run("pause --until 9d"), @"
    exit 2
    error: `9d` is more than 8 days ahead
    hint: leave `--until` out: it is paused until someone takes it up
    ");
    assert_snapshot!(env.run("pause --until reset"), @"
    exit 1
    error: the agent of session task-00000001 spoke of no limit
    hint: name the time: `--until 14:30`
    ");
}

#[test]
fn the_end_of_a_limit_is_what_the_agent_said() {
    let env = git_env();
    env.write("a", "1");
    let told = |event: &str, more: &str| {
        let input = json!({ "session_id": "c1", "cwd": env.work(), "prompt": "one", "last_assistant_message": more });
        env.hook("claude-code", event, input.to_string()).ok();
    };
    told("UserPromptSubmit", "");
    told("StopFailure", "5-hour limit reached ∙ resets 3pm");
    told("SessionEnd", "");
    assert_snapshot!(env.run("status"), @"
    Workspace  [root]/project
    Session    task-00000001 (active): one
    Limit      can go on at 15:00 (in 27 minutes)
    Last       cp-20260121-001 (ERROR), 2 minutes ago
    Changes    0 new, 0 modified, 0 deleted since then
    Coverage   1 file, 1 B; nothing left out
    warning    2026-01-21 14:31 the turn failed: 5-hour limit reached ∙ resets 3pm
    ");
    assert!(env.run("session show").contains("Limit        can go on at 15:00 (in 26 minutes)"));
    let briefing = env.run("rehydrate");
    assert!(briefing.contains("resets 3pm (can go on at 15:00)"), "{briefing}");
    assert_snapshot!(env.run("pause --until reset"), @"Session task-00000001 is paused until 15:00 (in 24 minutes)");
    let resumed = env.run("resume --print");
    let note = "note: it is paused until 15:00; the agent's limit may not be over";
    assert!(resumed.contains(note), "{resumed}");
    // Once it is over, nothing is said of it any more.
    env.set_minute(60);
    assert!(env.json("status")["can_go_on_at"].is_null());
}
