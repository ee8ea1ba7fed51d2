//! Codex CLI: JSON hooks in `hooks.json`, which the person reviews once; conversations as rollout files,
//! some of which only continue others.

mod hook;
pub(super) mod install;
mod transcript;
mod trust;

use std::env;
use std::path::{Path, PathBuf};

use bivouac_core::agent::AgentKind;
use bivouac_core::observation::Observation;
use serde_json::{Value, json};

use super::install::{Folders, Place, Scope, Trust};
use super::reading::{Conversation, Part, Reading};
use super::restore::{Kept, Launch, Order, headless};
use super::{Agent, Hears, Input};
use crate::Result;

pub struct Codex;

impl Agent for Codex {
    fn kind(&self) -> AgentKind {
        AgentKind::Codex
    }

    fn program(&self) -> &'static str {
        "codex"
    }

    fn oldest(&self) -> [u32; 3] {
        [0, 166, 0]
    }

    fn observe(&self, event: &str, input: Input<'_>) -> Option<Observation> {
        hook::observe(event, input)
    }

    fn hears_at(&self) -> Hears {
        Hears::AtStart
    }

    fn answer(&self, event: &str, words: &str) -> String {
        super::claude_code::ClaudeCode.answer(event, words)
    }

    fn parts(&self, conversation: &Conversation) -> Result<Vec<Part>> {
        transcript::parts(conversation)
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
        let folder = folder(&folders.home);
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        trust::trust(&read("config.toml"), &folder.join("hooks.json"), &read("hooks.json"))
    }

    fn restore(&self, kept: &Kept, order: &Order) -> Result<Launch> {
        transcript::restore(kept, order)
    }

    fn opening(&self, prompt: &str) -> Vec<String> {
        vec![prompt.to_owned()]
    }

    fn start(&self, extra: &[String]) -> Launch {
        match headless(extra) {
            Some((prompt, rest)) => Launch::new(
                ["codex", "exec"]
                    .map(str::to_owned)
                    .into_iter()
                    .chain(rest)
                    .chain([prompt.to_owned()]),
            ),
            None => Launch::new(["codex".to_owned()].into_iter().chain(extra.iter().cloned())),
        }
    }
}

/// Where it keeps everything.
fn folder(home: &Path) -> PathBuf {
    env::var_os("CODEX_HOME").map_or_else(|| home.join(".codex"), PathBuf::from)
}
