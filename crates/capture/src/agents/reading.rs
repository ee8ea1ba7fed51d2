//! A conversation as its files tell it, read record by record and never twice.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bivouac_core::conversation::{NativeId, Tokens, Usage};
use serde::{Deserialize, Serialize};

use super::{Agent, offset};
use crate::{Error, Result};

/// Which conversation, and where its agent keeps it.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub id: NativeId,
    pub transcript: Option<PathBuf>,
    pub cwd: PathBuf,
    pub home: PathBuf,
}

/// One file of a conversation.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it is called in the checkpoint; `/` separates folders.
    pub name: String,
    pub source: Source,
}

#[derive(Clone, Debug)]
pub enum Source {
    File(PathBuf),
    /// Told by the agent's database.
    Bytes(Vec<u8>),
}

/// What reading has found so far. Kept with the checkpoint, so that the next one reads on from here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Everything before this was read.
    pub offset: u64,
    /// Lines that made no sense.
    #[serde(default)]
    pub n_bad: u64,
    /// Bytes of a record that has no end yet, or never got one.
    #[serde(default)]
    pub torn_bytes: u64,
    pub usage: Usage,
    /// The agent's release, as it says itself.
    pub version: Option<String>,
    pub model: Option<String>,
    /// The newest messages whose tokens were counted: agents repeat them.
    pub counted: VecDeque<String>,
    /// The newest records and the turns they belong to, where records form a tree.
    pub newest: VecDeque<(String, u64)>,
    /// Tool calls that have no answer yet.
    pub open_calls: Vec<OpenCall>,
    /// What the model read for its last answer: about what a resumed conversation begins with.
    #[serde(default)]
    pub context_tokens: u64,
    /// The agent's last words.
    pub last_message: Option<String>,
    /// The last record read ends a turn, in files that say so.
    #[serde(default)]
    pub is_complete: bool,
    /// The person went back to before this turn.
    pub rewound_to: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    pub id: String,
    pub tool: String,
    pub command: Option<String>,
}

impl Reading {
    const REMEMBERED: usize = 64;
    const MAX_OPEN: usize = 32;

    /// Is this the first time this message is seen?
    pub fn is_new(&mut self, id: &str) -> bool {
        if self.counted.iter().any(|seen| seen == id) {
            return false;
        }
        if self.counted.len() == Self::REMEMBERED {
            self.counted.pop_front();
        }
        self.counted.push_back(id.to_owned());
        true
    }

    pub fn count(&mut self, model: &str, tokens: Tokens) {
        self.context_tokens = tokens.total();
        *self.usage.by_model.entry(model.to_owned()).or_default() += tokens;
    }

    /// Remembers where a record hangs in the tree.
    pub fn hang(&mut self, record: &str) {
        if self.newest.len() == Self::REMEMBERED {
            self.newest.pop_front();
        }
        self.newest.push_back((record.to_owned(), self.usage.n_turns));
    }

    pub fn open(&mut self, call: OpenCall) {
        if self.open_calls.len() < Self::MAX_OPEN {
            self.open_calls.push(call);
        }
    }

    pub fn close(&mut self, id: &str) {
        self.open_calls.retain(|call| call.id != id);
    }
}

/// Reads on in a part from where `reading` is.
pub fn read_on(agent: &dyn Agent, part: &Part, reading: &mut Reading) -> Result<()> {
    match &part.source {
        Source::File(path) => {
            let file = open(path)?;
            let size = file.metadata().map_err(Error::io(path))?.len();
            if size < reading.offset {
                *reading = Reading::default();
            }
            let start = reading.offset;
            let progress =
                offset::read_records(&file, start, |record, _| agent.read(record, reading))
                    .map_err(Error::io(path))?;
            reading.offset = progress.offset;
            reading.n_bad += progress.n_bad;
            reading.torn_bytes = size.saturating_sub(progress.offset);
        }
        Source::Bytes(bytes) => {
            *reading = Reading { offset: bytes.len() as u64, ..Reading::default() };
            if let Ok(record) = super::parse(bytes) {
                agent.read(&record, reading);
            }
        }
    }
    Ok(())
}

/// Ten times the largest transcript that was ever seen. A hook can name any file, a sparse one of a terabyte too.
const MOST_BYTES: u64 = 4 << 30;

/// Opens a file of an agent's: a regular one, of this user, not a link, not endless. What a hook names could be
/// anything.
pub fn open(path: &Path) -> Result<File> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let file = File::options()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)
        .map_err(Error::io(path))?;
    let meta = file.metadata().map_err(Error::io(path))?;
    let is_ours = meta.uid() == rustix::process::getuid().as_raw();
    match meta.is_file() && is_ours {
        true if meta.len() > MOST_BYTES => {
            Err(Error::io(path)(io::Error::other("it is larger than 4 GiB")))
        }
        true => Ok(file),
        false => Err(Error::io(path)(io::Error::other("it is not a regular file of yours"))),
    }
}
