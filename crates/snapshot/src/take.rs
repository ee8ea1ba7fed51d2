//! Taking a snapshot: look at the workspace, read what changed, make trees from the bottom up.
//!
//! What follows the scan only sees folders that are the same and folders that are not. Which they are
//! comes from looking, or from a watcher as far as it knows.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use bivouac_core::checkpoint::{Coverage, Gap};
use bivouac_core::id::{CheckpointId, ObjectId};
use bivouac_core::progress::Progress;
use rayon::prelude::*;

use crate::beneath::{Kind, Root, Stat, is_gone, stat_open};
use crate::block::ObjectKind;
use crate::chunks::{self, WHOLE_LIMIT};
use crate::database::read::DatabaseReader;
use crate::database::{self, MAGIC};
use crate::node::{ChangedFolder, FileNode, Folder, LinkTarget, Node, joined};
use crate::path_set::PathSet;
use crate::scope::{FindRepository, Scope, Settings};
use crate::since::Since;
pub use crate::sink::Sink;
use crate::stat_cache::{Base, StatCache, Token, Totals};
use crate::steady;
use crate::tree::{Content, Entry, FileEntry, Tree};
use crate::walk::Walk;
use crate::{Error, Result};

/// What to look at, and by which rules.
pub struct Request<'a, 'c> {
    pub root: &'a Root,
    pub settings: &'a Settings,
    pub find_repository: &'a FindRepository<'a>,
    /// What the last snapshot saw, if its objects are still there.
    pub cache: Option<&'c StatCache>,
    /// What changed since then.
    pub since: Since<'a>,
    /// Paths to capture whatever the rules say.
    pub forced: &'a PathSet,
    /// The present, by the clock that stamps files.
    pub now_ns: i64,
}

/// Which folders of a snapshot are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    All,
    /// Those that were not as the cache has them. This costs nothing where nothing changed.
    Changed,
}

/// A snapshot that was taken.
pub struct Taken<'c> {
    pub tree: ObjectId,
    pub coverage: Coverage,
    root: Folder<'c>,
}

impl Taken<'_> {
    /// Remembers what was seen, once a checkpoint holds it; and what a watcher's clock said before.
    pub fn remember(
        &self,
        path: &Path,
        checkpoint: CheckpointId,
        token: Option<Token>,
    ) -> Result<()> {
        let base = Base { checkpoint, token };
        match &self.root {
            Folder::Same(_) => StatCache::rebase(path, base),
            changed @ Folder::Changed(_) => StatCache::save(path, base, changed),
        }
    }

    /// The paths of all folders in it; the empty one is the workspace.
    pub fn folders(&self) -> Vec<Box<[u8]>> {
        let mut folders = Vec::new();
        self.root.each(&mut |path, folder| match folder {
            Folder::Same(cached) => cached.collect_folders(path, &mut folders),
            Folder::Changed(_) => folders.push(path.into()),
        });
        folders
    }

    /// The paths of files and links whose names are wanted.
    pub fn files_named(&self, among: Among, is_wanted: &dyn Fn(&[u8]) -> bool) -> Vec<Box<[u8]>> {
        let mut files = Vec::new();
        self.root.each(&mut |path, folder| match folder {
            Folder::Same(cached) if among == Among::All => {
                cached.collect_files(path, is_wanted, &mut files);
            }
            Folder::Same(_) => {}
            Folder::Changed(changed) => {
                for (name, node) in &changed.children {
                    if matches!(node, Node::File(_) | Node::Link(_)) && is_wanted(name) {
                        files.push(joined(path, name).into());
                    }
                }
            }
        });
        files
    }

    /// Those the cache did not hold as folders. What happens in them until they are watched nobody sees, so
    /// the next scan has to be told that nothing is known of them.
    pub fn new_folders(&self) -> Vec<Box<[u8]>> {
        let mut folders = Vec::new();
        self.root.each(&mut |path, folder| match folder {
            Folder::Changed(changed) if changed.previous_tree.is_none() => {
                folders.push(path.into());
            }
            Folder::Changed(_) | Folder::Same(_) => {}
        });
        folders
    }
}

