//! `biv environment`, and what checkpoints keep of where an agent works

use std::fs;

use bivouac_testkit::{TestEnv, until};
use insta::assert_snapshot;
use serde_json::json;

use crate::env;

/// A project with tools of several kinds, one of which does not tell its version.
fn project() -> TestEnv {
    let mut env = env();
    env.program("cargo", "echo cargo 1.2.3")
        .program("rustc", "exit 1")
        .program("gradle", "echo Gradle 8.5");
    env.write("Cargo.toml", "").write("build.gradle", "").write("uv.lock", "");
    env.program("python3", "echo Python 3.9.1")
        .program("uv", "echo uv 0.4.18")
        .program("java", "echo openjdk 17 2021");
    env
}

#[test]
fn a_checkpoint_keeps_versions_and_the_names_of_variables() {
    let mut env = project();
    env.set("NODE_ENV", "test").set("DATABASE_URL", "postgres://me:hunter2222@db/x");
    env.set("STRIPE_API_KEY", "sk_live_0123456789abcdefghijklmn");
    env.write("web/a", "1");
    env.biv(&["-C", "web", "--root", "..", "checkpoint", "create"]).ok();
    assert_snapshot!(env.run("checkpoint show latest"), @"
    Checkpoint cp-20260121-001
      Id         id-1
      Session    task-00000001
      Trigger    MANUAL
      Created    2026-01-21 14:30:00
      By         tester@here
      Coverage   4 files, 1 B; nothing left out
      Folder     [root]/project/web
      Tools      cargo 1.2.3, gradle 8.5, java 17, python3 3.9.1, uv 0.4.18
      Variables  4 kept, 2 by name
    ");
    let mut kept = env.json("checkpoint show latest")["environment"].clone();
    kept["variables"]["PATH"] = json!("…");
    kept["cwd"] = json!("…");
    assert_snapshot!(kept, @r#"{"cwd":"…","variables":{"LC_ALL":"C.UTF-8","NODE_ENV":"test","PATH":"…","TZ":"UTC"},"other_names":["DATABASE_URL","STRIPE_API_KEY"],"tools":{"cargo":"1.2.3","gradle":"8.5","java":"17","python3":"3.9.1","uv":"0.4.18"}}"#);
    let everything = env.json("checkpoint show latest").to_string();
    assert!(!everything.contains("hunter2222") && !everything.contains("sk_live"), "{everything}");
}

#[test]
fn what_differs_is_told_when_comparing_and_resuming() {
    let mut env = project();
    env.set("NODE_ENV", "test").set("APP_DB", "x");
    env.biv(&["session", "new", "--agent", "codex", "--name", "auth"]).ok();
    env.biv(&["checkpoint", "create"]).ok();
    env.program("cargo", "echo cargo 1.3.0 # another").set("NODE_ENV", "production");
    fs::remove_file(env.root().join("bin/uv")).unwrap();
    assert_snapshot!(env.run("checkpoint diff cp-001"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-001 (2026-01-21 14:31)
    To:   workspace (2026-01-21 14:32)

    No files changed

    Environment:
      cargo 1.2.3 → 1.3.0
      uv 0.4.18 is missing
      NODE_ENV test → production
    ");
    let told = env.run("resume auth --print");
    // What it costs depends on the letters of random ids.
    let told: Vec<&str> = told.lines().filter(|it| !it.contains("costs")).collect();
    assert_snapshot!(told.join("\n"), @"
    cd [root]/project && BIV_SESSION=id-1 codex
    note: resuming task-00000001 from cp-20260121-001 (MANUAL), 2 minutes ago
    note: cargo 1.2.3 → 1.3.0
    note: uv 0.4.18 is missing
    note: NODE_ENV test → production
    ");
    env.biv(&["checkpoint", "create"]).ok();
    assert_snapshot!(env.run("checkpoint diff cp-001 cp-002"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-001 (2026-01-21 14:31)
    To:   cp-20260121-002 (2026-01-21 14:34)

    No files changed

    Environment:
      cargo 1.2.3 → 1.3.0
      uv 0.4.18 is missing
      NODE_ENV test → production
    ");
    assert_eq!(
        env.json("checkpoint diff cp-001 cp-002")["environment"][0],
        json!({ "kind": "tool", "name": "cargo", "from": "1.2.3", "to": "1.3.0" })
    );
    assert!(!env.run("checkpoint diff cp-002").contains("Environment"));
}

#[test]
fn a_tool_is_asked_once_and_never_by_an_automatic_checkpoint() {
    let mut env = project();
    let asked = env.root().join("asked");
    env.program("cargo", &format!("echo x >> {}; echo cargo 1.2.3", asked.display()));
    let n_asked = || fs::read_to_string(&asked).unwrap_or_default().lines().count();
    env.biv(&["session", "new", "--name", "auth"]).ok();
    env.biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    let first = env.json("checkpoint show latest")["environment"]["tools"].clone();
    assert_eq!(first, json!({}), "{first}");
    // What it does not know, a process of its own finds out.
    until("an answer", || {
        let entries = fs::read_dir(env.store().join("index")).unwrap();
        let mut paths = entries.map(|it| it.unwrap().path());
        let cache = paths.find(|it| it.to_string_lossy().ends_with(".tools.json"));
        cache.is_some_and(|it| fs::read_to_string(it).unwrap().contains("1.2.3"))
    });
    assert_snapshot!(env.run("environment auth"), @"
    cargo 1.2.3
    gradle 8.5
    java 17
    python3 3.9.1
    uv 0.4.18
    ");
    env.write("a", "2");
    env.biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    env.biv(&["checkpoint", "create"]).ok();
    assert_eq!(env.json("checkpoint show cp-002")["environment"]["tools"]["cargo"], "1.2.3");
    assert_eq!(n_asked(), 1);
}

#[test]
fn a_tool_that_hangs_holds_nobody_up_for_long() {
    let mut env = project();
    env.program("cargo", "exec sleep 4");
    env.biv(&["checkpoint", "create"]).ok();
    let tools = env.json("checkpoint show latest")["environment"]["tools"].clone();
    assert_eq!(tools.get("cargo"), None);
    assert_eq!(tools["gradle"], "8.5");
}

#[test]
fn where_it_was_is_no_change_by_itself() {
    let mut env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.set("NODE_ENV", "test");
    assert_eq!(env.json("checkpoint create --trigger turn")["skipped"], true);
}

#[test]
fn more_variables_are_kept_on_request_but_no_secrets() {
    let mut env = env();
    env.set("BIV_ENVIRONMENT_ALLOW", "MYAPP_*,GITHUB_TOKEN");
    env.set("MYAPP_MODE", "fast").set("MYAPP_PASSWORD", "hunter2222").set("GITHUB_TOKEN", "abc");
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let kept = env.json("checkpoint show latest")["environment"].clone();
    assert_eq!(kept["variables"]["MYAPP_MODE"], "fast");
    assert_eq!(kept["other_names"], json!(["GITHUB_TOKEN", "MYAPP_PASSWORD"]));
    env.write("bivouac.toml", "[environment]\nallow = [\"*\"]\n");
    assert_snapshot!(env.run("config show"), @"
    exit 1
    error: `environment.allow` is for your own configuration, so a workspace cannot set it
    hint: remove it from `bivouac.toml`; if you want it, put it into `[root]/home/.config/bivouac/config.toml`
    ");
}
