//! Copilot CLI: a hook file of our own in `~/.copilot/hooks`, conversations as events in JSON lines.

mod hook;
mod transcript;

use std::env;
use std::path::{Path, PathBuf};

use bivouac_core::agent::AgentKind;
use bivouac_core::observation::Observation;
use serde_json::{Map, Value, json};

use super::install::{Folders, Place, Scope, command};
use super::reading::{Conversation, Part, Reading};
use super::restore::{Kept, Launch, Order};
use super::{Agent, Hears, Input};
use crate::Result;

pub struct Copilot;

/// The events we ask for, and how many seconds we may take.
const EVENTS: [(&str, u64); 12] = [
    ("sessionStart", 20),
    ("userPromptSubmitted", 20),
    ("preToolUse", 60),
    ("permissionRequest", 10),
    ("postToolUse", 30),
    ("postToolUseFailure", 30),
    ("subagentStart", 10),
    ("subagentStop", 10),
    ("preCompact", 60),
    ("agentStop", 60),
    ("errorOccurred", 10),
    ("sessionEnd", 20),
];

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

    fn place(&self, scope: Scope, folders: &Folders) -> Place {
        if scope == Scope::Project {
            return Place::Nowhere;
        }
        let hooks: Map<String, Value> = EVENTS
            .iter()
            .map(|(event, seconds)| {
                let bash = command(folders, AgentKind::Copilot, event);
                (
                    (*event).to_owned(),
                    json!([{ "type": "command", "bash": bash, "timeoutSec": seconds }]),
                )
            })
            .collect();
        let text = serde_json::to_string_pretty(&json!({ "version": 1, "hooks": hooks }));
        Place::Own {
            path: folder(&folders.home).join("hooks/bivouac.json"),
            text: text.unwrap_or_default() + "\n",
        }
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
