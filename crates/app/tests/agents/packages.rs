//! What agents get from us, given to the released ones: by `biv setup`, and by their own means from the packages.
//! Both ways a command is typed, answered and kept, and all of it goes again.

use std::fs;
use std::path::PathBuf;

use bivouac_engine::setup;
use bivouac_testkit::agents::Lab;

use crate::agent;

/// Means something to every shell, and nothing to us.
const TYPED: &str = "save it's $(touch pwned) `touch pwned` \"done\"";
const LABEL: &str = "it-s-touch-pwned-touch-pwned-done";

/// The packages, somewhere else than in this project.
fn market(lab: &Lab) -> PathBuf {
    let folder = lab.root().join("market");
    for (path, text) in setup::packages() {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// The checkpoint that was asked for is there once, nothing else was done, and hooks told of the conversation.
fn assert_saved(lab: &Lab, name: &str) {
    let list = lab.json(&["checkpoint", "list"]);
    let named = list.as_array().unwrap().iter().filter(|it| it["name"] == LABEL).count();
    assert_eq!(named, 1, "{name}: {list:#}");
    assert!(!lab.work().join("pwned").exists(), "{name}");
    let sessions = lab.json(&["session", "list"]);
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{name}: {sessions:#}");
    assert_eq!(sessions[0]["agent_type"], name, "{name}: {sessions:#}");
    assert!(lab.biv(&["session", "log"]).contains("conversation"), "{name}");
    let asked = lab.last_request();
    assert!(asked.heard("The person asked Bivouac for a checkpoint."), "{name}");
    assert!(asked.heard(&format!("Label: {LABEL}")), "{name}");
}

/// The model knows when to tell us something, and can.
fn assert_taught(lab: &Lab, name: &str) {
    let asked = lab.last_request();
    assert!(asked.heard("Record decisions, blockers and steps"), "{name}");
    // Claude Code shows the tools of servers when the model looks for them.
    assert!(name == "claude-code" || asked.offers("checkpoint_save"), "{name}");
}

fn forget(lab: &Lab) {
    fs::remove_dir_all(lab.root().join("store")).unwrap();
}

#[test]
fn claude_code() {
    let Some(agent) = agent("claude-code") else {
        return;
    };
    let lab = Lab::bare(agent);
    let ask = |command: &str| {
        lab.program(&["-p", &format!("/{command} {TYPED}"), "--model", "claude-sonnet-4-5"]);
        assert_saved(&lab, "claude-code");
        assert_taught(&lab, "claude-code");
    };
    lab.biv(&["setup", "--agent", "claude-code", "--yes"]);
    let server = lab.program(&["mcp", "get", "bivouac"]);
    assert!(server.contains("Args: mcp") && server.contains("Connected"), "{server}");
    ask("checkpoint");
    lab.biv(&["setup", "--remove", "--yes"]);
    forget(&lab);
    let market = market(&lab).display().to_string();
    let package = format!("{market}/packages/claude-code");
    for path in [&market, &package] {
        assert!(lab.program(&["plugin", "validate", path]).contains("Validation passed"));
    }
    lab.program(&["plugin", "marketplace", "add", &market]);
    lab.program(&["plugin", "install", "bivouac@bivouac"]);
    let parts = lab.program(&["plugin", "details", "bivouac"]);
    for part in ["bivouac, checkpoint, rehydrate", "Hooks (14)", "MCP servers (1)"] {
        assert!(parts.contains(part), "{parts}");
    }
    ask("bivouac:checkpoint");
    lab.program(&["plugin", "uninstall", "bivouac@bivouac"]);
    lab.program(&["plugin", "marketplace", "remove", "bivouac"]);
    assert!(lab.program(&["plugin", "list"]).contains("No plugins installed"));
}

#[test]
fn codex() {
    let Some(agent) = agent("codex") else {
        return;
    };
    let lab = Lab::bare(agent);
    // The model is asked to do it, and the scripted one does not.
    let ask = |command: &str| {
        lab.agent(&format!("${command} {TYPED}"));
        let asked = lab.last_request();
        assert!(asked.heard("The person asks Bivouac for a checkpoint."), "{command}");
        assert!(asked.heard("`save LABEL`: `checkpoint_save` with that label"), "{command}");
        assert_taught(&lab, "codex");
        let list = lab.json(&["checkpoint", "list"]);
        assert_eq!(list[0]["conversation"]["agent"], "codex", "{list}");
        lab.agent("RECALL one");
        assert!(!lab.last_request().heard("Save this session with Bivouac"), "the person's alone");
    };
    lab.biv(&["setup", "--agent", "codex", "--yes"]);
    let server = lab.program(&["mcp", "get", "bivouac"]);
    assert!(server.contains("args: mcp") && server.contains("BIV_SESSION"), "{server}");
    ask("checkpoint");
    lab.biv(&["setup", "--remove", "--yes"]);
    assert!(!lab.try_run("codex", &["mcp", "list"]).contains("bivouac"));
    forget(&lab);
    let market = market(&lab).display().to_string();
    lab.program(&["plugin", "marketplace", "add", &market]);
    lab.program(&["plugin", "add", "bivouac@bivouac"]);
    ask("bivouac:checkpoint");
    lab.program(&["plugin", "remove", "bivouac@bivouac"]);
    lab.program(&["plugin", "marketplace", "remove", "bivouac"]);
    assert!(!lab.try_run("codex", &["plugin", "list"]).contains("bivouac@bivouac"));
}

#[test]
fn gemini() {
    let Some(agent) = agent("gemini") else {
        return;
    };
    let lab = Lab::bare(agent);
    let ask = |more: &[&str]| {
        let prompt = format!("/checkpoint {TYPED}");
        let words = ["-p", &prompt, "-m", "gemini-2.5-pro"];
        lab.program(&[&words[..], more].concat());
        assert_saved(&lab, "gemini");
        lab.agent("RECALL one");
        assert_taught(&lab, "gemini");
    };
    lab.biv(&["setup", "--agent", "gemini", "--yes"]);
    ask(&[]);
    lab.biv(&["setup", "--remove", "--yes"]);
    forget(&lab);
    let package = market(&lab).join("packages/gemini").display().to_string();
    assert!(lab.program(&["extensions", "validate", &package]).contains("successfully validated"));
    lab.program(&["extensions", "install", &package, "--consent"]);
    let list = lab.program(&["extensions", "list"]);
    assert!(list.contains("✓ bivouac") && list.contains("MCP servers:\n  bivouac"), "{list}");
    // An extension must not allow itself anything, so here somebody has to.
    ask(&["-y"]);
    lab.program(&["extensions", "uninstall", "bivouac"]);
    assert!(lab.program(&["extensions", "list"]).contains("No extensions installed"));
}

#[test]
fn opencode() {
    let Some(agent) = agent("opencode") else {
        return;
    };
    let lab = Lab::bare(agent);
    let ask = || {
        lab.program(&["run", "--command", "checkpoint", TYPED]);
        assert_saved(&lab, "opencode");
        assert_taught(&lab, "opencode");
    };
    lab.biv(&["setup", "--agent", "opencode", "--yes"]);
    ask();
    lab.biv(&["setup", "--remove", "--yes"]);
    assert!(!lab.program(&["mcp", "list"]).contains("bivouac"));
    forget(&lab);
    for (path, text) in setup::packages() {
        let Some(path) = path.strip_prefix("packages/opencode/") else {
            continue;
        };
        let path = lab.home().join(".config/opencode").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    ask();
}

#[test]
fn copilot() {
    let Some(agent) = agent("copilot") else {
        return;
    };
    let lab = Lab::bare(agent);
    let ask = || {
        lab.agent("RECALL one");
        assert_taught(&lab, "copilot");
        assert!(!lab.last_request().heard("Save this session with Bivouac"), "the person's alone");
        let list = lab.json(&["checkpoint", "list"]);
        assert_eq!(list[0]["conversation"]["agent"], "copilot", "{list}");
    };
    lab.biv(&["setup", "--agent", "copilot", "--yes"]);
    assert!(lab.program(&["mcp", "list"]).contains("bivouac"));
    ask();
    lab.biv(&["setup", "--remove", "--yes"]);
    assert!(!lab.program(&["mcp", "list"]).contains("bivouac"));
    forget(&lab);
    let market = market(&lab).display().to_string();
    lab.program(&["plugin", "marketplace", "add", &market]);
    let installed = lab.program(&["plugin", "install", "bivouac@bivouac"]);
    assert!(installed.contains("Installed 3 skills"), "{installed}");
    ask();
    lab.program(&["plugin", "uninstall", "bivouac@bivouac"]);
    lab.program(&["plugin", "marketplace", "remove", "bivouac"]);
}
