//! Where Codex looks for hooks, servers and skills. It skips hooks that the person has not reviewed once in its
//! own screen, and gives a server nothing of its environment that was not asked for.

use bivouac_core::agent::AgentKind;
use serde_json::json;

use super::folder;
use crate::agents::install::{
    Content, Entry, Folders, Part, Place, Scope, Server, VARIABLES, hooks, server,
};
use crate::agents::words::{COMMANDS, skill};

/// The events we ask for, and how many seconds we may take; at the end Codex waits 3 at most.
const EVENTS: [(&str, &str, u64); 12] = [
    ("SessionStart", "", 20),
    ("UserPromptSubmit", "", 20),
    ("PreToolUse", "", 60),
    ("PermissionRequest", "", 10),
    ("PostToolUse", "", 30),
    ("PreCompact", "", 60),
    ("PostCompact", "", 10),
    ("SubagentStart", "", 10),
    ("SubagentStop", "", 10),
    ("Stop", "", 60),
    ("Interrupt", "", 3),
    ("SessionEnd", "", 3),
];

pub(super) fn places(scope: Scope, folders: &Folders) -> Vec<Place> {
    let folder = match scope {
        Scope::User => folder(&folders.home),
        Scope::Project => folders.workspace.join(".codex"),
    };
    let mut places = vec![Place::json(folder.join("hooks.json"), vec![told(folders)])];
    if scope == Scope::User {
        let server = Server { table: "mcp_servers", ..asked(folders) };
        places.push(Place { path: folder.join("config.toml"), content: Content::Toml(server) });
        for (path, text) in words(folders) {
            places.push(Place::own(Part::Words, folder.join(path), text));
        }
    }
    places
}

pub(in crate::agents) fn told(folders: &Folders) -> Entry {
    hooks(AgentKind::Codex, folders, &EVENTS)
}

pub(in crate::agents) fn asked(folders: &Folders) -> Server {
    server(folders, &json!({ "env_vars": VARIABLES }))
}

/// Skills, each in its folder. Those that are the person's are kept from the model.
pub(in crate::agents) fn words(folders: &Folders) -> Vec<(String, String)> {
    let mut files = vec![("skills/bivouac/SKILL.md".to_owned(), skill())];
    for it in &COMMANDS {
        let folder = format!("skills/{}", it.name);
        files
            .push((format!("{folder}/SKILL.md"), it.as_skill(AgentKind::Codex, folders, None, "")));
        let policy = "# Bivouac is asked when the person says so.\npolicy:\n  allow_implicit_invocation: false\n";
        files.push((format!("{folder}/agents/openai.yaml"), policy.to_owned()));
    }
    files
}
