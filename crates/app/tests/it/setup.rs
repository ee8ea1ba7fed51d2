//! `biv setup`: all that agents get, and without a trace

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bivouac_testkit::TestEnv;
use insta::assert_snapshot;

use crate::env;

const AGENTS: [&str; 5] = ["claude-code", "codex", "gemini", "opencode", "copilot"];

const SETTINGS: &str = "{\n\t\"model\": \"opus\",\n\t\"mcpServers\": {\"x\": {\"command\": \"x\"}},\n\t\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]},\n\t\"z\": 1.50\n}";
const TOML: &str = "# mine\nmodel = \"gpt-5\"   # good\n\n[mcp_servers.x]\ncommand = 'x'\n";

/// Everything in the home but the store.
fn home(env: &TestEnv) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![env.home()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(env.home()).unwrap().to_owned();
            if path.starts_with(env.home().join(".local")) {
                continue;
            }
            if path.is_dir() {
                found.insert(name, "(folder)".to_owned());
                waiting.push(path);
            } else {
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

fn write(env: &TestEnv, path: &str, text: &str) {
    let path = env.home().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn with_settings() -> TestEnv {
    let env = env();
    write(&env, ".claude/settings.json", SETTINGS);
    write(&env, ".claude.json", SETTINGS);
    write(&env, ".codex/config.toml", TOML);
    write(&env, ".gemini/settings.json", SETTINGS);
    write(&env, ".copilot/mcp-config.json", SETTINGS);
    write(&env, ".config/opencode/opencode.jsonc", "{ // with a comment\n}");
    env
}

fn setup(env: &TestEnv, more: &[&str]) -> String {
    let named = AGENTS.iter().flat_map(|agent| ["--agent", agent]);
    let words: Vec<&str> = ["setup"].into_iter().chain(named).chain(more.iter().copied()).collect();
    env.biv(&words).ok().text()
}

#[test]
fn it_shows_what_it_changes_and_asks() {
    let env = env();
    write(&env, ".codex/config.toml", TOML);
    write(&env, ".codex/hooks.json", "{}\n");
    let asked = env.run("setup --agent codex");
    assert!(asked.starts_with("exit 2\n"), "{asked}");
    assert!(asked.contains("hint: look at what it would do, then pass `--yes`"), "{asked}");
    assert_eq!(fs::read_to_string(env.home().join(".codex/config.toml")).unwrap(), TOML);
    let told = env.run("setup --agent codex --yes");
    let told = told.replace(bivouac_binary(), "[biv]");
    // The changes line by line, and all files at the end, where the person looks.
    let toml = told.split("--- ").find(|it| it.contains("config.toml")).unwrap();
    assert_snapshot!(toml.trim_end(), @r#"
    [root]/home/.codex/config.toml
    +++ [root]/home/.codex/config.toml
    @@ -3,3 +3,8 @@
     
     [mcp_servers.x]
     command = 'x'
    +
    +[mcp_servers.bivouac]
    +command = "[biv]"
    +args = ["mcp"]
    +env_vars = ["BIV_STORE", "BIV_SESSION", "BIV_CONFIG"]

    codex        change [root]/home/.codex/hooks.json
    codex        change [root]/home/.codex/config.toml
    codex        make [root]/home/.codex/skills/bivouac/SKILL.md
    codex        make [root]/home/.codex/skills/checkpoint/SKILL.md
    codex        make [root]/home/.codex/skills/checkpoint/agents/openai.yaml
    codex        make [root]/home/.codex/skills/rehydrate/SKILL.md
    codex        make [root]/home/.codex/skills/rehydrate/agents/openai.yaml

    Done. Agents that run already have to be started anew.

    Try next:
      in Codex CLI: $checkpoint save first
      biv doctor
    note: Codex skips new hooks without a word until you trust them: start `codex` once, and choose to when it asks
    "#);
}

fn bivouac_binary() -> &'static str {
    env!("CARGO_BIN_EXE_biv")
}

#[test]
fn all_of_it_comes_once_and_goes_without_a_trace() {
    let env = with_settings();
    let before = home(&env);
    setup(&env, &["--yes"]);
    let with = home(&env);
    for path in [
        ".claude/commands/checkpoint.md",
        ".claude/skills/bivouac/SKILL.md",
        ".codex/skills/rehydrate/SKILL.md",
        ".codex/skills/checkpoint/agents/openai.yaml",
        ".gemini/commands/checkpoint.toml",
        ".gemini/policies/bivouac.toml",
        ".config/opencode/plugin/bivouac-commands.js",
        ".copilot/skills/checkpoint/SKILL.md",
    ] {
        assert!(with.contains_key(Path::new(path)), "{path}");
    }
    let entry = |path: &str| {
        let text = &with[Path::new(path)];
        serde_json::from_str::<serde_json::Value>(text).unwrap()["mcpServers"]["bivouac"]["args"][0]
            .clone()
    };
    for path in [".claude.json", ".gemini/settings.json", ".copilot/mcp-config.json"] {
        assert_eq!(entry(path), "mcp", "{path}");
    }
    assert!(with[Path::new(".codex/config.toml")].contains("# good\n"));
    assert!(
        with[Path::new(".codex/config.toml")]
            .contains("env_vars = [\"BIV_STORE\", \"BIV_SESSION\", \"BIV_CONFIG\"]")
    );
    let again = setup(&env, &["--yes"]);
    assert!(again.starts_with("All of it is there already"), "{again}");
    assert_eq!(home(&env), with);
    // The other door says the same.
    let states = env.json("hooks status");
    let installed = states.as_array().unwrap().iter().filter(|it| it["installed"] == true);
    assert_eq!(installed.count(), 5, "{states}");
    assert!(env.run("hooks install --agent gemini --yes").contains("has our hooks already"));
    setup(&env, &["--remove", "--yes"]);
    assert_eq!(home(&env), before);
    assert_eq!(env.run("setup --remove --yes"), "There is nothing of ours");
}

#[test]
fn hooks_and_the_rest_come_and_go_by_themselves() {
    let env = with_settings();
    let before = home(&env);
    env.run("hooks install --agent gemini --yes");
    let told = home(&env);
    env.run("setup --agent gemini --yes");
    let settings = |env: &TestEnv| home(env)[Path::new(".gemini/settings.json")].clone();
    assert!(settings(&env).contains("hook gemini") && settings(&env).contains("\"mcp\""));
    env.run("hooks remove --agent gemini --yes");
    assert!(!settings(&env).contains("hook gemini") && settings(&env).contains("\"mcp\""));
    env.run("setup --remove --yes");
    assert_eq!(home(&env), before);
    env.run("hooks install --agent gemini --yes");
    assert_eq!(home(&env), told);
    env.run("setup --remove --agent gemini --yes");
    assert_eq!(home(&env), before);
}

#[test]
fn what_others_changed_since_stays() {
    let env = with_settings();
    setup(&env, &["--yes"]);
    for path in [".claude.json", ".gemini/settings.json"] {
        let path = env.home().join(path);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen('{', "{\n\t\"theirs\": true,", 1)).unwrap();
    }
    let toml = env.home().join(".codex/config.toml");
    let text = fs::read_to_string(&toml).unwrap();
    fs::write(&toml, format!("{text}\n[hooks.state.x]\ntrusted_hash = \"1\"\n")).unwrap();
    fs::write(env.home().join(".claude/skills/mine.md"), "mine").unwrap();
    // An upgrade in between does not make anything of ours theirs.
    setup(&env, &["--yes"]);
    setup(&env, &["--remove", "--yes"]);
    let theirs = SETTINGS.replacen('{', "{\n\t\"theirs\": true,", 1);
    let left = home(&env);
    for path in [".claude.json", ".gemini/settings.json"] {
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&left[Path::new(path)]), value(&theirs), "{path}");
    }
    let expected = format!("{TOML}\n[hooks.state.x]\ntrusted_hash = \"1\"\n");
    assert_eq!(left[Path::new(".codex/config.toml")], expected);
    assert_eq!(left[Path::new(".claude/skills/mine.md")], "mine");
}

