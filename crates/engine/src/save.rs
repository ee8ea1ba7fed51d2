//! Saving a checkpoint: scan, store, read back, record. Only then is it said to be saved.

use bivouac_capture::running;
use bivouac_core::autosave::{self, Change, Skip, Verdict};
use bivouac_core::checkpoint::{Checkpoint, State, Trigger};
use bivouac_core::conversation::ConversationSummary;
use bivouac_core::event::{CheckpointFailed, CheckpointTaken, Event, Manifest};
use bivouac_core::git::{GitFacts, GitSummary};
use bivouac_core::id::{CheckpointHandle, CheckpointId, ObjectId, OperationId, PackId, SessionId};
use bivouac_core::sabotage::{self, Fault};
use bivouac_core::session::Session;
use bivouac_core::text::{Name, Note};
use bivouac_snapshot::block::ObjectKind;
use bivouac_snapshot::diff::{self, Filter, Trees};
use bivouac_snapshot::objects::Objects;
use bivouac_snapshot::pack::{Compression, NewPack, PackWriter};
use bivouac_snapshot::path_set::PathSet;
use bivouac_snapshot::take::{Sink, Taken};
use serde::Serialize;

use crate::compare::kind_of;
use crate::converse::Awaited;
use crate::export::Document;
use crate::lock::Lock;
use crate::look::{Scene, Thoroughness};
use crate::saving::Mark;
use crate::session::SessionDraft;
use crate::surroundings::{Part, Surroundings};
use crate::{Engine, Error, Result};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct SaveRequest {
    pub trigger: Trigger,
    pub name: Option<Name>,
    pub message: Option<Note>,
    pub state: Option<State>,
    /// What an agent's file may not have yet.
    pub awaited: Awaited,
    /// A conversation that was kept before, for a session that has none of its own yet.
    pub conversation: Option<ConversationSummary>,
}

