//! A store inside a project, in `.agents/` (`biv init --local`).
//!
//! A folder of that name can also come with a clone or an archive, or stand in a parent folder that another user
//! filled. A store from there would decide which checkpoints exist, what the model is told and which files a
//! clean-up removes. So a local store is used only if this user made it, or adopted it on purpose, on this
//! machine: a record outside the workspace names it. The record holds a random mark that is also in a file of the
//! store, and the inodes of the folder, the journal and the packs, so that a copy, a clone or a replaced store is
//! recognised. A `git pull` can replace single files, because git overwrites what is ignored without asking.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bivouac_capture::git::Repository;
use bivouac_capture::{agents, folder};
use bivouac_core::path::WorkspacePath;
use bivouac_snapshot::private::{self, Open};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::home::{Home, STORE_NAMES};
use crate::save::to_json;
use crate::{Error, Result, papers};

/// The name of the folder.
pub(crate) const FOLDER: &str = ".agents";
/// The file in the store that holds the mark.
pub(crate) const MARK: &str = "local.id";

/// What there is at `.agents/`.
pub(crate) enum Found {
    Nothing,
    Ours(PathBuf),
    NotUsed(UnusedStore),
}

/// A store that was found in the workspace and is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedStore {
    pub store: PathBuf,
    pub why: Distrust,
}

/// Why a local store is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// This user never made or adopted a store here.
    NoRecord,
    /// A store was made here, but this is not it.
    Replaced,
    NotFolder,
    OtherOwner,
    /// Another file system is mounted there.
    Mounted,
    /// Other users can write in a folder on the way to it, or in the store itself.
    Shared(PathBuf),
    /// The repository tracks a file of it.
    Tracked(String),
    /// It is not known whether the repository tracks a file of it.
    Unknown(String),
    /// Git would add it, because the ignore file in it cannot be written.
    NotIgnored,
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRecord => {
                f.write_str("there is no record that you made it in this folder (a clone, a copy or a moved folder has none)")
            }
            Self::Replaced => f.write_str("it is not the store that you made here"),
            Self::NotFolder => f.write_str("it is not a folder"),
            Self::OtherOwner => f.write_str("it belongs to another user"),
            Self::Mounted => f.write_str("it is on another file system than the workspace"),
            Self::Shared(folder) => write!(f, "other users can write in `{}`", folder.display()),
            Self::Tracked(path) => write!(f, "git tracks `{path}`"),
            Self::Unknown(why) => write!(f, "it is not known whether git tracks it ({why})"),
            Self::NotIgnored => f.write_str("git would add it, as its `.gitignore` cannot be written"),
        }
    }
}

impl Distrust {
    /// What the person can do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::NoRecord | Self::Replaced => {
                "if it is yours, run `biv init --local --adopt`; if it came with the project, leave it alone".to_owned()
            }
            Self::NotFolder | Self::Mounted => {
                format!("remove `{FOLDER}`, then run `biv init --local`")
            }
            Self::OtherOwner => "checkpoints go to the store in your own data folder".to_owned(),
            Self::Shared(folder) => format!(
                "if that folder is yours, run `chmod go-w {}`; until then checkpoints go to the store in your own data folder",
                folder.display()
            ),
            Self::Unknown(_) => "repair the index, for example with `git reset`".to_owned(),
            Self::NotIgnored => format!("make `{FOLDER}/.gitignore` writable"),
            Self::Tracked(_) => format!(
                "if it is yours, `git rm -r --cached {FOLDER}` stops tracking it; then add back what the project needs there"
            ),
        }
    }
}

impl fmt::Display for UnusedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, why } = self;
        let (store, remedy) = (store.display(), why.remedy());
        write!(f, "the store in `{store}` is not used, because {why}; {remedy}")
    }
}

/// What is kept about a local store outside of its workspace.
#[derive(Serialize, Deserialize)]
struct Record {
    /// For people who look at the record.
    store: String,
    mark: String,
    inode: u64,
    device: u64,
    /// The inodes of the journal and of the folder of packs, once they are there.
    #[serde(default)]
    journal: Option<u64>,
    #[serde(default)]
    packs: Option<u64>,
    /// The git index in which nothing of the store was tracked.
    index: Option<[u8; 8]>,
}

/// Looks for the local store of a workspace. `records` is the folder of the records.
pub(crate) fn find(workspace: &Path, records: Option<&Path>) -> Found {
    let store = workspace.join(FOLDER);
    if store.symlink_metadata().is_err() {
        return Found::Nothing;
    }
    // Records in the workspace itself could come with it.
    let records = records.filter(|folder| !folder.starts_with(workspace));
    let record = records.and_then(|folder| read_record(&record_path(folder, &store)));
    // Other tools keep their files in a folder of this name, too.
    let is_store = store.join("sessions.db").symlink_metadata().is_ok();
    if record.is_none() && !is_store {
        return Found::Nothing;
    }
    match check(workspace, &store, record, records) {
        Ok(()) => Found::Ours(store),
        Err(why) => Found::NotUsed(UnusedStore { store, why }),
    }
}

