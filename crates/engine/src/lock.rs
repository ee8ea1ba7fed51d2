//! Locks between processes. They belong to the operating system, so they end with their owner,
//! however it ends; none is ever taken away because it is old.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use bivouac_core::sabotage::{self, Fault};
use bivouac_core::text::printable_bytes;
use bivouac_snapshot::private::{self, Open};

use crate::{Error, Result};

/// Held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Together with others that hold it so.
    Shared,
    Alone,
}

/// Long enough for a first checkpoint of a large tree.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long a gate is open between two times that it is closed, and closed at most.
const OPEN: Duration = Duration::from_millis(50);
const CLOSED_MOST: Duration = Duration::from_secs(1);

impl Lock {
    /// Waits for the lock. `what` says what its holder is doing.
    pub fn wait(path: &Path, hold: Hold, what: &'static str) -> Result<Self> {
        let started = Instant::now();
        loop {
            if let Some(lock) = Self::attempt(path, hold)? {
                return Ok(lock);
            }
            let waited = started.elapsed();
            if waited > PATIENCE {
                return Err(Error::Locked { what, waited, owner: owner(path) });
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits to have alone what others use all the time: whoever comes to use it has to pass a gate, which is
    /// closed meanwhile. Never for long: somebody inside may take minutes, and others have an agent that waits.
    pub fn wait_alone(path: &Path, gate: &Path, what: &'static str) -> Result<Self> {
        let started = Instant::now();
        let mut closed_for = Duration::from_millis(100);
        loop {
            let mut closed = None;
            let until = Instant::now() + closed_for;
            while Instant::now() < until {
                // Somebody may just be passing it.
                if closed.is_none() {
                    closed = Self::attempt(gate, Hold::Alone)?;
                }
                if let Some(lock) = Self::attempt(path, Hold::Alone)? {
                    return Ok(lock);
                }
                thread::sleep(Duration::from_millis(2));
            }
            drop(closed);
            let waited = started.elapsed();
            if waited > PATIENCE {
                return Err(Error::Locked { what, waited, owner: owner(path) });
            }
            closed_for = CLOSED_MOST.min(closed_for * 2);
            thread::sleep(OPEN);
        }
    }

    /// Waits for the lock together with others, behind whoever waits to be alone.
    pub fn wait_shared(path: &Path, gate: &Path, what: &'static str) -> Result<Self> {
        drop(Self::wait(gate, Hold::Shared, what)?);
        Self::wait(path, Hold::Shared, what)
    }

    /// `None` when someone else has it.
    pub fn attempt(path: &Path, hold: Hold) -> Result<Option<Self>> {
        let mut file = private::open(path, Open::WriteOrCreate).map_err(Error::io(path))?;
        let locked = match hold {
            Hold::Shared => file.try_lock_shared(),
            Hold::Alone => file.try_lock(),
        };
        match locked {
            Ok(()) => {
                if hold == Hold::Alone {
                    sign(&mut file);
                }
                Ok(Some(Self { file }))
            }
            Err(TryLockError::WouldBlock) if sabotage::is(Fault::LockIgnored) => {
                Ok(Some(Self { file }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(Error::Io { path: path.to_owned(), source }),
        }
    }
}

impl Lock {
    /// A sign of life, which whoever looks at the file can tell the time of.
    pub fn beat(&self) {
        use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let _seen_at_the_next =
            futimens(&self.file, &Timestamps { last_access: now, last_modification: now });
    }
}

/// Leaves a word about the owner, for whoever has to wait.
fn sign(file: &mut File) {
    let words: Vec<String> =
        std::env::args_os().take(3).map(|word| printable_bytes(word.as_encoded_bytes())).collect();
    let line = format!("process {} (`{}`)\n", std::process::id(), words.join(" "));
    let _only_a_courtesy =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(line.as_bytes()));
}

/// What the owner of a lock said about itself.
pub(crate) fn owner(path: &Path) -> Option<String> {
    let mut text = String::new();
    private::open(path, Open::Read).ok()?.take(400).read_to_string(&mut text).ok()?;
    text.lines().next().map(bivouac_core::text::printable)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn who_wants_to_be_alone_gets_a_turn_where_nobody_ever_pauses() {
        let folder = tempfile::tempdir().unwrap();
        let (path, gate) = (folder.path().join("store.lock"), folder.path().join("gate.lock"));
        let is_over = AtomicBool::new(false);
        let use_it = || {
            while !is_over.load(Ordering::Relaxed) {
                let _in_use = Lock::wait_shared(&path, &gate, "using it").unwrap();
                thread::sleep(Duration::from_millis(15));
            }
        };
        let waited = thread::scope(|scope| {
            (0..8).for_each(|_| drop(scope.spawn(use_it)));
            thread::sleep(Duration::from_millis(50));
            let started = Instant::now();
            let alone = Lock::wait_alone(&path, &gate, "using it");
            is_over.store(true, Ordering::Relaxed);
            drop(alone.unwrap());
            started.elapsed()
        });
        assert!(waited < Duration::from_secs(30), "{waited:?}");
    }
}
