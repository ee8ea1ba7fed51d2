//! `biv attach`, and what becomes of a terminal on the way

use bivouac_testkit::{Normalizer, TestEnv, TmuxServer, until};
use insta::assert_snapshot;
use serde_json::json;

use crate::env;

/// An agent that talks for a while, and then waits.
pub(crate) const AGENT: &str =
    "case $1 in --version) echo 9.9.9;; *) seq 300; exec sleep 600;; esac";

/// A session with a checkpoint, and an agent to go on with.
pub(crate) fn with_agent() -> TestEnv {
    let mut env = env();
    env.program("codex", AGENT);
    env.write("a", "1").folder("web");
    env.biv(&["session", "new", "--agent", "codex", "--name", "auth"]).ok();
    env.biv(&["checkpoint", "create"]).ok();
    env
}

pub(crate) fn handle(env: &TestEnv) -> String {
    env.json("session show auth")["handle"].as_str().unwrap().to_owned()
}

/// What can be seen of all panes.
fn panes(server: &TmuxServer<'_>, env: &TestEnv) -> String {
    let form = "#{window_index} #{window_name} #{window_width}x#{window_height} \
        #{pane_width}x#{pane_height} #{?pane_active,active,-} #{@biv-agent} #{pane_current_path}";
    let text = server.ask(&["list-panes", "-a", "-F", form]);
    Normalizer::new(&env.root().canonicalize().unwrap()).apply(&text)
}

/// tmux asks the system for the folder of what runs in a pane, which has none until it has begun.
fn are_in_place(panes: &str) -> bool {
    panes.matches("/project").count() == 3 && panes.matches("/web").count() == 2
}

