//! What agents get from us: hooks, an entry for our server, commands and skills. Each agent says where it looks
//! for them; here they are put beside what others wrote, and taken out again.

mod json;
mod toml;

use std::path::PathBuf;

pub(super) use self::json::is_ours;
use bivouac_core::agent::AgentKind;
use serde_json::{Map, Value, json};

use crate::bounded;

/// For whom it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// This user, in every project.
    User,
    /// Everyone who works in this project.
    Project,
}

/// What an agent gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It tells us what it does.
    Hooks,
    /// The model can ask us.
    Server,
    /// The person can ask us, and the model knows how to.
    Words,
}

impl Part {
    pub const ALL: [Self; 3] = [Self::Hooks, Self::Server, Self::Words];
}

/// Where things are on this machine.
#[derive(Clone, Debug)]
pub struct Folders {
    pub home: PathBuf,
    pub workspace: PathBuf,
    /// Our own program.
    pub program: String,
}

impl Folders {
    /// Our own program, as a shell can start it. What is on the `PATH` needs no quotes.
    pub fn binary(&self) -> String {
        match self.program.contains('/') {
            true => format!("'{}'", self.program.replace('\'', "'\\''")),
            false => self.program.clone(),
        }
    }
}

/// A file an agent reads, and what it is to find there.
#[derive(Clone, Debug)]
pub struct Place {
    pub path: PathBuf,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub enum Content {
    /// A file of our own.
    Own { part: Part, text: String },
    /// Settings in JSON that others write to as well.
    Json(Vec<Entry>),
    /// The same in TOML, with our server in it.
    Toml(Server),
}

/// What we put in settings.
#[derive(Clone, Debug)]
pub enum Entry {
    Hooks { agent: AgentKind, hooks: Vec<Hook> },
    Server(Server),
}

/// One hook: the event, the tools it is for, and how to call us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub event: &'static str,
    pub matcher: &'static str,
    pub command: String,
    /// In the agent's own unit.
    pub timeout: u64,
}

/// How an agent is told to start our server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The table of servers.
    pub table: &'static str,
    pub entry: Value,
}

/// Settings are smaller than this.
pub const MOST_BYTES: u64 = 16 << 20;

/// Does the agent call our hooks, now that they are there?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It calls whatever is there.
    NotAsked,
    Given,
    Missing {
        n_missing: usize,
        n_all: usize,
    },
    /// A setting tells it to call none.
    Off {
        setting: &'static str,
    },
    Unknown,
}

/// A switch in settings that turns all hooks off, if it is set.
pub(super) fn switched_off(
    settings: &std::path::Path,
    setting: &'static str,
    is_off: impl Fn(&Value) -> bool,
) -> Trust {
    let text = bounded::read_text(settings, MOST_BYTES).unwrap_or_default();
    let settings: Value = serde_json::from_str(&text).unwrap_or_default();
    if is_off(&settings) { Trust::Off { setting } } else { Trust::NotAsked }
}

/// What our server is called everywhere.
pub const SERVER: &str = "bivouac";

