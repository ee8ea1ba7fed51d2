//! Where Claude Code looks for hooks.

use bivouac_core::agent::AgentKind;

use super::folder;
use crate::agents::install::{Folders, Place, Scope, settings};

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

pub(super) fn place(scope: Scope, folders: &Folders) -> Place {
    let folder = match scope {
        Scope::User => folder(&folders.home),
        Scope::Project => folders.workspace.join(".claude"),
    };
    settings(folder.join("settings.json"), AgentKind::ClaudeCode, folders, &EVENTS)
}
