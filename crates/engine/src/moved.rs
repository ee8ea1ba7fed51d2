//! Workspaces that were moved or renamed. A workspace is known by its path, so after a move its sessions are
//! elsewhere. At every save the folder's own identity is written down beside the stat cache; a command in a folder
//! without sessions compares it, and the person is told where the sessions are. Bringing them here is an event of
//! each session, recorded in one transaction.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bivouac_core::event::{Event, Level, SessionMoved};
use bivouac_core::id::{EventId, SessionId};
use bivouac_core::path::WorkspacePath;
use bivouac_core::session::{Session, Status};
use bivouac_core::work::Author;
use bivouac_journal::append::NewEvent;
use bivouac_journal::query::SessionFilter;
use bivouac_snapshot::private;
use bivouac_snapshot::tree::Entry;
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::lock::{Hold, Lock};
use crate::{Engine, Error, Result};

/// What makes a folder the same folder, wherever it is: its file and the moment that file was made. File numbers are
/// used again, so without that moment nothing is certain. The device is left out: its number can change with a reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    inode: u64,
    born_ns: u64,
}

/// So many workspaces are looked at, and so many of them closely.
const MANY: u32 = 500;
const MANY_CLOSELY: usize = 20;

/// A folder whose sessions seem to belong here.
#[derive(Debug)]
pub struct MovedFrom {
    pub workspace: WorkspacePath,
    pub certainty: Certainty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It is the same folder, under another path.
    Same,
    /// It is gone, and this one looks like it.
    Alike,
}

impl fmt::Display for MovedFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workspace = &self.workspace;
        match self.certainty {
            Certainty::Same => {
                write!(f, "this folder was {workspace} when its last checkpoint was taken")
            }
            Certainty::Alike => write!(f, "this folder looks like {workspace}, which is gone"),
        }
    }
}

/// What was brought to this workspace.
#[derive(Debug)]
pub struct MoveReport {
    pub from: WorkspacePath,
    pub sessions: Vec<Session>,
    pub n_checkpoints: u64,
}

/// What to do where the folder still exists that is said to have been moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfThere {
    Refuse,
    GoAhead,
}

impl Identity {
    fn of(folder: &Path) -> Option<Self> {
        let meta = fs::metadata(folder).ok().filter(fs::Metadata::is_dir)?;
        let born = meta.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self { inode: meta.ino(), born_ns: u64::try_from(born.as_nanos()).ok()? })
    }
}

impl Engine {
    /// Writes down which folder this is. Read first: it hardly ever changes.
    pub(crate) fn remember_place(&self) {
        let Some(identity) = Identity::of(&self.home.workspace) else { return };
        if known_identity(&self.home) != Some(identity) {
            let bytes = crate::save::to_json(&identity);
            let _only_a_hint_is_lost = private::write_disposable(&self.home.place(), &bytes);
        }
    }

    /// Where the sessions are of a folder that was moved here. Only looked for where there are none.
    pub fn moved_from(&self) -> Option<MovedFrom> {
        if self.has_sessions() {
            return None;
        }
        let others = self.journal.newest_workspaces(MANY).ok()?;
        if let Some(workspace) = self.same_folder(&others) {
            return Some(MovedFrom { workspace, certainty: Certainty::Same });
        }
        let gone = others.into_iter().filter(|it| fs::symlink_metadata(path_of(it)).is_err());
        let workspace = gone.take(MANY_CLOSELY).find(|it| self.looks_like(it).unwrap_or(false))?;
        Some(MovedFrom { workspace, certainty: Certainty::Alike })
    }

    /// The same where new sessions were begun after the move, so that the older ones are not forgotten. Looks at the
    /// identity of every workspace, so it is for commands that may take a moment.
    pub fn left_behind(&self) -> Option<MovedFrom> {
        if !self.has_sessions() {
            return None;
        }
        let workspace = self.same_folder(&self.journal.newest_workspaces(MANY).ok()?)?;
        Some(MovedFrom { workspace, certainty: Certainty::Same })
    }

    fn has_sessions(&self) -> bool {
        let newest = self.journal.newest_session(&self.home.workspace_path(), &Status::ALL);
        newest.is_ok_and(|it| it.is_some())
    }

    /// The workspace that was this very folder at its last checkpoint, under another path.
    fn same_folder(&self, others: &[WorkspacePath]) -> Option<WorkspacePath> {
        let identity = Identity::of(&self.home.workspace)?;
        let is_same = |workspace: &&WorkspacePath| {
            let home = Home { workspace: path_of(workspace), ..self.home.clone() };
            // A folder that is reached by two paths did not move.
            known_identity(&home) == Some(identity)
                && Identity::of(&home.workspace) != Some(identity)
        };
        others.iter().find(is_same).cloned()
    }

