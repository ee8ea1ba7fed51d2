//! The files of a bundle, as a tree: each name once, none that leads elsewhere, nothing below what is no folder.

use std::collections::BTreeMap;
use std::io::Read;

use bivouac_core::checkpoint::{Coverage, Gap};
use bivouac_core::id::ObjectId;
use bivouac_core::path::RelPath;
use bivouac_core::text::printable_bytes;
use bivouac_snapshot::block::ObjectKind;
use bivouac_snapshot::take::Sink;
use bivouac_snapshot::tree::{Content, Entry, FileEntry, Tree};

use super::inflate::{Found, What, each_entry};
use super::{BadBundle, LeftOut, WORKSPACE};
use crate::Result;

/// What a folder gets that nobody described.
const USUAL_MODE: u16 = 0o755;
const MAX_DEPTH: usize = 100;
/// What links lead to has no more bytes on any system.
const MAX_TARGET: usize = 4096;

#[derive(Default)]
pub(super) struct Folder {
    /// `None` as long as only what is in it was told.
    mode: Option<u16>,
    children: BTreeMap<Box<[u8]>, Node>,
}

enum Node {
    Entry(Entry),
    Folder(Folder),
}

/// Where the contents of files and links go.
pub(super) trait Keep {
    /// `None` if there are not as many bytes as was said.
    fn keep(&mut self, bytes: &mut dyn Read, size: u64) -> Result<Option<Content>>;
}

/// Nowhere: only to see whether all is well.
pub(super) struct Nowhere;

impl Keep for Nowhere {
    fn keep(&mut self, bytes: &mut dyn Read, size: u64) -> Result<Option<Content>> {
        let n_read = std::io::copy(bytes, &mut std::io::sink())
            .map_err(|error| BadBundle::malformed(WORKSPACE, &error))?;
        Ok((n_read == size).then_some(Content::Whole(ObjectId::of(b""))))
    }
}

impl Keep for Sink<'_> {
    fn keep(&mut self, bytes: &mut dyn Read, size: u64) -> Result<Option<Content>> {
        Ok(self.put_stream(bytes, size)?)
    }
}

/// Reads the archive of the workspace, and what is known to be missing from it.
pub(super) fn read(packed: impl Read, left_out: &[LeftOut], to: &mut dyn Keep) -> Result<Folder> {
    let mut top = Folder::default();
    each_entry(WORKSPACE, packed, &mut |found| {
        let path = checked_path(&found)?;
        let cut_off = || BadBundle::malformed(WORKSPACE, &format!("`{path}` is cut off"));
        let node = match found.what {
            What::Folder => Node::Folder(Folder { mode: Some(found.mode), ..Folder::default() }),
            What::Link(target) => {
                if target.is_empty() || target.len() > MAX_TARGET || target.contains(&0) {
                    return Err(refused(&path, "a link that leads to no path").into());
                }
                let size = target.len() as u64;
                let content = to.keep(&mut target.as_slice(), size)?.ok_or_else(cut_off)?;
                Node::Entry(Entry::Link(*content.id()))
            }
            What::File { size, bytes } => {
                let content = to.keep(bytes, size)?.ok_or_else(cut_off)?;
                Node::Entry(Entry::File(FileEntry { mode: found.mode, size, content }))
            }
        };
        Ok(top.insert(&path, node)?)
    })?;
    for it in left_out {
        let path = check(it.path.clone())?;
        let known = Gap::ALL.into_iter().find(|gap| gap.as_str() == it.why);
        let gap = Entry::Gap { why: known.unwrap_or(Gap::Excluded), is_folder: it.is_folder };
        top.insert(&path, Node::Entry(gap))?;
    }
    Ok(top)
}

fn checked_path(found: &Found<'_>) -> Result<RelPath, BadBundle> {
    let path = found.path.as_slice();
    let path = match &found.what {
        What::Folder => path.strip_suffix(b"/").unwrap_or(path),
        What::Link(_) | What::File { .. } => path,
    };
    let strays = |_| BadBundle::Refused {
        path: printable_bytes(path),
        what: "which is no path inside a workspace",
    };
    check(RelPath::new(path).map_err(strays)?)
}

fn check(path: RelPath) -> Result<RelPath, BadBundle> {
    let mut names = path.as_bytes().split(|byte| *byte == b'/');
    if names.any(|name| name.eq_ignore_ascii_case(b".git")) {
        return Err(refused(&path, "which belongs to git"));
    }
    if path.depth() >= MAX_DEPTH {
        return Err(refused(&path, "which is more than 100 folders deep"));
    }
    Ok(path)
}

fn refused(path: &RelPath, what: &'static str) -> BadBundle {
    BadBundle::Refused { path: path.to_string(), what }
}

impl Folder {
    fn insert(&mut self, path: &RelPath, node: Node) -> Result<(), BadBundle> {
        let mut folder = self;
        let (folders, name) = match path.as_bytes().iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path.as_bytes()[..slash], &path.as_bytes()[slash + 1..]),
            None => (&b""[..], path.as_bytes()),
        };
        for name in folders.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let below = folder.children.entry(name.into());
            match below.or_insert_with(|| Node::Folder(Self::default())) {
                Node::Folder(below) => folder = below,
                Node::Entry(_) => {
                    return Err(refused(path, "which lies below something that is no folder"));
                }
            }
        }
        match (folder.children.get_mut(name), node) {
            (None, node) => {
                folder.children.insert(name.into(), node);
                Ok(())
            }
            (Some(Node::Folder(known)), Node::Folder(told)) if known.mode.is_none() => {
                known.mode = told.mode;
                Ok(())
            }
            (Some(_), _) => Err(refused(path, "which is there twice")),
        }
    }

    /// Stores the trees, from the bottom up, and counts what they hold.
    pub(super) fn store(self, sink: &mut Sink<'_>, held: &mut Coverage) -> Result<ObjectId> {
        let mut entries = Vec::with_capacity(self.children.len());
        for (name, node) in self.children {
            let entry = match node {
                Node::Folder(folder) => {
                    let mode = folder.mode.unwrap_or(USUAL_MODE);
                    Entry::Folder { mode, tree: folder.store(sink, held)? }
                }
                Node::Entry(entry) => entry,
            };
            match entry {
                Entry::File(file) => {
                    held.n_files += 1;
                    held.size_bytes += file.size;
                }
                Entry::Link(_) => held.n_files += 1,
                Entry::Gap { why, .. } => *held.gaps.entry(why).or_default() += 1,
                Entry::Folder { .. } => {}
            }
            entries.push((name, entry));
        }
        let bytes = Tree::from_sorted(entries).encode();
        let id = ObjectId::of(&bytes);
        sink.put(ObjectKind::Tree, id, &bytes)?;
        Ok(id)
    }
}
