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

use bivouac_capture::mounts::{Mount, MountTable, reports_all};
use bivouac_capture::notify::{Notice, Notifier, WatchId};
use bivouac_snapshot::stat_cache::Token;

use super::wire::Paths;

/// inotify does not report what is written through a name outside the workspace, through a memory map or by
/// asynchronous I/O before the file is closed, or by a loop device. So everything is looked at once in a while.
pub(crate) const RESCAN_EVERY: Duration = Duration::from_secs(300);
/// But that takes at most a hundredth of the time,
const SHARE: u32 = 100;
/// unless it would be put off for longer than so many times.
const RARELY: u32 = 10;
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
    /// The last question: what the clock said, and when that was.
    asked: Option<(u64, Instant)>,
    /// Changes up to here are no longer known, since a cache holds them.
    forgotten_until: u64,
    rescan: Rescan,
    /// `None` where the kernel has no such table.
    mount_table: Option<MountTable>,
    /// What is mounted on the way to the workspace and below it.
    mounts: Vec<Mount>,
    /// Why nothing can be told, if so.
    trouble: Option<String>,
}

/// When everything is looked at again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rescan {
    /// The shortest time between two.
    every: Duration,
    /// When someone was last told to look at everything.
    asked: Option<Instant>,
    /// When someone last did.
    done: Option<Instant>,
    /// How long that took.
    cost: Duration,
}

impl Rescan {
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, asked: None, done: None, cost: Duration::ZERO }
    }

    pub(crate) fn every(&self) -> Duration {
        self.every.max(self.cost * SHARE).min(self.every * RARELY)
    }

    pub(crate) fn done(&self) -> Option<Instant> {
        self.done
    }

    /// When the next one is to be started. Nobody is asked again at once if the last one came to nothing.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.asked.max(self.done).map(|at| at + self.every())
    }

    fn is_stale(&self) -> bool {
        self.done.is_none_or(|at| at.elapsed() > self.every())
    }
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

/// A scan that is remembered, as of a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remembered {
    pub(crate) token: Token,
    pub(crate) told: Told,
    /// It looked at everything.
    pub(crate) is_full: bool,
}

impl Known {
    pub(crate) fn new(root: &Path, own: Paths, rescan_every: Duration) -> Self {
        let notifier = Notifier::new();
        let mount_table = MountTable::open().ok();
        let mounts = mount_table.as_ref().and_then(|it| it.around(root).ok()).unwrap_or_default();
        let trouble = match &notifier {
            Err(error) => Some(format!("nothing can be watched here: {error}")),
            Ok(_) if mounts.is_empty() => Some(NOT_ALL.to_owned()),
            Ok(_) => None,
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
            asked: None,
            forgotten_until: 0,
            rescan: Rescan::new(rescan_every),
            mount_table,
            mounts,
            trouble,
        }
    }

    pub(crate) fn notifier(&self) -> Option<&Notifier> {
        self.notifier.as_ref()
    }

    pub(crate) fn mount_table(&self) -> Option<&MountTable> {
        self.mount_table.as_ref()
    }

    /// Why nothing can be told. A shared disk may be unmounted again.
    pub(crate) fn trouble(&self) -> Option<&str> {
        let is_shared = !reports_all(&self.mounts, &self.root);
        self.trouble.as_deref().or(is_shared.then_some(NOT_ALL))
    }

