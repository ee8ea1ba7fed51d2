//! opencode: a plugin of our own instead of hooks, conversations in a database of its own.

mod hook;
pub(super) mod install;
mod transcript;

use std::path::{Path, PathBuf};

use bivouac_core::agent::AgentKind;
use bivouac_core::observation::Observation;
use serde_json::{Value, json};

use super::install::{Folders, Place, Scope};
use super::reading::{Conversation, Part, Reading};
use super::restore::{Kept, Launch, Order, headless};
use super::{Agent, Hears, Input};
use crate::Result;

pub struct Opencode;

impl Agent for Opencode {
    fn kind(&self) -> AgentKind {
        AgentKind::Opencode
    }

    fn program(&self) -> &'static str {
        "opencode"
    }

    fn oldest(&self) -> [u32; 3] {
        [1, 18, 33]
    }

    fn observe(&self, event: &str, input: Input<'_>) -> Option<Observation> {
        hook::observe(event, input)
    }

    fn hears_at(&self) -> Hears {
        Hears::AtPrompt
    }

    /// The plugin hands these words on to the model as they are.
    fn answer(&self, _event: &str, words: &str) -> String {
        words.to_owned()
    }

    fn parts(&self, conversation: &Conversation) -> Result<Vec<Part>> {
        transcript::parts(conversation)
    }

    /// A plugin hears nothing of the end.
    fn says_goodbye(&self) -> bool {
        false
    }

    fn grows_in(&self, _transcript: Option<&Path>, home: &Path) -> Vec<PathBuf> {
        let database = transcript::database(home);
        vec![database.with_extension("db-wal"), database]
    }

    fn read(&self, record: &Value, reading: &mut Reading) {
        transcript::read(Input::new(record), reading);
    }

    fn places(&self, scope: Scope, folders: &Folders) -> Vec<Place> {
        install::places(scope, folders)
    }

    fn greeting(&self, folder: &Path) -> Vec<(&'static str, Value)> {
        vec![(
            "chat.message",
            json!({ "sessionID": "doctor", "cwd": folder.to_string_lossy(), "prompt": "go on" }),
        )]
    }

    fn restore(&self, kept: &Kept, order: &Order) -> Result<Launch> {
        transcript::restore(kept, order)
    }

    fn opening(&self, prompt: &str) -> Vec<String> {
        vec!["--prompt".to_owned(), prompt.to_owned()]
    }

    fn start(&self, extra: &[String]) -> Launch {
        launch(&[], extra)
    }
}

/// `opencode …`, or `opencode run … PROMPT` where a prompt is given.
fn launch(own: &[String], extra: &[String]) -> Launch {
    let mut command = vec!["opencode".to_owned()];
    match headless(extra) {
        Some((prompt, rest)) => {
            command.push("run".to_owned());
            command.extend_from_slice(own);
            command.extend(rest);
            command.push(prompt.to_owned());
        }
        None => {
            command.extend_from_slice(own);
            command.extend_from_slice(extra);
        }
    }
    Launch::new(command)
}

fn config_folder(folders: &Folders) -> PathBuf {
    let base = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    base.unwrap_or_else(|| folders.home.join(".config")).join("opencode")
}
