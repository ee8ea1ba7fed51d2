//! What a watcher knows: which folders are under watch, and what changed in them since when.
//!
//! Its clock ticks with every question. A cache holds the tick that was told before the scan it comes from, so
//! that the next question is about what happened since. Whenever something may have been missed, the watcher
//! takes another name: all ticks of the old one then mean nothing, and one full scan follows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bivouac_capture::notify::{self, Notice, Notifier, WatchId};
use bivouac_snapshot::stat_cache::Token;

use super::wire::Paths;

/// What is written through memory is only heard of at the end, and a disk mounted over a folder never; so
/// everything is looked at once in a while.
const FULL_SCAN_EVERY: Duration = Duration::from_secs(600);
/// Beyond so many changes a full scan is as good.
const MANY: usize = 50_000;

pub(crate) struct Known {
    root: PathBuf,
    /// `None` where there is none to be had.
    notifier: Option<Notifier>,
    name: [u8; 16],
    tick: u64,
    folders: HashMap<WatchId, Box<[u8]>>,
    changed: HashMap<Box<[u8]>, u64>,
    /// Folders to be looked at with all that is in them.
    trees: HashMap<Box<[u8]>, u64>,
    /// Folders that came since, and that no scan has told us to watch yet.
    unwatched: BTreeMap<Box<[u8]>, u64>,
    /// What is ours below the root, and nobody's concern.
    own: Paths,
    /// When something last changed, as far as it was told by then.
    last_change: Option<Instant>,
    /// Changes up to here are no longer known, since a cache holds them.
    forgotten_until: u64,
    last_full: Option<Instant>,
    /// Why nothing can be told, if so.
    trouble: Option<String>,
}

/// What changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Everything { token: Option<Token> },
    Only { token: Token, paths: Paths, trees: Paths },
}

/// Which folders a scan tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    All,
    New,
}

impl Known {
    pub(crate) fn new(root: &Path, own: Paths) -> Self {
        let notifier = Notifier::new();
        let trouble = match (&notifier, notify::tells_all(root)) {
            (Err(error), _) => Some(format!("nothing can be watched here: {error}")),
            (Ok(_), Ok(true)) => None,
            (Ok(_), _) => Some("this file system does not tell of all that changes".to_owned()),
        };
        Self {
            root: root.to_owned(),
            notifier: notifier.ok(),
            name: *uuid::Uuid::now_v7().as_bytes(),
            tick: 1,
            folders: HashMap::new(),
            changed: HashMap::new(),
            trees: HashMap::new(),
            unwatched: BTreeMap::new(),
            own,
            last_change: None,
            forgotten_until: 0,
            last_full: None,
            trouble,
        }
    }

    pub(crate) fn notifier(&self) -> Option<&Notifier> {
        self.notifier.as_ref()
    }

    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    pub(crate) fn last_change(&self) -> Option<Instant> {
        self.last_change
    }

    pub(crate) fn n_folders(&self) -> usize {
        self.folders.len()
    }

    /// Watches what an earlier scan saw. Nothing is claimed about it before the next one.
    pub(crate) fn begin(&mut self, folders: impl Iterator<Item = Box<[u8]>>) {
        for folder in std::iter::once(Box::default()).chain(folders) {
            self.watch(folder);
        }
    }

    /// Takes in what happened until now.
    pub(crate) fn take_in(&mut self) {
        let before = Instant::now();
        let notices = match self.notifier.as_ref().map(Notifier::drain) {
            None => return,
            Some(Ok(notices)) => notices,
            Some(Err(error)) => {
                self.trouble = Some(format!("watching failed: {error}"));
                return;
            }
        };
        let mut is_news = false;
        for notice in notices {
            is_news |= self.note(&notice);
        }
        if is_news {
            self.last_change = Some(before);
        }
        if self.changed.len() + self.trees.len() > MANY {
            self.begin_anew();
        }
    }

