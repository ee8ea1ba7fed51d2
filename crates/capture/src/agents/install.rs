//! Hooks in an agent's settings: added beside those of others, and taken out again.

use std::path::PathBuf;

use bivouac_core::agent::AgentKind;
use serde_json::{Map, Value, json};

/// For whom the hooks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// This user, in every project.
    User,
    /// Everyone who works in this project.
    Project,
}

/// Where things are on this machine.
#[derive(Clone, Debug)]
pub struct Folders {
    pub home: PathBuf,
    pub workspace: PathBuf,
    /// Our own program, as a shell can start it.
    pub binary: String,
}

/// Where an agent looks for hooks, and what it is to find there.
#[derive(Clone, Debug)]
pub enum Place {
    /// A settings file that others write to as well.
    Settings { path: PathBuf, hooks: Vec<Hook> },
    /// A file of our own.
    Own { path: PathBuf, text: String },
    /// The agent knows no hooks of this scope.
    Nowhere,
}

impl Place {
    pub fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::Settings { path, .. } | Self::Own { path, .. } => Some(path),
            Self::Nowhere => None,
        }
    }
}

/// One hook: the event, the tools it is for, and how to call us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub event: &'static str,
    pub matcher: &'static str,
    pub command: String,
    /// In the agent's own unit.
    pub timeout: u64,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    #[error("it is not valid JSON: {0}")]
    NotJson(String),
    #[error("`{0}` in it is not what the agent expects there")]
    Shape(&'static str),
}

/// How the agent is told to call us. A missing or failing program must not disturb it.
pub fn command(folders: &Folders, agent: AgentKind, event: &str) -> String {
    format!("{} hook {agent} {event} 2>/dev/null || true", folders.binary)
}

/// Hooks in a settings file: the events, the tools they are for, and how long we may take, in the agent's
/// own unit.
pub(super) fn settings(
    path: PathBuf,
    agent: AgentKind,
    folders: &Folders,
    events: &[(&'static str, &'static str, u64)],
) -> Place {
    let hook = |(event, matcher, timeout): &(&'static str, &'static str, u64)| Hook {
        event,
        matcher,
        command: command(folders, agent, event),
        timeout: *timeout,
    };
    Place::Settings { path, hooks: events.iter().map(hook).collect() }
}

/// The same settings with our hooks in them, and none of ours twice.
pub fn add(text: &str, hooks: &[Hook], agent: AgentKind) -> Result<String, BadSettings> {
    let mut settings = parse(text)?;
    take_out(&mut settings, agent)?;
    let table = settings.entry("hooks").or_insert_with(|| json!({}));
    let table = table.as_object_mut().ok_or(BadSettings::Shape("hooks"))?;
    for hook in hooks {
        let entry = json!({
            "matcher": hook.matcher,
            "hooks": [{ "type": "command", "command": hook.command, "timeout": hook.timeout }],
        });
        let list = table.entry(hook.event).or_insert_with(|| json!([]));
        list.as_array_mut().ok_or(BadSettings::Shape("hooks"))?.push(entry);
    }
    Ok(print(&settings, text))
}

/// The same settings without our hooks; `None` when there are none in them.
pub fn remove(text: &str, agent: AgentKind) -> Result<Option<String>, BadSettings> {
    let mut settings = parse(text)?;
    match take_out(&mut settings, agent)? {
        0 => Ok(None),
        _ => Ok(Some(print(&settings, text))),
    }
}

/// The events our hooks are on.
pub fn events(text: &str, agent: AgentKind) -> Result<Vec<String>, BadSettings> {
    let settings = parse(text)?;
    let table = settings.get("hooks").and_then(Value::as_object);
    let has_ours = |list: &Value| {
        list.as_array()
            .into_iter()
            .flatten()
            .any(|entry| commands(entry).any(|it| is_ours(it, agent)))
    };
    let found = table.into_iter().flatten().filter(|(_, list)| has_ours(list));
    Ok(found.map(|(event, _)| event.clone()).collect())
}

fn parse(text: &str) -> Result<Map<String, Value>, BadSettings> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let value: Value =
        serde_json::from_str(text).map_err(|error| BadSettings::NotJson(error.to_string()))?;
    match value {
        Value::Object(settings) => Ok(settings),
        _ => Err(BadSettings::NotJson("it is not an object".to_owned())),
    }
}

