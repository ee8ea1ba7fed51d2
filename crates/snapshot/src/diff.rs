//! What differs between two trees. Folders with the same tree are not even read.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bivouac_core::id::ObjectId;
use bivouac_core::path::RelPath;

use crate::objects::Objects;
use crate::tree::{Content, Entry, Tree};
use crate::{Error, Result};

/// Trees of the store, and those of a snapshot that was only looked at.
pub struct Trees<'a> {
    objects: &'a Objects<'a>,
    fresh: &'a HashMap<ObjectId, Vec<u8>>,
    /// The trees that paths were last looked for in: neighbours are asked for one after the other.
    decoded: RefCell<HashMap<ObjectId, Rc<Tree>>>,
}

/// So many decoded trees are kept.
const MAX_DECODED: usize = 256;

impl<'a> Trees<'a> {
    pub fn with_fresh(objects: &'a Objects<'a>, fresh: &'a HashMap<ObjectId, Vec<u8>>) -> Self {
        Self { objects, fresh, decoded: RefCell::default() }
    }

    pub fn get(&self, id: &ObjectId) -> Result<Tree> {
        match self.fresh.get(id) {
            Some(bytes) => Tree::decode(id, bytes),
            None => self.objects.tree(id),
        }
    }

    /// What stands at a path.
    pub fn find(&self, root: &ObjectId, path: &RelPath) -> Result<Option<Entry>> {
        let mut at = *root;
        let mut names = path.as_bytes().split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            match self.decoded(&at)?.get(name) {
                Some(entry) if names.peek().is_none() => return Ok(Some(*entry)),
                Some(Entry::Folder { tree, .. }) => at = *tree,
                // What lies in a folder that was left out was left out with it.
                Some(gap @ Entry::Gap { .. }) => return Ok(Some(*gap)),
                Some(Entry::File(_) | Entry::Link(_)) | None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Does a file begin with these bytes? `None` if it is empty, or not in the store.
    pub(crate) fn begins_with(&self, entry: &Entry, start: &[u8]) -> Option<bool> {
        let first = match entry.content()? {
            Content::Whole(id) => id,
            Content::Chunked(list) => self.objects.chunk_list(&list).ok()?.chunks.first()?.0,
        };
        let bytes = self.objects.get(&first).ok()?;
        (!bytes.is_empty()).then(|| bytes.starts_with(start))
    }

    fn decoded(&self, id: &ObjectId) -> Result<Rc<Tree>> {
        if let Some(tree) = self.decoded.borrow().get(id) {
            return Ok(Rc::clone(tree));
        }
        let tree = Rc::new(self.get(id)?);
        let mut decoded = self.decoded.borrow_mut();
        if decoded.len() >= MAX_DECODED {
            decoded.clear();
        }
        decoded.insert(*id, Rc::clone(&tree));
        Ok(tree)
    }
}

/// One path that is not the same in both trees. A folder counts as the same when only what is in it differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: RelPath,
    pub before: Option<Entry>,
    pub after: Option<Entry>,
}

impl Change {
    /// Is it more than something uncaptured coming or going?
    pub fn is_covered(&self) -> bool {
        let is_captured = |entry: &Option<Entry>| matches!(entry, Some(entry) if !entry.is_gap());
        is_captured(&self.before) || is_captured(&self.after)
    }
}

/// Paths to look at; none means all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    paths: Vec<RelPath>,
}

impl Filter {
    pub fn new(paths: Vec<RelPath>) -> Self {
        Self { paths }
    }

    pub fn paths(&self) -> &[RelPath] {
        &self.paths
    }

    pub fn selects(&self, path: &RelPath) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|own| path.is_within(own))
    }

    /// Is a selected path somewhere below this one?
    pub fn leads_through(&self, path: &RelPath) -> bool {
        self.paths.iter().any(|own| own.is_within(path))
    }
}

/// All changes in order of their paths, a folder before what is in it.
pub fn diff(
    trees: &Trees<'_>,
    from: &ObjectId,
    to: &ObjectId,
    filter: &Filter,
) -> Result<Vec<Change>> {
    let mut differ = Differ { trees, filter, locked: Locked::Same, changes: Vec::new() };
    differ.run(from, to)?;
    Ok(differ.changes)
}

/// The same, for someone who is going to write: a folder that does not let its owner write is told
/// when something in it changes, as it has to be opened for a while and closed again.
pub(crate) fn diff_to_write(
    trees: &Trees<'_>,
    from: &ObjectId,
    to: &ObjectId,
    filter: &Filter,
) -> Result<Vec<Change>> {
    let mut differ = Differ { trees, filter, locked: Locked::Told, changes: Vec::new() };
    differ.run(from, to)?;
    Ok(differ.changes)
}

