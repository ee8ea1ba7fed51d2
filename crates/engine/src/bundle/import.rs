//! From a bundle to a session of its own, with one checkpoint. Nothing in the workspace changes.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use bivouac_capture::agents::reading::{self, Source};
use bivouac_core::checkpoint::{Checkpoint, Coverage, Trigger};
use bivouac_core::conversation::ConversationSummary;
use bivouac_core::event::{CheckpointTaken, Event, Manifest};
use bivouac_core::id::{CheckpointHandle, CheckpointId, ObjectId};
use bivouac_core::path::is_name;
use bivouac_core::session::{NewSession, Session};
use bivouac_core::text::{Name, Note};
use bivouac_core::work::{Item, Work};
use bivouac_snapshot::block::ObjectKind;
use bivouac_snapshot::objects::Objects;
use bivouac_snapshot::pack::{NewPack, PackWriter};
use bivouac_snapshot::take::Sink;
use serde::Serialize;
use serde_json::json;

use super::files::{self, Nowhere};
use super::open::{Opened, Scratch};
use super::{
    BadBundle, Body, CONVERSATION, Care, Conversation, MANIFEST, PRIVATE, Part, Withheld, base64,
};
use crate::converse::About;
use crate::save::{put, put_facts, to_json, who};
use crate::session::SessionDraft;
use crate::{Engine, Error, Result};

/// What came in.
#[derive(Debug)]
pub struct ImportReport {
    pub session: Session,
    pub checkpoint: Checkpoint,
    /// The checkpoint it was made of, where it came from.
    pub from: CheckpointHandle,
    pub care: Care,
    /// What the sender kept back.
    pub withheld: Vec<Withheld>,
}

/// Durable, and not yet recorded.
struct TakenIn {
    checkpoint: Checkpoint,
    manifest: ObjectId,
    pack: Option<NewPack>,
}

impl Engine {
    /// Takes in a bundle as a session of this workspace.
    pub fn import_bundle(&mut self, path: &Path, name: Option<Name>) -> Result<ImportReport> {
        self.home.check_workspace()?;
        self.check_room()?;
        let scratch = Scratch::create(
            &self.home,
            self.home.restored().join(self.clock.new_id().to_string()),
        )?;
        let opened = Opened::open(path, scratch)?;
        let told = &opened.manifest.session;
        let from = &opened.manifest.checkpoint;
        check_words(&opened)?;
        let own_name = told.name.as_ref().map(|it| it.as_str().parse()).transpose();
        let session = self.identify(SessionDraft {
            agent_type: Some(told.agent_type.clone()),
            task_description: told.task_description.as_ref().map(|it| Note::cut(it.as_str())),
            name: name.or(own_name.map_err(|error| BadBundle::malformed(MANIFEST, &error))?),
            metadata: Some(origin(&opened).parse()?),
        });
        // Once only to see whether all is well: until then nothing goes into the store.
        files::read(opened.workspace()?, &opened.manifest.left_out, &mut Nowhere)?;
        let items: Vec<Event> = opened.work.items().into_iter().map(Item::into_event).collect();
        let _store_lock = self.use_store()?;
        let stored = self.store_bundle(&opened, &session, &items)?;
        let TakenIn { checkpoint, manifest, pack } = stored;
        let id = session.id;
        let mut events = vec![Event::SessionCreated(Box::new(session))];
        events.extend(items);
        events.push(Event::CheckpointTaken(Box::new(CheckpointTaken { checkpoint, manifest })));
        let recorded = self.record_with(id, events, pack.as_ref())?;
        let Some(Event::CheckpointTaken(taken)) = recorded.into_iter().next_back() else {
            unreachable!("the last event recorded is the last one given")
        };
        let session = self.journal.session(id)?.ok_or(Error::NoSession)?;
        let (from, care) = (from.handle.clone(), opened.manifest.care);
        let private = opened.manifest.left_out.iter().filter(|it| it.why == PRIVATE);
        let withheld =
            private.map(|it| Withheld { path: it.path.clone(), reason: it.reason }).collect();
        Ok(ImportReport { session, checkpoint: taken.checkpoint, from, care, withheld })
    }

    /// Makes everything the checkpoint needs durable.
    fn store_bundle(
        &self,
        opened: &Opened,
        session: &NewSession,
        items: &[Event],
    ) -> Result<TakenIn> {
        let index = self.index();
        let objects = self.objects(&index);
        let mut pack = self.new_pack();
        let mut sink = Sink::keep(&objects, &mut pack);
        let files = files::read(opened.workspace()?, &opened.manifest.left_out, &mut sink)?;
        let mut coverage = Coverage::default();
        let tree = files.store(&mut sink, &mut coverage)?;
        let conversation = match &opened.conversation {
            Some(it) => self.take_in_conversation(it, &opened.scratch, (&objects, &mut pack))?,
            None => None,
        };
        // As the journal will have it, so that the next checkpoint finds nothing new.
        let now = self.clock.now();
        let mut work = Work::default();
        items.iter().for_each(|event| work.apply(event, now));
        let work = match work.is_empty() {
            true => None,
            false => Some(put(&objects, &mut pack, ObjectKind::Facts, &to_json(&work))?),
        };
        let environment = put_if_any(opened.environment.as_ref(), &objects, &mut pack)?;
        let terminal = put_if_any(opened.terminal.as_ref(), &objects, &mut pack)?;
        let from = &opened.manifest.checkpoint;
        let git = from.git.as_ref().map(|it| put_facts(it, &objects, &mut pack)).transpose()?;
        let name = from.name.as_ref().map(|it| it.as_str().parse()).transpose();
        let today = self.clock.local(now).date();
        let checkpoint = Checkpoint {
            id: CheckpointId::new(self.clock.new_id()),
            handle: self.next_handle(today)?,
            session_id: session.id,
            parent: None,
            trigger: Trigger::Manual,
            name: name.map_err(|error| BadBundle::malformed(MANIFEST, &error))?,
            message: Some(format!("imported from {}", from.handle).parse()?),
            taken_at: now,
            tree,
            coverage,
            git,
            conversation,
            work,
            environment,
            terminal,
            state: from.state.clone(),
            operation: None,
            by: who(),
            promise: None,
        };
        let stored = Manifest {
            version: Manifest::VERSION,
            session: session.clone(),
            checkpoint: checkpoint.clone(),
        };
        let manifest = put(&objects, &mut pack, ObjectKind::Manifest, &to_json(&stored))?;
        let pack = self.finish_pack(pack)?;
        Ok(TakenIn { checkpoint, manifest, pack })
    }

