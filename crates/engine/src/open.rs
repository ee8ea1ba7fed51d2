//! Opening the store for a command, and what every command needs from it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bivouac_capture::agents;
use bivouac_capture::process::Program;
use bivouac_core::event::{Event, Level, Noted};
use bivouac_core::id::{EventId, ObjectId, SessionId};
use bivouac_core::progress::Progress;
use bivouac_core::work::Author;
use bivouac_journal::append::{NewEvent, PackRow};
use bivouac_journal::{Access, Journal};
use bivouac_snapshot::objects::{Catalog, Objects, Packs, Place};
use bivouac_snapshot::pack::NewPack;
use bivouac_snapshot::private;

use crate::clock::Clock;
use crate::config::Config;
use crate::home::{Home, Wishes};
use crate::lock::{Hold, Lock};
use crate::select::Reach;
use crate::{Engine, Error, Result};

/// What a command is about to do with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Where there is no store, there is nothing to read, and nothing is made.
    Read,
    Write,
    /// To write what an agent tells, or what saves by itself. A configuration that cannot be read does not stop
    /// this: defaults are used, and the session's log says so.
    Record,
}

impl Engine {
    /// Opens the store and finishes what an earlier command had to leave unfinished here.
    pub fn open(wishes: &Wishes, need: Need, progress: Box<dyn Progress>) -> Result<Self> {
        let mut engine = Self::prepare(wishes, need, progress)?;
        engine.heal()?;
        if need != Need::Read {
            engine.take_in_spool()?;
        }
        Ok(engine)
    }

    /// Opens the store, and nothing else.
    pub(crate) fn prepare(
        wishes: &Wishes,
        need: Need,
        progress: Box<dyn Progress>,
    ) -> Result<Self> {
        let home = Home::find(wishes)?;
        let (config, bad_config) = match need {
            Need::Record => Config::load_or_fall_back(&home),
            Need::Read | Need::Write => Config::load_for_command(&home)?,
        };
        let clock = Clock::from_env()?;
        let journal = open_journal(&home, need)?;
        if need != Need::Read {
            journal.check_writable()?;
        }
        let packs = Packs::new(&home.packs());
        let unused_file = bad_config.iter().filter(|_| need != Need::Record).map(|error| {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            format!("{}{hint}", error.notice())
        });
        let unused_store = home.unused_store.iter().map(ToString::to_string);
        let notices = unused_store.chain(unused_file).collect();
        let mut engine = Self {
            home,
            config,
            bad_config,
            clock,
            author: if agents::is_within_agent() { Author::Model } else { Author::Person },
            reach: Reach::Everywhere,
            journal,
            packs,
            progress,
            notices,
            redactor: OnceLock::new(),
            in_use: Mutex::new(Weak::new()),
        };
        let redactor = engine.redactor().clone();
        engine.journal.set_redactor(redactor);
        // Tables that are missing are for a reconciliation to bring back.
        if need != Need::Read && engine.journal.is_unindexed().unwrap_or(false) {
            engine.know_all_secrets();
            engine.journal.reindex()?;
        }
        Ok(engine)
    }