/// What a folder without write permission counts as when only its inside differs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Locked {
    Same,
    Told,
}

struct Differ<'d> {
    trees: &'d Trees<'d>,
    filter: &'d Filter,
    locked: Locked,
    changes: Vec<Change>,
}

/// A folder that is being compared: its two trees, and how far they were read.
struct Frame {
    path: Option<RelPath>,
    from: Tree,
    to: Tree,
    n_from: usize,
    n_to: usize,
}

impl Frame {
    /// The next name in either tree, with what stands there in each.
    fn next(&mut self) -> Option<(&[u8], Option<Entry>, Option<Entry>)> {
        let (from, to) = (self.from.at(self.n_from), self.to.at(self.n_to));
        let name = match (from, to) {
            (Some((one, _)), Some((other, _))) => one.min(other),
            (Some((one, _)), None) => one,
            (None, Some((other, _))) => other,
            (None, None) => return None,
        };
        let of_name = |side: Option<(&[u8], &Entry)>| {
            side.filter(|(own, _)| *own == name).map(|(_, entry)| *entry)
        };
        let (before, after) = (of_name(from), of_name(to));
        self.n_from += usize::from(before.is_some());
        self.n_to += usize::from(after.is_some());
        Some((name, before, after))
    }
}

impl Differ<'_> {
    /// Compares two trees. Frames on the heap take the place of recursion: nobody knows how deep a stored tree is.
    fn run(&mut self, from: &ObjectId, to: &ObjectId) -> Result<()> {
        let mut frames: Vec<Frame> = self.open(None, Some(*from), Some(*to))?.into_iter().collect();
        while let Some(frame) = frames.last_mut() {
            let folder = frame.path.clone();
            let Some((name, before, after)) = frame.next() else {
                frames.pop();
                continue;
            };
            let path = match folder {
                Some(folder) => folder.join(name),
                None => RelPath::new(name),
            };
            let path =
                path.map_err(|_| Error::Malformed { id: ObjectId::of(name), what: "name" })?;
            frames.extend(self.entry(path, before, after)?);
        }
        Ok(())
    }

    /// The folder at a path, unless it is the same in both trees.
    fn open(
        &self,
        path: Option<RelPath>,
        from: Option<ObjectId>,
        to: Option<ObjectId>,
    ) -> Result<Option<Frame>> {
        if from == to {
            return Ok(None);
        }
        let read = |id: Option<ObjectId>| id.map_or(Ok(Tree::default()), |id| self.trees.get(&id));
        Ok(Some(Frame { path, from: read(from)?, to: read(to)?, n_from: 0, n_to: 0 }))
    }

    /// Notes a change, and answers the folder that has to be looked into.
    fn entry(
        &mut self,
        path: RelPath,
        before: Option<Entry>,
        after: Option<Entry>,
    ) -> Result<Option<Frame>> {
        if before == after || !(self.filter.selects(&path) || self.filter.leads_through(&path)) {
            return Ok(None);
        }
        let tree_of = |entry: &Option<Entry>| match entry {
            Some(Entry::Folder { tree, .. }) => Some(*tree),
            _ => None,
        };
        let (tree_before, tree_after) = (tree_of(&before), tree_of(&after));
        let is_told = match (&before, &after) {
            (Some(Entry::Folder { mode: one, .. }), Some(Entry::Folder { mode: other, .. })) => {
                one != other || (self.locked == Locked::Told && is_locked(*one))
            }
            _ => true,
        };
        if is_told {
            self.changes.push(Change { path: path.clone(), before, after });
        }
        // What was captured in a folder that is left out now is not gone. Nobody knows, so nothing is said about it.
        let is_left_out = after.is_some_and(|it| it.is_gap()) && self.locked == Locked::Same;
        match is_left_out {
            true => Ok(None),
            false => self.open(Some(path), tree_before, tree_after),
        }
    }
}

/// Does the mode keep even the owner from changing what is in the folder?
pub(crate) const fn is_locked(mode: u16) -> bool {
    mode & 0o300 != 0o300
}

impl Entry {
    pub const fn is_gap(&self) -> bool {
        matches!(self, Self::Gap { .. })
    }

    pub const fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }

    /// Are both the same thing, for a folder whatever is in it?
    pub fn is_same_thing(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Folder { mode: one, .. }, Self::Folder { mode: other, .. }) => one == other,
            _ => self == other,
        }
    }
}
