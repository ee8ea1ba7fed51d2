//! The agents people run. Each has a folder of its own, which alone knows its formats:
//!
//! - `hook`: their JSON becomes an [`Observation`], our words become their answer
//! - `transcript`: what a conversation consists of, how far it is, how to give it back
//! - `install`: where they look for hooks, servers, commands and skills

pub mod claude_code;
pub mod codex;
pub mod copilot;
pub mod gemini;
mod input;
pub mod install;
pub mod offset;
pub mod opencode;
pub mod package;
pub mod reading;
pub mod restore;
mod words;

use std::env;
use std::path::{Path, PathBuf};

use bivouac_core::agent::AgentKind;
use bivouac_core::observation::Observation;
use serde_json::Value;

use crate::Result;
use install::{Folders, Place, Scope, Trust};
use reading::{Conversation, Part, Reading};
use restore::{Kept, Launch, Order};

pub use input::{Input, parse};

/// What Bivouac must know about an agent.
pub trait Agent: Sync {
    fn kind(&self) -> AgentKind;

    /// What its program is called.
    fn program(&self) -> &'static str;

    /// The oldest release whose conversations are known to come back.
    fn oldest(&self) -> [u32; 3];

    /// What a hook was told. `None` when it makes no sense to us.
    fn observe(&self, event: &str, input: Input<'_>) -> Option<Observation>;

    /// The event at which words of ours reach the model.
    fn hears_at(&self) -> Hears;

    /// Words for the model, as the hook of this event answers them.
    fn answer(&self, event: &str, words: &str) -> String;

    /// The files a conversation consists of, the main one first.
    fn parts(&self, conversation: &Conversation) -> Result<Vec<Part>>;

    /// Does its file say where a turn ends, and its hook not what was said last?
    fn marks_turns(&self) -> bool {
        false
    }

    /// Does it tell when it ends?
    fn says_goodbye(&self) -> bool {
        true
    }

    /// The files that change when something is said. Most agents name theirs.
    fn grows_in(&self, transcript: Option<&Path>, _home: &Path) -> Vec<PathBuf> {
        transcript.map(Path::to_owned).into_iter().collect()
    }

    /// Reads one more record of a part.
    fn read(&self, record: &Value, reading: &mut Reading);

    /// Where all goes that it gets from us; nothing where it knows no hooks of this scope.
    fn places(&self, scope: Scope, folders: &Folders) -> Vec<Place>;

    /// What its hooks are told when a conversation goes on, up to the one that is answered with words for the
    /// model.
    fn greeting(&self, folder: &Path) -> Vec<(&'static str, Value)>;

    /// Does it call our hooks?
    fn trust(&self, _folders: &Folders) -> Trust {
        Trust::NotAsked
    }

    /// Writes a kept conversation where the agent finds it, under a new id, and says how to start it.
    fn restore(&self, kept: &Kept, order: &Order) -> Result<Launch>;

    /// The arguments that make it begin with a prompt, and stay.
    fn opening(&self, prompt: &str) -> Vec<String>;

    /// How to start a new conversation.
    fn start(&self, extra: &[String]) -> Launch;
}

/// When an agent takes in what we have to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    /// When a conversation begins.
    AtStart,
    /// With the prompt; what is said earlier is lost, or does harm.
    AtPrompt,
}

/// The agent of a kind.
pub fn of(kind: AgentKind) -> &'static dyn Agent {
    match kind {
        AgentKind::ClaudeCode => &claude_code::ClaudeCode,
        AgentKind::Codex => &codex::Codex,
        AgentKind::Gemini => &gemini::Gemini,
        AgentKind::Opencode => &opencode::Opencode,
        AgentKind::Copilot => &copilot::Copilot,
    }
}

/// Did an agent start us? They mark what they run.
pub fn is_within_agent() -> bool {
    const MARKS: [&str; 6] =
        ["CLAUDECODE", "GEMINI_CLI", "CODEX_SANDBOX", "CODEX_THREAD_ID", "OPENCODE", "COPILOT_CLI"];
    MARKS.iter().any(|mark| env::var_os(mark).is_some_and(|value| !value.is_empty()))
}

/// The project that the agent which started us works on, where it says so.
pub fn project_folder() -> Option<PathBuf> {
    let names = ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"];
    let folders = names.into_iter().filter_map(env::var_os).map(PathBuf::from);
    folders.filter(|folder| folder.is_absolute()).find(|folder| folder.is_dir())
}

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
