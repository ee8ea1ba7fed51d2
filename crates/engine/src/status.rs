//! How things stand: here, and in the store.

use std::collections::HashMap;

use bivouac_core::checkpoint::{Checkpoint, Coverage};
use bivouac_core::git::GitFacts;
use bivouac_core::id::{ObjectId, SessionId};
use bivouac_core::operation::History;
use bivouac_core::path::RelPath;
use bivouac_core::session::Session;
use bivouac_core::time::Timestamp;
use bivouac_core::work::Work;
use bivouac_journal::query::{CheckpointFilter, Failures, KeptCheckpoint, LogLine, SessionFilter};
use bivouac_snapshot::diff::{Filter, Trees, diff};
use bivouac_snapshot::path_set::PathSet;
use bivouac_snapshot::private;
use bivouac_snapshot::sweep::{Live, each_object, survey};
use bivouac_snapshot::tree::Entry;

use crate::look::Look;
use crate::sweep::mark_checkpoint;
use crate::{Engine, Result};

/// How things stand in this workspace.
pub struct StatusReport {
    pub session: Option<Session>,
    pub n_checkpoints: u64,
    pub last: Option<Checkpoint>,
    /// What changed since the last checkpoint. Where that cannot be told, why.
    pub changes: Result<Changes>,
    pub coverage: Coverage,
    /// The patterns of `workspace.exclude`, where they leave something out.
    pub excluded_by: Vec<String>,
    pub history: History,
    pub work: Work,
    /// What an agent waits for a person's leave for.
    pub approvals: Vec<String>,
    /// When the limit ends that stopped the last turn.
    pub limit_ends: Option<Timestamp>,
    /// The process that goes on although its supervisor is gone.
    pub orphan: Option<u32>,
    /// The saves that failed since the last one that did not.
    pub failures: Failures,
    /// The newest failures and skipped checkpoints.
    pub troubles: Vec<LogLine>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub n_new: u64,
    pub n_modified: u64,
    pub n_deleted: u64,
}

/// What the store takes on disk.
pub struct DiskUse {
    pub database: u64,
    pub packs: u64,
    pub index: u64,
    pub n_packs: u64,
    /// What a sweep would give back.
    pub reclaimable: u64,
    pub sessions: Vec<SessionUse>,
}

pub struct SessionUse {
    pub session: Session,
    pub n_checkpoints: u64,
    /// Stored bytes no other session needs.
    pub own_bytes: u64,
}

impl Engine {
    pub fn status(&self) -> Result<StatusReport> {
        let session = self.session_if_any(None)?;
        let last = session
            .as_ref()
            .map(|session| self.journal.last_checkpoint(session.id))
            .transpose()?
            .flatten();
        let last = last.map(|kept| kept.taken.checkpoint);
        let n_checkpoints =
            session.as_ref().map(|session| self.journal.n_checkpoints(session.id)).transpose()?;
        let _store_lock = self.use_store()?;
        let look = self.look(&PathSet::default())?;
        let changes = match &last {
            Some(last) => self.changes_since(last, &look),
            None => Ok(Changes { n_new: look.coverage.n_files, ..Changes::default() }),
        };
        let id = session.as_ref().map(|session| session.id);
        Ok(StatusReport {
            work: id.map(|id| self.journal.work(id)).transpose()?.unwrap_or_default(),
            approvals: id.map(|id| self.journal.approvals(id)).transpose()?.unwrap_or_default(),
            limit_ends: session.as_ref().map(|it| self.limit_ahead(it)).transpose()?.flatten(),
            orphan: id.map(|id| self.orphan(id)).transpose()?.flatten(),
            failures: id.map(|id| self.journal.failures(id)).transpose()?.unwrap_or_default(),
            session,
            n_checkpoints: n_checkpoints.unwrap_or(0),
            last,
            changes,
            excluded_by: self.excluded_by(&look.coverage),
            coverage: look.coverage,
            history: self.history()?,
            troubles: self.journal.troubles(&self.home.workspace_path(), 3)?,
        })
    }

    fn changes_since(&self, last: &Checkpoint, look: &Look) -> Result<Changes> {
        let index = self.index();
        let objects = self.objects(&index);
        match count(&Trees::with_fresh(&objects, &look.fresh), last, &look.tree) {
            Err(error) if error.is_unreadable() => {
                let look = self.look_anew()?;
                count(&Trees::with_fresh(&objects, &look.fresh), last, &look.tree)
            }
            counted => counted,
        }
    }

    /// The git facts kept with a checkpoint.
    pub fn git_facts(&self, kept: &KeptCheckpoint) -> Result<Option<GitFacts>> {
        let Some(git) = &kept.taken.checkpoint.git else {
            return Ok(None);
        };
        let _store_lock = self.use_store()?;
        self.stored_facts(git.facts, "set of git facts").map(Some)
    }

