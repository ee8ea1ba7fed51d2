//! Gemini CLI: JSON hooks in `settings.json`, conversations as JSON lines that replace and patch each
//! other. It deletes resumed conversations at the next start, so ours may be the only copy.

mod hook;
pub(super) mod install;
mod transcript;

use std::path::{Path, PathBuf};

use bivouac_core::agent::AgentKind;
use bivouac_core::observation::Observation;
use serde_json::{Value, json};

use super::install::{Folders, Place, Scope, Trust, switched_off};
use super::reading::{Conversation, Part, Reading, Source};
use super::restore::{Kept, Launch, Order};
use super::{Agent, Hears, Input};
use crate::Result;

pub struct Gemini;

impl Agent for Gemini {
    fn kind(&self) -> AgentKind {
        AgentKind::Gemini
    }

    fn program(&self) -> &'static str {
        "gemini"
    }

    fn oldest(&self) -> [u32; 3] {
        [0, 61, 0]
    }

    fn observe(&self, event: &str, input: Input<'_>) -> Option<Observation> {
        hook::observe(event, input)
    }

    /// What SessionStart answers is put before the prompt, which then is lost on resume.
    fn hears_at(&self) -> Hears {
        Hears::AtPrompt
    }

    fn answer(&self, event: &str, words: &str) -> String {
        super::claude_code::ClaudeCode.answer(event, words)
    }

    fn parts(&self, conversation: &Conversation) -> Result<Vec<Part>> {
        let main = conversation.transcript.iter();
        let part = |path: &PathBuf| Part {
            name: "main.jsonl".to_owned(),
            source: Source::File(path.clone()),
        };
        Ok(main.map(part).collect())
    }

    fn read(&self, record: &Value, reading: &mut Reading) {
        transcript::read(Input::new(record), reading);
    }

    fn places(&self, scope: Scope, folders: &Folders) -> Vec<Place> {
        install::places(scope, folders)
    }

    fn greeting(&self, folder: &Path) -> Vec<(&'static str, Value)> {
        vec![
            (
                "SessionStart",
                json!({ "session_id": "doctor", "cwd": folder.to_string_lossy(), "source": "resume" }),
            ),
            (
                "BeforeAgent",
                json!({ "session_id": "doctor", "cwd": folder.to_string_lossy(), "prompt": "go on" }),
            ),
        ]
    }

    fn trust(&self, folders: &Folders) -> Trust {
        let settings = folder(&folders.home).join("settings.json");
        switched_off(&settings, "hooksConfig.enabled", |it| it["hooksConfig"]["enabled"] == false)
    }

    fn restore(&self, kept: &Kept, order: &Order) -> Result<Launch> {
        transcript::restore(kept, order)
    }

    fn opening(&self, prompt: &str) -> Vec<String> {
        vec!["-i".to_owned(), prompt.to_owned()]
    }

    fn start(&self, extra: &[String]) -> Launch {
        Launch::new(["gemini".to_owned()].into_iter().chain(extra.iter().cloned()))
    }
}

/// Where it keeps everything.
fn folder(home: &Path) -> PathBuf {
    home.join(".gemini")
}
