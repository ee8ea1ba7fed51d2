//! Where Gemini CLI looks for hooks, servers, commands and skills. Its timeouts are in milliseconds.

use bivouac_core::agent::AgentKind;
use serde_json::json;

use super::folder;
use crate::agents::install::{Entry, Folders, Part, Place, Scope, Server, hooks, server};
use crate::agents::words::{COMMANDS, Command, skill};

const EVENTS: [(&str, &str, u64); 8] = [
    ("SessionStart", "", 20_000),
    ("BeforeAgent", "", 20_000),
    ("BeforeTool", "", 60_000),
    ("AfterTool", "", 30_000),
    ("AfterAgent", "", 60_000),
    ("PreCompress", "", 60_000),
    ("Notification", "", 10_000),
    ("SessionEnd", "", 20_000),
];

pub(super) fn places(scope: Scope, folders: &Folders) -> Vec<Place> {
    let folder = match scope {
        Scope::User => folder(&folders.home),
        Scope::Project => folders.workspace.join(".gemini"),
    };
    let settings = folder.join("settings.json");
    if scope == Scope::Project {
        return vec![Place::json(settings, vec![told(folders)])];
    }
    let mut places =
        vec![Place::json(settings, vec![told(folders), Entry::Server(asked(folders))])];
    for (path, text) in words(folders) {
        places.push(Place::own(Part::Words, folder.join(path), text));
    }
    places.push(Place::own(Part::Words, folder.join("policies/bivouac.toml"), policy(folders)));
    places
}

pub(in crate::agents) fn told(folders: &Folders) -> Entry {
    hooks(AgentKind::Gemini, folders, &EVENTS)
}

pub(in crate::agents) fn asked(folders: &Folders) -> Server {
    server(folders, &json!({}))
}

/// Commands and skills, each in its file.
pub(in crate::agents) fn words(folders: &Folders) -> Vec<(String, String)> {
    let commands =
        COMMANDS.iter().map(|it| (format!("commands/{}.toml", it.name), command(it, folders)));
    commands.chain([("skills/bivouac/SKILL.md".to_owned(), skill())]).collect()
}

/// The shell asks us before the model is asked. Gemini quotes what the person typed, as one word.
fn command(it: &Command, folders: &Folders) -> String {
    let prompt =
        it.around(&format!("!{{{} {{{{args}}}}}}", it.program(AgentKind::Gemini, folders)));
    let prompt = prompt.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    format!("description = {}\nprompt = \"\"\"\n{prompt}\"\"\"\n", json!(it.description))
}

/// So that nobody has to allow that. What an extension brings would be ignored here.
fn policy(folders: &Folders) -> String {
    let prefix = json!(format!("{} slash", folders.binary()));
    format!(
        "# Lets /checkpoint and /rehydrate ask Bivouac without a question.\n\n[[rule]]\n\
         toolName = \"run_shell_command\"\ncommandPrefix = {prefix}\ndecision = \"allow\"\npriority = 100\n"
    )
}
