//! The conversation of a checkpoint: the agent's own files as a stored tree, with `conversation.json`
//! about them. What was read of them is kept with it, so that the next checkpoint reads on from there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bivouac_capture::agents::reading::{self, Part, Reading, Source, read_on};
use bivouac_capture::agents::{self, Agent};
use bivouac_core::agent::{AgentKind, ConversationRewound};
use bivouac_core::checkpoint::Checkpoint;
use bivouac_core::conversation::{ConversationSummary, NativeId, Usage};
use bivouac_core::event::{Event, Level, Noted};
use bivouac_core::id::{ObjectId, SessionId};
use bivouac_core::progress::Silent;
use bivouac_snapshot::block::ObjectKind;
use bivouac_snapshot::checkout::{SetId, checkout};
use bivouac_snapshot::growing::Shelf;
use bivouac_snapshot::objects::Objects;
use bivouac_snapshot::pack::PackWriter;
use bivouac_snapshot::tree::{Content, Entry, FileEntry, Tree};
use serde::{Deserialize, Serialize};

use crate::home::home_folder;
use crate::save::to_json;
use crate::{Engine, Error, Result};

/// What `conversation.json` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    pub version: u32,
    pub agent: AgentKind,
    pub id: NativeId,
    pub workspace: String,
    /// Where the agent kept its main file. In another one, reading begins anew.
    #[serde(default)]
    pub transcript: Option<PathBuf>,
    /// The files beside it, the main one first.
    pub parts: Vec<String>,
    pub readings: BTreeMap<String, Reading>,
    /// The agent's last words, where they had not reached its file yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
}

const ABOUT: &str = "conversation.json";
/// How long the agent's last words are waited for.
const LAG: Duration = Duration::from_millis(500);
/// How long the end of a turn is: it may well come only once the hook is through.
const SHORT_LAG: Duration = Duration::from_millis(150);

/// The files of a conversation, each with what it is called.
pub(crate) type NamedFiles = Vec<(String, Vec<u8>)>;

/// What a checkpoint holds of a conversation, and what was noticed on the way.
pub(crate) struct Captured {
    pub(crate) summary: Option<ConversationSummary>,
    /// What goes on record beside the checkpoint.
    pub(crate) event: Option<Event>,
}

impl Captured {
    fn old(summary: Option<ConversationSummary>) -> Self {
        Self { summary, event: None }
    }
}

impl About {
    pub fn main(&self) -> Reading {
        self.parts.first().and_then(|name| self.readings.get(name)).cloned().unwrap_or_default()
    }

    /// What main file and sub-agents used together. Only the main file has turns of the person's.
    fn usage(&self) -> Usage {
        let mut total = Usage { n_turns: self.main().usage.n_turns, ..Usage::default() };
        for (model, tokens) in self.readings.values().flat_map(|it| &it.usage.by_model) {
            *total.by_model.entry(model.clone()).or_default() += *tokens;
        }
        total
    }
}

