//! The mark of a save that is under way. A process that is killed, that overflows its stack or that the kernel ends
//! for its memory cannot record its failure: the mark stays, and the next command in the workspace records it.
//!
//! The mark is a file beside the workspace's lock, written and emptied by whoever holds that lock. It is not synced:
//! it only has to outlive the process, not the machine, and costs two small writes for each save.

use std::fs::File;
use std::io::{Read, Write};

use bivouac_core::checkpoint::Trigger;
use bivouac_core::event::{CheckpointFailed, Event};
use bivouac_core::id::{CheckpointId, SessionId};
use bivouac_core::text::Note;
use bivouac_snapshot::private::{self, Open};
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::lock::Lock;
use crate::{Engine, Result};

/// More than this we never wrote.
const MAX_BYTES: u64 = 4 << 10;
/// The number of the event, among those that follow from a checkpoint's id.
const DIED: u128 = 1 << 18;

/// What is being saved, and by whom.
#[derive(Debug, Serialize, Deserialize)]
struct UnderWay {
    checkpoint: CheckpointId,
    session: SessionId,
    trigger: Trigger,
    process: u32,
}

/// The mark of our own save. Dropping it leaves it in place: only a save that ended takes it away.
#[must_use]
pub(crate) struct Mark(Option<File>);

impl Mark {
    /// Leaves the mark. A save that cannot do so is made all the same.
    pub(crate) fn leave(
        home: &Home,
        checkpoint: CheckpointId,
        session: SessionId,
        trigger: Trigger,
    ) -> Self {
        let under_way = UnderWay { checkpoint, session, trigger, process: std::process::id() };
        let written = open(home).and_then(|mut file| {
            file.set_len(0)?;
            file.write_all(&crate::save::to_json(&under_way))?;
            Ok(file)
        });
        Self(written.ok())
    }

    /// Takes the mark away: the save is on record, as done or as failed.
    pub(crate) fn take_away(self) {
        if let Some(file) = self.0 {
            let _seen_to_be_done_by_the_next = file.set_len(0);
        }
    }
}

/// Is there a mark, of a save that is under way or that died?
pub(crate) fn is_marked(home: &Home) -> bool {
    private::facts(&home.saving_mark()).is_ok_and(|facts| facts.size_bytes > 0)
}

/// Takes away the mark of this process, which is about to end. Its save is put on record in another way.
pub(crate) fn give_up(home: &Home) {
    if is_marked(home)
        && read(home).is_some_and(|it| it.process == std::process::id())
        && let Ok(file) = open(home)
    {
        let _recorded_twice_at_worst = file.set_len(0);
    }
}

fn open(home: &Home) -> std::io::Result<File> {
    private::open(&home.saving_mark(), Open::WriteOrCreate)
}

fn read(home: &Home) -> Option<UnderWay> {
    let mut bytes = Vec::new();
    open(home).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

impl Engine {
    /// Puts a save on record whose process died. Whoever holds the workspace knows that it did: that process
    /// would still have the lock. Where nothing can be recorded now, the mark stays for the next command.
    pub(crate) fn record_dead_save(&mut self, _lock: &Lock) {
        if is_marked(&self.home) && self.record_dead().is_ok() {
            let _recorded_once_in_any_case = open(&self.home).and_then(|file| file.set_len(0));
        }
    }

    fn record_dead(&mut self) -> Result<()> {
        if let Some(dead) = read(&self.home)
            && !self.journal.has_checkpoint(dead.checkpoint)?
            && self.journal.session(dead.session)?.is_some()
        {
            let UnderWay { checkpoint, session, trigger, process } = dead;
            let why = format!(
                "process {process}, which took it, ended before it was done (killed, crashed or out of memory)"
            );
            let failed = CheckpointFailed { trigger, error: Note::cut(&why) };
            let event = (DIED, Event::CheckpointFailed(failed));
            self.record_once(session, [event], checkpoint.uuid())?;
            self.notices.push(format!("a {trigger} checkpoint failed: {why}"));
        }
        Ok(())
    }
}