/// Takes a snapshot of the workspace as it is.
pub fn take<'c>(
    request: &Request<'_, 'c>,
    sink: &mut Sink<'_>,
    progress: &dyn Progress,
) -> Result<Taken<'c>> {
    let scope = Scope::new(request.root, request.settings, request.find_repository, request.forced);
    let known = request.cache.and_then(StatCache::root);
    // What is forced now may lie anywhere, and was not captured when the cache was written.
    let since = if request.forced.is_empty() { request.since } else { Since::Unknown };
    let walk = Walk::new(scope, request.now_ns, known);
    let read_root = |source| Error::Read { path: ".".into(), source };
    let mut root = walk.run(since).map_err(read_root)?;
    walk.scope.check_tracked()?;
    let max_file_size = request.settings.max_file_size;
    let databases = DatabaseReader {
        root: request.root,
        max_file_size,
        now_ns: request.now_ns,
        began: Instant::now(),
    };
    for main in database::scan::find(&root) {
        database::scan::capture(&mut root, &main, &databases, sink)?;
    }
    let reader = FileReader { root: request.root, max_file_size, now_ns: request.now_ns, progress };
    for main in reader.read_all(&mut root, sink)? {
        database::scan::capture(&mut root, &main, &databases, sink)?;
    }
    let root = make_tree(root, sink)?;
    let (tree, totals) = root.made();
    Ok(Taken { tree, coverage: totals.into(), root })
}

struct FileReader<'a> {
    root: &'a Root,
    max_file_size: u64,
    /// When the scan began, by the file system's clock.
    now_ns: i64,
    progress: &'a dyn Progress,
}

/// A file that has to be read, and where the answer goes.
struct Unread<'n, 'c> {
    path: Vec<u8>,
    node: &'n mut Node<'c>,
    size: u64,
}

/// Files are read in batches of about this size, so that memory stays bounded.
const BATCH_BYTES: u64 = 8 << 20;
const BATCH_FILES: usize = 512;
/// A file that changes while it is read is read again so many times, a small one more often.
const ATTEMPTS: usize = 3;
const SMALL_ATTEMPTS: usize = 8;

impl FileReader<'_> {
    /// Answers the paths of databases that are being written, which take more care.
    fn read_all(&self, root: &mut Folder<'_>, sink: &mut Sink<'_>) -> Result<Vec<Vec<u8>>> {
        let mut databases = Vec::new();
        let mut unread = match root {
            Folder::Changed(folder) => collect_unread(folder),
            Folder::Same(_) => Vec::new(),
        };
        self.progress.begin("Reading files", unread.len() as u64);
        let mut rest = unread.as_mut_slice();
        while !rest.is_empty() {
            self.check_wanted()?;
            let (batch, behind) = rest.split_at_mut(batch_len(rest));
            self.read_batch(batch, sink, &mut databases)?;
            self.progress.add(batch.len() as u64);
            rest = behind;
        }
        self.progress.end();
        self.check_wanted()?;
        Ok(databases)
    }

    /// Nothing refers to what was stored so far, so this is a good place to stop.
    fn check_wanted(&self) -> Result<()> {
        if self.progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    fn read_batch(
        &self,
        batch: &mut [Unread<'_, '_>],
        sink: &mut Sink<'_>,
        databases: &mut Vec<Vec<u8>>,
    ) -> Result<()> {
        let small: Vec<Outcome> =
            batch.par_iter().map(|file| self.read_small(&file.path)).collect();
        for (file, outcome) in batch.iter_mut().zip(small) {
            let outcome = match outcome {
                Outcome::Large => self.read_large(&file.path, sink)?,
                Outcome::Bytes { id, bytes, stat } => {
                    sink.put(ObjectKind::Blob, id, &bytes)?;
                    Outcome::Stored { content: Content::Whole(id), stat }
                }
                other => other,
            };
            if matches!(outcome, Outcome::Database) {
                databases.push(file.path.clone());
            }
            file.settle(&outcome);
        }
        Ok(())
    }

    fn read_small(&self, path: &[u8]) -> Outcome {
        for _ in 0..SMALL_ATTEMPTS {
            let (mut file, before) = match self.open(path) {
                Ok(opened) => opened,
                Err(outcome) => return outcome,
            };
            if before.size > WHOLE_LIMIT {
                return Outcome::Large;
            }
            let mut bytes = Vec::with_capacity(before.size as usize + 1);
            if file.by_ref().take(WHOLE_LIMIT + 1).read_to_end(&mut bytes).is_err() {
                return Outcome::Gap(Gap::Unreadable);
            }
            let is_whole = steady::is_sure(&file, &before, &bytes, self.now_ns)
                && is_whole(&file, &before, bytes.len() as u64);
            if bytes.starts_with(MAGIC) && !(is_whole && before.is_settled(self.now_ns)) {
                return Outcome::Database;
            }
            if is_whole {
                return Outcome::Bytes { id: ObjectId::of(&bytes), bytes, stat: before };
            }
        }
        Outcome::Gap(Gap::ChangedWhileRead)
    }

    fn read_large(&self, path: &[u8], sink: &mut Sink<'_>) -> Result<Outcome> {
        for _ in 0..ATTEMPTS {
            let (mut file, before) = match self.open(path) {
                Ok(opened) => opened,
                Err(outcome) => return Ok(outcome),
            };
            let is_database = database::is_main(&file);
            if is_database && !before.is_settled(self.now_ns) {
                return Ok(Outcome::Database);
            }
            let cut = chunks::cut(file.by_ref().take(before.size + 1), |id, bytes| {
                self.check_wanted()?;
                sink.put(ObjectKind::Blob, id, bytes)
            })?;
            let Ok(list) = cut else {
                return Ok(Outcome::Gap(Gap::Unreadable));
            };
            let is_steady = steady::is_sure_of_chunks(&file, &before, &list, self.now_ns);
            if is_steady && is_whole(&file, &before, list.size) {
                let bytes = list.encode();
                let id = ObjectId::of(&bytes);
                sink.put(ObjectKind::Chunks, id, &bytes)?;
                return Ok(Outcome::Stored { content: Content::Chunked(id), stat: before });
            }
            if is_database {
                return Ok(Outcome::Database);
            }
        }
        Ok(Outcome::Gap(Gap::ChangedWhileRead))
    }

    fn open(&self, path: &[u8]) -> Result<(File, Stat), Outcome> {
        let file = self.root.open_file(path).map_err(|error| match is_gone(&error) {
            true => Outcome::Gone,
            false => Outcome::Gap(Gap::Unreadable),
        })?;
        match stat_open(&file) {
            Ok(stat) if stat.kind != Kind::File => Err(Outcome::Gap(Gap::ChangedWhileRead)),
            Ok(stat) if stat.size > self.max_file_size => Err(Outcome::Gap(Gap::TooLarge)),
            Ok(stat) => Ok((file, stat)),
            Err(_) => Err(Outcome::Gap(Gap::Unreadable)),
        }
    }
}

