//! Giving space back: let go what retention says, mark what is still needed, replace packs.

use std::path::Path;
use std::time::Duration;

use bivouac_core::checkpoint::Checkpoint;
use bivouac_core::event::CheckpointTaken;
use bivouac_core::id::{ObjectId, PackId};
use bivouac_core::sabotage::{self, Fault};
use bivouac_journal::query::CheckpointFilter;
use bivouac_snapshot::objects::Objects;
use bivouac_snapshot::pack::TEMPORARY_SUFFIX;
use bivouac_snapshot::private;
use bivouac_snapshot::sweep::{Live, PackUse, plan_sweep, rewrite, survey};

use crate::home::Home;
use crate::lock::{Hold, Lock};
use crate::open::pack_row;
use crate::{Engine, Error, Result};

/// What a sweep did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    pub n_expired: u64,
    pub n_packs_before: u64,
    pub n_packs_after: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

impl Engine {
    /// The same as [`Engine::gc`], unless a sweep is under way already.
    pub fn gc_if_idle(&mut self) -> Result<SweepReport> {
        match Lock::attempt(&self.home.sweep_lock(), Hold::Alone)? {
            Some(idle) => {
                drop(idle);
                self.gc()
            }
            None => Ok(SweepReport::default()),
        }
    }

    /// Applies retention everywhere, then sweeps.
    pub fn gc(&mut self) -> Result<SweepReport> {
        self.forget_old();
        let n_expired = self.retain()?;
        let mut report = self.sweep_packs()?;
        report.n_expired = n_expired;
        let stamp = self.home.sweep_stamp();
        // Written, not only opened: the time of the last change says when the last sweep was.
        private::write_disposable(&stamp, b"swept\n").map_err(Error::io(&stamp))?;
        Ok(report)
    }

    /// Removes temporary files that were left behind: conversations laid out for an agent, and the lock, log and
    /// environment of a run. A living supervisor touches its own lock and log. Only names that we give are
    /// removed, only what belongs to this user, and a link is never followed.
    fn forget_old(&self) {
        for folder in [self.home.restored(), self.home.runs()] {
            for name in private::list(&folder).unwrap_or_default() {
                let path = folder.join(&name);
                let Ok(facts) = private::facts(&path) else { continue };
                let Some(leftover) = Leftover::of(&path, facts.is_folder, &folder, &self.home)
                else {
                    continue;
                };
                let age = facts.modified.elapsed().unwrap_or_default();
                if facts.is_ours && age > leftover.kept_for() {
                    let _next_time = match leftover {
                        Leftover::Restored => private::remove_folder(&path),
                        Leftover::Run | Leftover::Environment => private::remove_file(&path),
                    };
                }
            }
        }
    }

    /// What a sweep would give back, without doing it.
    pub fn gc_preview(&self) -> Result<SweepReport> {
        let _store_lock = self.use_store()?;
        let usage = self.survey_all(&self.mark_all()?)?;
        let bytes_before = usage.iter().map(|it| it.size_bytes).sum();
        let groups = plan_sweep(&usage);
        let freed: u64 = groups.iter().flatten().map(|it| it.reclaimable()).sum();
        let n_replaced: usize = groups.iter().map(Vec::len).sum();
        let n_new = groups.iter().filter(|group| group.iter().any(|it| it.live_bytes > 0)).count();
        Ok(SweepReport {
            n_expired: 0,
            n_packs_before: usage.len() as u64,
            n_packs_after: (usage.len() - n_replaced + n_new) as u64,
            bytes_before,
            bytes_after: bytes_before - freed,
        })
    }

