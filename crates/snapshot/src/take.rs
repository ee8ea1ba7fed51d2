//! Taking a snapshot: look at the workspace, read what changed, make trees from the bottom up.
//!
//! What follows the scan only sees folders that are the same and folders that are not. Which they are
//! comes from looking, or from a watcher as far as it knows.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use bivouac_core::checkpoint::{Coverage, Gap};
use bivouac_core::id::{CheckpointId, ObjectId};
use bivouac_core::progress::Progress;
use rayon::prelude::*;

use crate::beneath::{Kind, Root, Stat, is_gone, stat_open};
use crate::block::ObjectKind;
use crate::chunks::{self, WHOLE_LIMIT};
use crate::node::{ChangedFolder, FileNode, Folder, LinkTarget, Node, with_name};
use crate::objects::Objects;
use crate::pack::PackWriter;
use crate::path_set::PathSet;
use crate::scope::{FindRepository, Scope, Settings};
use crate::since::Since;
use crate::stat_cache::{Base, StatCache, Token, Totals};
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

/// Where new objects go.
pub struct Sink<'a> {
    keep: Option<Keep<'a>>,
    /// Trees that are in no index yet, so that they can be compared all the same.
    pub fresh: HashMap<ObjectId, Vec<u8>>,
}

struct Keep<'a> {
    objects: &'a Objects<'a>,
    pack: &'a mut PackWriter,
}

impl<'a> Sink<'a> {
    /// Into a pack, unless the store has them.
    pub fn keep(objects: &'a Objects<'a>, pack: &'a mut PackWriter) -> Self {
        Self { keep: Some(Keep { objects, pack }), fresh: HashMap::new() }
    }

    /// Nowhere: only to see what a snapshot would be.
    pub fn look() -> Self {
        Self { keep: None, fresh: HashMap::new() }
    }

    /// Stores bytes that come from elsewhere as a scan would have stored them. `None` if they are not as
    /// many as was said.
    pub fn put_stream(&mut self, from: impl Read, size: u64) -> Result<Option<Content>> {
        let unread = |source| Error::Read { path: "stream".into(), source };
        if size <= WHOLE_LIMIT {
            let mut bytes = Vec::with_capacity(size as usize);
            from.take(size + 1).read_to_end(&mut bytes).map_err(unread)?;
            let id = ObjectId::of(&bytes);
            self.put(ObjectKind::Blob, id, &bytes)?;
            return Ok((bytes.len() as u64 == size).then_some(Content::Whole(id)));
        }
        let cut =
            chunks::cut(from.take(size + 1), |id, bytes| self.put(ObjectKind::Blob, id, bytes))?;
        let list = cut.map_err(unread)?;
        let bytes = list.encode();
        let id = ObjectId::of(&bytes);
        self.put(ObjectKind::Chunks, id, &bytes)?;
        Ok((list.size == size).then_some(Content::Chunked(id)))
    }

