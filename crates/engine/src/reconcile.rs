//! Bringing back what can be: tables from events, the index from packs, a lost journal from both.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bivouac_core::event::{CheckpointTaken, Event, Level, Manifest, SessionMoved};
use bivouac_core::id::{EventId, ObjectId, PackId, SessionId};
use bivouac_core::progress::Progress;
use bivouac_core::session::{NewSession, Session};
use bivouac_core::text::count;
use bivouac_core::work::Item;
use bivouac_journal::Journal;
use bivouac_journal::append::{NewEvent, PackRow};
use bivouac_journal::reconcile::Rebuilt;
use bivouac_journal::shape::LogTail;
use bivouac_snapshot::block::ObjectKind;
use bivouac_snapshot::objects::{PackScan, Place};
use bivouac_snapshot::private::{self, Open};
use bivouac_snapshot::verify::Verifier;

use crate::clock::Clock;
use crate::home::{Home, Wishes, sync_folder};
use crate::local_store;
use crate::open::{Need, has_packs, is_missing, rebuilt_journal};
use crate::{Engine, Error, Result};

#[derive(Debug, Default)]
pub struct ReconcileReport {
    pub rebuilt: Rebuilt,
    /// Where a damaged journal was put.
    pub moved_aside: Option<PathBuf>,
    /// Where damaged packs were put.
    pub packs_aside: Vec<PathBuf>,
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
        if home.store.exists() {
            let _alone = home.lock_store()?;
            replace_damaged_journal(&home, &mut report)?;
        }
        let mut engine = Self::prepare(wishes, Need::Write, progress)?;
        let alone = home.lock_store()?;
        let scan = engine.scan_packs(&mut report)?;
        engine.mend_index(&scan, &mut report)?;
        report.rebuilt = engine.journal.reconcile()?;
        engine.adopt(&scan, &mut report)?;
        engine.know_all_secrets();
        engine.journal.reindex()?;
        report.rebuilt.n_events = engine.journal.n_events()?;
        engine.tell_losses(&scan, &mut report)?;
        if report.index_rebuilt || !report.lost.is_empty() {
            engine.forget_scans()?;
        }
        drop(alone);
        engine.heal()?;
        engine.take_in_spool()?;
        Ok((engine, report))
    }

    /// What all packs hold. Damaged ones are replaced by what is still good of them.
    fn scan_packs(&self, report: &mut ReconcileReport) -> Result<PackScan> {
        let scan = PackScan::read(&self.packs, self.progress.as_ref())?;
        if scan.damaged.is_empty() {
            return Ok(scan);
        }
        report.lost.extend(scan.damage.iter().map(ToString::to_string));
        let folder = self.home.damaged()?;
        for id in &scan.damaged {
            let new = PackId::new(self.clock.new_id());
            let aside = self.packs.set_aside(*id, &scan, new, &folder)?;
            report.packs_aside.push(aside);
        }
        Ok(PackScan::read(&self.packs, self.progress.as_ref())?)
    }

    /// Says which checkpoints are no longer whole, here and in the logs of their sessions.
    fn tell_losses(&mut self, scan: &PackScan, report: &mut ReconcileReport) -> Result<()> {
        for affected in self.affected(scan)? {
            let handle = &affected.checkpoint.handle;
            let line = format!(
                "checkpoint {handle} is no longer whole: {} gone",
                count(affected.losses.len() as u64, "object")
            );
            if report.index_rebuilt {
                self.note(affected.checkpoint.session_id, Level::Error, &line)?;
            }
            report.lost.push(line);
        }
        Ok(())
    }

    /// What was remembered of workspaces speaks of objects that may be gone: the next scans read
    /// everything, and store it again where it has to be.
    fn forget_scans(&self) -> Result<()> {
        let folder = self.home.store.join("index");
        let names = match private::list(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            names => names.map_err(Error::io(&folder))?,
        };
        for path in names.into_iter().map(|name| folder.join(name)) {
            let is_cache = path.extension().is_some_and(|it| it == "stat" || it == "json");
            if is_cache {
                private::remove_file(&path).map_err(Error::io(path))?;
            }
        }
        Ok(())
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
        let size = |id: PackId| private::facts(&self.packs.path(id)).map_or(0, |it| it.size_bytes);
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
        let known = self.journal.known_checkpoints()?;
        found.retain(|(_, manifest)| !known.contains(&manifest.checkpoint.id));
        let mut reborn = Vec::new();
        for (id, manifest) in found {
            if !self.is_worth_adopting(&manifest, report)? {
                continue;
            }
            let mut events = Vec::new();
            match self.journal.session(manifest.session.id)? {
                None => {
                    events.push(Event::SessionCreated(Box::new(manifest.session.clone())));
                    reborn.push(manifest.session.id);
                }
                // Of a session that is made of its checkpoints, the newest one knows where its folder is.
                Some(known) if reborn.contains(&known.id) => {
                    events.extend(moved(&known, &manifest.session));
                }
                Some(_) => {}
            }
            let taken = CheckpointTaken { checkpoint: manifest.checkpoint, manifest: id };
            let taken_at = taken.checkpoint.taken_at;
            events.push(Event::CheckpointTaken(Box::new(taken)));
            let session_id = manifest.session.id;
            let stamp =
                |event| NewEvent { id: EventId::new(self.clock.new_id()), session_id, event };
            let events = events.into_iter().map(stamp).collect();
            // Events brought back keep the time they speak of.
            self.journal.adopt(taken_at, events)?;
            report.n_adopted += 1;
        }
        reborn.into_iter().try_for_each(|session| self.adopt_work(session))
    }

    /// A session that is only known by its checkpoints gets back what the last of them says of its work.
    fn adopt_work(&mut self, session: SessionId) -> Result<()> {
        let Some(last) = self.journal.last_checkpoint(session)? else {
            return Ok(());
        };
        let checkpoint = last.taken.checkpoint;
        // Where that is gone too, the files are still there.
        let Ok(work) = self.stored_work(&checkpoint) else {
            return Ok(());
        };
        let stamp = |item: Item| NewEvent {
            id: EventId::new(self.clock.new_id()),
            session_id: session,
            event: item.into_event(),
        };
        let events = work.items().into_iter().map(stamp).collect();
        Ok(self.journal.adopt(checkpoint.taken_at, events)?)
    }

    /// Where nothing was damaged, a checkpoint that is not whole is one that was deleted long ago.
    fn is_worth_adopting(&self, manifest: &Manifest, report: &ReconcileReport) -> Result<bool> {
        let index = self.index();
        let objects = self.objects(&index);
        let tree = &manifest.checkpoint.tree;
        let is_whole = Verifier::default().losses(&objects, tree)?.is_empty();
        Ok(is_whole || (!report.packs_aside.is_empty() && objects.contains(tree)?))
    }

    /// Does a pack hold a checkpoint that was never recorded? One that cannot be read might.
    pub(crate) fn unheard_of(&self, pack: PackId) -> Result<bool> {
        let Ok(objects) = self.packs.check(pack) else {
            return Ok(true);
        };
        let known = self.journal.known_checkpoints()?;
        for (object, place) in
            objects.iter().filter(|(object, _)| object.kind == ObjectKind::Manifest)
        {
            let block = self.packs.read_block(*place)?;
            let bytes = self.packs.cut_out(&block, *place, &object.id)?;
            match serde_json::from_slice::<Manifest>(bytes) {
                Ok(manifest) if known.contains(&manifest.checkpoint.id) => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }
}

/// The fact that a session's folder was moved between two of its checkpoints.
fn moved(known: &Session, later: &NewSession) -> Option<Event> {
    let (from, to) = (known.workspace.clone(), later.workspace.clone());
    (from != to).then(|| Event::SessionMoved(Box::new(SessionMoved { from, to })))
}

/// Replaces a journal that cannot be used by one made of what could be read of it. Killed at any point,
/// the next attempt goes on: the new one is whole before the old one moves.
fn replace_damaged_journal(home: &Home, report: &mut ReconcileReport) -> Result<()> {
    let path = home.journal();
    let rebuilt = rebuilt_journal(home);
    if private::facts(&rebuilt).is_err() {
        let is_gone = is_missing(&path)?;
        if is_gone && !has_packs(home) {
            return Ok(());
        }
        if !is_gone && !is_damaged(&path)? {
            return Ok(());
        }
        let events = if is_gone { Vec::new() } else { Journal::salvage(&path) };
        let building = home.store.join("sessions.db.building");
        remove_database(&building)?;
        report.n_salvaged = Journal::open(&building)?.import(events)?;
        private::open(&building, Open::Read)
            .and_then(|file| file.sync_all())
            .map_err(Error::io(&building))?;
        private::rename(&building, &rebuilt).map_err(Error::io(&building))?;
        sync_folder(&home.store)?;
    }
    // A log whose journal is gone would be taken for that of the new one.
    let is_left = |suffix: &&str| private::facts(&companion(&path, suffix)).is_ok();
    if DATABASE_FILES.iter().any(is_left) {
        let stamp = Clock::from_env()?.now().as_millis();
        let aside = home.damaged()?.join(format!("sessions.db-{stamp}"));
        move_database(&path, &aside)?;
        sync_folder(&home.damaged()?)?;
        report.moved_aside = Some(aside);
    }
    local_store::renew(home, &rebuilt)?;
    private::rename(&rebuilt, &path).map_err(Error::io(&rebuilt))?;
    sync_folder(&home.store)
}

/// Can it not be read from its first page to its last, or is an event not what was written?
fn is_damaged(path: &Path) -> Result<bool> {
    let checked = Journal::open(path).and_then(|journal| {
        if journal.misshapen()?.is_damage {
            return Ok(true);
        }
        journal.check_usable()?;
        Ok(journal.log_tail()? == LogTail::Damaged || !journal.broken_events()?.is_empty())
    });
    match checked {
        Ok(is_damaged) => Ok(is_damaged),
        Err(error) if error.is_damage() => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// What the names of a database's files end in.
const DATABASE_FILES: [&str; 3] = ["-shm", "-wal", ""];

fn companion(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn move_database(from: &Path, to: &Path) -> Result<()> {
    for suffix in DATABASE_FILES {
        let from = companion(from, suffix);
        or_missing(private::rename(&from, &companion(to, suffix)), &from)?;
    }
    Ok(())
}

fn remove_database(path: &Path) -> Result<()> {
    for suffix in DATABASE_FILES {
        let path = companion(path, suffix);
        or_missing(private::remove_file(&path), &path)?;
    }
    Ok(())
}

fn or_missing(done: std::io::Result<()>, path: &Path) -> Result<()> {
    match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path)(error)),
        _ => Ok(()),
    }
}
