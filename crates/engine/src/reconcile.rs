//! Bringing back what can be: tables from events, the index from packs, a lost journal from both.

use std::collections::HashMap;
use std::path::PathBuf;

use bivouac_core::event::{CheckpointTaken, Event, Manifest};
use bivouac_core::id::{EventId, ObjectId, PackId, SessionId};
use bivouac_core::progress::Progress;
use bivouac_journal::Journal;
use bivouac_journal::append::{NewEvent, PackRow};
use bivouac_journal::reconcile::Rebuilt;
use bivouac_journal::stored::StoredEvent;
use bivouac_snapshot::block::ObjectKind;
use bivouac_snapshot::objects::{PackScan, Place};

use crate::clock::Clock;
use crate::home::{Home, Wishes};
use crate::lock::{Hold, Lock};
use crate::open::{Need, has_packs};
use crate::{Engine, Error, Result};

#[derive(Debug, Default)]
pub struct ReconcileReport {
    pub rebuilt: Rebuilt,
    /// Where a damaged journal was put.
    pub moved_aside: Option<PathBuf>,
    /// Events that could be read from it.
    pub n_salvaged: u64,
    /// The index was not what the packs hold, and was made anew.
    pub index_rebuilt: bool,
    /// Checkpoints that were found in packs and not in the journal.
    pub n_adopted: u64,
    /// What cannot be brought back.
    pub lost: Vec<String>,
}

impl Engine {
    /// Rebuilds the tables and the index, and takes in checkpoints the journal does not know.
    pub fn reconcile(
        wishes: &Wishes,
        progress: Box<dyn Progress>,
    ) -> Result<(Self, ReconcileReport)> {
        let home = Home::find(wishes)?;
        let mut report = ReconcileReport::default();
        let salvaged = replace_damaged_journal(&home, &mut report)?;
        let mut engine = Self::prepare(wishes, Need::Write, progress)?;
        let alone = Lock::wait(&home.store_lock(), Hold::Alone, "using the store")?;
        if let Some(events) = salvaged {
            report.n_salvaged = engine.journal.import(events)?;
        }
        let scan = PackScan::read(&engine.packs, engine.progress.as_ref())?;
        report.lost.extend(scan.damage.iter().map(ToString::to_string));
        engine.mend_index(&scan, &mut report)?;
        report.rebuilt = engine.journal.reconcile()?;
        engine.adopt(&scan, &mut report)?;
        report.rebuilt.n_events = engine.journal.n_events()?;
        drop(alone);
        engine.heal()?;
        Ok((engine, report))
    }

    /// Makes the index what the packs hold, where it is not.
    fn mend_index(&mut self, scan: &PackScan, report: &mut ReconcileReport) -> Result<()> {
        let indexed = self.journal.objects()?;
        let is_right = indexed
            .iter()
            .all(|(id, (pack, offset))| scan.holds(id, Place { pack: *pack, offset: *offset }));
        let is_complete = scan.places().all(|(id, _)| indexed.contains_key(id));
        if is_right && is_complete {
            return Ok(());
        }
        let mut by_pack: HashMap<PackId, Vec<(ObjectId, u64)>> = HashMap::new();
        for (id, place) in scan.places() {
            by_pack.entry(place.pack).or_default().push((*id, place.offset));
        }
        let size = |id: PackId| std::fs::metadata(self.packs.path(id)).map_or(0, |meta| meta.len());
        let rows: Vec<PackRow> = by_pack
            .into_iter()
            .map(|(id, objects)| PackRow { id, size_bytes: size(id), objects })
            .collect();
        self.journal.rebuild_catalog(&rows)?;
        report.index_rebuilt = true;
        Ok(())
    }

    /// Records the checkpoints of all manifests that were never recorded.
    fn adopt(&mut self, scan: &PackScan, report: &mut ReconcileReport) -> Result<()> {
        let mut found: Vec<(ObjectId, Manifest)> = Vec::new();
        {
            let index = self.index();
            let objects = self.objects(&index);
            for id in &scan.manifests {
                match serde_json::from_slice(&objects.get(id)?) {
                    Ok(manifest) => found.push((*id, manifest)),
                    Err(_) => report
                        .lost
                        .push(format!("manifest {id} is of a form this version does not know")),
                }
            }
        }
        found.sort_by(|(_, one), (_, other)| {
            let key = |it: &Manifest| {
                (it.checkpoint.taken_at, it.checkpoint.handle.number(), it.checkpoint.id)
            };
            key(one).cmp(&key(other))
        });
        for (id, manifest) in found {
            if self.journal.knows_checkpoint(manifest.checkpoint.id)? {
                continue;
            }
            let mut events = Vec::new();
            if !self.journal.has_session(manifest.session.id)? {
                events.push(Event::SessionCreated(Box::new(manifest.session.clone())));
            }
            let taken = CheckpointTaken { checkpoint: manifest.checkpoint, manifest: id };
            events.push(Event::CheckpointTaken(Box::new(taken)));
            self.adopt_events(manifest.session.id, events)?;
            report.n_adopted += 1;
        }
        Ok(())
    }

    /// Events brought back keep the time they speak of.
    fn adopt_events(&mut self, session: SessionId, events: Vec<Event>) -> Result<()> {
        let at = events.iter().find_map(|event| match event {
            Event::CheckpointTaken(taken) => Some(taken.checkpoint.taken_at),
            _ => None,
        });
        let stamp =
            |event| NewEvent { id: EventId::new(self.clock.new_id()), session_id: session, event };
        let events = events.into_iter().map(stamp).collect();
        self.journal.append(at.unwrap_or_else(|| self.clock.now()), events, &[])?;
        Ok(())
    }

    /// Does a pack hold a checkpoint that was never recorded? One that cannot be read might.
    pub(crate) fn unheard_of(&self, pack: PackId) -> Result<bool> {
        let Ok(objects) = self.packs.check(pack) else {
            return Ok(true);
        };
        for (object, place) in
            objects.iter().filter(|(object, _)| object.kind == ObjectKind::Manifest)
        {
            let block = self.packs.read_block(*place)?;
            let bytes = self.packs.cut_out(&block, *place, &object.id)?;
            match serde_json::from_slice::<Manifest>(bytes) {
                Ok(manifest) if self.journal.knows_checkpoint(manifest.checkpoint.id)? => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }
}

/// Puts a journal that cannot be used aside and answers what could be read of it. `None` when there
/// is one to go on with.
fn replace_damaged_journal(
    home: &Home,
    report: &mut ReconcileReport,
) -> Result<Option<Vec<StoredEvent>>> {
    let path = home.journal();
    if !path.exists() {
        if has_packs(home) {
            // An empty one, so that the packs are not mistaken for litter.
            Journal::open(&path)?;
        }
        return Ok(None);
    }
    let damage = Journal::open(&path).and_then(|journal| journal.check_usable());
    match damage {
        Ok(()) => return Ok(None),
        Err(error) if error.is_damage() => {}
        Err(error) => return Err(error.into()),
    }
    let salvaged = Journal::salvage(&path);
    let stamp = Clock::from_env()?.now().as_millis();
    let aside = path.with_extension(format!("db.damaged-{stamp}"));
    for suffix in ["", "-wal", "-shm"] {
        let from = PathBuf::from(format!("{}{suffix}", path.display()));
        let to = PathBuf::from(format!("{}{suffix}", aside.display()));
        match std::fs::rename(&from, &to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::Io { path: from, source: error });
            }
            _ => {}
        }
    }
    report.moved_aside = Some(aside);
    Journal::open(&path)?;
    Ok(Some(salvaged))
}