    pub(crate) fn rescan(&self) -> Rescan {
        self.rescan
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

    /// Something was mounted or unmounted somewhere. If that was on the way to the workspace or below it, other
    /// folders than those under watch may be at the same paths.
    pub(crate) fn look_at_mounts(&mut self) {
        let Some(table) = &self.mount_table else { return };
        let mounts = table.around(&self.root).unwrap_or_default();
        if mounts != self.mounts {
            self.mounts = mounts;
            self.last_change = Some(Instant::now());
            self.begin_anew();
        }
    }

    /// Takes in what happened until now.
    pub(crate) fn take_in(&mut self) {
        let before = Instant::now();
        if self.mount_table.as_ref().is_some_and(MountTable::has_changed) {
            self.look_at_mounts();
        }
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
        self.rescan.asked = self.rescan.asked.or(Some(Instant::now()));
        if self.trouble().is_some() {
            return Answer::Everything { token: None };
        }
        let now = Token { watcher: self.name, tick: self.tick };
        self.tick += 1;
        self.asked = Some((now.tick, Instant::now()));
        let since = match token {
            Some(token)
                if token.watcher == self.name
                    && token.tick >= self.forgotten_until
                    && !self.rescan.is_stale() =>
            {
                token.tick
            }
            _ => {
                self.rescan.asked = Some(Instant::now());
                return Answer::Everything { token: Some(now) };
            }
        };
        // What a cache holds already need not be told again.
        self.forgotten_until = since;
        self.changed.retain(|_, tick| *tick > since);
        self.trees.retain(|_, tick| *tick > since);
        let trees = self.trees.keys().chain(self.unwatched.keys()).cloned().collect();
        Answer::Only { token: now, paths: self.changed.keys().cloned().collect(), trees }
    }

    /// A scan is being remembered. Watches its folders. `false` when its token means nothing any more.
    pub(crate) fn remembered(&mut self, scan: Remembered, folders: Paths) -> bool {
        let Remembered { token, told, is_full } = scan;
        self.take_in();
        if token.watcher != self.name || self.trouble().is_some() {
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
        if let (true, Some((tick, asked))) = (is_full, self.asked)
            && tick == token.tick
        {
            // What changed after it was asked for, and unseen, may be missing from it.
            self.rescan.done = Some(asked);
            self.rescan.cost = asked.elapsed();
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

/// Others can change what is on it, unnoticed.
const NOT_ALL: &str = "this file system does not report all changes";

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
        let mut known = Known::new(root.path(), Paths::new(), RESCAN_EVERY);
        known.begin(paths(&["d", "e"]).into_iter());
        let (token, _, _) = told(&mut known, None);
        let scan = Remembered { token: token.unwrap(), told: Told::All, is_full: true };
        assert!(known.remembered(scan, paths(&["", "d", "e"])));
        (root, known, token.unwrap())
    }

    /// A scan of what changed.
    fn new(token: Option<Token>) -> Remembered {
        Remembered { token: token.unwrap(), told: Told::New, is_full: false }
    }

    #[test]
    fn everything_is_looked_at_once_in_a_while_but_not_all_the_time() {
        let (_root, mut known, token) = watched();
        assert_eq!(known.rescan.every(), RESCAN_EVERY);
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        known.rescan.done = Some(ago(RESCAN_EVERY.as_secs() + 1));
        known.rescan.asked = known.rescan.done;
        assert!(known.rescan.due().unwrap() <= Instant::now());
        let (asked, told_now, _) = told(&mut known, Some(token));
        assert_eq!(told_now, ["everything"]);
        // Whoever was told so may have failed: that is tried again, but not at once.
        assert!(known.rescan.due().unwrap() > Instant::now());
        let scan = Remembered { is_full: true, ..new(asked) };
        known.asked = Some((scan.token.tick, ago(30)));
        assert!(known.remembered(scan, Paths::new()));
        assert_eq!(told(&mut known, asked).1, [""; 0]);
        // It took half a minute, so the next one follows after 50 minutes.
        assert_eq!(known.rescan.every().as_secs() / 60, 50);
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
        assert!(known.remembered(new(asked), Paths::new()));
        let (_, _, trees) = told(&mut known, asked);
        assert_eq!(trees, ["d", "old"]);
    }

    #[test]
    fn a_folder_that_is_new_to_the_watch_is_looked_at_once_more() {
        let (root, mut known, token) = watched();
        fs::create_dir(root.path().join("new")).unwrap();
        let (asked, _, trees) = told(&mut known, Some(token));
        assert_eq!(trees, ["new"]);
        assert!(known.remembered(new(asked), paths(&["new"])));
        let (asked, _, trees) = told(&mut known, asked);
        assert_eq!(trees, ["new"]);
        assert!(known.remembered(new(asked), paths(&["new"])));
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
