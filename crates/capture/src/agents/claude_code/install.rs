//! Where Claude Code looks for hooks, servers, commands and skills.

use std::env;
use std::path::PathBuf;

use bivouac_core::agent::AgentKind;
use serde_json::json;

use super::folder;
use crate::agents::install::{Entry, Folders, Part, Place, Scope, Server, hooks, server};
use crate::agents::words::{COMMANDS, Command, skill};

/// The events we ask for, for which tools, and how many seconds we may take. A session's end is cut
/// short after 1.5 seconds unless we say otherwise.
const EVENTS: [(&str, &str, u64); 14] = [
    ("SessionStart", "", 20),
    ("UserPromptSubmit", "", 20),
    ("PreToolUse", "Bash|PowerShell|Agent|Task", 60),
    ("PostToolUse", "", 30),
    ("PostToolUseFailure", "", 30),
    ("PermissionRequest", "", 10),
    ("Stop", "", 60),
    ("StopFailure", "", 60),
    ("SubagentStart", "", 10),
    ("SubagentStop", "", 10),
    ("PreCompact", "", 60),
    ("PostCompact", "", 10),
    ("TaskCompleted", "", 30),
    ("SessionEnd", "", 20),
];

pub(super) fn places(scope: Scope, folders: &Folders) -> Vec<Place> {
    let folder = match scope {
        Scope::User => folder(&folders.home),
        Scope::Project => folders.workspace.join(".claude"),
    };
    let mut places = vec![Place::json(folder.join("settings.json"), vec![told(folders)])];
    if scope == Scope::User {
        places.push(Place::json(state_file(folders), vec![Entry::Server(asked(folders))]));
        for (path, text) in words(folders) {
            places.push(Place::own(Part::Words, folder.join(path), text));
        }
    }
    places
}

pub(in crate::agents) fn told(folders: &Folders) -> Entry {
    hooks(AgentKind::ClaudeCode, folders, &EVENTS)
}

pub(in crate::agents) fn asked(folders: &Folders) -> Server {
    server(folders, &json!({ "type": "stdio" }))
}

/// Commands and skills, each in its file.
pub(in crate::agents) fn words(folders: &Folders) -> Vec<(String, String)> {
    let commands =
        COMMANDS.iter().map(|it| (format!("commands/{}.md", it.name), command(it, folders)));
    commands.chain([("skills/bivouac/SKILL.md".to_owned(), skill())]).collect()
}

/// The shell asks us before the model is asked. Nobody has to allow that, and the model cannot do it by itself.
fn command(it: &Command, folders: &Folders) -> String {
    let allowed = json!(format!("Bash({}:*)", it.program(AgentKind::ClaudeCode, folders)));
    let hint = it.hint.map(|hint| format!("argument-hint: {}\n", json!(hint))).unwrap_or_default();
    let answer = format!("```!\n{}\n```", it.shell(AgentKind::ClaudeCode, folders, "$ARGUMENTS"));
    format!(
        "---\ndescription: {}\n{hint}allowed-tools: {allowed}\ndisable-model-invocation: true\n---\n\n{}",
        it.description,
        it.around(&answer)
    )
}

/// Servers are in the file in which it keeps all that it remembers.
fn state_file(folders: &Folders) -> PathBuf {
    let folder = env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    folder.unwrap_or_else(|| folders.home.clone()).join(".claude.json")
}
