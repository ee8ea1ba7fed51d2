//! Which agents are here, and what they get so that they tell us what they do. The rest is in [`crate::setup`].

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use bivouac_capture::agents;
use bivouac_core::agent::AgentKind;

use crate::Result;
use crate::home::{Home, home_folder};
use crate::setup::{self, Change, Part, Scope, State};

/// Agents whose program or folder is on this machine.
pub fn present() -> Vec<AgentKind> {
    let home = home_folder().unwrap_or_default();
    let folders = |agent: AgentKind| match agent {
        AgentKind::ClaudeCode => home.join(".claude"),
        AgentKind::Codex => home.join(".codex"),
        AgentKind::Gemini => home.join(".gemini"),
        AgentKind::Opencode => home.join(".config/opencode"),
        AgentKind::Copilot => home.join(".copilot"),
    };
    let is_on_path = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| {
            fs::metadata(folder.join(program))
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
    };
    let is_there =
        |agent: &AgentKind| folders(*agent).is_dir() || is_on_path(agents::of(*agent).program());
    AgentKind::ALL.into_iter().filter(is_there).collect()
}

/// Nothing where the agent knows no hooks of this scope.
pub fn plan_install(home: &Home, agent: AgentKind, scope: Scope) -> Result<Vec<Change>> {
    setup::plan_install(home, agent, scope, &[Part::Hooks])
}

pub fn plan_remove(home: &Home, agent: AgentKind, scope: Scope) -> Result<Vec<Change>> {
    setup::plan_remove(home, agent, scope, &[Part::Hooks])
}

pub fn state(home: &Home, agent: AgentKind, scope: Scope) -> Result<Option<(PathBuf, State)>> {
    setup::state(home, agent, scope, Part::Hooks)
}