impl SaveRequest {
    pub fn new(trigger: Trigger) -> Self {
        Self {
            trigger,
            name: None,
            message: None,
            state: None,
            awaited: Awaited::Nothing,
            conversation: None,
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub enum Saved {
    Taken(Box<SaveReport>),
    /// No checkpoint was needed.
    Skipped {
        session: Box<Session>,
        why: String,
    },
    /// One was due, and there was no room for it.
    Refused {
        session: Box<Session>,
        why: String,
    },
}

#[derive(Debug)]
pub struct SaveReport {
    pub session: Session,
    pub checkpoint: Checkpoint,
    /// How many files differ from the parent; `None` for a session's first checkpoint.
    pub n_changed: Option<u64>,
    /// What it added to the store.
    pub stored_bytes: u64,
    /// The patterns of `workspace.exclude`, where they left something out.
    pub excluded_by: Vec<String>,
}

/// What came of looking whether and where to save.
enum Prepared {
    Save(Box<Session>, Lock),
    Skip(Saved),
}

/// All that makes up a checkpoint besides the workspace itself.
pub(crate) struct Draft {
    pub(crate) id: CheckpointId,
    pub(crate) request: SaveRequest,
    pub(crate) operation: Option<OperationId>,
    /// Captured whatever the rules say.
    pub(crate) forced: PathSet,
}

impl Draft {
    pub(crate) fn new(id: CheckpointId, request: SaveRequest) -> Self {
        Self { id, request, operation: None, forced: PathSet::default() }
    }
}

impl Engine {
    /// Saves the workspace into the session named, the one at hand, or a new one. A person hears what goes
    /// wrong; of what was to be saved by itself, only the record tells, so there it always is.
    pub fn save(&mut self, session: Option<&str>, request: SaveRequest) -> Result<Saved> {
        let trigger = request.trigger;
        let prepared = self.prepare_save(session, &request);
        if let (Err(error), true) = (&prepared, autosave::is_automatic(trigger))
            && let Ok(Some(session)) = self.session_to_continue(session)
        {
            self.record_failure(session.id, trigger, error);
        }
        match prepared? {
            Prepared::Skip(skipped) => Ok(skipped),
            Prepared::Save(session, lock) => self.save_prepared(&session, request, &lock),
        }
    }

    /// All that comes before the scan.
    fn prepare_save(&mut self, session: Option<&str>, request: &SaveRequest) -> Result<Prepared> {
        self.home.check_workspace()?;
        let workspace_lock = self.lock_workspace()?;
        self.heal_held(&workspace_lock)?;
        let session = match self.session_to_continue(session)? {
            Some(session) => session,
            None => self.new_session(SessionDraft::default())?,
        };
        self.check_same_workspace(&session)?;
        if let Some(name) = &request.name
            && self.journal.is_name_taken(session.id, name.as_str())?
        {
            return Err(bivouac_journal::Error::NameTaken { name: name.clone() }.into());
        }
        let last_at =
            self.journal.last_checkpoint(session.id)?.map(|last| last.taken.checkpoint.taken_at);
        match autosave::before_scan(
            request.trigger,
            last_at,
            self.clock.now(),
            &self.config.autosave,
        ) {
            Verdict::Skip(why) => {
                let why = why.to_string();
                return Ok(Prepared::Skip(Saved::Skipped { session: Box::new(session), why }));
            }
            Verdict::Save => {}
        }
        if let Some(why) = self.make_room(&session, request.trigger)? {
            return Ok(Prepared::Skip(Saved::Refused { session: Box::new(session), why }));
        }
        Ok(Prepared::Save(Box::new(session), workspace_lock))
    }

    fn save_prepared(
        &mut self,
        session: &Session,
        request: SaveRequest,
        workspace_lock: &Lock,
    ) -> Result<Saved> {
        self.note_bad_config(session.id)?;
        let is_asked_for = request.trigger == Trigger::Manual;
        let label = request.name.as_ref().map(|name| name.as_str().to_owned());
        self.export_due(session, label.as_deref(), Document::is_in_workspace);
        let draft = Draft::new(CheckpointId::new(self.clock.new_id()), request);
        let saved = self.save_draft(session, &draft, workspace_lock)?;
        if let Saved::Taken(_) = saved {
            // A file for every turn would be too many.
            self.export_due(session, label.as_deref(), |kind| match kind {
                Document::CheckpointMd => is_asked_for,
                other => !other.is_in_workspace(),
            });
            self.tidy_after(session);
        }
        Ok(saved)
    }

    /// The checkpoint is saved, whatever becomes of this.
    fn tidy_after(&mut self, session: &Session) {
        let tidied = self.thin_session(session.id).and_then(|()| self.sweep_in_background());
        if let Err(error) = tidied {
            let why = crate::error::in_one_line(&error);
            self.notices.push(format!("the store could not be tidied: {why}"));
        }
    }

    pub(crate) fn check_same_workspace(&self, session: &Session) -> Result<()> {
        if session.workspace == self.home.workspace_path() {
            return Ok(());
        }
        Err(Error::SessionElsewhere {
            handle: session.handle.clone(),
            workspace: session.workspace.to_string(),
        })
    }

    /// Takes the checkpoint. What goes wrong is written into the session's log, where that is possible.
    pub(crate) fn save_draft(
        &mut self,
        session: &Session,
        draft: &Draft,
        lock: &Lock,
    ) -> Result<Saved> {
        let trigger = draft.request.trigger;
        let mark = Mark::leave(&self.home, draft.id, session.id, trigger);
        let result = self.take_checkpoint(session, draft, lock);
        if let Err(error) = &result {
            self.record_failure(session.id, trigger, error);
        }
        mark.take_away();
        result
    }

    /// Puts on record that a save failed. Where the journal takes nothing, a file waits for the next command.
    pub(crate) fn record_failure(&mut self, session: SessionId, trigger: Trigger, error: &Error) {
        let failed =
            CheckpointFailed { trigger, error: Note::cut(&crate::error::in_one_line(error)) };
        if self.record(session, vec![Event::CheckpointFailed(failed.clone())]).is_err() {
            let id = self.clock.new_id();
            let _the_first_error_counts =
                crate::spool::put_failure_aside(&self.home, session, failed, id);
        }
    }

    fn take_checkpoint(&mut self, session: &Session, draft: &Draft, _lock: &Lock) -> Result<Saved> {
        let _store_lock = self.use_store()?;
        let parent = self.journal.last_checkpoint(session.id)?.map(|kept| kept.taken.checkpoint);
        let scene = self.scene(thoroughness(&draft.request, parent.as_ref()))?;
        let moment = self.journal.moment()?;
        let stored = self.store_workspace(session, draft, parent.as_ref(), &scene)?;
        drop(moment);
        if draft.request.trigger == Trigger::Manual {
            self.note_left_out(&scene);
        }
        let stored = match stored {
            Stored::Whole(stored) => stored,
            Stored::Unchanged(why) => {
                return Ok(Saved::Skipped { session: Box::new(session.clone()), why });
            }
        };
        let StoredWorkspace { taken, manifest, manifest_id, pack, n_changed, seen } = *stored;
        let stored_bytes = pack.as_ref().map_or(0, |pack| pack.size_bytes);
        let taken_event =
            CheckpointTaken { checkpoint: manifest.checkpoint, manifest: manifest_id };
        let mut events = vec![Event::CheckpointTaken(Box::new(taken_event))];
        events.extend(seen);
        let recorded = self.record_with(session.id, events, pack.as_ref())?;
        let Some(Event::CheckpointTaken(recorded)) = recorded.into_iter().next() else {
            unreachable!("the first event recorded is the first one given")
        };
        // A scan with forced paths is not what the next one expects.
        if draft.forced.is_empty() {
            self.remember(&taken, &scene, (session.id, draft.id));
        }
        let checkpoint = recorded.checkpoint;
        self.remember_handle(&checkpoint.handle);
        self.remember_place();
        Ok(Saved::Taken(Box::new(SaveReport {
            session: session.clone(),
            excluded_by: self.excluded_by(&checkpoint.coverage),
            checkpoint,
            n_changed,
            stored_bytes,
        })))
    }

    /// Losing the cache costs one full scan, so failing to write it is no failure.
    fn remember(
        &self,
        taken: &Taken<'_>,
        scene: &Scene,
        (session, checkpoint): (SessionId, CheckpointId),
    ) {
        self.remember_settings(taken);
        let token = scene.news.settle(&self.home, session, taken);
        let _disposable = taken.remember(&self.home.stat_cache(), checkpoint, token);
    }

    /// Scans the workspace and makes everything a checkpoint needs durable.
    fn store_workspace<'s>(
        &self,
        session: &Session,
        draft: &Draft,
        parent: Option<&Checkpoint>,
        scene: &'s Scene,
    ) -> Result<Stored<'s>> {
        let index = self.index();
        let objects = self.objects(&index);
        let mut pack = self.new_pack();
        let looking = self.look_around(session, draft.request.trigger, parent);
        let mut sink = Sink::keep(&objects, &mut pack);
        let taken = self.scan(scene, &draft.forced, &mut sink)?;
        let fresh = std::mem::take(&mut sink.fresh);
        let trees = Trees::with_fresh(&objects, &fresh);
        let counted = parent.map(|parent| count_changes(&trees, &parent.tree, &taken.tree));
        let n_changed = match counted {
            // A parent that cannot be read must not keep what is here now from being saved.
            Some(Err(Error::Snapshot(error))) if error.is_damage() => None,
            counted => counted.transpose()?,
        };
        let awaited = &draft.request.awaited;
        let captured =
            self.capture_conversation(session.id, parent, awaited, (&objects, &mut pack))?;
        let conversation = captured.summary.or_else(|| draft.request.conversation.clone());
        let work = self.journal.work(session.id)?;
        let progress = (!work.is_empty()).then(|| to_json(&work));
        let work_id = progress.as_deref().map(ObjectId::of);
        let went_on =
            parent.is_some_and(|it| it.conversation != conversation || it.work != work_id);
        let change = if n_changed == Some(0) && !went_on { Change::None } else { Change::Some };
        let is_wanted = draft.request.name.is_some();
        if let (Verdict::Skip(why), Some(parent), false) =
            (autosave::after_scan(draft.request.trigger, change), parent, is_wanted)
        {
            if taken.tree == parent.tree && draft.forced.is_empty() {
                self.remember(&taken, scene, (session.id, parent.id));
            }
            return Ok(Stored::Unchanged(unchanged(why, &parent.handle)));
        }
        if let Some(progress) = &progress {
            put(&objects, &mut pack, ObjectKind::Facts, progress)?;
        }
        let around = looking.finish(&trees, &taken.tree);
        if around.lacks_versions {
            self.learn_tools_later(session);
        }
        let mut seen: Vec<Event> = captured.event.into_iter().collect();
        seen.extend(around.git.iter().flat_map(|facts| self.seen_in_git(parent, facts, &work)));
        let described = self.describe(session, draft, &taken)?;
        let checkpoint =
            Checkpoint { parent: parent.map(|it| it.id), conversation, work: work_id, ..described };
        let checkpoint = put_around(around, checkpoint, (&objects, &mut pack), &mut seen)?;
        let manifest = Manifest {
            version: Manifest::VERSION,
            session: self.identity(session.id)?,
            checkpoint,
        };
        let manifest_id = put(&objects, &mut pack, ObjectKind::Manifest, &to_json(&manifest))?;
        let pack = self.finish_pack(pack)?;
        Ok(Stored::Whole(Box::new(StoredWorkspace {
            taken,
            manifest,
            manifest_id,
            pack,
            n_changed,
            seen,
        })))
    }

    pub(crate) fn new_pack(&self) -> PackWriter {
        let compression = Compression::quick(self.config.compression_level);
        PackWriter::new(self.packs.folder(), PackId::new(self.clock.new_id()), compression)
    }

    /// Makes a pack durable and reads it back.
    pub(crate) fn finish_pack(&self, pack: PackWriter) -> Result<Option<NewPack>> {
        let pack = pack.finish()?;
        if let Some(pack) = &pack
            && !sabotage::is(Fault::PackNotReadBack)
        {
            self.packs.read_back(pack)?;
        }
        Ok(pack)
    }

    /// Makes one object durable, in a pack that is still to be recorded. `None` if the store has it.
    pub(crate) fn store_object(&self, kind: ObjectKind, bytes: &[u8]) -> Result<Option<NewPack>> {
        let index = self.index();
        let mut pack = self.new_pack();
        put(&self.objects(&index), &mut pack, kind, bytes)?;
        self.finish_pack(pack)
    }

    fn describe(&self, session: &Session, draft: &Draft, taken: &Taken<'_>) -> Result<Checkpoint> {
        let now = self.clock.now();
        let today = self.clock.local(now).date();
        Ok(Checkpoint {
            id: draft.id,
            handle: self.next_handle(today)?,
            session_id: session.id,
            parent: None,
            trigger: draft.request.trigger,
            name: draft.request.name.clone(),
            message: draft.request.message.clone(),
            taken_at: now,
            tree: taken.tree,
            coverage: taken.coverage.clone(),
            git: None,
            conversation: None,
            work: None,
            environment: None,
            terminal: None,
            state: draft.request.state.clone(),
            operation: draft.operation,
            by: who(),
            promise: self.config.retention.promise(),
        })
    }
}

/// What scanning and storing came to.
enum Stored<'s> {
    Whole(Box<StoredWorkspace<'s>>),
    Unchanged(String),
}

/// Durable, and not yet recorded.
struct StoredWorkspace<'s> {
    taken: Taken<'s>,
    manifest: Manifest,
    manifest_id: ObjectId,
    pack: Option<NewPack>,
    n_changed: Option<u64>,
    /// What was noticed on the way, to go on record with it.
    seen: Vec<Event>,
}