/// Did the file stay the same from before the first byte until after the last?
fn is_whole(file: &File, before: &Stat, n_read: u64) -> bool {
    n_read == before.size && stat_open(file).is_ok_and(|after| after.is_same(before))
}

/// How reading a file ended.
enum Outcome {
    Bytes {
        id: ObjectId,
        bytes: Vec<u8>,
        stat: Stat,
    },
    Stored {
        content: Content,
        stat: Stat,
    },
    Large,
    /// It is a database that is being written.
    Database,
    Gap(Gap),
    Gone,
}

impl Unread<'_, '_> {
    fn settle(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Stored { content, stat } => {
                let Node::File(file) = self.node else { return };
                // Trust was judged by the stat of the walk; a newer one has to earn it anew.
                file.is_trusted &= stat.is_same(&file.stat);
                file.stat = *stat;
                file.content = Some(*content);
            }
            Outcome::Gap(why) => *self.node = Node::gap(*why),
            // Until it was read with its siblings.
            Outcome::Database => *self.node = Node::gap(Gap::ChangedWhileRead),
            Outcome::Gone => {} // stays a file without content, and is dropped when the tree is made
            Outcome::Bytes { .. } | Outcome::Large => {
                unreachable!("both are stored before they are settled")
            }
        }
    }
}

/// All files of a folder, and of those below it, that have to be read.
fn collect_unread<'n, 'c>(top: &'n mut ChangedFolder<'c>) -> Vec<Unread<'n, 'c>> {
    let mut unread = Vec::new();
    let mut waiting = vec![(Vec::new(), top)];
    while let Some((path, folder)) = waiting.pop() {
        let n_waiting = waiting.len();
        for (name, node) in &mut folder.children {
            match node {
                Node::File(FileNode { content: None, stat, .. }) => {
                    let size = stat.size;
                    unread.push(Unread { path: joined(&path, name), node, size });
                }
                Node::Folder(Folder::Changed(folder)) => {
                    waiting.push((joined(&path, name), folder));
                }
                _ => {}
            }
        }
        // The first one is taken next: neighbours are read, and stored, together.
        waiting[n_waiting..].reverse();
    }
    unread
}