/// Takes our hooks out, and lists and tables that are empty without them.
fn take_out(settings: &mut Map<String, Value>, agent: AgentKind) -> Result<usize, BadSettings> {
    let Some(table) = settings.get_mut("hooks") else {
        return Ok(0);
    };
    let table = table.as_object_mut().ok_or(BadSettings::Shape("hooks"))?;
    let mut n_removed = 0;
    let mut emptied = Vec::new();
    for (event, list) in table.iter_mut() {
        let Some(list) = list.as_array_mut() else {
            continue;
        };
        let n_before = list.len();
        list.retain(|entry| !commands(entry).any(|command| is_ours(command, agent)));
        n_removed += n_before - list.len();
        if list.is_empty() && n_before > 0 {
            emptied.push(event.clone());
        }
    }
    for event in emptied {
        table.shift_remove(&event);
    }
    if table.is_empty() && n_removed > 0 {
        settings.shift_remove("hooks");
    }
    Ok(n_removed)
}

fn commands(entry: &Value) -> impl Iterator<Item = &str> {
    let hooks = entry.get("hooks").and_then(Value::as_array);
    hooks.into_iter().flatten().filter_map(|hook| hook.get("command").and_then(Value::as_str))
}

fn is_ours(command: &str, agent: AgentKind) -> bool {
    command.contains("biv") && command.contains(&format!(" hook {agent} "))
}

/// Prints settings the way the file was printed: its indentation, its last line end.
fn print(settings: &Map<String, Value>, like: &str) -> String {
    let indent = like.lines().find_map(|line| {
        let width = line.len() - line.trim_start().len();
        (width > 0 && !line.trim().is_empty()).then(|| &line[..width])
    });
    let formatter =
        serde_json::ser::PrettyFormatter::with_indent(indent.unwrap_or("  ").as_bytes());
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    serde::Serialize::serialize(settings, &mut serializer).expect("a vector takes everything");
    if like.is_empty() || like.ends_with('\n') {
        bytes.push(b'\n');
    }
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(event: &'static str) -> Hook {
        Hook {
            event,
            matcher: "",
            command: format!("'/usr/bin/biv' hook claude-code {event} || true"),
            timeout: 30,
        }
    }

    const OTHERS: &str = "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": [\n            {\n                \"hooks\": [\n                    {\n                        \"type\": \"command\",\n                        \"command\": \"say done\"\n                    }\n                ]\n            }\n        ]\n    },\n    \"zoom\": 1\n}\n";

    #[test]
    fn hooks_of_others_stay_and_ours_come_and_go() {
        let with =
            add(OTHERS, &[hook("Stop"), hook("SessionStart")], AgentKind::ClaudeCode).unwrap();
        assert_eq!(events(&with, AgentKind::ClaudeCode).unwrap(), ["Stop", "SessionStart"]);
        assert!(with.contains("say done"));
        let again =
            add(&with, &[hook("Stop"), hook("SessionStart")], AgentKind::ClaudeCode).unwrap();
        assert_eq!(again, with);
        assert_eq!(remove(&with, AgentKind::ClaudeCode).unwrap().as_deref(), Some(OTHERS));
        assert_eq!(remove(OTHERS, AgentKind::ClaudeCode).unwrap(), None);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let refused =
            |text: &str| add(text, &[hook("Stop")], AgentKind::ClaudeCode).unwrap_err().to_string();
        assert!(refused("{broken").starts_with("it is not valid JSON: "));
        assert_eq!(refused("[]"), "it is not valid JSON: it is not an object");
        assert_eq!(
            refused(r#"{"hooks": []}"#),
            "`hooks` in it is not what the agent expects there"
        );
        assert_eq!(
            refused(r#"{"hooks": {"Stop": 1}}"#),
            "`hooks` in it is not what the agent expects there"
        );
    }

    #[test]
    fn an_empty_file_becomes_settings() {
        let with = add("", &[hook("Stop")], AgentKind::ClaudeCode).unwrap();
        assert_eq!(remove(&with, AgentKind::ClaudeCode).unwrap().as_deref(), Some("{}\n"));
    }
}
