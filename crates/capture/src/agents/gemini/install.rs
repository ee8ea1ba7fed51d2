//! Where Gemini CLI looks for hooks. Its timeouts are in milliseconds.

use bivouac_core::agent::AgentKind;

use super::folder;
use crate::agents::install::{Folders, Place, Scope, settings};

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

pub(super) fn place(scope: Scope, folders: &Folders) -> Place {
    let folder = match scope {
        Scope::User => folder(&folders.home),
        Scope::Project => folders.workspace.join(".gemini"),
    };
    settings(folder.join("settings.json"), AgentKind::Gemini, folders, &EVENTS)
}