    /// Replaces packs that hold little or nothing of what is needed.
    pub(crate) fn sweep_packs(&mut self) -> Result<SweepReport> {
        // A pack that is written and not yet in the index would be litter to another sweep.
        let _only_one = Lock::wait(&self.home.sweep_lock(), Hold::Alone, "sweeping the store")?;
        let packs_before = self.journal.packs()?;
        let marked_until = self.journal.last_sequence()?;
        let (live, usage) = {
            let _store_lock = self.use_store()?;
            let live = self.mark_all()?;
            let usage = self.survey_all(&live)?;
            (live, usage)
        };
        let mut sweep = Sweep { live, marked_until };
        self.progress.begin("Sweeping packs", usage.len() as u64);
        for group in plan_sweep(&usage) {
            self.replace(group, &mut sweep)?;
        }
        self.progress.end();
        self.remove_leftovers()?;
        let packs_after = self.journal.packs()?;
        Ok(SweepReport {
            n_expired: 0,
            n_packs_before: packs_before.len() as u64,
            n_packs_after: packs_after.len() as u64,
            bytes_before: packs_before.iter().map(|(_, size)| size).sum(),
            bytes_after: packs_after.iter().map(|(_, size)| size).sum(),
        })
    }

    /// Writes what is needed of some packs anew, then, alone with the store, checks once more that nothing
    /// came to need the rest, and lets the old packs go.
    fn replace(&mut self, mut group: Vec<&PackUse>, sweep: &mut Sweep) -> Result<()> {
        let new = {
            let _store_lock = self.use_store()?;
            let index = self.index();
            let objects = self.objects(&index);
            rewrite(
                &objects,
                &group,
                &sweep.live,
                PackId::new(self.clock.new_id()),
                self.progress.as_ref(),
            )?
        };
        let new = new.as_ref().map(pack_row);
        let _alone = self.home.lock_store()?;
        self.mark_since(sweep)?;
        let is_needed_again = |pack: &&PackUse| pack.dead.iter().any(|id| sweep.live.contains(id));
        // Of these nothing was written anew: each may stay for itself.
        group.retain(|pack| !(pack.is_dead() && is_needed_again(pack)));
        let moved_meanwhile = !self.still_there(&group)?;
        if group.iter().any(is_needed_again) || moved_meanwhile {
            if let Some(new) = new {
                let path = self.packs.path(new.id);
                private::remove_file(&path).map_err(Error::io(path))?;
            }
            return Ok(());
        }
        let old: Vec<PackId> = group.iter().map(|pack| pack.id).collect();
        let dead: Vec<ObjectId> = group.iter().flat_map(|pack| &pack.dead).copied().collect();
        if sabotage::is(Fault::PacksRemovedFirst) {
            self.remove_packs(&old)?;
            self.journal.replace_packs(&old, new.as_ref(), &dead)?;
            return Ok(());
        }
        self.journal.replace_packs(&old, new.as_ref(), &dead)?;
        self.packs.forget_open();
        self.remove_packs(&old)
    }

    fn remove_packs(&self, packs: &[PackId]) -> Result<()> {
        for id in packs {
            let path = self.packs.path(*id);
            private::remove_file(&path).map_err(Error::io(path))?;
        }
        Ok(())
    }

    /// Another sweep may have replaced the same packs.
    fn still_there(&self, group: &[&PackUse]) -> Result<bool> {
        let known = self.journal.packs()?;
        Ok(group.iter().all(|pack| known.iter().any(|(id, _)| *id == pack.id)))
    }

    /// Everything that living checkpoints and operations need.
    pub(crate) fn mark_all(&self) -> Result<Live> {
        let index = self.index();
        let objects = self.objects(&index);
        let mut live = Live::default();
        for kept in self.journal.checkpoints(&CheckpointFilter::default())? {
            mark_checkpoint(&mut live, &objects, &kept.taken).map_err(|error| match error {
                // Only full knowledge deletes: what else this one needs cannot be told.
                Error::Snapshot(cause) if cause.is_damage() => {
                    let handle = kept.taken.checkpoint.handle.clone();
                    Error::NotWhole { handle, source: cause }
                }
                other => other,
            })?;
        }
        for plan in self.journal.living_plans()? {
            live.mark(plan);
        }
        Ok(live)
    }

