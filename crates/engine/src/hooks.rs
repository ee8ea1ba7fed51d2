//! Which agents are here, and what they get so that they tell us what they do. The rest is in [`crate::setup`].

use std::path::PathBuf;

use bivouac_capture::agents;
use bivouac_capture::search_path::find_program;
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
    let is_there = |agent: &AgentKind| {
        folders(*agent).is_dir() || find_program(agents::of(*agent).program()).is_some()
    };
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
