//! `biv submit`: a prompt for an agent that works it off by itself

use std::fs;

use bivouac_testkit::TestEnv;

use crate::env;

/// A program by an agent's name, which says how it was called.
fn with_agent(env: &mut TestEnv, name: &str) {
    let folder = env.root().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join(name);
    fs::write(&program, "#!/bin/sh\nfor word; do echo \"$word\"; done > called\n").unwrap();
    env.command("chmod", env.root()).arg("755").arg(&program).status().unwrap();
    let path = std::env::var("PATH").unwrap();
    env.set("PATH", format!("{}:{path}", folder.display()));
}

#[test]
fn the_agents_own_command_works_off_a_prompt() {
    let check = |agent: &str, program: &str, expected: &str| {
        let mut env = env();
        with_agent(&mut env, program);
        env.live(&["submit", "Train for 24 hours", "--agent", agent, "--", "--model", "x"]).ok();
        assert_eq!(env.read("called"), expected, "{agent}");
        let session = &env.json("session list")[0];
        assert_eq!(session["task_description"], "Train for 24 hours");
        assert_eq!(session["agent_type"], agent);
        assert_eq!(session["status"], "completed");
    };
    check("claude-code", "claude", "-p\nTrain for 24 hours\n--model\nx\n");
    check("codex", "codex", "exec\n--model\nx\nTrain for 24 hours\n");
    check("gemini", "gemini", "-p\nTrain for 24 hours\n--model\nx\n");
    check("opencode", "opencode", "run\n--model\nx\nTrain for 24 hours\n");
    check("copilot", "copilot", "-p\nTrain for 24 hours\n--model\nx\n");
}

#[test]
fn an_agent_that_is_not_there_is_told() {
    let mut env = env();
    env.set("PATH", "/nowhere");
    insta::assert_snapshot!(env.run("submit Refactor"), @"
    exit 127
    error: there is no program `claude`
    hint: check its name, and that it is installed and on the `PATH`
    ");
}