    /// How far the work was at a checkpoint.
    pub fn work_of(&self, checkpoint: &Checkpoint) -> Result<Work> {
        let _store_lock = self.use_store()?;
        self.stored_work(checkpoint)
    }

    /// The same, for whoever holds the store already.
    pub(crate) fn stored_work(&self, checkpoint: &Checkpoint) -> Result<Work> {
        let Some(id) = checkpoint.work else {
            return Ok(Work::default());
        };
        self.stored_facts(id, "state of the work")
    }

    /// Every path of a checkpoint, a folder before what is in it.
    pub fn files_of(&self, kept: &KeptCheckpoint) -> Result<Vec<(RelPath, Entry)>> {
        let _store_lock = self.use_store()?;
        let index = self.index();
        let objects = self.objects(&index);
        Ok(bivouac_snapshot::checkout::entries_of(&objects, &kept.taken.checkpoint.tree)?)
    }

    pub fn disk_use(&self) -> Result<DiskUse> {
        let _store_lock = self.use_store()?;
        let live = self.mark_all()?;
        let index = self.index();
        let objects = self.objects(&index);
        let packs = self.journal.packs()?;
        let mut reclaimable = 0;
        for (id, _) in &packs {
            reclaimable += survey(&objects, *id, &live)?.reclaimable();
        }
        Ok(DiskUse {
            database: folder_size(&self.home.store, |name| name.starts_with("sessions.db")),
            packs: packs.iter().map(|(_, size)| size).sum(),
            index: folder_size(&self.home.store.join("index"), |_| true),
            n_packs: packs.len() as u64,
            reclaimable,
            sessions: self.session_use()?,
        })
    }

    /// What each session alone keeps in the store.
    fn session_use(&self) -> Result<Vec<SessionUse>> {
        let sessions = self.journal.sessions(&SessionFilter::default())?;
        let index = self.index();
        let objects = self.objects(&index);
        // `None` stands for an object that several sessions need.
        let mut owners: HashMap<ObjectId, Option<SessionId>> = HashMap::new();
        for session in &sessions {
            let mut live = Live::default();
            let filter =
                CheckpointFilter { session: Some(session.id), ..CheckpointFilter::default() };
            for kept in self.journal.checkpoints(&filter)? {
                mark_checkpoint(&mut live, &objects, &kept.taken)?;
            }
            for id in live.ids() {
                owners.entry(*id).and_modify(|owner| *owner = None).or_insert(Some(session.id));
            }
        }
        let mut own_bytes: HashMap<SessionId, u64> = HashMap::new();
        for (pack, size_bytes) in self.journal.packs()? {
            let mut lengths = Vec::new();
            each_object(&objects, pack, |object, _, _| {
                lengths.push((object.id, u64::from(object.length)));
            })?;
            let total: u64 = lengths.iter().map(|(_, length)| length).sum();
            for (id, length) in lengths {
                if let Some(Some(owner)) = owners.get(&id) {
                    *own_bytes.entry(*owner).or_default() += size_bytes * length / total.max(1);
                }
            }
        }
        let mut usage = Vec::new();
        for session in sessions {
            let n_checkpoints = self.journal.n_checkpoints(session.id)?;
            let own_bytes = own_bytes.get(&session.id).copied().unwrap_or(0);
            usage.push(SessionUse { session, n_checkpoints, own_bytes });
        }
        Ok(usage)
    }
}

fn count(trees: &Trees<'_>, last: &Checkpoint, now: &ObjectId) -> Result<Changes> {
    let mut changes = Changes::default();
    for change in diff(trees, &last.tree, now, &Filter::default())?
        .iter()
        .filter(|change| change.is_covered())
    {
        let is_file = |entry: &Option<Entry>| {
            entry.is_some_and(|entry| !entry.is_gap() && !entry.is_folder())
        };
        match (is_file(&change.before), is_file(&change.after)) {
            // It may still be there: it is no longer covered.
            (true, false) if change.after.is_some_and(|entry| entry.is_gap()) => {}
            (false, true) => changes.n_new += 1,
            (true, false) => changes.n_deleted += 1,
            (true, true) => changes.n_modified += 1,
            (false, false) => {}
        }
    }
    Ok(changes)
}

fn folder_size(folder: &std::path::Path, counts: impl Fn(&str) -> bool) -> u64 {
    let mut total = 0;
    for name in private::list(folder).unwrap_or_default() {
        if counts(&name.to_string_lossy()) {
            total += private::facts(&folder.join(name)).map_or(0, |it| it.size_bytes);
        }
    }
    total
}