    fn note(&mut self, notice: &Notice) -> bool {
        let path = match notice {
            Notice::Overflow => {
                self.begin_anew();
                return true;
            }
            Notice::Gone { watch } => {
                match self.folders.remove(watch) {
                    // Nobody watches what is above the workspace, so nothing else tells what took its place.
                    Some(folder) if folder.is_empty() => self.begin_anew(),
                    Some(folder) => {
                        self.trees.insert(folder, self.tick);
                    }
                    None => {}
                }
                self.stop_watching(*watch);
                return true;
            }
            Notice::Changed { watch, name }
            | Notice::FolderCame { watch, name }
            | Notice::FolderWent { watch, name } => match self.folders.get(watch) {
                Some(folder) => join(folder, name),
                None => return false,
            },
        };
        if self.own.iter().any(|own| is_within(&path, own)) {
            return false;
        }
        match notice {
            Notice::FolderCame { .. } => {
                self.unwatched.insert(path.clone(), self.tick);
            }
            Notice::FolderWent { .. } => self.forget_below(&path),
            _ => {}
        }
        self.changed.insert(path, self.tick);
        true
    }

    /// Something may have been missed.
    fn begin_anew(&mut self) {
        self.name = *uuid::Uuid::now_v7().as_bytes();
        self.changed.clear();
        self.trees.clear();
        self.unwatched.clear();
    }

    fn forget_below(&mut self, path: &[u8]) {
        self.forget(|own| is_within(own, path));
        self.unwatched.retain(|own, _| !is_within(own, path));
    }

    fn forget(&mut self, is_gone: impl Fn(&Box<[u8]>) -> bool) {
        let gone = self.folders.extract_if(|_, folder| is_gone(folder));
        let gone: Vec<WatchId> = gone.map(|(watch, _)| watch).collect();
        gone.into_iter().for_each(|watch| self.stop_watching(watch));
    }

    fn stop_watching(&self, watch: WatchId) {
        if let Some(notifier) = &self.notifier {
            notifier.forget(watch);
        }
    }

    /// Answers what changed since a moment, with everything that happened until now.
    pub(crate) fn since(&mut self, token: Option<Token>) -> Answer {
        self.take_in();
        if self.trouble.is_some() {
            return Answer::Everything { token: None };
        }
        let now = Token { watcher: self.name, tick: self.tick };
        self.tick += 1;
        let is_stale = self.last_full.is_none_or(|at| at.elapsed() > FULL_SCAN_EVERY);
        let since = match token {
            Some(token)
                if token.watcher == self.name
                    && token.tick >= self.forgotten_until
                    && !is_stale =>
            {
                token.tick
            }
            _ => return Answer::Everything { token: Some(now) },
        };
        // What a cache holds already need not be told again.
        self.forgotten_until = since;
        self.changed.retain(|_, tick| *tick > since);
        self.trees.retain(|_, tick| *tick > since);
        let trees = self.trees.keys().chain(self.unwatched.keys()).cloned().collect();
        Answer::Only { token: now, paths: self.changed.keys().cloned().collect(), trees }
    }

    /// A scan is being remembered, as of a token. Watches its folders. `false` when that token means nothing
    /// any more.
    pub(crate) fn remembered(&mut self, token: Token, told: Told, folders: Paths) -> bool {
        self.take_in();
        if token.watcher != self.name || self.trouble.is_some() {
            return false;
        }
        if told == Told::All {
            let all: HashSet<&Box<[u8]>> = folders.iter().collect();
            self.forget(|own| !own.is_empty() && !all.contains(own));
        }
        for folder in folders {
            if let Some(folder) = self.watch(folder) {
                // What happened in it after it was scanned and before it was watched, nobody saw.
                self.trees.insert(folder, self.tick);
            }
        }
        // The scan has looked at what had come when it asked; what it did not tell of is ignored.
        self.unwatched.retain(|_, tick| *tick > token.tick);
        if told == Told::All {
            self.last_full = Some(Instant::now());
        }
        self.trouble.is_none()
    }