#[test]
fn a_command_of_yours_is_not_replaced() {
    let env = env();
    write(&env, ".claude/commands/checkpoint.md", "my own");
    let told = env.run("setup --agent claude-code --yes");
    assert!(
        told.contains("note: `[root]/home/.claude/commands/checkpoint.md` is yours and stays"),
        "{told}"
    );
    assert_eq!(home(&env)[Path::new(".claude/commands/checkpoint.md")], "my own");
    env.run("setup --remove --yes");
    assert_eq!(home(&env)[Path::new(".claude/commands/checkpoint.md")], "my own");
}

#[test]
fn one_file_that_makes_no_sense_changes_nothing() {
    let env = with_settings();
    write(&env, ".copilot/mcp-config.json", "{broken");
    let before = home(&env);
    let named: Vec<&str> = AGENTS.iter().flat_map(|agent| ["--agent", agent]).collect();
    let words: Vec<&str> = ["setup", "--yes"].into_iter().chain(named).collect();
    let refused = env.biv(&words).text();
    assert!(refused.starts_with("exit 1\nerror: could not change `[root]/home/.copilot/mcp-config.json`: it is not valid JSON"), "{refused}");
    assert!(
        refused.contains("hint: nothing was changed; mend the file and try again"),
        "{refused}"
    );
    assert_eq!(home(&env), before);
    write(&env, ".codex/config.toml", "model = ");
    let refused = env.run("setup --agent codex --yes");
    assert!(refused.contains(".codex/config.toml`: it is not valid TOML"), "{refused}");
}