    /// What came since the marking began.
    fn mark_since(&self, sweep: &mut Sweep) -> Result<()> {
        let last = self.journal.last_sequence()?;
        if last == sweep.marked_until {
            return Ok(());
        }
        let index = self.index();
        let objects = self.objects(&index);
        for kept in self.journal.checkpoints(&CheckpointFilter::default())? {
            if kept.sequence > sweep.marked_until {
                mark_checkpoint(&mut sweep.live, &objects, &kept.taken)?;
            }
        }
        for plan in self.journal.living_plans()? {
            sweep.live.mark(plan);
        }
        sweep.marked_until = last;
        Ok(())
    }

    fn survey_all(&self, live: &Live) -> Result<Vec<PackUse>> {
        let index = self.index();
        let objects = self.objects(&index);
        let mut usage = Vec::new();
        for (id, _) in self.journal.packs()? {
            usage.push(survey(&objects, id, live)?);
        }
        Ok(usage)
    }

    /// Alone with the store, a pack that is not in the index was never acknowledged. One that holds a
    /// checkpoint the journal has never heard of is left for `reconcile` all the same.
    fn remove_leftovers(&mut self) -> Result<()> {
        let _alone = self.home.lock_store()?;
        let known: Vec<PackId> = self.journal.packs()?.into_iter().map(|(id, _)| id).collect();
        for id in self.packs.list()?.into_iter().filter(|id| !known.contains(id)) {
            let unheard_of = self.unheard_of(id)?;
            let path = self.packs.path(id);
            if unheard_of {
                self.notices.push(format!(
                    "{} may hold a checkpoint the journal does not know; `biv reconcile` takes it in",
                    path.display()
                ));
            } else {
                private::remove_file(&path).map_err(Error::io(path))?;
            }
        }
        let folder = self.home.packs();
        for name in private::list(&folder).map_err(Error::io(&folder))? {
            let name = name.to_string_lossy();
            let is_temporary =
                name.strip_suffix(TEMPORARY_SUFFIX).is_some_and(|id| id.parse::<PackId>().is_ok());
            if is_temporary {
                let path = folder.join(&*name);
                private::remove_file(&path).map_err(Error::io(path))?;
            }
        }
        Ok(())
    }
}

/// Something that a command or a supervisor left in the store for a short time.
#[derive(Clone, Copy)]
enum Leftover {
    /// A folder below `restored/`, named by an id.
    Restored,
    /// The lock or the log of a run.
    Run,
    /// The environment a run was to start with.
    Environment,
}

impl Leftover {
    /// `None` for names that we never give.
    fn of(path: &Path, is_folder: bool, folder: &Path, home: &Home) -> Option<Self> {
        path.file_stem()?.to_str()?.parse::<uuid::Uuid>().ok()?;
        let extension = path.extension().map(|it| it.to_str());
        match (folder == home.restored(), is_folder, extension) {
            (true, true, None) => Some(Self::Restored),
            (false, false, Some(Some("lock" | "log"))) => Some(Self::Run),
            (false, false, Some(Some("env"))) => Some(Self::Environment),
            _ => None,
        }
    }

    fn kept_for(self) -> Duration {
        const AN_HOUR: Duration = Duration::from_secs(3_600);
        match self {
            Self::Environment => AN_HOUR,
            Self::Restored | Self::Run => AN_HOUR * 24 * 30,
        }
    }
}

struct Sweep {
    live: Live,
    marked_until: i64,
}

pub(crate) fn mark_checkpoint(
    live: &mut Live,
    objects: &Objects<'_>,
    taken: &CheckpointTaken,
) -> Result<()> {
    let Checkpoint { tree, conversation, .. } = &taken.checkpoint;
    for id in taken.single_objects() {
        live.mark(id);
    }
    if let Some(conversation) = conversation {
        live.mark_tree(objects, &conversation.tree)?;
    }
    Ok(live.mark_tree(objects, tree)?)
}
