//! Claude Code: JSON hooks in `settings.json`, conversations as JSON lines below `~/.claude/projects`.

mod hook;
pub(super) mod install;
pub mod memory;
mod transcript;

use std::env;
use std::path::{Path, PathBuf};

use bivouac_core::agent::AgentKind;
use bivouac_core::observation::Observation;
use serde_json::{Value, json};

use super::install::{Folders, Place, Scope, Trust, switched_off};
use super::reading::{Conversation, Part, Reading};
use super::restore::{Kept, Launch, Order};
use super::{Agent, Hears, Input};
use crate::Result;

pub struct ClaudeCode;

impl Agent for ClaudeCode {
    fn kind(&self) -> AgentKind {
        AgentKind::ClaudeCode
    }

    fn program(&self) -> &'static str {
        "claude"
    }

    fn oldest(&self) -> [u32; 3] {
        [2, 1, 197]
    }

    fn observe(&self, event: &str, input: Input<'_>) -> Option<Observation> {
        hook::observe(event, input)
    }

    fn hears_at(&self) -> Hears {
        Hears::AtStart
    }

    fn answer(&self, event: &str, words: &str) -> String {
        hook::answer(event, words)
    }

    fn parts(&self, conversation: &Conversation) -> Result<Vec<Part>> {
        Ok(transcript::parts(conversation))
    }

    fn read(&self, record: &Value, reading: &mut Reading) {
        transcript::read(Input::new(record), reading);
    }

    fn places(&self, scope: Scope, folders: &Folders) -> Vec<Place> {
        install::places(scope, folders)
    }

    fn greeting(&self, folder: &Path) -> Vec<(&'static str, Value)> {
        vec![(
            "SessionStart",
            json!({ "session_id": "doctor", "cwd": folder.to_string_lossy(), "source": "resume" }),
        )]
    }

    fn trust(&self, folders: &Folders) -> Trust {
        let settings = folder(&folders.home).join("settings.json");
        switched_off(&settings, "disableAllHooks", |it| it["disableAllHooks"] == true)
    }

    fn restore(&self, kept: &Kept, order: &Order) -> Result<Launch> {
        transcript::restore(kept, order)
    }

    fn opening(&self, prompt: &str) -> Vec<String> {
        vec![prompt.to_owned()]
    }

    fn start(&self, extra: &[String]) -> Launch {
        Launch::new(["claude"].into_iter().map(str::to_owned).chain(extra.iter().cloned()))
    }
}

/// Where it keeps everything.
fn folder(home: &Path) -> PathBuf {
    env::var_os("CLAUDE_CONFIG_DIR").map_or_else(|| home.join(".claude"), PathBuf::from)
}
