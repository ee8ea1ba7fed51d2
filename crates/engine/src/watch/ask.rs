//! Asking the watcher of a workspace. Where there is none, or it does not answer, everything is looked at.

use std::io;

use bivouac_core::id::SessionId;
use bivouac_snapshot::since::{Changed, Since};
use bivouac_snapshot::stat_cache::Token;
use bivouac_snapshot::take::Taken;

use super::wire::{self, Paths};
use super::{Ask, Reply, WatchStatus};
use crate::home::Home;
use crate::look::Thoroughness;

/// What a watcher said before a scan.
#[derive(Default)]
pub(crate) struct News {
    /// What the scan may be remembered under.
    token: Option<Token>,
    /// `None` when everything may have changed.
    changed: Option<Changed>,
    trees: Paths,
    /// Does the scan look at everything, whatever the watcher says?
    thoroughness: Thoroughness,
}

impl News {
    /// Asks what changed since a cache was written.
    pub(crate) fn since(home: &Home, token: Option<Token>, thoroughness: Thoroughness) -> Self {
        match ask(home, Ask::Since { token }, &Paths::new()) {
            Ok((Reply::Everything { token }, _)) => Self { token, thoroughness, ..Self::default() },
            Ok((Reply::Only { token }, mut lists)) => {
                let trees = lists.pop().unwrap_or_default();
                let paths = lists.pop().unwrap_or_default();
                let changed =
                    Changed::new(paths.into_iter().collect(), trees.iter().cloned().collect());
                Self { token: Some(token), changed: Some(changed), trees, thoroughness }
            }
            Ok(_) | Err(_) => Self::default(),
        }
    }

    pub(crate) fn as_since(&self) -> Since<'_> {
        match (self.thoroughness, &self.changed) {
            (Thoroughness::AsWatched, Some(changed)) => Since::Only(changed),
            _ => Since::Unknown,
        }
    }

    /// Tells the watcher which folders a scan found, so that it watches them all. Only then may the scan be
    /// remembered under the token.
    pub(crate) fn settle(
        &self,
        home: &Home,
        session: SessionId,
        taken: &Taken<'_>,
    ) -> Option<Token> {
        let token = self.token?;
        let is_all = self.changed.is_none();
        // A folder that took the place of another is not new to the cache, and is to the watcher.
        let folders = match (is_all, self.trees.is_empty()) {
            (true, _) => taken.folders(),
            (false, true) => taken.new_folders(),
            (false, false) => {
                let mut folders = taken.folders();
                folders.retain(|folder| self.is_doubtful(folder));
                folders.extend(taken.new_folders());
                folders
            }
        };
        let is_full = matches!(self.as_since(), Since::Unknown);
        let session = session.to_string();
        match ask(home, Ask::Remembered { token, is_all, is_full, session }, &folders) {
            Ok((Reply::Done { is_good: true }, _)) => Some(token),
            _ => None,
        }
    }

    fn is_doubtful(&self, folder: &[u8]) -> bool {
        let starts = |tree: &[u8]| {
            let rest = folder.strip_prefix(tree);
            tree.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        self.trees.iter().any(|tree| starts(tree))
    }
}

/// Does someone know what changed?
pub(crate) fn is_watched(home: &Home) -> bool {
    ask_status(home).is_some_and(|status| status.trouble.is_none())
}

/// How the watcher of this workspace is doing. `None` when there is none.
pub fn ask_status(home: &Home) -> Option<WatchStatus> {
    match ask(home, Ask::Status, &Paths::new()).ok()? {
        (Reply::Status(status), _) => Some(status),
        _ => None,
    }
}

/// Asks it to stop. `None` when there is none, `Some(false)` when it may not.
pub fn ask_to_stop(home: &Home) -> Option<bool> {
    match ask(home, Ask::Stop, &Paths::new()).ok()? {
        (Reply::Done { is_good }, _) => Some(is_good),
        _ => None,
    }
}

fn ask(home: &Home, message: Ask, list: &Paths) -> io::Result<(Reply, Vec<Paths>)> {
    let stream = wire::connect(&home.watch_socket())?;
    wire::send(&stream, message, &[list])?;
    wire::receive(&stream)
}