    fn take_in_conversation(
        &self,
        told: &Conversation,
        scratch: &Scratch,
        place: (&Objects<'_>, &mut PackWriter),
    ) -> Result<Option<ConversationSummary>> {
        let mut parts: Vec<reading::Part> = Vec::new();
        for (number, part) in told.parts.iter().enumerate() {
            let bad = |what: &str| BadBundle::malformed(CONVERSATION, &what);
            if !is_part_name(&part.name) || parts.iter().any(|it| it.name == part.name) {
                return Err(bad("it has a part with a name that cannot be").into());
            }
            let Some(bytes) = bytes_of(part).ok_or_else(|| bad("a part is not base64"))? else {
                continue;
            };
            // Records are read from files, documents from memory: as the agents keep them.
            let source = match part.name.ends_with(".jsonl") {
                true => {
                    let (path, mut file) = scratch.file(&format!("part-{number}"))?;
                    file.write_all(&bytes).map_err(Error::io(&path))?;
                    Source::File(path)
                }
                false => Source::Bytes(bytes),
            };
            parts.push(reading::Part { name: part.name.clone(), source });
        }
        let is_whole = told.parts.first().map(|it| &it.name) == parts.first().map(|it| &it.name);
        if parts.is_empty() || !is_whole {
            return Ok(None);
        }
        let about = About {
            version: 1,
            agent: told.agent,
            id: told.id.clone(),
            workspace: told.workspace.clone(),
            transcript: None,
            parts: Vec::new(),
            readings: BTreeMap::new(),
            unwritten: told.unwritten.clone(),
        };
        self.keep_conversation(about, &parts, place).map(Some)
    }
}

fn put_if_any(
    facts: Option<&impl Serialize>,
    objects: &Objects<'_>,
    pack: &mut PackWriter,
) -> Result<Option<ObjectId>> {
    facts.map(|it| put(objects, pack, ObjectKind::Facts, &to_json(it))).transpose()
}

/// `None` inside for a part that was withheld.
fn bytes_of(part: &Part) -> Option<Option<Vec<u8>>> {
    match &part.body {
        Body::Text(text) => Some(Some(text.clone().into_bytes())),
        Body::Base64(text) => base64::decode(text).map(Some),
        Body::Withheld(_) => Some(None),
    }
}

/// A file at the top, or in one folder; never the one that is about them all.
fn is_part_name(name: &str) -> bool {
    let is_plain = |name: &str| {
        is_name(name.as_bytes()) && name.len() <= 200 && !name.eq_ignore_ascii_case(".git")
    };
    match name.split_once('/') {
        Some((folder, file)) => is_plain(folder) && is_plain(file) && folder != CONVERSATION,
        None => is_plain(name) && name != CONVERSATION,
    }
}

/// What becomes part of messages and of command lines is plain.
fn check_words(opened: &Opened) -> Result<(), BadBundle> {
    let (session, checkpoint) = (&opened.manifest.session, &opened.manifest.checkpoint);
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    for word in [session.agent_type.as_str(), session.handle.as_str(), checkpoint.handle.as_str()] {
        if word.is_empty() || word.len() > 100 || !word.chars().all(is_plain) {
            return Err(BadBundle::malformed(MANIFEST, &"an agent or a handle has no plain name"));
        }
    }
    let git = checkpoint.git.as_ref();
    let head = git.and_then(|it| it.head.as_deref());
    let branch = git.and_then(|it| it.branch.as_deref());
    let is_commit = |it: &str| it.len() >= 40 && it.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_branch = |it: &str| {
        !it.starts_with('-') && !it.contains(|it: char| it.is_whitespace() || it.is_control())
    };
    match head.is_none_or(is_commit) && branch.is_none_or(is_branch) {
        true => Ok(()),
        false => Err(BadBundle::malformed(MANIFEST, &"git has no such branch or commit")),
    }
}

/// Where it came from, for whoever asks the session.
fn origin(opened: &Opened) -> String {
    let (session, checkpoint) = (&opened.manifest.session, &opened.manifest.checkpoint);
    json!({ "imported_from": {
        "session": session.id,
        "session_handle": session.handle,
        "checkpoint": checkpoint.id,
        "checkpoint_handle": checkpoint.handle,
        "taken_at": checkpoint.taken_at,
        "by": checkpoint.by,
        "workspace": session.workspace,
        "care": opened.manifest.care,
    } })
    .to_string()
}
