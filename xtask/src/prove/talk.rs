//! What an agent writes down and tells of its work: the conversation on most stages.

use std::fs;
use std::path::PathBuf;

use bivouac_testkit::TestEnv;
use serde_json::{Value, json};

/// What the agent calls it.
const ID: &str = "11111111-0000-4000-8000-000000000001";

/// Calls a hook, as the agent does.
pub(super) fn tell(env: &TestEnv, event: &str, more: &Value) {
    env.hook("claude-code", event, input(env, more)).ok();
}

/// What the agent hands to its hooks.
pub(super) fn input(env: &TestEnv, more: &Value) -> String {
    let mut input =
        json!({ "session_id": ID, "transcript_path": transcript(env), "cwd": env.work() });
    if let (Some(input), Some(more)) = (input.as_object_mut(), more.as_object()) {
        input.extend(more.clone());
    }
    input.to_string()
}

/// Writes a turn down as the agent does, without telling us that it is over.
pub(super) fn say(env: &TestEnv, asked: &str, answered: &str) {
    let path = transcript(env);
    fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a home takes folders");
    let mut text = fs::read_to_string(&path).unwrap_or_default();
    let turn = text.lines().count() / 2 + 1;
    let parent = (turn > 1).then(|| format!("a{}", turn - 1));
    for record in [
        json!({ "type": "user", "uuid": format!("u{turn}"), "parentUuid": parent,
            "message": { "content": asked } }),
        json!({ "type": "assistant", "uuid": format!("a{turn}"), "parentUuid": format!("u{turn}"),
            "message": { "id": format!("m{turn}"), "content": [{ "type": "text", "text": answered }] } }),
    ] {
        text.push_str(&record.to_string());
        text.push('\n');
    }
    fs::write(path, text).expect("a home takes files");
}

fn transcript(env: &TestEnv) -> PathBuf {
    env.home().join(format!(".claude/projects/-w/{ID}.jsonl"))
}