fn batch_len(unread: &[Unread<'_, '_>]) -> usize {
    let mut total = 0;
    let fitting = unread.iter().take(BATCH_FILES).take_while(|file| {
        let fits = total < BATCH_BYTES;
        total += file.size;
        fits
    });
    fitting.count().max(1)
}

/// A folder whose tree is being made, after those of all folders in it.
struct Making<'c> {
    folder: Box<ChangedFolder<'c>>,
    entries: Vec<(Box<[u8]>, Entry)>,
    totals: Totals,
}

impl<'c> Making<'c> {
    fn new(mut folder: Box<ChangedFolder<'c>>) -> Self {
        let n_before = folder.children.len();
        folder
            .children
            .retain(|(_, node)| !matches!(node, Node::File(FileNode { content: None, .. })));
        folder.about.is_trusted &= folder.children.len() == n_before;
        let entries = Vec::with_capacity(folder.children.len());
        Self { folder, entries, totals: Totals::default() }
    }

    /// Makes entries up to the next folder whose own tree has to be made first, which is taken out.
    fn run(&mut self, sink: &mut Sink<'_>) -> Result<Option<Box<ChangedFolder<'c>>>> {
        while let Some((name, node)) = self.folder.children.get_mut(self.entries.len()) {
            let is_waited_for =
                matches!(node, Node::Folder(Folder::Changed(it)) if it.tree.is_none());
            if is_waited_for
                && let Node::Folder(Folder::Changed(below)) =
                    std::mem::replace(node, Node::gap(Gap::Unreadable))
            {
                return Ok(Some(below));
            }
            self.entries.push((name.clone(), make_entry(node, sink, &mut self.totals)?));
        }
        Ok(None)
    }

    /// Stores the tree.
    fn finish(self, sink: &mut Sink<'_>) -> Result<Box<ChangedFolder<'c>>> {
        let Self { mut folder, entries, totals } = self;
        let bytes = Tree::from_sorted(entries).encode();
        let id = ObjectId::of(&bytes);
        if folder.previous_tree != Some(id) {
            sink.put(ObjectKind::Tree, id, &bytes)?;
        }
        folder.complete(id, totals);
        Ok(folder)
    }
}

/// Makes the trees of a folder and all below it, and counts what they hold. Frames on the heap take the place
/// of recursion, as the folder may be deep.
fn make_tree<'c>(root: Folder<'c>, sink: &mut Sink<'_>) -> Result<Folder<'c>> {
    let Folder::Changed(root) = root else {
        return Ok(root);
    };
    let mut above: Vec<Making<'c>> = Vec::new();
    let mut making = Making::new(root);
    loop {
        if let Some(below) = making.run(sink)? {
            above.push(std::mem::replace(&mut making, Making::new(below)));
            continue;
        }
        let done = Folder::Changed(making.finish(sink)?);
        let Some(mut parent) = above.pop() else {
            return Ok(done);
        };
        // Back to where it was taken from.
        parent.folder.children[parent.entries.len()].1 = Node::Folder(done);
        making = parent;
    }
}

fn make_entry(node: &mut Node<'_>, sink: &mut Sink<'_>, totals: &mut Totals) -> Result<Entry> {
    match node {
        Node::File(file) => {
            totals.n_files += 1;
            totals.size_bytes += file.stat.size;
            let content = file.content.expect("files without content were dropped before");
            Ok(Entry::File(FileEntry { mode: file.stat.mode, size: file.stat.size, content }))
        }
        Node::Link(link) => {
            totals.n_files += 1;
            match &link.target {
                LinkTarget::Known(id) => Ok(Entry::Link(*id)),
                LinkTarget::Read(target) => {
                    let id = ObjectId::of(target);
                    sink.put(ObjectKind::Blob, id, target)?;
                    Ok(Entry::Link(id))
                }
            }
        }
        Node::Folder(folder) => {
            let (tree, below) = folder.made();
            totals.add(&below);
            Ok(Entry::Folder { mode: folder.mode(), tree })
        }
        Node::Gap { why, is_folder } => {
            totals.add_gap(*why);
            Ok(Entry::Gap { why: *why, is_folder: *is_folder })
        }
    }
}

impl Folder<'_> {
    fn mode(&self) -> u16 {
        match self {
            Self::Same(cached) => cached.about.stat.mode,
            Self::Changed(changed) => changed.about.stat.mode,
        }
    }
}
