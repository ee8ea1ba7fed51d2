//! What the last scan saw: for every folder its list of names, for every file its stat and its
//! content's id. It makes the next scan cheap and can always be thrown away.
//!
//! It is never believed where it could be wrong. An entry is trusted only if its change time lay
//! clearly before the scan: any later change then shows. The file as a whole carries a checksum and the
//! checkpoint it was taken for; once that is gone, so might be the objects, and the cache is ignored.
//!
//! Folders are nested records with their length in front, so an unchanged one is skipped, compared
//! and copied without being unpacked.
//!
//! Where a watcher knows what changed since, only that is looked at, and what is restless: things whose
//! changes a watcher cannot see, or that the scan itself could not vouch for.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use bivouac_core::checkpoint::{Coverage, Gap};
use bivouac_core::id::{CheckpointId, ObjectId};
use rustix::fs::{CWD, RenameFlags};

use crate::beneath::{Kind, Stat};
use crate::bytes::{Reader, put_signed, put_varint};
use crate::node::{FileNode, Folder, LinkNode, LinkTarget, Node, with_name};
use crate::scope::Inside;
use crate::tree::{Content, gap_code, gap_from_code};
use crate::{Error, Result};

/// A short hash that stands for a set of rules, or for the state of a repository's index.
pub type Fingerprint = [u8; 8];

const MAGIC: &[u8; 8] = b"BIVSTAT2";
const CHECKSUM_LEN: usize = 32;
/// The checksum of the records stands after the magic, then the base and its own checksum: a new
/// checkpoint of an unchanged tree only replaces those two.
const BASE_AT: usize = MAGIC.len() + CHECKSUM_LEN;
const BASE_LEN: usize = 16 + 16 + 8;
const BODY_AT: usize = BASE_AT + BASE_LEN + CHECKSUM_LEN;

/// A cache file that was read and whose checksums hold.
pub struct StatCache {
    bytes: Vec<u8>,
    base: Base,
}

/// What a cache belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Base {
    pub(crate) checkpoint: CheckpointId,
    pub(crate) token: Option<Token>,
}

/// What a watcher's clock said before a scan: whatever it saw later may be missing from the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Token {
    /// Never zero. Another watcher cannot say what this one saw.
    pub watcher: [u8; 16],
    pub tick: u64,
}

impl StatCache {
    /// `None` when there is no usable cache: absent, damaged, or of another version.
    pub fn load(path: &Path) -> Option<Self> {
        let mut bytes = Vec::new();
        File::open(path).ok()?.read_to_end(&mut bytes).ok()?;
        let mut reader = Reader::new(&bytes);
        if reader.array::<8>()? != *MAGIC {
            return None;
        }
        let checksum = reader.array()?;
        let base = Base::read(&mut reader)?;
        let is_whole = base.line(&checksum)[BASE_LEN..] == *reader.take(CHECKSUM_LEN)?
            && hash(&bytes[BODY_AT..]) == checksum;
        is_whole.then_some(Self { bytes, base })
    }

    /// The checkpoint whose tree this is. Its objects are in the store as long as it is.
    pub fn base(&self) -> CheckpointId {
        self.base.checkpoint
    }

    /// Since when a watcher has to know of changes; `None` if none was there.
    pub fn token(&self) -> Option<Token> {
        self.base.token
    }

    /// The paths of all folders it holds; the empty one is the workspace.
    pub fn folders(&self) -> Vec<Box<[u8]>> {
        let mut folders = Vec::new();
        if let Some(root) = self.root() {
            root.collect_folders(&mut Vec::new(), &mut folders);
        }
        folders
    }

