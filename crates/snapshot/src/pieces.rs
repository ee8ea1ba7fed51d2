//! A stat cache on its way to the disk.

use bivouac_core::id::ObjectId;

use crate::beneath::Stat;
use crate::bytes::{put_signed, put_varint};
use crate::node::{ChangedFolder, FileNode, Folder, LinkNode, LinkTarget, Node};
use crate::stat_cache::{
    CHECKSUM_LEN, CHUNKED, FILE, FOLDER, GAP, IGNORE_FILE, INSIDE_SHIFT, LINK, MOUNT, REPOSITORY,
    RESTLESS, SHARED, TOUCHY, TRUSTED,
};
use crate::tree::{Content, gap_code};

/// A cache as it is written: new bytes, and between them records that stay as they are, where they are.
#[derive(Default)]
pub(crate) struct Pieces<'c> {
    /// Each with the record that follows it.
    parts: Vec<(Vec<u8>, &'c [u8])>,
    tail: Vec<u8>,
    /// How long all parts are together, without the tail.
    parts_len: usize,
}

impl<'c> Pieces<'c> {
    pub(crate) fn len(&self) -> usize {
        self.parts_len + self.tail.len()
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = &[u8]> {
        let parts = self.parts.iter().flat_map(|(new, old)| [new.as_slice(), old]);
        parts.chain([self.tail.as_slice()])
    }

    pub(crate) fn hash(&self) -> [u8; CHECKSUM_LEN] {
        let mut hasher = blake3::Hasher::new();
        for bytes in self.each() {
            hasher.update(bytes);
        }
        *hasher.finalize().as_bytes()
    }

    fn keep(&mut self, record: &'c [u8]) {
        self.parts_len += self.tail.len() + record.len();
        self.parts.push((std::mem::take(&mut self.tail), record));
    }

    /// Writes a folder and all below it. Frames on the heap take the place of recursion, as it may be deep.
    pub(crate) fn write_folder(&mut self, folder: &Folder<'c>) {
        let mut frames: Vec<Frame<'_, 'c>> = self.begin_folder(folder).into_iter().collect();
        while let Some(frame) = frames.last_mut() {
            let Some((name, node)) = frame.children.next() else {
                self.end_folder(frame);
                frames.pop();
                continue;
            };
            // No file system we know has names longer than this.
            self.tail.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
            self.tail.extend_from_slice(name);
            match node {
                Node::Folder(folder) => {
                    self.tail.push(FOLDER);
                    frames.extend(self.begin_folder(folder));
                }
                other => write_leaf(&mut self.tail, other),
            }
        }
    }

    /// Writes what stands before the children, which are still to be written; nothing is left to do for a
    /// folder that is the same.
    fn begin_folder<'f>(&mut self, folder: &'f Folder<'c>) -> Option<Frame<'f, 'c>> {
        let changed = match folder {
            Folder::Same(cached) => {
                self.keep(cached.record);
                return None;
            }
            Folder::Changed(changed) => changed,
        };
        let (part, at, start) = (self.parts.len(), self.tail.len(), self.len());
        self.tail.extend_from_slice(&[0; 4]);
        write_about(&mut self.tail, changed);
        Some(Frame { children: changed.children.iter(), part, at, start })
    }

    /// Puts the length where it belongs, now that it is known.
    fn end_folder(&mut self, frame: &Frame<'_, '_>) {
        let length = (self.len() - frame.start) as u32;
        let bytes = self.parts.get_mut(frame.part).map_or(&mut self.tail, |(new, _)| new);
        bytes[frame.at..frame.at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// A folder that is being written.
struct Frame<'f, 'c> {
    children: std::slice::Iter<'f, (Box<[u8]>, Node<'c>)>,
    /// Where its length goes: the part and the place in it.
    part: usize,
    at: usize,
    /// How much was written before it.
    start: usize,
}

/// What is known about a folder besides its children, and how many they are.
fn write_about(out: &mut Vec<u8>, changed: &ChangedFolder<'_>) {
    let about = &changed.about;
    let flags = flags([
        (about.is_trusted, TRUSTED),
        (about.is_touchy, TOUCHY),
        (about.has_ignore_file, IGNORE_FILE),
        (about.index.is_some(), REPOSITORY),
        (changed.is_restless, RESTLESS),
        (about.mount.is_some(), MOUNT),
    ]);
    out.push(flags | about.inside.code() << INSIDE_SHIFT);
    write_stat(out, &about.stat);
    out.extend_from_slice(&about.rules);
    for fingerprint in [&about.index, &about.mount].into_iter().flatten() {
        out.extend_from_slice(fingerprint);
    }
    let tree = changed.tree.expect("a folder is only cached once its tree was made");
    out.extend_from_slice(tree.as_bytes());
    changed.totals.write(out);
    put_varint(out, changed.children.len() as u64);
}

/// Anything but a folder.
fn write_leaf(out: &mut Vec<u8>, node: &Node<'_>) {
    match node {
        Node::File(FileNode { stat, is_trusted, content }) => {
            let content = content.expect("a file is only cached once it was read");
            let is_chunked = matches!(content, Content::Chunked(_));
            let is_shared = stat.n_links > 1;
            let flags = flags([(*is_trusted, TRUSTED), (is_chunked, CHUNKED), (is_shared, SHARED)]);
            out.extend_from_slice(&[FILE, flags]);
            write_stat(out, stat);
            out.extend_from_slice(content.id().as_bytes());
        }
        Node::Link(LinkNode { stat, is_trusted, target }) => {
            out.extend_from_slice(&[LINK, flags([(*is_trusted, TRUSTED)])]);
            write_stat(out, stat);
            let target = match target {
                LinkTarget::Known(id) => *id,
                LinkTarget::Read(path) => ObjectId::of(path),
            };
            out.extend_from_slice(target.as_bytes());
        }
        Node::Folder(_) => unreachable!("a folder is written by whoever writes its parent"),
        Node::Gap { why, is_folder } => {
            out.extend_from_slice(&[GAP, gap_code(*why), u8::from(*is_folder)]);
        }
    }
}

fn write_stat(out: &mut Vec<u8>, stat: &Stat) {
    out.extend_from_slice(&stat.mode.to_le_bytes());
    put_varint(out, stat.size);
    out.extend_from_slice(&stat.ctime_ns.to_le_bytes());
    put_signed(out, stat.ctime_ns.wrapping_sub(stat.mtime_ns));
    put_varint(out, stat.inode);
}

/// Those of the flags that are set.
fn flags<const N: usize>(flags: [(bool, u8); N]) -> u8 {
    flags.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag)
}