    /// A folder that was copied to another disk has another identity. What was at its top at the last checkpoint is
    /// still there, and it is at the same commit; without git, the files at its top have the same sizes, too.
    fn looks_like(&self, gone: &WorkspacePath) -> Result<bool> {
        let Some(session) = self.journal.newest_session(gone, &Status::ALL)? else {
            return Ok(false);
        };
        let Some(kept) = self.journal.last_checkpoint(session.id)? else {
            return Ok(false);
        };
        let checkpoint = &kept.taken.checkpoint;
        let then = checkpoint.git.as_ref().and_then(|git| git.head.clone());
        let now = self.home.repository().and_then(|it| it.commit());
        if then != now {
            return Ok(false);
        }
        let index = self.index();
        let tree = self.objects(&index).tree(&checkpoint.tree)?;
        let mut n_found = 0;
        for (name, entry) in tree.entries().filter(|(_, it)| !matches!(it, Entry::Gap { .. })) {
            let found = fs::symlink_metadata(self.home.workspace.join(OsStr::from_bytes(name)));
            let is_same = match (entry, &found) {
                (Entry::File(file), Ok(found)) => now.is_some() || found.len() == file.size,
                (_, found) => found.is_ok(),
            };
            if !is_same {
                return Ok(false);
            }
            n_found += 1;
        }
        Ok(n_found > 0)
    }

    /// Writes into the log of a new session that older ones may belong to this folder.
    pub(crate) fn note_move(&mut self, session: SessionId, from: &MovedFrom) -> Result<()> {
        let line = format!("{from}; `biv init --moved-from` brings its sessions here");
        self.note(session, Level::Warning, &line)
    }

    /// Makes the sessions of a folder that was moved here belong to this one, and those of folders below it.
    pub fn bring_here(&mut self, old: &Path, if_there: IfThere) -> Result<MoveReport> {
        self.home.check_workspace()?;
        // The other folder loses its sessions, which only a person can want.
        if self.author == Author::Model {
            return Err(Error::OnlyPeople { what: "bring the sessions of another folder here" });
        }
        let (from, to) = (self.recorded(old)?, self.home.workspace_path());
        if if_there == IfThere::Refuse && is_in_use(&path_of(&from), &self.home.workspace) {
            return Err(Error::StillThere { path: path_of(&from) });
        }
        let old_home = Home { workspace: path_of(&from), ..self.home.clone() };
        let old_lock = old_home.workspace_lock();
        let _nobody_works_there = Lock::wait(&old_lock, Hold::Alone, "working in the old folder")?;
        let lock = self.lock_workspace()?;
        let sessions = self.sessions_within(&from)?;
        let (mut n_checkpoints, mut events) = (0, Vec::new());
        for (session, below) in &sessions {
            self.check_unsupervised(session)?;
            n_checkpoints += self.journal.n_checkpoints(session.id)?;
            let new = WorkspacePath::new([to.as_bytes(), below].concat());
            let moved = SessionMoved { from: session.workspace.clone(), to: new };
            let event = Event::SessionMoved(Box::new(moved));
            let id = EventId::new(self.clock.new_id());
            events.push(NewEvent { id, session_id: session.id, event });
        }
        self.journal.append(self.clock.now(), events, &[])?;
        // What the last scan saw is for the old path. Without it, the next one reads everything.
        let _costs_one_scan = private::remove_file(&old_home.stat_cache());
        self.heal_held(&lock)?;
        self.remember_place();
        let sessions = sessions.into_iter().map(|(session, _)| session).collect();
        Ok(MoveReport { from, sessions, n_checkpoints })
    }

    /// A workspace with sessions, by the path someone typed. The folder may be gone, so no link in its last part can
    /// be resolved; those before it may still be there.
    fn recorded(&self, typed: &Path) -> Result<WorkspacePath> {
        let whole: PathBuf = self.home.folder.join(typed).components().collect();
        let resolved = whole.parent().and_then(|it| it.canonicalize().ok());
        let resolved = resolved.zip(whole.file_name()).map(|(parent, name)| parent.join(name));
        let resolved = resolved.unwrap_or_else(|| whole.clone());
        for path in [&whole, &resolved] {
            let workspace = WorkspacePath::new(path.as_os_str().as_bytes());
            if workspace == self.home.workspace_path() {
                return Err(Error::MovedToItself);
            }
            if self.journal.newest_session(&workspace, &Status::ALL)?.is_some() {
                return Ok(workspace);
            }
        }
        Err(Error::NothingThere { path: resolved })
    }

    /// The sessions of a workspace and of those below it, with what their paths have beyond its own.
    fn sessions_within(&self, workspace: &WorkspacePath) -> Result<Vec<(Session, Vec<u8>)>> {
        let all = self.journal.sessions(&SessionFilter::default())?.into_iter();
        let below = |session: Session| {
            let rest = session.workspace.as_bytes().strip_prefix(workspace.as_bytes())?.to_vec();
            (rest.is_empty() || rest[0] == b'/').then_some((session, rest))
        };
        Ok(all.filter_map(below).collect())
    }
}

/// Is something in the folder, and is it not the one it was moved to?
fn is_in_use(old: &Path, new: &Path) -> bool {
    let is_other = old.canonicalize().is_ok_and(|old| old != new);
    is_other && fs::read_dir(old).is_ok_and(|mut entries| entries.next().is_some())
}

fn known_identity(home: &Home) -> Option<Identity> {
    serde_json::from_slice(&private::read(&home.place()).ok()?).ok()
}

fn path_of(workspace: &WorkspacePath) -> PathBuf {
    OsStr::from_bytes(workspace.as_bytes()).into()
}