    pub(crate) fn root(&self) -> Option<CachedFolder<'_>> {
        CachedFolder::read(&mut Reader::new(&self.bytes[BODY_AT..]))
    }

    /// Writes the cache anew. It is not made durable: one that did not survive costs one full scan.
    pub(crate) fn save(path: &Path, base: Base, root: &Folder<'_>) -> Result<()> {
        let mut bytes = vec![0; BODY_AT];
        write_folder(&mut bytes, root);
        let checksum = hash(&bytes[BODY_AT..]);
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[MAGIC.len()..BASE_AT].copy_from_slice(&checksum);
        bytes[BASE_AT..BODY_AT].copy_from_slice(&base.line(&checksum));
        let spare = path.with_extension("stat.spare");
        replace(path, &spare, &bytes).map_err(|error| {
            let _gone_or_harmless = std::fs::remove_file(&spare);
            Error::write(path)(error)
        })
    }

    /// The same tree under a newer checkpoint, or known to be the same at a later tick.
    pub(crate) fn rebase(path: &Path, base: Base) -> Result<()> {
        let rebase = |file: File| {
            let mut checksum = [0; CHECKSUM_LEN];
            file.read_exact_at(&mut checksum, MAGIC.len() as u64)?;
            file.write_all_at(&base.line(&checksum), BASE_AT as u64)
        };
        File::options()
            .read(true)
            .write(true)
            .open(path)
            .and_then(rebase)
            .map_err(Error::write(path))
    }
}

/// Puts bytes in a file's place in one step. What stood there becomes the spare and is written over the
/// next time. A new file each time would take two thirds of a save: all its pages are new, too, and some
/// file systems flush what is renamed over an old file.
fn replace(path: &Path, spare: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(spare)?;
    file.write_all_at(bytes, 0)?;
    file.set_len(bytes.len() as u64)?;
    match rustix::fs::renameat_with(CWD, spare, CWD, path, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(_no_file_yet_or_unsupported) => std::fs::rename(spare, path),
    }
}

fn hash(body: &[u8]) -> [u8; CHECKSUM_LEN] {
    *blake3::hash(body).as_bytes()
}

impl Base {
    /// Zeroes stand for no watcher.
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let checkpoint = CheckpointId::from_bytes(reader.array()?);
        let token = Token { watcher: reader.array()?, tick: u64::from_le_bytes(reader.array()?) };
        Some(Self { checkpoint, token: (token.watcher != [0; 16]).then_some(token) })
    }

    /// The base and the checksum that ties it to the records.
    fn line(&self, checksum: &[u8; CHECKSUM_LEN]) -> [u8; BASE_LEN + CHECKSUM_LEN] {
        let (watcher, tick) = self.token.map_or(([0; 16], 0), |token| (token.watcher, token.tick));
        let base =
            [self.checkpoint.uuid().as_bytes().as_slice(), &watcher, &tick.to_le_bytes()].concat();
        let tied = hash(&[base.as_slice(), checksum].concat());
        let mut line = [0; BASE_LEN + CHECKSUM_LEN];
        line[..BASE_LEN].copy_from_slice(&base);
        line[BASE_LEN..].copy_from_slice(&tied);
        line
    }
}

/// A folder as the last scan left it.
#[derive(Clone, Copy)]
pub(crate) struct CachedFolder<'c> {
    record: &'c [u8],
    pub(crate) about: FolderFacts,
    /// It or something below has to be looked at whatever a watcher says.
    pub(crate) is_restless: bool,
    pub(crate) tree: ObjectId,
    pub(crate) totals: Totals,
    n_children: u32,
    children: Reader<'c>,
}

/// What is known about a folder besides its children.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FolderFacts {
    pub(crate) stat: Stat,
    /// How its inside is judged.
    pub(crate) inside: Inside,
    /// Any later change to its list of names shows in its stat.
    pub(crate) is_trusted: bool,
    /// What is captured here depends on what git tracks, not only on the rules.
    pub(crate) is_touchy: bool,
    pub(crate) has_ignore_file: bool,
    /// The rules in force here.
    pub(crate) rules: Fingerprint,
    /// The state of the index, where this is the top of a repository.
    pub(crate) index: Option<Fingerprint>,
}

