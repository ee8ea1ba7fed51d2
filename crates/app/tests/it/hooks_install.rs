//! `biv hooks install`

use std::fs;

use insta::assert_snapshot;

use crate::env;

#[test]
fn it_shows_what_it_changes_and_asks() {
    let env = env();
    fs::create_dir_all(env.home().join(".claude")).unwrap();
    fs::create_dir_all(env.home().join(".codex")).unwrap();
    assert_snapshot!(env.run("hooks install --agent claude-code --agent codex"), @"
    exit 2
    claude-code  make [root]/home/.claude/settings.json
    codex        make [root]/home/.codex/hooks.json
    error: changing the settings of agents needs a confirmation, and there is no terminal to ask on
    hint: look at what it would do, then pass `--yes`
    ");
    assert!(!env.home().join(".claude/settings.json").exists());
    assert_snapshot!(env.run("hooks install --agent claude-code --agent codex --yes"), @"
    claude-code  make [root]/home/.claude/settings.json
    codex        make [root]/home/.codex/hooks.json
    Every turn of these agents is now saved
    note: Codex asks you to review new hooks once: start it, and say yes
    ");
    assert_snapshot!(env.run("hooks install --agent claude-code --yes"), @"claude-code  has our hooks already");
    let settings = fs::read_to_string(env.home().join(".claude/settings.json")).unwrap();
    assert!(settings.contains("hook claude-code Stop 2>/dev/null || true"), "{settings}");
}

#[test]
fn settings_that_make_no_sense_are_left_as_they_are() {
    let env = env();
    fs::create_dir_all(env.home().join(".gemini")).unwrap();
    let path = env.home().join(".gemini/settings.json");
    fs::write(&path, "{ // a comment\n}").unwrap();
    let text = env.run("hooks install --agent gemini --yes");
    assert!(text.starts_with("exit 1\nerror: could not change `[root]/home/.gemini/settings.json`: it is not valid JSON"), "{text}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{ // a comment\n}");
    assert_snapshot!(env.run("hooks install --agent cursor --yes").lines().nth(1).unwrap(), @"error: invalid value 'cursor' for '--agent <AGENT>': there is no agent `cursor` here; the agents are claude-code, codex, gemini, opencode, copilot");
}

#[test]
fn a_project_shares_its_hooks() {
    let env = env();
    env.biv(&["hooks", "install", "--agent", "claude-code", "--scope", "project", "--yes"]).ok();
    assert!(env.read(".claude/settings.json").contains("\"biv hook claude-code Stop"));
    assert!(
        env.run("hooks install --agent copilot --scope project --yes")
            .contains("knows no hooks of a project")
    );
}

#[test]
fn settings_of_a_project_that_are_links_or_no_files_are_not_used() {
    let env = env();
    let outside = env.root().join("outside.json");
    std::fs::write(&outside, "{}").unwrap();
    let install = ["hooks", "install", "--agent", "claude-code", "--scope", "project", "--yes"];
    env.folder(".claude").link(".claude/settings.json", &outside);
    let run = env.biv(&install);
    assert!(run.stderr.contains("settings.json` is a link, or behind one"), "{}", run.stderr);
    env.remove(".claude").link(".claude", env.root());
    let run = env.biv(&install);
    assert!(run.stderr.contains("settings.json` is a link, or behind one"), "{}", run.stderr);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "{}");
    assert!(!env.root().join("settings.json").exists());
    env.remove(".claude").folder(".claude");
    let fifo = env.path(".claude/settings.json");
    assert!(env.command("mkfifo", env.root()).arg(fifo).status().unwrap().success());
    let run = env.biv(&install);
    assert!(run.stderr.contains("it is not a regular file"), "{}", run.stderr);
}