fn check(
    workspace: &Path,
    store: &Path,
    record: Option<Record>,
    records: Option<&Path>,
) -> Result<(), Distrust> {
    check_place(workspace, store)?;
    let (Some(mut record), Some(records)) = (record, records) else {
        return Err(Distrust::NoRecord);
    };
    let meta = store.symlink_metadata().map_err(|_| Distrust::NotFolder)?;
    if meta.ino() != record.inode || read_mark(store).as_deref() != Some(&record.mark) {
        return Err(Distrust::Replaced);
    }
    let (journal, packs) = contents(store);
    if is_replaced((record.journal, record.packs), (journal, packs)) {
        return Err(Distrust::Replaced);
    }
    write_ignore_file(store).map_err(|_| Distrust::NotIgnored)?;
    let repository = Repository::discover(workspace);
    let index = repository.as_ref().map(Repository::index_fingerprint);
    if index.is_some() && index != record.index {
        check_untracked(repository.as_ref(), store)?;
    }
    // The numbers of devices can change with a restart, and the index with every `git add`. The journal and the packs
    // come with the first command after `init`.
    let (journal, packs) = (record.journal.or(journal), record.packs.or(packs));
    let now = (meta.dev(), index, journal, packs);
    if now != (record.device, record.index, record.journal, record.packs) {
        (record.device, record.index, record.journal, record.packs) = now;
        let _checked_again_next_time = write_record(records, store, &record);
    }
    Ok(())
}

/// The inodes of the journal and of the folder of packs.
fn contents(store: &Path) -> (Option<u64>, Option<u64>) {
    let inode = |name: &str| store.join(name).symlink_metadata().ok().map(|meta| meta.ino());
    (inode("sessions.db"), inode("packs"))
}

/// Is this another journal than the one on record, or is nothing left of either? A journal that is gone while its
/// packs are there is damage, which `biv reconcile` repairs.
fn is_replaced(
    known: (Option<u64>, Option<u64>),
    (journal, packs): (Option<u64>, Option<u64>),
) -> bool {
    match (known.0, journal) {
        (Some(known), Some(journal)) => known != journal,
        (Some(_), None) => packs.is_none() || packs != known.1,
        (None, _) => false,
    }
}

/// Says that the journal is about to be replaced by this file of ours.
pub(crate) fn renew(home: &Home, new_journal: &Path) -> Result<()> {
    let store = home.local_store();
    let Some(records) = home.local_records.as_deref().filter(|_| home.store == store) else {
        return Ok(());
    };
    let Some(record) = read_record(&record_path(records, &store)) else {
        return Ok(());
    };
    let journal = private::facts(new_journal).map_err(Error::io(new_journal))?.inode;
    write_record(records, &store, &Record { journal: Some(journal), ..record })
}

/// Is this a place where nobody else can put or change anything?
fn check_place(workspace: &Path, store: &Path) -> Result<(), Distrust> {
    let meta = store.symlink_metadata().map_err(|_| Distrust::NotFolder)?;
    if !meta.is_dir() {
        return Err(Distrust::NotFolder);
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(Distrust::OtherOwner);
    }
    if workspace.symlink_metadata().is_ok_and(|above| above.dev() != meta.dev()) {
        return Err(Distrust::Mounted);
    }
    match store.ancestors().find(|folder| is_shared(folder)) {
        Some(folder) => Err(Distrust::Shared(folder.to_owned())),
        None => Ok(()),
    }
}

/// Can others put something into this folder, or rename what is in it? With the sticky bit they can only add
/// names. A group counts as others unless it is the user's own (the same number, as most systems set it up).
pub(crate) fn is_shared(folder: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    let Ok(meta) = folder.symlink_metadata() else {
        return true;
    };
    let us = rustix::process::geteuid().as_raw();
    let is_own_group = meta.gid() == 0 || meta.gid() == us;
    let others = if is_own_group { 0o002 } else { 0o022 };
    let is_ours = meta.uid() == us || meta.uid() == 0;
    !is_ours || (meta.mode() & others != 0 && meta.mode() & STICKY == 0)
}

fn check_untracked(repository: Option<&Repository>, store: &Path) -> Result<(), Distrust> {
    let Some(repository) = repository else {
        return Ok(());
    };
    let below = store.strip_prefix(&repository.top).unwrap_or(Path::new(FOLDER));
    let below = [below.as_os_str().as_bytes(), b"/"].concat();
    let is_of_store = |path: &&[u8]| {
        // A submodule in the store's place is one entry without a slash.
        if **path == below[..below.len() - 1] {
            return true;
        }
        let name = path
            .strip_prefix(below.as_slice())
            .and_then(|rest| rest.split(|it| *it == b'/').next());
        name.is_some_and(|name| STORE_NAMES.iter().any(|it| it.as_bytes() == name))
    };
    let tracked = repository.tracked().map_err(|error| Distrust::Unknown(error.to_string()))?;
    match tracked.iter().map(AsRef::as_ref).find(is_of_store) {
        Some(path) => Err(Distrust::Tracked(bivouac_core::text::printable_bytes(path))),
        None => Ok(()),
    }
}