impl Engine {
    /// The same as [`Engine::put_conversation`], but files that the agent keeps and we cannot read do not
    /// keep the workspace from being saved: then the copy of the checkpoint before is what there is.
    pub(crate) fn capture_conversation(
        &self,
        session: SessionId,
        parent: Option<&Checkpoint>,
        awaited: &Awaited,
        place: (&Objects<'_>, &mut PackWriter),
    ) -> Result<Captured> {
        match self.put_conversation(session, parent, awaited, place) {
            Err(
                error @ (Error::Capture(_) | Error::Snapshot(bivouac_snapshot::Error::Read { .. })),
            ) => {
                let why = crate::error::in_one_line(&error);
                let message = format!("the conversation could not be saved: {why}").parse()?;
                let event = Some(Event::Noted(Noted { level: Level::Warning, message }));
                let summary = parent.and_then(|parent| parent.conversation.clone());
                Ok(Captured { summary, event })
            }
            captured => captured,
        }
    }

    /// Stores the session's present conversation. Where its files are gone, the copy of the checkpoint
    /// before is what there is.
    fn put_conversation(
        &self,
        session: SessionId,
        parent: Option<&Checkpoint>,
        awaited: &Awaited,
        (objects, pack): (&Objects<'_>, &mut PackWriter),
    ) -> Result<Captured> {
        let Some(current) = self.journal.conversations(session)?.pop() else {
            return Ok(Captured::old(parent.and_then(|parent| parent.conversation.clone())));
        };
        let started = current.started;
        let before = parent.and_then(|parent| parent.conversation.clone());
        let before = before.filter(|it| it.agent == started.agent && it.id == started.conversation);
        let transcript = started.transcript.map(PathBuf::from);
        let known = before.as_ref().and_then(|it| self.known(objects, &it.tree).ok());
        let known = known.filter(|(about, _)| about.transcript == transcript);
        let agent = agents::of(started.agent);
        let conversation = reading::Conversation {
            id: started.conversation.clone(),
            transcript: transcript.clone(),
            cwd: started.cwd.clone().into(),
            home: home_folder().unwrap_or_default(),
        };
        let parts = || -> Result<Vec<Part>> {
            let is_there =
                |part: &Part| !matches!(&part.source, Source::File(path) if !path.exists());
            Ok(agent.parts(&conversation)?.into_iter().filter(is_there).collect())
        };
        let start = known.as_ref().map(|(about, _)| about.main()).unwrap_or_default();
        let unwritten = wait_for(agent, &parts, &start, awaited)?;
        let parts = parts()?;
        if parts.is_empty() {
            return Ok(Captured::old(before));
        }
        let mut about = About {
            version: 1,
            agent: started.agent,
            id: started.conversation,
            workspace: self.place_of(known.as_ref().map(|(about, _)| about), &started.cwd),
            transcript,
            parts: parts.iter().map(|part| part.name.clone()).collect(),
            readings: known.as_ref().map(|(about, _)| about.readings.clone()).unwrap_or_default(),
            unwritten,
        };
        for part in &parts {
            let reading = about.readings.entry(part.name.clone()).or_default();
            reading.rewound_to = None;
            read_on(agent, part, reading)?;
        }
        let rewound = about.main().rewound_to.map(|n_turns_after| ConversationRewound {
            conversation: about.id.clone(),
            n_turns_before: start.usage.n_turns,
            n_turns_after,
        });
        let mut shelf = Shelf { objects, pack };
        let tree = shelve(&mut shelf, &parts, &about, known.as_ref().map(|(_, tree)| tree))?;
        let summary = Some(self.summary_of(about, tree));
        Ok(Captured { summary, event: rewound.map(Event::ConversationRewound) })
    }

    /// The folder that the agent's files speak of. Where the workspace was moved since, they speak of the old one.
    fn place_of(&self, known: Option<&About>, cwd: &str) -> String {
        let is_moved = !cwd.is_empty() && !Path::new(cwd).exists();
        match known {
            Some(about) => about.workspace.clone(),
            None if is_moved => cwd.to_owned(),
            None => self.home.workspace.to_string_lossy().into_owned(),
        }
    }

    /// What a stored conversation says about itself, and where its files are.
    fn known(&self, objects: &Objects<'_>, tree: &ObjectId) -> Result<(About, Tree)> {
        let tree = objects.tree(tree)?;
        let malformed = bivouac_snapshot::Error::Malformed { id: ObjectId::of(b""), what: ABOUT };
        let Some(Entry::File(file)) = tree.get(ABOUT.as_bytes()) else {
            return Err(malformed.into());
        };
        let mut bytes = Vec::new();
        objects.each_part(&file.content, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        let about = serde_json::from_slice(&bytes).map_err(|_| malformed)?;
        Ok((about, tree))
    }

    /// The same, for one that a checkpoint holds.
    pub fn conversation_about(&self, summary: &ConversationSummary) -> Result<About> {
        let _store_lock = self.use_store()?;
        let index = self.index();
        Ok(self.known(&self.objects(&index), &summary.tree)?.0)
    }

    /// The files of a stored conversation, the main one first.
    pub(crate) fn conversation_files(
        &self,
        summary: &ConversationSummary,
    ) -> Result<(About, NamedFiles)> {
        let _store_lock = self.use_store()?;
        let index = self.index();
        let objects = self.objects(&index);
        let (about, tree) = self.known(&objects, &summary.tree)?;
        let mut files = Vec::new();
        for name in &about.parts {
            let missing = bivouac_snapshot::Error::Malformed { id: summary.tree, what: ABOUT };
            let content = stored_content(&objects, &tree, name).ok_or(missing)?;
            let mut bytes = Vec::new();
            objects.each_part(&content, &mut |part| {
                bytes.extend_from_slice(part);
                Ok(())
            })?;
            files.push((name.clone(), bytes));
        }
        Ok((about, files))
    }

    /// Stores a conversation that comes from elsewhere. What is in it is read anew.
    pub(crate) fn keep_conversation(
        &self,
        mut about: About,
        parts: &[Part],
        (objects, pack): (&Objects<'_>, &mut PackWriter),
    ) -> Result<ConversationSummary> {
        let agent = agents::of(about.agent);
        about.parts = parts.iter().map(|part| part.name.clone()).collect();
        for part in parts {
            read_on(agent, part, about.readings.entry(part.name.clone()).or_default())?;
        }
        let tree = shelve(&mut Shelf { objects, pack }, parts, &about, None)?;
        Ok(self.summary_of(about, tree))
    }

    fn summary_of(&self, about: About, tree: ObjectId) -> ConversationSummary {
        let usage = about.usage();
        let cost_usd = self.config.prices.cost(&usage);
        ConversationSummary { agent: about.agent, id: about.id, tree, usage, cost_usd }
    }

    /// Writes the files of a stored conversation into a new folder.
    pub(crate) fn lay_out(&self, summary: &ConversationSummary, folder: &Path) -> Result<About> {
        let _store_lock = self.use_store()?;
        let index = self.index();
        let objects = self.objects(&index);
        let (about, _) = self.known(&objects, &summary.tree)?;
        checkout(&objects, &summary.tree, folder, SetId::Drop, &Silent)?;
        Ok(about)
    }
}

/// What a hook knows of that the agent's file may not have yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Awaited {
    #[default]
    Nothing,
    /// These last words.
    Words(String),
    /// The end of the turn.
    TurnEnd,
}

/// Waits for a while until the file has what is awaited. Answers words that did not come.
fn wait_for(
    agent: &dyn Agent,
    parts: &dyn Fn() -> Result<Vec<Part>>,
    start: &Reading,
    awaited: &Awaited,
) -> Result<Option<String>> {
    let is_idle = match awaited {
        Awaited::Nothing => true,
        Awaited::TurnEnd => !agent.marks_turns(),
        Awaited::Words(words) => words.trim().is_empty(),
    };
    let lag = if *awaited == Awaited::TurnEnd { SHORT_LAG } else { LAG };
    let started = Instant::now();
    let mut has_grown = false;
    while !is_idle && started.elapsed() < lag {
        // The turn before may have ended with the same words, so only what came since counts.
        let mut reading = Reading { last_message: None, ..start.clone() };
        if let Some(main) = parts()?.first() {
            read_on(agent, main, &mut reading)?;
        }
        let said = reading.last_message.as_deref().unwrap_or_default().trim();
        let has_come = match awaited {
            Awaited::Nothing => true,
            Awaited::TurnEnd => reading.is_complete && reading.offset > start.offset,
            Awaited::Words(words) => !said.is_empty() && words.trim().ends_with(said),
        };
        if has_come {
            return Ok(None);
        }
        has_grown = reading.offset != start.offset;
        std::thread::sleep(Duration::from_millis(10));
    }
    // Nothing came since, and those were the last words: the same turn is told twice.
    let said = start.last_message.as_deref().unwrap_or_default().trim();
    let is_known = |words: &str| !has_grown && !said.is_empty() && words.trim().ends_with(said);
    match awaited {
        Awaited::Words(words) if !is_idle && !is_known(words) => Ok(Some(words.clone())),
        _ => Ok(None),
    }
}

/// Puts the parts and what is known about them into a tree: files at the top, sub-agents in a folder.
fn shelve(
    shelf: &mut Shelf<'_, '_>,
    parts: &[Part],
    about: &About,
    known: Option<&Tree>,
) -> Result<ObjectId> {
    let mut top: BTreeMap<Vec<u8>, Entry> = BTreeMap::new();
    let mut below: BTreeMap<String, BTreeMap<Vec<u8>, Entry>> = BTreeMap::new();
    for part in parts {
        let before = known.and_then(|tree| stored_content(shelf.objects, tree, &part.name));
        let (content, size) = match &part.source {
            Source::File(path) => shelf.put_file(path, reading::open(path)?, before)?,
            Source::Bytes(bytes) => shelf.put_bytes(bytes)?,
        };
        let entry = Entry::File(FileEntry { mode: 0o600, size, content });
        match part.name.split_once('/') {
            Some((folder, name)) => {
                below.entry(folder.to_owned()).or_default().insert(name.into(), entry);
            }
            None => {
                top.insert(part.name.clone().into(), entry);
            }
        }
    }
    for (folder, entries) in below {
        let tree = put_tree(shelf, entries)?;
        top.insert(folder.into(), Entry::Folder { mode: 0o700, tree });
    }
    let (content, size) = shelf.put_bytes(&to_json(about))?;
    top.insert(ABOUT.into(), Entry::File(FileEntry { mode: 0o600, size, content }));
    put_tree(shelf, top)
}

fn put_tree(shelf: &mut Shelf<'_, '_>, entries: BTreeMap<Vec<u8>, Entry>) -> Result<ObjectId> {
    let entries =
        entries.into_iter().map(|(name, entry)| (name.into_boxed_slice(), entry)).collect();
    Ok(shelf.put(ObjectKind::Tree, &Tree::from_sorted(entries).encode())?)
}

fn stored_content(objects: &Objects<'_>, tree: &Tree, name: &str) -> Option<Content> {
    let entry = match name.split_once('/') {
        None => *tree.get(name.as_bytes())?,
        Some((folder, name)) => match tree.get(folder.as_bytes())? {
            Entry::Folder { tree, .. } => *objects.tree(tree).ok()?.get(name.as_bytes())?,
            _ => return None,
        },
    };
    entry.content()
}

/// A checkpoint without a conversation cannot be resumed in the agent.
pub(crate) fn of_checkpoint(checkpoint: &Checkpoint) -> Result<&ConversationSummary> {
    checkpoint
        .conversation
        .as_ref()
        .ok_or_else(|| Error::NoConversation { handle: checkpoint.handle.clone() })
}
