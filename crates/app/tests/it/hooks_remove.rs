//! `biv hooks remove`: without a trace

use std::fs;

use crate::env;

const THEIRS: &str = "{\n\t\"model\": \"opus\",\n\t\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]},\n\t\"big\": 1e400000000,\n\t\"z\": 1.50\n}";

#[test]
fn every_file_is_again_what_it_was() {
    let env = env();
    let theirs = THEIRS.replace("\t\"big\": 1e400000000,\n", "");
    let files = [
        (".claude/settings.json", "claude-code"),
        (".codex/hooks.json", "codex"),
        (".gemini/settings.json", "gemini"),
    ];
    for (file, _) in files {
        let path = env.home().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &theirs).unwrap();
    }
    for agent in ["claude-code", "codex", "gemini", "opencode", "copilot"] {
        env.biv(&["hooks", "install", "--agent", agent, "--yes"]).ok();
        // A second time changes nothing that a removal would miss.
        env.biv(&["hooks", "install", "--agent", agent, "--yes"]).ok();
    }
    assert!(env.home().join(".config/opencode/plugin/bivouac.js").exists());
    env.biv(&["hooks", "remove", "--yes"]).ok();
    for (file, _) in files {
        assert_eq!(fs::read_to_string(env.home().join(file)).unwrap(), theirs, "{file}");
    }
    for own in [".config/opencode/plugin/bivouac.js", ".copilot/hooks/bivouac.json"] {
        assert!(!env.home().join(own).exists(), "{own}");
    }
    assert_eq!(env.run("hooks remove --yes"), "There are no hooks of ours");
}

#[test]
fn what_others_changed_since_stays() {
    let env = env();
    let path = env.home().join(".claude/settings.json");
    env.biv(&["hooks", "install", "--agent", "claude-code", "--yes"]).ok();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen('{', "{\n  \"theirs\": true,", 1)).unwrap();
    env.biv(&["hooks", "remove", "--yes"]).ok();
    let left: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(left, serde_json::json!({ "theirs": true }));
}