/// How a local store comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Making {
    /// Where there is none that somebody else made.
    New,
    /// Also where there is one, whoever made it.
    Adopt,
}

/// Makes the local store of a workspace, or adopts the one that is there, and records that.
pub fn make(home: &Home, making: Making) -> Result<()> {
    if making == Making::Adopt && agents::is_within_agent() {
        return Err(Error::OnlyPeople { what: "adopt a store" });
    }
    let records = home.local_records.as_deref().ok_or(Error::NoHome)?;
    let store = home.local_store();
    let refused = |why| Error::LocalStore(UnusedStore { store: store.clone(), why });
    let found = find(&home.workspace, Some(records));
    let is_ours = matches!(found, Found::Ours(_));
    if let Found::NotUsed(found) = found {
        let is_unknown = matches!(found.why, Distrust::NoRecord | Distrust::Replaced);
        if !is_unknown || making == Making::New {
            return Err(Error::LocalStore(found));
        }
    }
    if store.symlink_metadata().is_ok_and(|it| !it.is_dir()) {
        return Err(refused(Distrust::NotFolder));
    }
    // Whatever a clone or an archive brought would be taken for ours: packs, words of agents that wait, settings.
    let is_prepared = |name: &&str| store.join(name).symlink_metadata().is_ok();
    if making == Making::New && !is_ours && STORE_NAMES.iter().any(is_prepared) {
        return Err(refused(Distrust::NoRecord));
    }
    private::make_folder(&store).map_err(Error::io(&store))?;
    check_place(&home.workspace, &store).map_err(refused)?;
    let repository = home.repository();
    check_untracked(repository.as_ref(), &store).map_err(refused)?;
    write_ignore_file(&store)?;
    let mark = match read_mark(&store) {
        Some(mark) => mark,
        None => Clock::from_env()?.new_id().to_string(),
    };
    papers::write_private(&store.join(MARK), mark.as_bytes())?;
    let meta = store.symlink_metadata().map_err(Error::io(&store))?;
    let (journal, packs) = contents(&store);
    let record = Record {
        store: store.display().to_string(),
        mark,
        inode: meta.ino(),
        device: meta.dev(),
        journal,
        packs,
        index: repository.as_ref().map(Repository::index_fingerprint),
    };
    write_record(records, &store, &record)
}

/// Keeps the store out of git by an ignore file of our own in it. What else the folder holds is the project's, so only
/// our names are listed, and an ignore file that is there is only added to. Our lines are the last ones: of several
/// patterns the last one counts, and a pull can bring any others.
fn write_ignore_file(store: &Path) -> Result<()> {
    const MOST_BYTES: u64 = 1 << 20;
    let path = store.join(".gitignore");
    let mut bytes = Vec::new();
    match private::open(&path, Open::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        file => {
            let read = file.and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
            let n_read = read.map_err(Error::io(&path))?;
            // Its end cannot be seen, so it would be added to again and again.
            if n_read as u64 == MOST_BYTES {
                return Err(Error::io(&path)(io::ErrorKind::FileTooLarge.into()));
            }
        }
    }
    let own = STORE_NAMES.iter().map(|name| format!("/{name}\n")).collect::<String>();
    let text = String::from_utf8_lossy(&bytes);
    if text.ends_with(&own) || text.ends_with(&format!("{own}/.gitignore\n")) {
        return Ok(());
    }
    let added = match text.chars().next_back() {
        None => format!("{own}/.gitignore\n"),
        Some('\n') => own,
        Some(_) => format!("\n{own}"),
    };
    let append = || private::open(&path, Open::Append)?.write_all(added.as_bytes());
    append().map_err(Error::io(&path))
}

fn read_mark(store: &Path) -> Option<String> {
    let mut text = String::new();
    private::open(&store.join(MARK), Open::Read).ok()?.take(100).read_to_string(&mut text).ok()?;
    Some(text).filter(|text| !text.is_empty())
}

fn record_path(records: &Path, store: &Path) -> PathBuf {
    records.join(format!("{}.json", WorkspacePath::new(store.as_os_str().as_bytes()).key()))
}

fn read_record(path: &Path) -> Option<Record> {
    let is_ours = private::facts(path).is_ok_and(|facts| facts.is_ours);
    is_ours.then(|| serde_json::from_slice(&private::read(path).ok()?).ok()).flatten()
}

fn write_record(records: &Path, store: &Path, record: &Record) -> Result<()> {
    folder::make(records).map_err(Error::io(records))?;
    papers::write_private(&record_path(records, store), &to_json(record))
}
