//! Is everything as it was written? Reads every byte of the store and says what is not.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use bivouac_core::checkpoint::Checkpoint;
use bivouac_core::event::CheckpointTaken;
use bivouac_core::id::{ObjectId, PackId};
use bivouac_journal::query::CheckpointFilter;
use bivouac_journal::read::BrokenEvent;
use bivouac_journal::shape::LogTail;
use bivouac_snapshot::checkout::entries_of;
use bivouac_snapshot::objects::{Catalog, Objects, PackScan, Place};
use bivouac_snapshot::private;
use bivouac_snapshot::verify::{Loss, Verifier, unreadable};

use crate::lock::{Hold, Lock};
use crate::{Engine, Error, Result};

#[derive(Debug, Default)]
pub struct VerifyReport {
    pub n_events: u64,
    pub n_packs: u64,
    pub n_objects: u64,
    pub n_checkpoints: u64,
    pub broken_events: Vec<BrokenEvent>,
    /// Tables that are not what the events say.
    pub drifted_tables: Vec<&'static str>,
    /// What SQLite says about its own file.
    pub database_faults: Vec<String>,
    /// What was written to the journal last was cut off, and most likely never acknowledged.
    pub is_log_torn: bool,
    /// Packs and blocks that cannot be read.
    pub damage: Vec<String>,
    /// Objects the index looks for in the wrong place, or that are gone.
    pub n_misplaced: u64,
    /// Packs the index does not know.
    pub unknown_packs: Vec<PackId>,
    pub affected: Vec<Affected>,
}

/// A checkpoint that cannot be restored whole.
#[derive(Debug)]
pub struct Affected {
    pub checkpoint: Checkpoint,
    pub losses: Vec<Loss>,
}

impl VerifyReport {
    /// Packs that were never acknowledged are litter, not damage.
    pub fn is_sound(&self) -> bool {
        self.broken_events.is_empty()
            && self.drifted_tables.is_empty()
            && self.database_faults.is_empty()
            && self.damage.is_empty()
            && self.n_misplaced == 0
            && self.affected.is_empty()
    }
}

impl Engine {
    pub fn verify(&self) -> Result<VerifyReport> {
        let store_lock = self.use_store()?;
        let log_tail = self.journal.log_tail()?;
        // Others go on saving. Packs are there before the journal speaks of them, so what is read first
        // is the journal, at one moment.
        let frozen = self.journal.freeze()?;
        let mut report = VerifyReport {
            n_events: self.journal.n_events()?,
            broken_events: self.journal.broken_events()?,
            is_log_torn: log_tail == LogTail::Torn,
            ..VerifyReport::default()
        };
        let misshapen = self.journal.misshapen()?;
        let names = misshapen.names.iter();
        report.database_faults.extend(names.map(|it| format!("`{it}` is not made as it was")));
        // Tables that became something else cannot be asked for what is in them.
        if !misshapen.is_damage {
            report.drifted_tables = self.journal.drifted_tables()?;
            report.database_faults.extend(self.journal.integrity()?);
        }
        let notes = crate::spool::damaged_notes(&self.home);
        let told = notes.iter().map(|it| format!("a hook's note is damaged: `{}`", it.display()));
        report.damage.extend(told);
        if log_tail == LogTail::Damaged {
            report.database_faults.push("its log is damaged, and commits are lost".to_owned());
        }
        if !self.packs.folder().exists() {
            return Ok(report);
        }
        let scan = PackScan::read(&self.packs, self.progress.as_ref())?;
        report.n_packs = scan.n_packs as u64;
        report.n_objects = scan.places().len() as u64;
        report.damage.extend(scan.damage.iter().map(ToString::to_string));
        if misshapen.is_damage {
            return Ok(report);
        }
        self.check_index(&scan, &mut report)?;
        report.n_checkpoints = self.journal.checkpoints(&CheckpointFilter::default())?.len() as u64;
        report.affected = self.affected(&scan)?;
        drop((frozen, store_lock));
        report.unknown_packs = self.unknown_packs()?;
        Ok(report)
    }

