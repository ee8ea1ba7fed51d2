//! What could not be recorded in time, or at all, waits here, whole and hashed, and is taken in by the next
//! command, once.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bivouac_core::agent::AgentKind;
use bivouac_core::event::{CheckpointFailed, Event};
use bivouac_core::id::{EventId, SessionId};
use bivouac_core::path::PathBytes;
use bivouac_core::sabotage::{self, Fault};
use bivouac_core::text::Note;
use bivouac_core::time::in_words;
use bivouac_journal::append::{NewEvent, Terms};
use bivouac_snapshot::private::{self, Open};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::home::{Home, Wishes, sync_folder};
use crate::lock::{Hold, Lock};
use crate::observe::{Hook, Reached};
use crate::{Engine, Error, Result};

#[derive(Debug, Serialize, Deserialize)]
struct Spooled {
    id: Uuid,
    agent: AgentKind,
    event: String,
    input: String,
    /// Only the checkpoint is missing that was to follow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_recorded: bool,
    /// It may be on record or not, and so may the checkpoint that was to follow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_unfinished: bool,
    /// Where it happened, if that is not in what was told: the agent could not put the folder's name in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<PathBytes>,
}

/// A save that failed, where not even that could be recorded.
#[derive(Debug, Serialize, Deserialize)]
struct SpooledFailure {
    id: Uuid,
    session: SessionId,
    #[serde(flatten)]
    failed: CheckpointFailed,
}

/// Writes a hook's input down, durably.
pub(crate) fn put_aside(home: &Home, hook: &Hook, reached: Reached) -> Result<()> {
    let (is_recorded, is_unfinished) = (reached == Reached::Record, reached == Reached::Unknown);
    let Hook { id, agent, event, input } = hook.clone();
    let is_text = home.workspace.to_str().is_some();
    let folder = (!is_text).then(|| PathBytes::new(home.workspace.as_os_str().as_bytes()));
    let spooled = Spooled { id, agent, event, input, is_recorded, is_unfinished, folder };
    write(home, id, "hook", &spooled)
}

/// Leaves the name of a note alone, without a byte in it.
pub(crate) fn leave_torn(home: &Home, id: Uuid) {
    let path = home.spool().join(format!("{id}.part"));
    let _nothing_else_is_left = home
        .make_folder(&home.spool())
        .and_then(|()| private::open(&path, Open::CreateNew).map(drop).map_err(Error::io(&path)));
}

/// Writes down that a save failed, durably.
pub(crate) fn put_failure_aside(
    home: &Home,
    session: SessionId,
    failed: CheckpointFailed,
    id: Uuid,
) -> Result<()> {
    write(home, id, "failure", &SpooledFailure { id, session, failed })
}

fn write(home: &Home, id: Uuid, kind: &str, spooled: &impl Serialize) -> Result<()> {
    let folder = home.spool();
    home.make_folder(&folder)?;
    let bytes = crate::save::to_json(spooled);
    let path = folder.join(format!("{id}-{}.{kind}", hash(&bytes)));
    let part = path.with_extension("part");
    let write = || {
        let mut file = private::open(&part, Open::WriteOrCreate)?;
        file.set_len(0)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        private::rename(&part, &path)
    };
    write().map_err(Error::io(&part))?;
    sync_folder(&folder)?;
    // Whoever made the folder may have been killed before its name was durable.
    sync_folder(&home.store)
}

