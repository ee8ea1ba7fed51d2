//! Where Codex looks for hooks. It skips what the person has not reviewed once in its own screen.

use bivouac_core::agent::AgentKind;

use super::folder;
use crate::agents::install::{Folders, Place, Scope, settings};

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

pub(super) fn place(scope: Scope, folders: &Folders) -> Place {
    let folder = match scope {
        Scope::User => folder(&folders.home),
        Scope::Project => folders.workspace.join(".codex"),
    };
    settings(folder.join("hooks.json"), AgentKind::Codex, folders, &EVENTS)
}