#[test]
fn a_file_that_cannot_be_written_changes_nothing() {
    let env = with_settings();
    let link = env.home().join(".codex/skills/rehydrate");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/null/nowhere", &link).unwrap();
    let refused = env.run("setup --agent codex --yes");
    assert!(refused.contains("\nerror: "), "{refused}");
    fs::remove_file(&link).unwrap();
    fs::remove_dir(link.parent().unwrap()).unwrap();
    let after = home(&env);
    assert_eq!(after[Path::new(".codex/config.toml")], TOML);
    assert!(!after.contains_key(Path::new(".codex/hooks.json")));
    assert_eq!(env.run("setup --remove --yes"), "There is nothing of ours");
}

#[test]
fn it_answers_with_one_document() {
    let env = env();
    let made = env.json("setup --agent copilot --yes");
    assert_eq!(made["changes"].as_array().unwrap().len(), 5, "{made}");
    assert_eq!(made["changes"][0]["action"], "make");
    let gone = env.json("setup --remove --yes");
    assert_eq!((&gone["removed"], &gone["changes"][0]["action"]), (&true.into(), &"remove".into()));
    assert_eq!(env.json("setup --remove --yes")["changes"], serde_json::json!([]));
}

#[test]
fn secrets_beside_ours_are_not_shown() {
    let env = env();
    let secret = ["ghp", "_", "abcdefghijklmnopqrstuvwxyz0123456789"].concat();
    let theirs = format!(
        "{{\n  \"mcpServers\": {{\n    \"x\": {{\n      \"env\": {{ \"TOKEN\": \"{secret}\" }}\n    }}\n  }}\n}}\n"
    );
    write(&env, ".claude.json", &theirs);
    let told = env.run("setup --agent claude-code --yes");
    assert!(told.contains(".claude.json") && !told.contains(&secret), "{told}");
    assert!(home(&env)[Path::new(".claude.json")].contains(&secret));
}

fn read(env: &TestEnv, path: &str) -> String {
    fs::read_to_string(env.home().join(path)).unwrap_or_else(|error| format!("({error})"))
}