/// A session's first checkpoint is what all later ones are compared with, so it relies on no watcher either.
fn thoroughness(request: &SaveRequest, parent: Option<&Checkpoint>) -> Thoroughness {
    match request.name.is_none() && parent.is_some() {
        true => Thoroughness::of(request.trigger),
        false => Thoroughness::Everything,
    }
}

fn unchanged(why: Skip, parent: &CheckpointHandle) -> String {
    match why {
        Skip::Unchanged => format!("nothing changed since {parent}"),
        other => other.to_string(),
    }
}

fn count_changes(trees: &Trees<'_>, from: &ObjectId, to: &ObjectId) -> Result<u64> {
    if from == to {
        return Ok(0);
    }
    let changes = diff::diff(trees, from, to, &Filter::default())?;
    Ok(changes.iter().filter(|change| kind_of(change).is_some()).count() as u64)
}

/// Puts what is around the workspace beside it.
fn put_around(
    around: Surroundings,
    checkpoint: Checkpoint,
    (objects, pack): (&Objects<'_>, &mut PackWriter),
    seen: &mut Vec<Event>,
) -> Result<Checkpoint> {
    let git = around.git.map(|facts| put_facts(&facts, objects, pack)).transpose()?;
    let environment = match around.environment {
        Part::Now(it) => Some(put(objects, pack, ObjectKind::Facts, &to_json(&it))?),
        Part::AsBefore(id) => id,
    };
    let terminal = match around.terminal {
        Part::Now(it) => Some(put(objects, pack, ObjectKind::Facts, &to_json(&it))?),
        Part::AsBefore(id) => id,
    };
    seen.extend(around.notes);
    Ok(Checkpoint { git, environment, terminal, ..checkpoint })
}

pub(crate) fn put_facts(
    facts: &GitFacts,
    objects: &Objects<'_>,
    pack: &mut PackWriter,
) -> Result<GitSummary> {
    let id = put(objects, pack, ObjectKind::Facts, &to_json(facts))?;
    Ok(GitSummary::new(facts, id))
}

/// Puts an object into the pack unless the store has it.
pub(crate) fn put(
    objects: &Objects<'_>,
    pack: &mut PackWriter,
    kind: ObjectKind,
    bytes: &[u8],
) -> Result<ObjectId> {
    let id = ObjectId::of(bytes);
    if !objects.contains(&id)? {
        pack.put(kind, id, bytes)?;
    }
    Ok(id)
}

pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("our own types have string keys and no failing serialisers")
}

/// Who asks: `user@machine`.
pub(crate) fn who() -> String {
    let user = std::env::var("USER")
        .or_else(|_| std::env::var("LOGNAME"))
        .unwrap_or_else(|_| "unknown".to_owned());
    format!("{user}@{}", running::machine())
}