    /// What happened on the way that the person should know.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    pub fn is_writable(&self) -> bool {
        self.journal.access() == Access::Write
    }

    /// Records facts about a session.
    pub(crate) fn record(&mut self, session: SessionId, events: Vec<Event>) -> Result<Vec<Event>> {
        self.record_with(session, events, None)
    }

    /// Records facts, and the pack they speak of, at once.
    pub(crate) fn record_with(
        &mut self,
        session: SessionId,
        events: Vec<Event>,
        pack: Option<&NewPack>,
    ) -> Result<Vec<Event>> {
        let stamp =
            |event| NewEvent { id: EventId::new(self.clock.new_id()), session_id: session, event };
        let events = events.into_iter().map(stamp).collect();
        let packs: Vec<PackRow> = pack.into_iter().map(pack_row).collect();
        Ok(self.journal.append(self.clock.now(), events, &packs)?)
    }

    /// Writes a line into the session's log.
    pub(crate) fn note(&mut self, session: SessionId, level: Level, message: &str) -> Result<()> {
        let message = message.parse()?;
        self.record(session, vec![Event::Noted(Noted { level, message })])?;
        Ok(())
    }

    /// Held while objects are written or relied upon.
    pub(crate) fn use_store(&self) -> Result<Option<Arc<Lock>>> {
        if !self.is_writable() {
            return Ok(None);
        }
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever is in does not pass the gate again: someone may have closed it to wait for them to leave.
        if let Some(lock) = in_use.upgrade() {
            return Ok(Some(lock));
        }
        let (path, gate) = (self.home.store_lock(), self.home.gate_lock());
        let lock = Arc::new(Lock::wait_shared(&path, &gate, "removing old objects")?);
        *in_use = Arc::downgrade(&lock);
        Ok(Some(lock))
    }

    /// Held while the workspace is scanned or restored.
    pub(crate) fn lock_workspace(&self) -> Result<Lock> {
        Lock::wait(&self.home.workspace_lock(), Hold::Alone, "working in this workspace")
    }

    pub(crate) fn index(&self) -> Index<'_> {
        Index(&self.journal)
    }

    pub(crate) fn objects<'a>(&'a self, index: &'a Index<'a>) -> Objects<'a> {
        Objects::new(&self.packs, index)
    }

    /// Starts a sweep of its own, detached from us, when there is enough to sweep.
    pub(crate) fn sweep_in_background(&self) -> Result<()> {
        const MANY_PACKS: u64 = 100;
        const A_WHILE: u64 = 600;
        const A_DAY: u64 = 86_400;
        if !self.config.auto_gc {
            return Ok(());
        }
        let stamp = private::facts(&self.home.sweep_stamp()).map(|it| it.modified);
        let since = stamp.ok().and_then(|at| at.elapsed().ok()).map(|age| age.as_secs());
        // Packs can be many because they are large: then one sweep after the other would find nothing.
        let is_due = match since {
            Some(seconds) if seconds > A_DAY => true,
            Some(seconds) if seconds < A_WHILE => false,
            _ => self.journal.n_packs()? >= MANY_PACKS,
        };
        if !is_due {
            return Ok(());
        }
        let args = [Path::new("gc"), Path::new("--auto"), Path::new("--store"), &self.home.store];
        Program::ours()?.args(args).start_detached()?;
        Ok(())
    }
}

/// The database's index of objects, as the snapshot crate asks for it.
pub(crate) struct Index<'a>(&'a Journal);

impl Catalog for Index<'_> {
    fn locate(&self, id: &ObjectId) -> bivouac_snapshot::Result<Option<Place>> {
        let found =
            self.0.locate(id).map_err(|error| bivouac_snapshot::Error::Catalog(Box::new(error)))?;
        Ok(found.map(|(pack, offset)| Place { pack, offset }))
    }
}

pub(crate) fn pack_row(pack: &NewPack) -> PackRow {
    let objects = pack.objects.iter().map(|(object, place)| (object.id, place.offset)).collect();
    PackRow { id: pack.id, size_bytes: pack.size_bytes, objects }
}

fn open_journal(home: &Home, need: Need) -> Result<Journal> {
    let path = home.journal();
    if is_missing(&path)? {
        // An empty journal beside full packs would call all of them garbage.
        let is_in_use = has_packs(home) || private::facts(&rebuilt_journal(home)).is_ok();
        // Another command may have made the store meanwhile.
        if is_in_use && is_missing(&path)? {
            return Err(Error::JournalGone { store: home.store.clone() });
        }
        if need == Need::Read && !is_in_use {
            return Ok(Journal::empty()?);
        }
        home.create_store()?;
    }
    if rustix::fs::access(&home.store, rustix::fs::Access::WRITE_OK).is_err() {
        return Ok(Journal::open_read_only(&path)?);
    }
    if !is_missing(&path)?
        && let Some(journal) = Journal::open_current(&path)?
    {
        return Ok(journal);
    }
    let _lock = Lock::wait(&home.store.join("create.lock"), Hold::Alone, "making the store")?;
    Ok(Journal::open(&path)?)
}

/// Is there no journal, or too little of it to be one? One we may not look at is an error.
pub(crate) fn is_missing(path: &Path) -> Result<bool> {
    // SQLite takes what is shorter than its smallest page for new, and makes it so.
    const SMALLEST: u64 = 512;
    match private::facts(path) {
        Ok(it) if !it.is_file => Err(Error::NotStoreFile { path: path.to_owned() }),
        Ok(it) => Ok(it.size_bytes < SMALLEST),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Error::io(path)(error)),
    }
}

/// A journal that a reconciliation made, on its way to take the old one's place.
pub(crate) fn rebuilt_journal(home: &Home) -> PathBuf {
    home.store.join("sessions.db.rebuilt")
}

pub(crate) fn has_packs(home: &Home) -> bool {
    let is_pack = |name: &std::ffi::OsString| name.as_encoded_bytes().ends_with(b".pack");
    private::list(&home.packs()).is_ok_and(|names| names.iter().any(is_pack))
}
