//! Which hooks Codex runs: those whose person said so. It remembers the hash of what was agreed to, hook by hook,
//! and passes over the others without a word.

use std::fmt::Write;
use std::path::Path;

use bivouac_core::agent::AgentKind;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toml_edit::{DocumentMut, Item};

use crate::agents::install::{Trust, is_ours};

/// How the hooks in a file stand, by what the configuration says of them.
pub(super) fn trust(config: &str, file: &Path, hooks: &str) -> Trust {
    let config: DocumentMut = config.parse().unwrap_or_default();
    let hooks: Value = serde_json::from_str(hooks).unwrap_or_default();
    let known = config.get("hooks").and_then(|it| it.get("state"));
    let (mut n_all, mut n_agreed, mut n_other) = (0, 0, 0);
    for (event, groups) in hooks["hooks"].as_object().into_iter().flatten() {
        let event = in_snake_case(event);
        let groups = groups.as_array().map(Vec::as_slice).unwrap_or_default();
        for (place, group, hook) in ours(groups) {
            n_all += 1;
            let key = format!("{}:{event}:{place}", file.display());
            let state = known.and_then(|it| it.get(key.as_str()));
            let agreed = state.and_then(|it| it.get("trusted_hash")).and_then(Item::as_str);
            let is_off = state.and_then(|it| it.get("enabled")?.as_bool()) == Some(false);
            match agreed {
                Some(agreed)
                    if !is_off && hashes(&event, group, hook).iter().any(|it| it == agreed) =>
                {
                    n_agreed += 1;
                }
                Some(_) => n_other += 1,
                None => {}
            }
        }
    }
    match (n_agreed == n_all, n_agreed, n_other) {
        (true, ..) => Trust::Given,
        // If not one of them is what it was agreed to be, it is the way to tell that has changed.
        (false, 0, n_other) if n_other == n_all => Trust::Unknown,
        (false, ..) => Trust::Missing { n_missing: n_all - n_agreed, n_all },
    }
}

/// Our hooks, each with where it is: the number of its group, and its own in it.
fn ours(groups: &[Value]) -> impl Iterator<Item = (String, &Value, &Value)> {
    let all = groups.iter().enumerate().flat_map(|(at, group)| {
        let hooks = group["hooks"].as_array().map(Vec::as_slice).unwrap_or_default();
        let placed = hooks.iter().enumerate();
        placed.map(move |(within, hook)| (format!("{at}:{within}"), group, hook))
    });
    all.filter(|(_, _, hook)| is_ours(hook, AgentKind::Codex))
}

/// `PreToolUse` is `pre_tool_use`.
fn in_snake_case(event: &str) -> String {
    let mut name = String::new();
    for letter in event.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// Of the hook with its matcher, and without: some events have none.
fn hashes(event: &str, group: &Value, hook: &Value) -> [String; 2] {
    // Keys stand in the order of their names.
    let hook = json!({
        "async": false, "command": hook["command"], "timeout": hook["timeout"], "type": "command",
    });
    let plain = json!({ "event_name": event, "hooks": [hook] });
    let mut matched = plain.clone();
    matched["matcher"] = group["matcher"].clone();
    [matched, plain].map(|it| {
        let mut text = "sha256:".to_owned();
        for byte in Sha256::digest(it.to_string()) {
            let _a_string_takes_all = write!(text, "{byte:02x}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOKS: &str = r#"{"hooks":{"PreToolUse":[{"matcher":"","hooks":[{"type":"command","command":"'/usr/bin/biv' hook codex PreToolUse 2>/dev/null || true","timeout":60}]}]}}"#;

    fn config(state: &str) -> String {
        format!("[hooks.state.\"/h/hooks.json:pre_tool_use:0:0\"]\n{state}\n")
    }

    /// The hash is one that the released Codex wrote.
    #[test]
    fn only_what_was_agreed_to_is_trusted() {
        let check = |config: &str, expected: Trust| {
            assert_eq!(trust(config, Path::new("/h/hooks.json"), HOOKS), expected, "{config}");
        };
        let agreed = "trusted_hash = \"sha256:f62fc99472bf84d10074caa1ee04dc9a16c207353a05c0c9c61f881db7ddc51a\"";
        check(&config(agreed), Trust::Given);
        check("", Trust::Missing { n_missing: 1, n_all: 1 });
        check(&config(&agreed.replace("f62f", "0000")), Trust::Unknown);
        // Behind one that the person put before it, it has another place and the same hash.
        let behind =
            HOOKS.replace(r#""hooks":[{"#, r#""hooks":[{"type":"command","command":"mine.sh"},{"#);
        let place = config(agreed).replace(":0:0", ":0:1");
        assert_eq!(trust(&place, Path::new("/h/hooks.json"), &behind), Trust::Given);
    }
}
