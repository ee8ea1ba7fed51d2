//! What the last scan saw: for every folder its list of names, for every file its stat and its
//! content's id. It makes the next scan cheap and can always be thrown away.
//!
//! It is never believed where it could be wrong. An entry is trusted only if its change time lay
//! clearly before the scan: any later change then shows. That holds for file systems with real times only,
//! and for the file system that was mounted then (see `file_system`). The file as a whole carries a checksum
//! and the checkpoint it was taken for; once that is gone, so might be the objects, and the cache is ignored.
//!
//! Folders are nested records with their length in front, so an unchanged one is skipped, compared
//! and copied without being unpacked.
//!
//! Where a watcher knows what changed since, only that is looked at, and what is restless: things whose
//! changes a watcher cannot see, or that the scan itself could not vouch for.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use bivouac_core::checkpoint::{Coverage, Gap};
use bivouac_core::id::{CheckpointId, ObjectId};
use rayon::prelude::*;

use crate::beneath::{Kind, Stat};
use crate::bytes::{Reader, put_varint};
use crate::node::{Folder, joined};
use crate::pieces::Pieces;
use crate::private::{self, Open};
use crate::scope::Inside;
use crate::tree::{Content, gap_code, gap_from_code};
use crate::{Error, Result};

/// A short hash that stands for a set of rules, or for the state of a repository's index.
pub type Fingerprint = [u8; 8];

const MAGIC: &[u8; 8] = b"BIVSTAT3";
pub(crate) const CHECKSUM_LEN: usize = 32;
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
        let bytes = read_whole(path).ok()?;
        let mut reader = Reader::new(&bytes);
        if reader.array::<8>()? != *MAGIC {
            return None;
        }
        let checksum = reader.array()?;
        let base = Base::read(&mut reader)?;
        reader.take(CHECKSUM_LEN)?;
        let is_whole =
            bytes[BASE_AT..BODY_AT] == base.line(&checksum) && hash(&bytes[BODY_AT..]) == checksum;
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
            root.collect_folders(b"", &mut folders);
        }
        folders
    }

    pub(crate) fn root(&self) -> Option<CachedFolder<'_>> {
        CachedFolder::read(&mut Reader::new(&self.bytes[BODY_AT..]))
    }

    /// Writes the cache anew. It is not made durable: one that did not survive costs one full scan.
    pub(crate) fn save(path: &Path, base: Base, root: &Folder<'_>) -> Result<()> {
        let mut body = Pieces::default();
        body.write_folder(root);
        let checksum = body.hash();
        let head = [MAGIC.as_slice(), &checksum, &base.line(&checksum)].concat();
        let spare = path.with_extension("stat.spare");
        replace(path, &spare, &head, &body).map_err(|error| {
            let _gone_or_harmless = private::remove_file(&spare);
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
        private::open(path, Open::Write).and_then(rebase).map_err(Error::write(path))
    }
}

/// Puts bytes in a file's place in one step. What stood there becomes the spare and is written over the
/// next time. A new file each time would take two thirds of a save: all its pages are new, too, and some
/// file systems flush what is renamed over an old file.
fn replace(path: &Path, spare: &Path, head: &[u8], body: &Pieces<'_>) -> io::Result<()> {
    const BUFFER: usize = 256 << 10;
    let file = private::open(spare, Open::WriteOrCreate)?;
    let mut writer = BufWriter::with_capacity(BUFFER, &file);
    writer.write_all(head)?;
    body.each().try_for_each(|bytes| writer.write_all(bytes))?;
    writer.flush()?;
    drop(writer);
    file.set_len((head.len() + body.len()) as u64)?;
    // Fails where there is no file yet, or the file system knows no exchange.
    private::exchange(spare, path).or_else(|_| private::rename(spare, path))
}

/// Reads a file on all cores: most of the time goes into memory that is new to us.
fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    const PART: usize = 1 << 20;
    let file = private::open(path, Open::Read)?;
    let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).unwrap_or(0)];
    let read = |(part, bytes): (usize, &mut [u8])| file.read_exact_at(bytes, (part * PART) as u64);
    match bytes.len() > PART {
        true => bytes.par_chunks_mut(PART).enumerate().try_for_each(read)?,
        false => file.read_exact_at(&mut bytes, 0)?,
    }
    Ok(bytes)
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
    pub(crate) record: &'c [u8],
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
    /// The identity of its file system, where that is another one than above; the workspace always has one.
    pub(crate) mount: Option<Fingerprint>,
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
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
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

pub(crate) const TRUSTED: u8 = 1;
pub(crate) const TOUCHY: u8 = 2;
pub(crate) const IGNORE_FILE: u8 = 4;
pub(crate) const REPOSITORY: u8 = 8;
pub(crate) const RESTLESS: u8 = 16;
pub(crate) const MOUNT: u8 = 32;
/// The two highest bits of a folder's flags say how its inside is judged.
pub(crate) const INSIDE_SHIFT: u8 = 6;
pub(crate) const CHUNKED: u8 = 2;
/// The file has more names than this one.
pub(crate) const SHARED: u8 = 4;

pub(crate) const FILE: u8 = 0;
pub(crate) const LINK: u8 = 1;
pub(crate) const FOLDER: u8 = 2;
pub(crate) const GAP: u8 = 3;

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
            mount: if flags & MOUNT != 0 { Some(reader.array()?) } else { None },
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
    pub(crate) fn collect_folders(self, path: &[u8], folders: &mut Vec<Box<[u8]>>) {
        let mut waiting: Vec<(Box<[u8]>, Self)> = vec![(path.into(), self)];
        while let Some((path, folder)) = waiting.pop() {
            let n_waiting = waiting.len();
            for (name, node) in folder.children() {
                if let CachedNode::Folder(below) = node {
                    waiting.push((joined(&path, name).into(), below));
                }
            }
            // The first one is taken next, so that the paths come out in order.
            waiting[n_waiting..].reverse();
            folders.push(path);
        }
    }

    /// Adds the paths of the files and links in it whose names are wanted.
    pub(crate) fn collect_files(
        self,
        path: &[u8],
        is_wanted: &dyn Fn(&[u8]) -> bool,
        files: &mut Vec<Box<[u8]>>,
    ) {
        let mut waiting: Vec<(Box<[u8]>, Self)> = vec![(path.into(), self)];
        while let Some((path, folder)) = waiting.pop() {
            for (name, node) in folder.children() {
                match node {
                    CachedNode::Folder(below) => waiting.push((joined(&path, name).into(), below)),
                    CachedNode::File { .. } | CachedNode::Link { .. } if is_wanted(name) => {
                        files.push(joined(&path, name).into());
                    }
                    CachedNode::File { .. } | CachedNode::Link { .. } | CachedNode::Gap { .. } => {}
                }
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