/// Sums over a folder and all below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub n_files: u64,
    pub size_bytes: u64,
    pub n_gaps: [u32; Gap::ALL.len()],
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Self) {
        self.n_files += other.n_files;
        self.size_bytes += other.size_bytes;
        for (own, more) in self.n_gaps.iter_mut().zip(other.n_gaps) {
            *own += more;
        }
    }

    pub(crate) fn add_gap(&mut self, gap: Gap) {
        self.n_gaps[usize::from(gap_code(gap)) - 1] += 1;
    }
}

impl Totals {
    /// Most folders have no gaps, so only reasons that occur are written.
    fn write(&self, out: &mut Vec<u8>) {
        put_varint(out, self.n_files);
        put_varint(out, self.size_bytes);
        let gaps = self.n_gaps.iter().zip(1u8..).filter(|(count, _)| **count > 0);
        out.push(gaps.clone().count() as u8);
        for (count, code) in gaps {
            out.push(code);
            put_varint(out, u64::from(*count));
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut totals =
            Self { n_files: reader.varint()?, size_bytes: reader.varint()?, ..Self::default() };
        for _ in 0..reader.byte()? {
            let code = usize::from(reader.byte()?);
            *totals.n_gaps.get_mut(code.checked_sub(1)?)? = u32::try_from(reader.varint()?).ok()?;
        }
        Some(totals)
    }
}

impl From<Totals> for Coverage {
    fn from(totals: Totals) -> Self {
        let counted = Gap::ALL
            .into_iter()
            .map(|gap| (gap, totals.n_gaps[usize::from(gap_code(gap)) - 1].into()));
        let gaps = counted.filter(|(_, count)| *count > 0).collect();
        Self { n_files: totals.n_files, size_bytes: totals.size_bytes, gaps }
    }
}

/// A child of a cached folder.
#[derive(Clone, Copy)]
pub(crate) enum CachedNode<'c> {
    File { stat: Stat, is_trusted: bool, content: Content },
    Link { stat: Stat, is_trusted: bool, target: ObjectId },
    Folder(CachedFolder<'c>),
    Gap { why: Gap, is_folder: bool },
}

impl<'c> CachedNode<'c> {
    pub(crate) fn folder(self) -> Option<CachedFolder<'c>> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::File { .. } | Self::Link { .. } | Self::Gap { .. } => None,
        }
    }
}

const TRUSTED: u8 = 1;
const TOUCHY: u8 = 2;
const IGNORE_FILE: u8 = 4;
const REPOSITORY: u8 = 8;
const RESTLESS: u8 = 16;
/// The two highest bits of a folder's flags say how its inside is judged.
const INSIDE_SHIFT: u8 = 6;
const CHUNKED: u8 = 2;
/// The file has more names than this one.
const SHARED: u8 = 4;

const FILE: u8 = 0;
const LINK: u8 = 1;
const FOLDER: u8 = 2;
const GAP: u8 = 3;

impl<'c> CachedFolder<'c> {
    fn read(reader: &mut Reader<'c>) -> Option<Self> {
        let mut ahead = *reader;
        let length = ahead.u32()? as usize;
        let record = reader.take(length)?;
        let mut reader = Reader::new(record.get(4..)?);
        let flags = reader.byte()?;
        let about = FolderFacts {
            stat: read_stat(&mut reader, Kind::Folder)?,
            inside: Inside::from_code(flags >> INSIDE_SHIFT)?,
            is_trusted: flags & TRUSTED != 0,
            is_touchy: flags & TOUCHY != 0,
            has_ignore_file: flags & IGNORE_FILE != 0,
            rules: reader.array()?,
            index: if flags & REPOSITORY != 0 { Some(reader.array()?) } else { None },
        };
        let tree = reader.object_id()?;
        let totals = Totals::read(&mut reader)?;
        let n_children = u32::try_from(reader.varint()?).ok()?;
        let is_restless = flags & RESTLESS != 0;
        Some(Self { record, about, is_restless, tree, totals, n_children, children: reader })
    }

    /// The size of the record: how much there is to look at.
    pub(crate) fn weight(&self) -> usize {
        self.record.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.n_children as usize
    }