    /// Can a checkpoint be given back whole? Reads all it needs, and nothing else.
    pub fn is_whole(&self, taken: &CheckpointTaken) -> Result<bool> {
        let conversation = taken.checkpoint.conversation.as_ref().map(|it| it.tree);
        for tree in [taken.checkpoint.tree].into_iter().chain(conversation) {
            if !self.is_tree_whole(&tree)? {
                return Ok(false);
            }
        }
        let _store_lock = self.use_store()?;
        let index = self.index();
        let objects = self.objects(&index);
        let read = |id: &ObjectId| readable(objects.get(id));
        for id in taken.single_objects() {
            if read(&id)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same for one tree, such as that of a conversation.
    pub(crate) fn is_tree_whole(&self, tree: &ObjectId) -> Result<bool> {
        let _store_lock = self.use_store()?;
        let index = self.index();
        let objects = self.objects(&index);
        let Some(entries) = readable(entries_of(&objects, tree))? else {
            return Ok(false);
        };
        let contents = entries.iter().filter_map(|(_, entry)| entry.content());
        Ok(unreadable(&objects, contents)?.is_empty())
    }

    /// Does the index find what the packs hold?
    fn check_index(&self, scan: &PackScan, report: &mut VerifyReport) -> Result<()> {
        for (id, size_bytes) in self.journal.packs()? {
            let size = private::facts(&self.packs.path(id)).map(|it| it.size_bytes);
            if size.ok() != Some(size_bytes)
                && !report.damage.iter().any(|line| line.contains(&id.to_string()))
            {
                report.damage.push(format!(
                    "pack `{}` is not {size_bytes} bytes long",
                    self.packs.path(id).display()
                ));
            }
        }
        for (id, (pack, offset)) in self.journal.objects()? {
            report.n_misplaced += u64::from(!scan.holds(&id, Place { pack, offset }));
        }
        Ok(())
    }

    /// Packs that are not in the index. Whoever is still saving may have written one just now, and is waited for; a sweep
    /// writes some as well, and removes by itself what nobody recorded.
    fn unknown_packs(&self) -> Result<Vec<PackId>> {
        const PATIENCE: u32 = 200;
        if !self.is_writable() {
            return self.without_known(self.packs.list()?);
        }
        let Some(_no_sweep) = Lock::attempt(&self.home.sweep_lock(), Hold::Alone)? else {
            return Ok(Vec::new());
        };
        let mut unknown = self.packs.list()?;
        for _ in 0..PATIENCE {
            let alone = Lock::attempt(&self.home.store_lock(), Hold::Alone)?;
            unknown = self.without_known(unknown)?;
            if unknown.is_empty() || alone.is_some() {
                return Ok(unknown);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(Vec::new())
    }

    fn without_known(&self, mut packs: Vec<PackId>) -> Result<Vec<PackId>> {
        let known: HashSet<PackId> = self.journal.packs()?.into_iter().map(|(id, _)| id).collect();
        packs.retain(|id| !known.contains(id));
        Ok(packs)
    }

    /// Which checkpoints need something that is not there?
    pub(crate) fn affected(&self, scan: &PackScan) -> Result<Vec<Affected>> {
        let index = self.index();
        let sound = Sound { scan, index: &index };
        let objects = Objects::new(&self.packs, &sound);
        let mut verifier = Verifier::default();
        let mut affected = Vec::new();
        for kept in self.journal.checkpoints(&CheckpointFilter::default())? {
            let others = kept.taken.single_objects();
            let checkpoint = kept.taken.checkpoint;
            let mut losses = verifier.losses(&objects, &checkpoint.tree)?;
            if let Some(conversation) = &checkpoint.conversation {
                let lost = verifier.losses(&objects, &conversation.tree)?;
                losses.extend(lost.into_iter().map(|loss| Loss { path: None, ..loss }));
            }
            for id in others {
                if !objects.contains(&id)? {
                    losses.push(Loss { path: None, object: id });
                }
            }
            if !losses.is_empty() {
                affected.push(Affected { checkpoint, losses });
            }
        }
        Ok(affected)
    }
}

/// `None` where the store no longer has it as it was written.
fn readable<T>(read: bivouac_snapshot::Result<T>) -> Result<Option<T>> {
    match read.map_err(Error::from) {
        Err(error) if error.is_unreadable() => Ok(None),
        read => read.map(Some),
    }
}

/// Objects that the index finds and the packs really hold, whole.
struct Sound<'s> {
    scan: &'s PackScan,
    index: &'s dyn Catalog,
}

impl Catalog for Sound<'_> {
    fn locate(&self, id: &ObjectId) -> bivouac_snapshot::Result<Option<Place>> {
        let place = self.index.locate(id)?;
        Ok(place.filter(|place| self.scan.holds(id, *place)))
    }
}