    pub fn put(&mut self, kind: ObjectKind, id: ObjectId, bytes: &[u8]) -> Result<()> {
        if kind == ObjectKind::Tree {
            self.fresh.insert(id, bytes.to_vec());
        }
        match &mut self.keep {
            Some(keep) if !keep.pack.contains(&id) && !keep.objects.contains(&id)? => {
                keep.pack.put(kind, id, bytes)
            }
            Some(_) | None => Ok(()),
        }
    }
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
        self.root.each(&mut Vec::new(), &mut |path, folder| match folder {
            Folder::Same(cached) => cached.collect_folders(path, &mut folders),
            Folder::Changed(_) => folders.push(path.as_slice().into()),
        });
        folders
    }

    /// Those the cache did not hold as folders. What happens in them until they are watched nobody sees, so
    /// the next scan has to be told that nothing is known of them.
    pub fn new_folders(&self) -> Vec<Box<[u8]>> {
        let mut folders = Vec::new();
        self.root.each(&mut Vec::new(), &mut |path, folder| match folder {
            Folder::Changed(changed) if changed.previous_tree.is_none() => {
                folders.push(path.as_slice().into());
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
    let reader = FileReader { root: request.root, max_file_size, progress };
    reader.read_all(&mut root, sink)?;
    let (tree, totals) = make_tree(&mut root, sink)?;
    Ok(Taken { tree, coverage: totals.into(), root })
}

struct FileReader<'a> {
    root: &'a Root,
    max_file_size: u64,
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
/// A file that changes while it is read is read again so many times.
const ATTEMPTS: usize = 3;

impl FileReader<'_> {
    fn read_all(&self, root: &mut Folder<'_>, sink: &mut Sink<'_>) -> Result<()> {
        let mut unread = Vec::new();
        if let Folder::Changed(folder) = root {
            collect_unread(folder, &mut Vec::new(), &mut unread);
        }
        self.progress.begin("Reading files", unread.len() as u64);
        let mut rest = unread.as_mut_slice();
        while !rest.is_empty() {
            self.check_wanted()?;
            let (batch, behind) = rest.split_at_mut(batch_len(rest));
            self.read_batch(batch, sink)?;
            self.progress.add(batch.len() as u64);
            rest = behind;
        }
        self.progress.end();
        self.check_wanted()
    }

    /// Nothing refers to what was stored so far, so this is a good place to stop.
    fn check_wanted(&self) -> Result<()> {
        if self.progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    fn read_batch(&self, batch: &mut [Unread<'_, '_>], sink: &mut Sink<'_>) -> Result<()> {
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
            file.settle(&outcome);
        }
        Ok(())
    }

    fn read_small(&self, path: &[u8]) -> Outcome {
        for _ in 0..ATTEMPTS {
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
            if is_whole(&file, &before, bytes.len() as u64) {
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
            let cut = chunks::cut(file.by_ref().take(before.size + 1), |id, bytes| {
                self.check_wanted()?;
                sink.put(ObjectKind::Blob, id, bytes)
            })?;
            let Ok(list) = cut else {
                return Ok(Outcome::Gap(Gap::Unreadable));
            };
            if is_whole(&file, &before, list.size) {
                let bytes = list.encode();
                let id = ObjectId::of(&bytes);
                sink.put(ObjectKind::Chunks, id, &bytes)?;
                return Ok(Outcome::Stored { content: Content::Chunked(id), stat: before });
            }
        }
        Ok(Outcome::Gap(Gap::ChangedWhileRead))
    }

    fn open(&self, path: &[u8]) -> Result<(std::fs::File, Stat), Outcome> {
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
fn is_whole(file: &std::fs::File, before: &Stat, n_read: u64) -> bool {
    n_read == before.size && stat_open(file).is_ok_and(|after| after.is_same(before))
}

/// How reading a file ended.
enum Outcome {
    Bytes { id: ObjectId, bytes: Vec<u8>, stat: Stat },
    Stored { content: Content, stat: Stat },
    Large,
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
            Outcome::Gap(why) => *self.node = Node::Gap { why: *why, is_folder: false },
            Outcome::Gone => {} // stays a file without content, and is dropped when the tree is made
            Outcome::Bytes { .. } | Outcome::Large => {
                unreachable!("both are stored before they are settled")
            }
        }
    }
}

fn collect_unread<'n, 'c>(
    folder: &'n mut ChangedFolder<'c>,
    path: &mut Vec<u8>,
    unread: &mut Vec<Unread<'n, 'c>>,
) {
    for (name, node) in &mut folder.children {
        with_name(path, name, |path| match node {
            Node::File(FileNode { content: None, stat, .. }) => {
                let size = stat.size;
                unread.push(Unread { path: path.clone(), node, size });
            }
            Node::Folder(Folder::Changed(folder)) => collect_unread(folder, path, unread),
            _ => {}
        });
    }
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

/// Makes the trees of a folder and all below it, and counts what they hold.
fn make_tree(folder: &mut Folder<'_>, sink: &mut Sink<'_>) -> Result<(ObjectId, Totals)> {
    let changed = match folder {
        Folder::Same(cached) => return Ok((cached.tree, cached.totals)),
        Folder::Changed(changed) => changed,
    };
    let n_before = changed.children.len();
    changed
        .children
        .retain(|(_, node)| !matches!(node, Node::File(FileNode { content: None, .. })));
    changed.about.is_trusted &= changed.children.len() == n_before;
    let mut totals = Totals::default();
    let mut entries = Vec::with_capacity(changed.children.len());
    for (name, node) in &mut changed.children {
        entries.push((name.clone(), make_entry(node, sink, &mut totals)?));
    }
    let bytes = Tree::from_sorted(entries).encode();
    let id = ObjectId::of(&bytes);
    if changed.previous_tree != Some(id) {
        sink.put(ObjectKind::Tree, id, &bytes)?;
    }
    changed.complete(id, totals);
    Ok((id, totals))
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
            let (tree, below) = make_tree(folder, sink)?;
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
