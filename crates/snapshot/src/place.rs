//! A folder on the way of a walk: where it is, which file system it is on, and what is known of changes in it.

use std::io;

use crate::beneath::{Root, Stat, is_gone};
use crate::file_system::FileSystem;
use crate::node::Node;
use crate::since::Since;
use crate::stat_cache::{CachedNode, Fingerprint};

/// Why a folder could not be looked into.
pub(crate) enum Closed {
    Gone,
    Unreadable,
}

impl From<io::Error> for Closed {
    fn from(error: io::Error) -> Self {
        if is_gone(&error) { Self::Gone } else { Self::Unreadable }
    }
}

impl From<Closed> for io::Error {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::Gone => io::ErrorKind::NotFound.into(),
            Closed::Unreadable => io::ErrorKind::PermissionDenied.into(),
        }
    }
}

/// A folder on the way.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    pub(crate) path: &'p [u8],
    pub(crate) depth: usize,
    pub(crate) stat: Stat,
    /// What is known about changes in it.
    pub(crate) since: Since<'p>,
    pub(crate) file_system: FileSystem,
    /// Its file system's identity, where the folder above it is on another one.
    pub(crate) mount: Option<Fingerprint>,
}

impl<'p> Place<'p> {
    /// The workspace itself.
    pub(crate) fn top(root: &Root, since: Since<'p>) -> io::Result<Self> {
        let stat = root.stat(b"")?;
        let file_system = root.file_system(b"", &stat)?;
        let mount = Some(file_system.identity);
        Ok(Self { path: b"", depth: 0, stat, since, file_system, mount })
    }

    /// A folder in this one, which may be on a file system of its own.
    pub(crate) fn enter(&self, root: &Root, path: &'p [u8], stat: Stat) -> Result<Self, Closed> {
        let depth = self.depth + 1;
        if self.file_system.holds_folder(&stat) {
            return Ok(Self { path, depth, stat, mount: None, ..*self });
        }
        let file_system = root.file_system(path, &stat)?;
        let mount = Some(file_system.identity);
        Ok(Self { path, depth, stat, file_system, mount, ..*self })
    }

    /// Is a child as the cache holds it, without a look?
    pub(crate) fn is_certain(&self, path: &[u8], cached: CachedNode<'_>) -> bool {
        self.since.is_quiet(path) && !Node::from(cached).is_restless()
    }

    /// Does the stat of a file or link in it prove that it did not change?
    pub(crate) fn is_same(&self, now: &Stat, before: &Stat) -> bool {
        now.is_same(before) && self.file_system.proves_contents(now)
    }
}

/// Does something in a thread of its own, and waits for it.
pub(crate) fn on_another_stack<T: Send>(act: impl FnOnce() -> T + Send) -> io::Result<T> {
    const STACK_BYTES: usize = 2 << 20;
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, act)?;
        thread.join().map_err(|_| io::Error::other("the walk panicked"))
    })
}