    /// Puts a folder under watch. Answers it if it was not.
    fn watch(&mut self, folder: Box<[u8]>) -> Option<Box<[u8]>> {
        let notifier = self.notifier.as_ref().filter(|_| self.trouble.is_none())?;
        let watch = match notifier.watch(&self.root.join(OsStr::from_bytes(&folder))) {
            Ok(watch) => watch,
            // It went, or is no folder any more: its own folder was told.
            Err(error) if is_gone(&error) => return None,
            Err(error) => {
                self.trouble = Some(cannot_watch(&error));
                return None;
            }
        };
        // The same folder may have been known by another path.
        let is_known = self.folders.get(&watch).is_some_and(|before| *before == folder);
        if is_known {
            return None;
        }
        self.folders.insert(watch, folder.clone());
        Some(folder)
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn cannot_watch(error: &io::Error) -> String {
    match error.kind() {
        // inotify says so when a user watches too much.
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "there are more folders than may be watched (`fs.inotify.max_user_watches`)".to_owned()
        }
        _ => format!("a folder cannot be watched: {error}"),
    }
}

fn join(folder: &[u8], name: &[u8]) -> Box<[u8]> {
    match folder {
        b"" => name.into(),
        folder => [folder, b"/", name].concat().into(),
    }
}

/// Is a path the folder itself, or below it?
fn is_within(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn paths(list: &[&str]) -> Paths {
        list.iter().map(|path| Box::from(path.as_bytes())).collect()
    }

    /// What is told to have changed since a token: names, and whole trees.
    fn told(known: &mut Known, token: Option<Token>) -> (Option<Token>, Vec<String>, Vec<String>) {
        let words = |list: Paths| {
            let mut words: Vec<String> =
                list.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
            words.sort();
            words
        };
        match known.since(token) {
            Answer::Everything { token } => (token, vec!["everything".to_owned()], Vec::new()),
            Answer::Only { token, paths, trees } => (Some(token), words(paths), words(trees)),
        }
    }

    /// A watcher of `d/f` and `e/f` that has told everything once.
    fn watched() -> (tempfile::TempDir, Known, Token) {
        let root = tempfile::tempdir().unwrap();
        for folder in ["d", "e"] {
            fs::create_dir(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join("f"), folder).unwrap();
        }
        let mut known = Known::new(root.path(), Paths::new());
        known.begin(paths(&["d", "e"]).into_iter());
        let (token, _, _) = told(&mut known, None);
        assert!(known.remembered(token.unwrap(), Told::All, paths(&["", "d", "e"])));
        (root, known, token.unwrap())
    }

    #[test]
    fn a_change_is_told_until_a_cache_holds_it() {
        let (root, mut known, token) = watched();
        assert_eq!(told(&mut known, Some(token)).1, [""; 0]);
        fs::write(root.path().join("d/f"), "new").unwrap();
        let (next, changed, _) = told(&mut known, Some(token));
        assert_eq!(changed, ["d/f"]);
        // Asked for the same moment again, the same is told; from the next on, nothing.
        assert_eq!(told(&mut known, Some(token)).1, ["d/f"]);
        assert_eq!(told(&mut known, next).1, [""; 0]);
        // That moment is forgotten now, so nothing is claimed about it.
        assert_eq!(told(&mut known, Some(token)).1, ["everything"]);
    }

    #[test]
    fn a_folder_that_is_replaced_while_it_is_saved_is_looked_at_as_a_whole() {
        let (root, mut known, token) = watched();
        let (asked, _, _) = told(&mut known, Some(token));
        fs::rename(root.path().join("d"), root.path().join("old")).unwrap();
        fs::rename(root.path().join("e"), root.path().join("d")).unwrap();
        assert!(known.remembered(asked.unwrap(), Told::New, Paths::new()));
        let (_, _, trees) = told(&mut known, asked);
        assert_eq!(trees, ["d", "old"]);
    }

    #[test]
    fn a_folder_that_is_new_to_the_watch_is_looked_at_once_more() {
        let (root, mut known, token) = watched();
        fs::create_dir(root.path().join("new")).unwrap();
        let (asked, _, trees) = told(&mut known, Some(token));
        assert_eq!(trees, ["new"]);
        assert!(known.remembered(asked.unwrap(), Told::New, paths(&["new"])));
        let (asked, _, trees) = told(&mut known, asked);
        assert_eq!(trees, ["new"]);
        assert!(known.remembered(asked.unwrap(), Told::New, paths(&["new"])));
        assert_eq!(told(&mut known, asked).2, [""; 0]);
        fs::write(root.path().join("new/f"), "1").unwrap();
        assert_eq!(told(&mut known, asked).1, ["new/f"]);
    }

    #[test]
    fn where_something_may_have_been_missed_everything_is_told() {
        let (root, mut known, token) = watched();
        let elsewhere = root.path().with_extension("moved");
        fs::rename(root.path(), &elsewhere).unwrap();
        assert_eq!(told(&mut known, Some(token)).1, ["everything"]);
        fs::rename(&elsewhere, root.path()).unwrap();
        let another = Token { watcher: [7; 16], ..token };
        assert_eq!(told(&mut known, Some(another)).1, ["everything"]);
    }
}