/// What has to reach our server from the agent's own environment.
pub(super) const VARIABLES: [&str; 3] = ["BIV_STORE", "BIV_SESSION", "BIV_CONFIG"];

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    #[error("it is not valid JSON: {0}")]
    NotJson(String),
    #[error("it is not valid TOML: {0}")]
    NotToml(String),
    #[error("it has comments, which would be lost")]
    Comments,
    #[error("the server `{0}` in it is not ours")]
    Taken(&'static str),
    #[error("`{0}` in it is not what the agent expects there")]
    Shape(&'static str),
}

impl Place {
    pub(super) fn own(part: Part, path: PathBuf, text: String) -> Self {
        Self { path, content: Content::Own { part, text } }
    }

    pub(super) fn json(path: PathBuf, entries: Vec<Entry>) -> Self {
        Self { path, content: Content::Json(entries) }
    }

    /// Could any of these parts be in it?
    pub fn has(&self, parts: &[Part]) -> bool {
        match &self.content {
            Content::Own { part, .. } => parts.contains(part),
            Content::Json(entries) => entries.iter().any(|it| parts.contains(&it.part())),
            Content::Toml(_) => parts.contains(&Part::Server),
        }
    }

    /// The file with these parts of ours, none of them twice. What is as it should be stays as it is.
    pub fn with(&self, text: &str, parts: &[Part]) -> Result<String, BadSettings> {
        match &self.content {
            Content::Own { text, .. } => Ok(text.clone()),
            Content::Json(entries) => {
                let mut wanted = entries.iter().filter(|it| parts.contains(&it.part()));
                wanted.try_fold(text.to_owned(), |text, entry| json::add(&text, entry))
            }
            Content::Toml(server) => toml::add(text, server),
        }
    }

    /// The file without these parts of ours; `None` where nothing is left of a file of our own.
    pub fn without(&self, text: &str, parts: &[Part]) -> Result<Option<String>, BadSettings> {
        match &self.content {
            Content::Own { .. } => Ok(None),
            Content::Json(entries) => {
                let mut unwanted = entries.iter().filter(|it| parts.contains(&it.part()));
                unwanted
                    .try_fold(text.to_owned(), |text, entry| json::remove(&text, entry))
                    .map(Some)
            }
            Content::Toml(server) => toml::remove(text, server).map(Some),
        }
    }

    /// Is there a file of someone else where ours would be? Ours name us.
    pub fn is_taken(&self, text: &str) -> bool {
        // Files that are JSON have no room for our name, but for our calls.
        let is_ours = ["Bivouac", " hook copilot "].iter().any(|mark| text.contains(mark));
        matches!(self.content, Content::Own { .. }) && !is_ours
    }

    /// Which parts of ours are in the file, as they should be or not.
    pub fn found(&self, text: &str) -> Result<Vec<Part>, BadSettings> {
        match &self.content {
            Content::Own { .. } if self.is_taken(text) => Ok(Vec::new()),
            Content::Own { part, .. } => Ok(vec![*part]),
            Content::Json(entries) => {
                let mut found = Vec::new();
                for entry in entries {
                    if json::has(text, entry)? {
                        found.push(entry.part());
                    }
                }
                Ok(found)
            }
            Content::Toml(server) => {
                Ok(toml::has(text, server)?.then_some(Part::Server).into_iter().collect())
            }
        }
    }
}

impl Entry {
    pub fn part(&self) -> Part {
        match self {
            Self::Hooks { .. } => Part::Hooks,
            Self::Server(_) => Part::Server,
        }
    }
}

/// Is this how our server is started, wherever our program is?
fn starts_us<'a>(command: Option<&str>, mut args: impl Iterator<Item = &'a str>) -> bool {
    let name = command.and_then(|command| command.rsplit('/').next());
    name.is_some_and(|name| name == "biv" || name.starts_with("biv-"))
        && args.any(|word| word == "mcp")
}

/// How the agent is told to call us. A missing or failing program must not disturb it.
pub fn command(folders: &Folders, agent: AgentKind, event: &str) -> String {
    format!("{} hook {agent} {event} 2>/dev/null || true", folders.binary())
}

/// The events, the tools they are for, and how long we may take, in the agent's own unit.
pub(super) fn hooks(
    agent: AgentKind,
    folders: &Folders,
    events: &[(&'static str, &'static str, u64)],
) -> Entry {
    let hook = |(event, matcher, timeout): &(&'static str, &'static str, u64)| Hook {
        event,
        matcher,
        command: command(folders, agent, event),
        timeout: *timeout,
    };
    Entry::Hooks { agent, hooks: events.iter().map(hook).collect() }
}

/// Our server beside others, with whatever else this agent wants to know about it.
pub(super) fn server(folders: &Folders, more: &Value) -> Server {
    let mut entry = Map::from_iter([
        ("command".to_owned(), json!(folders.program)),
        ("args".to_owned(), json!(["mcp"])),
    ]);
    entry.extend(more.as_object().cloned().unwrap_or_default());
    Server { table: "mcpServers", entry: entry.into() }
}

/// A whole file with nothing in it but this.
pub(super) fn document(entries: &[Entry]) -> String {
    let all = entries.iter().try_fold(String::new(), |text, entry| json::add(&text, entry));
    all.expect("an empty file takes everything")
}

/// A document of our own.
pub(super) fn pretty(document: &Value) -> String {
    format!("{document:#}\n")
}
