//! `biv doctor`: what holds, what does not, and what to do about it.

use std::fs;

use bivouac_testkit::TestEnv;
use insta::assert_snapshot;
use serde_json::Value;

use crate::env;

/// An agent that can say its version.
fn with_agent(program: &str, version: &str) -> TestEnv {
    let mut env = env();
    env.program(program, &format!("echo '{version}'"));
    env
}

/// Without what differs from run to run.
fn steady(text: &str) -> String {
    let is_time = |word: &str| word.parse::<u32>().is_ok();
    let mut words: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        words.clear();
        words.extend(line.split(' '));
        for at in 1..words.len() {
            if words[at] == "ms" && is_time(words[at - 1]) {
                words[at - 1] = "[N]";
            }
        }
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

fn examined(env: &TestEnv, agent: &str) -> String {
    steady(&env.run(&format!("doctor --agent {agent}")))
}

fn links(env: &TestEnv, agent: &str) -> Vec<(String, String)> {
    let run = env.biv(&["doctor", "--agent", agent, "--json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let links = document["agents"][0]["links"].as_array().unwrap().iter();
    let text = |link: &Value, name: &str| link[name].as_str().unwrap().to_owned();
    links.map(|link| (text(link, "link"), text(link, "health"))).collect()
}

#[test]
fn what_is_missing_has_a_remedy() {
    assert_snapshot!(examined(&env(), "claude-code"), @"
    exit 3
    ok  store     [root]/home/.local/share/bivouac (made with the first checkpoint)
    claude-code
      bad program   `claude` is not on the `PATH`
                    install it
      bad hooks     not installed
                    run `biv setup`
      bad server    not installed
                    run `biv setup`
      bad commands  not installed
                    run `biv setup`
      ?   heard     it has not told anything yet
                    start `claude` in a project and say something; then look again
    ");
}

#[test]
fn what_was_set_up_holds() {
    for (agent, program, version) in [
        ("claude-code", "claude", "2.1.325 (Claude Code)"),
        ("gemini", "gemini", "0.61.0"),
        ("opencode", "opencode", "1.18.33"),
        ("copilot", "copilot", "GitHub Copilot CLI 1.0.102."),
    ] {
        let env = with_agent(program, version);
        env.biv(&["setup", "--agent", agent, "--yes"]).ok();
        let links = links(&env, agent);
        let wrong: Vec<_> =
            links.iter().filter(|(name, health)| health != "good" && name != "heard").collect();
        assert!(wrong.is_empty(), "{agent}: {}", examined(&env, agent));
        assert!(links.iter().any(|(name, _)| name == "context"), "{agent}: {links:?}");
    }
}

#[test]
fn codex_has_to_be_told_to_trust() {
    let env = with_agent("codex", "codex-cli 0.166.0");
    env.biv(&["setup", "--agent", "codex", "--yes"]).ok();
    assert_snapshot!(examined(&env, "codex"), @"
    exit 3
    ok  store     [root]/home/.local/share/bivouac (made with the first checkpoint)
    codex
      ok  program   codex 0.166.0
      ok  hooks     [root]/home/.codex/hooks.json
      bad trust     codex passes over 12 of 12 hooks until you agree to them
                    start `codex` once and choose `Trust all and continue`; it asks again whenever they change
      ok  hook      it takes in what the agent tells, within [N] ms
      ok  context   its answer tells the model where the work stands
      ok  server    it offers 12 tools, within [N] ms
      ok  commands  [root]/home/.codex/skills/bivouac/SKILL.md
      ?   heard     it has not told anything yet
                    start `codex` in a project and say something; then look again
    ");
}

#[test]
fn what_was_changed_since_is_found() {
    let env = with_agent("claude", "2.1.3 (Claude Code)");
    env.biv(&["setup", "--agent", "claude-code", "--yes"]).ok();
    let settings = env.home().join(".claude/settings.json");
    let text = fs::read_to_string(&settings).unwrap();
    // A program that has moved, and a switch that somebody forgot.
    fs::write(
        &settings,
        text.replace("biv' hook claude-code Stop", "gone/biv' hook claude-code Stop"),
    )
    .unwrap();
    assert_snapshot!(examined(&env, "claude-code"), @"
    exit 3
    ok  store     [root]/home/.local/share/bivouac (made with the first checkpoint)
    claude-code
      bad program   2.1.3 is older than what is known to work
                    upgrade it to 2.1.197
      bad hooks     [root]/home/.claude/settings.json is not what this `biv` writes
                    run `biv setup`
      ok  server    it offers 12 tools, within [N] ms
      ok  commands  [root]/home/.claude/commands/checkpoint.md
      ?   heard     it has not told anything yet
                    start `claude` in a project and say something; then look again
    ");
    fs::write(&settings, text.replacen('{', "{\n  \"disableAllHooks\": true,", 1)).unwrap();
    let trust = links(&env, "claude-code").into_iter().find(|(name, _)| name == "trust");
    assert_eq!(trust.unwrap().1, "bad");
}

/// What a package brings is not in the settings, and works all the same.
#[test]
fn what_was_heard_may_have_come_in_a_package() {
    let env = with_agent("claude", "2.1.325 (Claude Code)");
    let input = format!(r#"{{"session_id":"s","cwd":"{}","prompt":"hi"}}"#, env.work().display());
    env.hook("claude-code", "UserPromptSubmit", input);
    let links = links(&env, "claude-code");
    let of = |name: &str| links.iter().find(|(it, _)| it == name).unwrap().1.as_str();
    assert_eq!((of("hooks"), of("server"), of("heard")), ("unknown", "unknown", "good"));
}

#[test]
fn a_store_that_cannot_be_used_is_told_first() {
    let env = env();
    env.write("a", "1").run("checkpoint create");
    fs::write(
        env.store().join("sessions.db"),
        "this is no database, and long enough to be taken for one",
    )
    .unwrap();
    let _gone = fs::remove_file(env.store().join("sessions.db-wal"));
    let said = env.run("doctor");
    assert!(said.starts_with("exit 3\nbad store"), "{said}");
}

#[test]
fn nothing_is_left_behind_and_nothing_is_told_to_the_store() {
    let mut env = with_agent("claude", "2.1.325 (Claude Code)");
    let aside = env.root().join("tmp");
    fs::create_dir(&aside).unwrap();
    env.set("TMPDIR", &aside);
    env.biv(&["setup", "--agent", "claude-code", "--yes"]).ok();
    env.run("doctor");
    assert_eq!(env.json("session list --all"), Value::Array(Vec::new()));
    assert_eq!(fs::read_dir(aside).unwrap().count(), 0);
}