    /// Adds the path of this folder and those of all below it.
    pub(crate) fn collect_folders(&self, path: &mut Vec<u8>, folders: &mut Vec<Box<[u8]>>) {
        folders.push(path.as_slice().into());
        for (name, node) in self.children() {
            if let CachedNode::Folder(folder) = node {
                with_name(path, name, |path| folder.collect_folders(path, folders));
            }
        }
    }

    /// The children in order of their names.
    pub(crate) fn children(&self) -> Children<'c> {
        Children { left: self.n_children, reader: self.children }
    }
}

pub(crate) struct Children<'c> {
    left: u32,
    reader: Reader<'c>,
}

impl<'c> Iterator for Children<'c> {
    type Item = (&'c [u8], CachedNode<'c>);

    /// The checksum held, so a record that does not parse is a bug of ours; ending here makes the folder be listed again.
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let length = usize::from(self.reader.byte()?);
        let name = self.reader.take(length)?;
        Some((name, read_node(&mut self.reader)?))
    }
}

fn read_node<'c>(reader: &mut Reader<'c>) -> Option<CachedNode<'c>> {
    let node = match reader.byte()? {
        FILE => {
            let flags = reader.byte()?;
            let n_links = if flags & SHARED != 0 { 2 } else { 1 };
            let stat = Stat { n_links, ..read_stat(reader, Kind::File)? };
            let id = reader.object_id()?;
            let content =
                if flags & CHUNKED != 0 { Content::Chunked(id) } else { Content::Whole(id) };
            CachedNode::File { stat, is_trusted: flags & TRUSTED != 0, content }
        }
        LINK => {
            let is_trusted = reader.byte()? & TRUSTED != 0;
            CachedNode::Link {
                stat: read_stat(reader, Kind::Link)?,
                is_trusted,
                target: reader.object_id()?,
            }
        }
        FOLDER => CachedNode::Folder(CachedFolder::read(reader)?),
        GAP => {
            CachedNode::Gap { why: gap_from_code(reader.byte()?)?, is_folder: reader.byte()? != 0 }
        }
        _ => return None,
    };
    Some(node)
}

/// The modification time is told by its distance from the change time: mostly none.
fn read_stat(reader: &mut Reader<'_>, kind: Kind) -> Option<Stat> {
    let mode = reader.u16()?;
    let size = reader.varint()?;
    let ctime_ns = reader.i64()?;
    let mtime_ns = ctime_ns.wrapping_sub(reader.signed()?);
    let inode = reader.varint()?;
    Some(Stat { kind, mode, size, mtime_ns, ctime_ns, inode, n_links: 1, device: 0 })
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

fn write_folder(out: &mut Vec<u8>, folder: &Folder<'_>) {
    let changed = match folder {
        Folder::Same(cached) => return out.extend_from_slice(cached.record),
        Folder::Changed(changed) => changed,
    };
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let about = &changed.about;
    let flags = flags([
        (about.is_trusted, TRUSTED),
        (about.is_touchy, TOUCHY),
        (about.has_ignore_file, IGNORE_FILE),
        (about.index.is_some(), REPOSITORY),
        (changed.is_restless, RESTLESS),
    ]);
    out.push(flags | about.inside.code() << INSIDE_SHIFT);
    write_stat(out, &about.stat);
    out.extend_from_slice(&about.rules);
    out.extend_from_slice(about.index.as_ref().map_or(&[], |index| index.as_slice()));
    let tree = changed.tree.expect("a folder is only cached once its tree was made");
    out.extend_from_slice(tree.as_bytes());
    changed.totals.write(out);
    put_varint(out, changed.children.len() as u64);
    for (name, node) in &changed.children {
        // No file system we know has names longer than this.
        out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(name);
        write_node(out, node);
    }
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn write_node(out: &mut Vec<u8>, node: &Node<'_>) {
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
        Node::Folder(folder) => {
            out.push(FOLDER);
            write_folder(out, folder);
        }
        Node::Gap { why, is_folder } => {
            out.extend_from_slice(&[GAP, gap_code(*why), u8::from(*is_folder)]);
        }
    }
}
