//! Writing packs. A pack is a header, blocks, and a trailer that says it is whole. It is written
//! under a temporary name, made durable, read back, and only then called a pack.
//!
//! ```text
//! "BIVPACK1"  pack id [16]
//! blocks
//! "END1"  block count u32  length of all before u64  the first 16 bytes of BLAKE3 over header and these three
//! ```

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use bivouac_core::id::{ObjectId, PackId};
use bivouac_core::sabotage::{self, Fault};
use rayon::prelude::*;

use crate::block::{BlockBuilder, BlockObject, ObjectKind};
use crate::objects::Place;
use crate::private::{self, Open};
use crate::{Error, Result};

pub(crate) const PACK_MAGIC: &[u8; 8] = b"BIVPACK1";
pub(crate) const PACK_HEADER_LEN: usize = 24;
const TRAILER_MAGIC: &[u8; 4] = b"END1";
pub(crate) const TRAILER_LEN: usize = 32;

/// How blocks are made.
#[derive(Clone, Copy, Debug)]
pub struct Compression {
    /// zstd's level.
    pub level: i32,
    /// A block is closed at this size: large enough to compress well, small enough to read one object from.
    pub block_bytes: usize,
}

impl Compression {
    /// While someone waits.
    pub const fn quick(level: i32) -> Self {
        Self { level, block_bytes: 512 << 10 }
    }

    /// When packs are merged: versions of one thing come to lie in one block, and cost next to nothing.
    pub const THOROUGH: Self = Self { level: 12, block_bytes: 2 << 20 };
}

/// So many full blocks are compressed side by side.
const BATCH: usize = 4;

/// Where a pack lies.
pub(crate) fn pack_path(folder: &Path, id: PackId) -> PathBuf {
    folder.join(format!("{id}.pack"))
}

/// What a temporary pack is called. A leftover is swept by `gc`.
pub const TEMPORARY_SUFFIX: &str = ".pack.tmp";

pub struct PackWriter {
    folder: PathBuf,
    id: PackId,
    compression: Compression,
    /// Created with the first block: a checkpoint that stores nothing leaves no file.
    file: Option<File>,
    length: u64,
    n_blocks: u32,
    content: BlockBuilder,
    structure: BlockBuilder,
    full: Vec<BlockBuilder>,
    known: HashSet<ObjectId>,
    placed: Vec<(BlockObject, Place)>,
}

/// A durable pack whose objects are not yet in any index.
#[derive(Debug)]
pub struct NewPack {
    pub id: PackId,
    pub size_bytes: u64,
    pub objects: Vec<(BlockObject, Place)>,
}

impl PackWriter {
    pub fn new(folder: &Path, id: PackId, compression: Compression) -> Self {
        Self {
            folder: folder.to_owned(),
            id,
            compression,
            file: None,
            length: 0,
            n_blocks: 0,
            content: BlockBuilder::default(),
            structure: BlockBuilder::default(),
            full: Vec::new(),
            known: HashSet::new(),
            placed: Vec::new(),
        }
    }

    /// Is this object in the pack already?
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.known.contains(id)
    }

    pub fn put(&mut self, kind: ObjectKind, id: ObjectId, bytes: &[u8]) -> Result<()> {
        if !self.known.insert(id) {
            return Ok(());
        }
        let block = if kind.is_content() { &mut self.content } else { &mut self.structure };
        block.push(kind, id, bytes);
        if block.raw_len() >= self.compression.block_bytes {
            self.full.push(std::mem::take(block));
        }
        if self.full.len() >= BATCH {
            self.write_full_blocks()?;
        }
        Ok(())
    }

    /// Makes the pack durable and gives it its name. `None` when nothing was put in.
    pub fn finish(mut self) -> Result<Option<NewPack>> {
        for last in [std::mem::take(&mut self.content), std::mem::take(&mut self.structure)] {
            if !last.is_empty() {
                self.full.push(last);
            }
        }
        self.write_full_blocks()?;
        let Some(mut file) = self.file.take() else {
            return Ok(None);
        };
        let temporary = self.temporary_path();
        let path = pack_path(&self.folder, self.id);
        file.write_all(&trailer(self.id, self.n_blocks, self.length))
            .map_err(Error::write(&temporary))?;
        if !sabotage::is(Fault::PackNotSynced) {
            file.sync_all().map_err(Error::write(&temporary))?;
        }
        private::rename(&temporary, &path).map_err(Error::write(&path))?;
        if !sabotage::is(Fault::PackNameNotSynced) {
            sync_folder(&self.folder)?;
        }
        let size_bytes = self.length + TRAILER_LEN as u64;
        Ok(Some(NewPack { id: self.id, size_bytes, objects: std::mem::take(&mut self.placed) }))
    }

    fn write_full_blocks(&mut self) -> Result<()> {
        let full = std::mem::take(&mut self.full);
        let level = self.compression.level;
        let encoded: Vec<Vec<u8>> = full.par_iter().map(|block| block.encode(level)).collect();
        for (block, bytes) in full.iter().zip(encoded) {
            let offset = self.append(&bytes)?;
            let place = Place { pack: self.id, offset };
            self.placed.extend(block.objects().iter().map(|object| (*object, place)));
            self.n_blocks += 1;
        }
        Ok(())
    }

    /// Appends a finished block; answers where it starts.
    fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        let path = self.temporary_path();
        if self.file.is_none() {
            let mut file = private::open(&path, Open::CreateNew).map_err(Error::write(&path))?;
            file.write_all(&header(self.id)).map_err(Error::write(&path))?;
            self.length = PACK_HEADER_LEN as u64;
            self.file = Some(file);
        }
        let file = self.file.as_mut().expect("it was opened just above");
        file.write_all(bytes).map_err(Error::write(&path))?;
        let offset = self.length;
        self.length += bytes.len() as u64;
        Ok(offset)
    }

    fn temporary_path(&self) -> PathBuf {
        self.folder.join(format!("{}{TEMPORARY_SUFFIX}", self.id))
    }
}

/// A pack that was given up leaves nothing behind.
impl Drop for PackWriter {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _result = private::remove_file(&self.temporary_path());
        }
    }
}

pub(crate) fn header(id: PackId) -> [u8; PACK_HEADER_LEN] {
    let mut header = [0; PACK_HEADER_LEN];
    header[..8].copy_from_slice(PACK_MAGIC);
    header[8..].copy_from_slice(id.uuid().as_bytes());
    header
}

pub(crate) fn trailer(id: PackId, n_blocks: u32, length: u64) -> [u8; TRAILER_LEN] {
    let mut trailer = [0; TRAILER_LEN];
    trailer[..4].copy_from_slice(TRAILER_MAGIC);
    trailer[4..8].copy_from_slice(&n_blocks.to_le_bytes());
    trailer[8..16].copy_from_slice(&length.to_le_bytes());
    let mut hasher = blake3::Hasher::new();
    hasher.update(&header(id)).update(&trailer[..16]);
    trailer[16..].copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    trailer
}

/// Makes the names in one of our own folders durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    private::sync_folder(folder).map_err(Error::write(folder))
}