/// Beside ours, in ours, and where ours would be: what a person wrote is never lost.
#[test]
fn what_a_person_put_beside_or_into_ours_stays() {
    let env = env();
    setup(&env, &["--yes"]);
    // A hook in the same group as ours.
    let settings = read(&env, ".claude/settings.json");
    let mine = settings.replacen("\"timeout\": 60\n          }", "\"timeout\": 60\n          },\n          { \"type\": \"command\", \"command\": \"mine.sh\" }", 1);
    assert_ne!(mine, settings);
    write(&env, ".claude/settings.json", &mine);
    // A variable for our server, in JSON and in TOML.
    let server = read(&env, ".claude.json").replacen(
        "\"args\"",
        "\"env\": { \"BIV_STORE\": \"/mine\" },\n      \"args\"",
        1,
    );
    write(&env, ".claude.json", &server);
    let config = read(&env, ".codex/config.toml") + "env = { BIV_STORE = \"/mine\" }\n";
    write(&env, ".codex/config.toml", &config);
    // A line in a command of ours.
    let command = read(&env, ".claude/commands/checkpoint.md") + "\nAnd be brief.\n";
    write(&env, ".claude/commands/checkpoint.md", &command);
    let said = setup(&env, &["--yes"]);
    assert!(said.contains("checkpoint.md.kept"), "{said}");
    assert_eq!(read(&env, ".claude/settings.json"), mine);
    assert_eq!(read(&env, ".claude.json"), server);
    assert_eq!(read(&env, ".codex/config.toml"), config);
    assert_eq!(read(&env, ".claude/commands/checkpoint.md.kept"), command);
    setup(&env, &["--yes", "--remove"]);
    assert!(read(&env, ".claude/settings.json").contains("mine.sh"));
    assert!(!read(&env, ".claude/settings.json").contains("hook claude-code"));
}

#[test]
fn what_is_called_like_ours_and_is_not_ours_is_not_touched() {
    for (agent, path, text) in [
        (
            "claude-code",
            ".claude.json",
            r#"{"mcpServers":{"bivouac":{"command":"npx","args":["mine"]}}}"#,
        ),
        ("codex", ".codex/config.toml", "[mcp_servers.bivouac]\ncommand = \"/opt/mine\"\n"),
    ] {
        let env = env();
        write(&env, path, text);
        let said = env.biv(&["setup", "--agent", agent, "--yes"]);
        assert!(said.stderr.contains("the server `bivouac` in it is not ours"), "{}", said.stderr);
        env.biv(&["setup", "--agent", agent, "--yes", "--remove"]).ok();
        assert_eq!(read(&env, path), text);
    }
    for (agent, path) in [
        ("opencode", ".config/opencode/plugin/bivouac.js"),
        ("copilot", ".copilot/hooks/bivouac.json"),
        ("gemini", ".gemini/policies/bivouac.toml"),
    ] {
        let env = env();
        write(&env, path, "# mine");
        let said = env.biv(&["setup", "--agent", agent, "--yes"]).ok();
        assert!(said.stderr.contains("is yours and stays"), "{agent}: {}", said.stderr);
        env.biv(&["setup", "--agent", agent, "--yes", "--remove"]).ok();
        assert_eq!(read(&env, path), "# mine");
    }
}

#[test]
fn links_line_ends_and_permissions_of_others_stay() {
    let env = env();
    fs::create_dir_all(env.home().join(".claude")).unwrap();
    let link = env.home().join(".claude/settings.json");
    std::os::unix::fs::symlink("../dotfiles/settings.json", &link).unwrap();
    write(&env, ".codex/config.toml", "# a\r\nmodel = \"x\"\r\n");
    setup(&env, &["--yes"]);
    assert!(link.is_symlink() && env.home().join("dotfiles/settings.json").exists());
    let changed = read(&env, ".codex/config.toml").replace("\"x\"", "\"y\"");
    assert_eq!(changed.matches('\n').count(), changed.matches("\r\n").count());
    write(&env, ".codex/config.toml", &changed);
    setup(&env, &["--yes", "--remove"]);
    assert!(link.is_symlink());
    assert_eq!(read(&env, ".codex/config.toml"), "# a\r\nmodel = \"y\"\r\n");
    fs::set_permissions(
        env.home().join(".codex/config.toml"),
        std::os::unix::fs::PermissionsExt::from_mode(0o444),
    )
    .unwrap();
    let refused = env.biv(&["setup", "--agent", "codex", "--yes"]);
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert!(!env.home().join(".codex/hooks.json").exists());
}

#[test]
fn a_dry_run_changes_nothing() {
    let env = with_settings();
    let before = home(&env);
    let said = setup(&env, &["--dry-run"]);
    assert!(said.contains("+") && said.contains("codex        make"), "{said}");
    assert_eq!(home(&env), before);
}
