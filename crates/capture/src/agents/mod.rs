//! The agents people run.

use std::env;
use std::path::{Path, PathBuf};

/// Where agents keep their own state: conversations, histories, caches. Never part of a snapshot.
pub fn state_folders(home: Option<&Path>) -> Vec<PathBuf> {
    let by_variable = ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"]
        .into_iter()
        .filter_map(env::var_os)
        .map(PathBuf::from);
    let in_home = [".claude", ".codex", ".gemini", ".copilot", ".local/share/opencode"];
    by_variable
        .chain(home.into_iter().flat_map(|home| in_home.map(|name| home.join(name))))
        .collect()
}
