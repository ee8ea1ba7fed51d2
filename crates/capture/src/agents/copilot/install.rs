//! Where Copilot CLI looks for hooks, servers and skills.

use bivouac_core::agent::AgentKind;
use serde_json::{Map, Value, json};

use super::folder;
use crate::agents::install::{Entry, Folders, Part, Place, Scope, Server, command, pretty, server};
use crate::agents::words::{COMMANDS, skill};

/// The events we ask for, and how many seconds we may take.
const EVENTS: [(&str, u64); 12] = [
    ("sessionStart", 20),
    ("userPromptSubmitted", 20),
    ("preToolUse", 60),
    ("permissionRequest", 10),
    ("postToolUse", 30),
    ("postToolUseFailure", 30),
    ("subagentStart", 10),
    ("subagentStop", 10),
    ("preCompact", 60),
    ("agentStop", 60),
    ("errorOccurred", 10),
    ("sessionEnd", 20),
];

pub(super) fn places(scope: Scope, folders: &Folders) -> Vec<Place> {
    if scope == Scope::Project {
        return Vec::new();
    }
    let folder = folder(&folders.home);
    let mut places = vec![
        Place::own(Part::Hooks, folder.join("hooks/bivouac.json"), told(folders)),
        Place::json(folder.join("mcp-config.json"), vec![Entry::Server(asked(folders))]),
    ];
    for (path, text) in words(folders) {
        places.push(Place::own(Part::Words, folder.join(path), text));
    }
    places
}

pub(in crate::agents) fn told(folders: &Folders) -> String {
    let hook = |(event, seconds): &(&str, u64)| {
        let bash = command(folders, AgentKind::Copilot, event);
        let hook = json!([{ "type": "command", "bash": bash, "timeoutSec": seconds }]);
        ((*event).to_owned(), hook)
    };
    let hooks: Map<String, Value> = EVENTS.iter().map(hook).collect();
    pretty(&json!({ "version": 1, "hooks": hooks }))
}

pub(in crate::agents) fn asked(folders: &Folders) -> Server {
    server(folders, &json!({ "type": "local", "tools": ["*"] }))
}

/// Skills, each in its folder. Those that are the person's are kept from the model.
pub(in crate::agents) fn words(folders: &Folders) -> Vec<(String, String)> {
    let mut files = vec![("skills/bivouac/SKILL.md".to_owned(), skill())];
    for it in &COMMANDS {
        let hint = it.hint.map(|hint| format!("argument-hint: {}\n", json!(hint)));
        let more = hint.unwrap_or_default() + "disable-model-invocation: true\n";
        let arguments = it.hint.map(|_| "`$ARGUMENTS`");
        let text = it.as_skill(AgentKind::Copilot, folders, arguments, &more);
        files.push((format!("skills/{}/SKILL.md", it.name), text));
    }
    files
}
