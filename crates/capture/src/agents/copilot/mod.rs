//! Copilot CLI: a hook file of our own in `~/.copilot/hooks`, conversations as events in JSON lines.

mod hook;
pub(super) mod install;
mod transcript;

use std::env;
use std::path::{Path, PathBuf};

use bivouac_core::agent::AgentKind;
use bivouac_core::observation::Observation;
use serde_json::{Value, json};

use super::install::{Folders, Place, Scope};
use super::reading::{Conversation, Part, Reading};
use super::restore::{Kept, Launch, Order};
use super::{Agent, Hears, Input};
use crate::Result;

pub struct Copilot;

impl Agent for Copilot {
    fn kind(&self) -> AgentKind {
        AgentKind::Copilot
    }

    fn program(&self) -> &'static str {
        "copilot"
    }

    fn oldest(&self) -> [u32; 3] {
        [1, 0, 102]
    }

    fn observe(&self, event: &str, input: Input<'_>) -> Option<Observation> {
        hook::observe(event, input)
    }

    fn hears_at(&self) -> Hears {
        Hears::AtStart
    }

    fn answer(&self, _event: &str, words: &str) -> String {
        json!({ "additionalContext": words }).to_string()
    }

    fn parts(&self, conversation: &Conversation) -> Result<Vec<Part>> {
        Ok(transcript::parts(conversation))
    }

    fn marks_turns(&self) -> bool {
        true
    }

    fn read(&self, record: &Value, reading: &mut Reading) {
        transcript::read(Input::new(record), reading);
    }

    fn places(&self, scope: Scope, folders: &Folders) -> Vec<Place> {
        install::places(scope, folders)
    }

    fn greeting(&self, folder: &Path) -> Vec<(&'static str, Value)> {
        vec![(
            "sessionStart",
            json!({ "sessionId": "doctor", "cwd": folder.to_string_lossy(), "source": "resume" }),
        )]
    }

    fn restore(&self, kept: &Kept, order: &Order) -> Result<Launch> {
        transcript::restore(kept, order)
    }

    fn opening(&self, prompt: &str) -> Vec<String> {
        vec!["-i".to_owned(), prompt.to_owned()]
    }

    fn start(&self, extra: &[String]) -> Launch {
        Launch::new(["copilot".to_owned()].into_iter().chain(extra.iter().cloned()))
    }
}

/// Where it keeps everything.
fn folder(home: &Path) -> PathBuf {
    env::var_os("COPILOT_HOME").map_or_else(|| home.join(".copilot"), PathBuf::from)
}