impl Engine {
    /// Takes in what hooks had to put aside. One that makes no sense is kept with the damaged files.
    pub(crate) fn take_in_spool(&mut self) -> Result<()> {
        if notes(&self.home).is_empty() {
            return Ok(());
        }
        let Some(_only_one) = Lock::attempt(&self.home.spool_lock(), Hold::Alone)? else {
            return Ok(());
        };
        // What waits may come from any workspace.
        self.know_all_secrets();
        for path in notes(&self.home) {
            let is_failure = path.extension().is_some_and(|it| it == "failure");
            let is_done = match is_failure {
                true => read(&path).map(|it| it.map(|failure| self.take_in_failure(failure))),
                false => read(&path).map(|it| it.map(|spooled| self.take_in(spooled))),
            };
            match is_done {
                // Another command took it in meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    self.notices.push(format!("a note of a hook cannot be read yet: {error}"));
                }
                Ok(Some(is_done)) => {
                    if is_done? && !sabotage::is(Fault::SpoolRemovedFirst) {
                        unless_gone(private::remove_file(&path)).map_err(Error::io(&path))?;
                    }
                }
                Ok(None) => {
                    let aside = self.home.damaged()?.join(path.file_name().unwrap_or_default());
                    unless_gone(private::rename(&path, &aside)).map_err(Error::io(&path))?;
                    self.notices.push("a damaged note of a hook was set aside".to_owned());
                }
            }
        }
        Ok(())
    }

    /// Tells of notes that nobody could finish writing: on a full disk only their names are left. A young one
    /// may still be written.
    pub(crate) fn tell_torn_notes(&mut self) {
        const A_MINUTE: u64 = 60;
        for path in spool_files(&self.home) {
            let modified = private::facts(&path).ok().map(|it| it.modified);
            let age = modified.and_then(|at| at.elapsed().ok()).unwrap_or_default();
            let is_torn = path.extension().is_some_and(|it| it == "part");
            if is_torn && age.as_secs() > A_MINUTE && private::remove_file(&path).is_ok() {
                let ago = in_words(age);
                self.notices.push(format!(
                    "what an agent told {ago} ago could not be kept; most likely the disk was full, or a limit (`ulimit`) was reached"
                ));
            }
        }
    }

    fn take_in_failure(&mut self, spooled: SpooledFailure) -> Result<bool> {
        let event = Event::CheckpointFailed(spooled.failed);
        if self.journal.session(spooled.session)?.is_some() {
            self.record_once(spooled.session, [(0, event)], spooled.id)?;
        }
        Ok(true)
    }

    /// `false` when it happened in another workspace: a command there takes it in.
    fn take_in(&mut self, spooled: Spooled) -> Result<bool> {
        let Spooled { id, agent, event, input, is_recorded, is_unfinished, folder } = spooled;
        let hook = Hook { id, agent, event, input };
        let Some(observation) = hook.observation() else {
            return Ok(true);
        };
        let folder = folder.map(|it| PathBuf::from(OsStr::from_bytes(it.as_bytes())));
        let wishes = Wishes { folder, ..Wishes::default() };
        let place = Home::find(&hook.wishes(&wishes, &observation));
        if place.is_ok_and(|place| place.workspace != self.home.workspace) {
            return Ok(false);
        }
        let response = bivouac_core::observation::respond(&observation, &self.config.risks);
        let (told, not_saved) = match (is_recorded, is_unfinished) {
            (true, _) => (Vec::new(), response.save),
            (false, true) => (response.events, response.save),
            (false, false) => (response.events, None),
        };
        if told.is_empty() && not_saved.is_none() {
            return Ok(true);
        }
        if let Some(session) = self.session_of(&observation)? {
            // The process that called the hook is long gone; ours says nothing about it.
            let beginning = self.beginning(&observation, session.id, None)?;
            self.record_told(session.id, beginning, told, id)?;
            let failed = not_saved.map(|trigger| {
                let why =
                    if is_recorded { "ran out of time" } else { "was ended before it was done" };
                let error = Note::cut(&format!("the agent's hook {why}"));
                (NOT_SAVED, Event::CheckpointFailed(CheckpointFailed { trigger, error }))
            });
            self.record_once(session.id, failed, id)?;
        }
        Ok(true)
    }

    /// Records what a hook told, behind what begins with it.
    pub(crate) fn record_told(
        &mut self,
        session: SessionId,
        beginning: Vec<Event>,
        told: Vec<Event>,
        id: Uuid,
    ) -> Result<()> {
        // What begins depends on what is known by now, and must not move the numbers of the rest.
        self.record_once(session, (BEGINNING..).zip(beginning).chain((0..).zip(told)), id)
    }

    /// Records events under ids that follow from `id` and their numbers: a second time, nothing happens.
    pub(crate) fn record_once(
        &mut self,
        session: SessionId,
        events: impl IntoIterator<Item = (u128, Event)>,
        id: Uuid,
    ) -> Result<()> {
        if sabotage::is(Fault::SpoolTakenTwice) {
            let events = events.into_iter().map(|(_, event)| event).collect();
            return self.record(session, events).map(drop);
        }
        let numbered = |(number, event)| {
            let id = EventId::new(Uuid::from_u128(id.as_u128() ^ number));
            NewEvent { id, session_id: session, event }
        };
        let events: Vec<NewEvent> = events.into_iter().map(numbered).collect();
        if !events.is_empty() {
            self.journal.append_once(self.clock.now(), events, &Terms::default())?;
        }
        Ok(())
    }
}

/// The numbers of events that do not come from what was told: where those before it begin, and the one behind it.
const BEGINNING: u128 = 1 << 16;
const NOT_SAVED: u128 = 1 << 17;

/// Everything in the spool whose name begins as we let it.
fn spool_files(home: &Home) -> Vec<PathBuf> {
    let folder = home.spool();
    let is_ours = |name: &std::ffi::OsString| {
        let id = name.as_encoded_bytes().get(..36).and_then(|id| Uuid::try_parse_ascii(id).ok());
        id.is_some()
    };
    let names = private::list(&folder).unwrap_or_default().into_iter().filter(is_ours);
    names.map(|name| folder.join(name)).collect()
}

/// What waits, in the order in which it came.
fn notes(home: &Home) -> Vec<PathBuf> {
    let mut paths = spool_files(home);
    paths.retain(|path| path.extension().is_some_and(|it| it == "hook" || it == "failure"));
    paths.sort();
    paths
}

/// Spool files whose checksum does not match.
pub(crate) fn damaged_notes(home: &Home) -> Vec<PathBuf> {
    notes(home).into_iter().filter(|path| is_damaged(path)).collect()
}

fn is_damaged(path: &Path) -> bool {
    match read::<serde_json::Value>(path) {
        Ok(note) => note.is_none(),
        // Another command took it in after the folder was listed.
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// What a spool file says. `None` if its checksum does not match, or if it is not a file at all.
fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let bytes = match private::read(path) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => return Ok(None),
        bytes => bytes?,
    };
    if sabotage::is(Fault::SpoolRemovedFirst) {
        private::remove_file(path)?;
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(name.ends_with(&hash(&bytes)).then(|| serde_json::from_slice(&bytes).ok()).flatten())
}

fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn hash(bytes: &[u8]) -> String {
    bivouac_core::id::ObjectId::of(bytes).to_string().chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_another_command_has_taken_in_is_not_damaged() {
        assert!(!is_damaged(Path::new("gone/01990000-0000-7000-8000-000000000001.hook")));
    }
}