/// Without notes: what they say differs from machine to machine.
fn resumed(env: &TestEnv) -> String {
    let text = env.run("resume auth --tmux");
    text.lines().filter(|it| !it.starts_with("note: ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_layout_comes_back_after_its_server_is_gone() {
    let env = with_agent();
    let name = handle(&env);
    let target = format!("={name}:");
    {
        let Some(server) = env.tmux_server() else { return };
        assert_snapshot!(resumed(&env), @"Started in tmux; look at it with `biv attach task-00000001`");
        let tmux = |line: &str| {
            let line = line.replace("SESSION", &target);
            server.ask(&line.split(' ').collect::<Vec<_>>())
        };
        let web = env.path("web");
        let web = web.to_str().unwrap();
        tmux("rename-window -t SESSION agent");
        tmux(&format!("split-window -h -d -l 50 -c {web} -t SESSION sleep 601"));
        tmux(&format!("new-window -d -n logs -c {web} -t SESSION sleep 602"));
        until("the panes", || are_in_place(&panes(&server, &env)));
        assert_snapshot!(panes(&server, &env), @"
        0 agent 200x50 149x50 active 1 [root]/project
        0 agent 200x50 50x50 -  [root]/project/web
        1 logs 200x50 200x50 active  [root]/project/web
        ");
        env.write("a", "2");
        // As an agent's hook would, from its pane.
        let save = format!("{} checkpoint create auth --name in-tmux", env!("CARGO_BIN_EXE_biv"));
        tmux(&format!("respawn-pane -k -t SESSION0.0 env BIV_STORE_MIN_FREE=0 {save}"));
        until("the checkpoint", || env.run("checkpoint show in-tmux").contains("Terminal"));
        server.end();
    }
    let shown = env.run("checkpoint show in-tmux");
    assert!(shown.contains("Terminal   tmux task-00000001, 2 windows, 3 panes"), "{shown}");
    let Some(server) = env.tmux_server() else { return };
    assert_snapshot!(resumed(&env), @"Started in tmux; look at it with `biv attach task-00000001`");
    until("the folders", || are_in_place(&panes(&server, &env)));
    assert_snapshot!(panes(&server, &env), @"
    0 agent 200x50 149x50 active 1 [root]/project
    0 agent 200x50 50x50 -  [root]/project/web
    1 logs 200x50 200x50 active  [root]/project/web
    ");
    until("what ran", || {
        server.ask(&["capture-pane", "-p", "-t", &format!("{target}1")]).contains("sleep 602")
    });
    assert_snapshot!(resumed(&env), @"
    exit 1
    error: session task-00000001 is already in tmux
    hint: `biv attach task-00000001` shows it
    ");
    assert_snapshot!(env.run("attach auth"), @"From a terminal: tmux attach-session -t =task-00000001");

    // It leaves with the checkpoint, and comes in again.
    env.biv(&["export", "bundle", "in-tmux", "--file", "../bundle.tar.gz"]).ok();
    env.biv(&["import", "bundle", "../bundle.tar.gz", "--name", "other"]).ok();
    let (own, other) =
        (env.json("checkpoint show in-tmux"), env.json("checkpoint show latest --session other"));
    assert_eq!(own["terminal"], other["terminal"]);
    assert_eq!(own["environment"], other["environment"]);
    assert_eq!(own["terminal"]["windows"][1]["panes"][0]["command"], json!(["sleep", "602"]));
}

#[test]
fn whoever_leaves_with_the_keys_of_tmux_leaves_a_checkpoint() {
    let env = with_agent();
    let Some(server) = env.tmux_server() else { return };
    env.biv(&["resume", "auth", "--tmux"]).ok();
    env.write("a", "2");
    server.run_aside(&format!("{} attach auth", env!("CARGO_BIN_EXE_biv")));
    until("someone who looks", || !server.ask(&["list-clients"]).is_empty());
    server.press_aside(&["C-b", "d"]);
    until("nobody who looks", || server.ask(&["list-clients"]).is_empty());
    until("the checkpoint", || env.run("checkpoint list").contains("DETACH"));
    let shown = env.json("checkpoint show latest");
    assert_eq!(shown["trigger"], "DETACH");
    assert_eq!(shown["terminal"]["session"], handle(&env));
    assert_eq!(shown["terminal"]["windows"][0]["panes"][0]["is_agent"], true);
    // Who saved it stood elsewhere: the environment is the agent's.
    let first = env.json("checkpoint show cp-001");
    assert_eq!(shown["environment"], first["environment"]);
}

#[test]
fn a_session_that_is_not_in_tmux_says_how_to_get_there() {
    let env = with_agent();
    let Some(_server) = env.tmux_server() else { return };
    assert_snapshot!(env.run("attach auth"), @"
    exit 1
    error: session task-00000001 is not in tmux
    hint: `biv resume task-00000001 --tmux` goes on with it there
    ");
    env.biv(&["session", "complete", "auth"]).ok();
    assert_snapshot!(env.run("attach auth"), @"
    exit 1
    error: session task-00000001 is completed, and no longer in tmux
    hint: `biv resume task-00000001 --tmux` goes on with it there
    ");
}

#[test]
fn without_tmux_everything_else_works() {
    let mut env = with_agent();
    let bin = env.root().join("bin");
    for program in ["sh", "seq", "sleep", "git"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|folder| folder.join(program))
            .find(|path| path.exists());
        std::os::unix::fs::symlink(found.unwrap(), bin.join(program)).unwrap();
    }
    env.set("PATH", &bin);
    env.set("TMUX", "/no/such/socket,1,0").set("TMUX_PANE", "%0");
    assert_snapshot!(env.run("resume auth --tmux"), @"
    exit 1
    error: there is no tmux, 3.0 or newer, on the `PATH`
    hint: install it; only `--tmux` and `biv attach` need it
    ");
    assert_snapshot!(env.run("attach auth"), @"
    exit 1
    error: there is no tmux, 3.0 or newer, on the `PATH`
    hint: install it; only `--tmux` and `biv attach` need it
    ");
    env.write("a", "2");
    assert_snapshot!(env.run("checkpoint create"), @"Saved checkpoint cp-20260121-002 of task-00000001: 1 file, 1 changed");
    let log = env.run("session log auth");
    assert!(log.contains("the terminal was not captured: could not start `tmux`"), "{log}");
    assert!(env.run("resume auth --print").contains("BIV_SESSION="));
}

#[test]
fn a_tmux_that_hangs_is_given_up() {
    let mut env = with_agent();
    env.program("tmux", "exec sleep 60");
    env.set("TMUX", "/no/such/socket,1,0").set("TMUX_PANE", "%0");
    env.write("a", "2");
    env.biv(&["checkpoint", "create"]).ok();
    let log = env.run("session log auth");
    assert!(log.contains("the terminal was not captured: `tmux` did not answer within 1"), "{log}");
}
