//! A block: several objects compressed together. Small files of one project resemble each other, so
//! a block of them is a third smaller than each on its own, and one checksum guards them all.
//!
//! ```text
//! "BLK1"  codec u8  level u8  0 0  count u32  raw length u32  stored length u32
//! count × { kind u8  length u32  id [32] }
//! stored bytes: the objects in that order, as they are or as one zstd frame
//! the first 16 bytes of BLAKE3 over all of the above
//! ```

use bivouac_core::id::ObjectId;
use bivouac_core::sabotage::{self, Fault};

use crate::bytes::Reader;

/// What an object is. Only needed when packs are read without an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// Bytes of a file, or of a link.
    Blob,
    /// The list of a large file's chunks.
    Chunks,
    Tree,
    /// What surrounds a checkpoint: git facts.
    Facts,
    /// A checkpoint itself.
    Manifest,
    /// What an operation changes.
    Plan,
}

impl ObjectKind {
    const ALL: [Self; 6] =
        [Self::Blob, Self::Chunks, Self::Tree, Self::Facts, Self::Manifest, Self::Plan];

    /// Stored for ever: a new kind gets a new number.
    const fn code(self) -> u8 {
        match self {
            Self::Blob => 1,
            Self::Chunks => 2,
            Self::Tree => 3,
            Self::Facts => 4,
            Self::Manifest => 5,
            Self::Plan => 6,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Files resemble files and trees resemble trees: each sort gets blocks of its own.
    pub(crate) const fn is_content(self) -> bool {
        matches!(self, Self::Blob)
    }
}

/// Objects on their way into a block.
#[derive(Default)]
pub(crate) struct BlockBuilder {
    objects: Vec<BlockObject>,
    raw: Vec<u8>,
}

/// One object of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockObject {
    pub kind: ObjectKind,
    pub id: ObjectId,
    pub length: u32,
}

const MAGIC: &[u8; 4] = b"BLK1";
const RAW: u8 = 0;
const ZSTD: u8 = 1;
pub(crate) const HEADER_LEN: usize = 20;
const OBJECT_LEN: usize = 37;
const CHECKSUM_LEN: usize = 16;
/// No object is larger: files are cut into chunks, and a folder of a million names has 60 MB.
const MAX_RAW: u32 = 1 << 30;

impl BlockBuilder {
    pub(crate) fn push(&mut self, kind: ObjectKind, id: ObjectId, bytes: &[u8]) {
        self.objects.push(BlockObject { kind, id, length: bytes.len() as u32 });
        self.raw.extend_from_slice(bytes);
    }

    pub(crate) fn raw_len(&self) -> usize {
        self.raw.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(crate) fn objects(&self) -> &[BlockObject] {
        &self.objects
    }

    /// The block as it is written. Bytes that do not shrink are kept as they are.
    pub(crate) fn encode(&self, level: i32) -> Vec<u8> {
        let compressed = zstd::bulk::compress(&self.raw, level).unwrap_or_default();
        let is_smaller = !compressed.is_empty() && compressed.len() < self.raw.len() / 100 * 97;
        let (codec, stored) = if is_smaller { (ZSTD, &compressed) } else { (RAW, &self.raw) };
        let length = HEADER_LEN + self.objects.len() * OBJECT_LEN + stored.len() + CHECKSUM_LEN;
        let mut out = Vec::with_capacity(length);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[codec, level.clamp(0, 255) as u8, 0, 0]);
        out.extend_from_slice(&(self.objects.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.raw.len() as u32).to_le_bytes());
        out.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        for object in &self.objects {
            out.push(object.kind.code());
            out.extend_from_slice(&object.length.to_le_bytes());
            out.extend_from_slice(object.id.as_bytes());
        }
        out.extend_from_slice(stored);
        let checksum = blake3::hash(&out);
        out.extend_from_slice(&checksum.as_bytes()[..CHECKSUM_LEN]);
        out
    }
}

/// How long a block is, told from its first [`HEADER_LEN`] bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockHeader {
    codec: u8,
    /// How hard it was tried to make it small.
    pub(crate) level: u8,
    count: u32,
    raw_len: u32,
    stored_len: u32,
}

impl BlockHeader {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.array::<4>()? != *MAGIC {
            return None;
        }
        let [codec, level, 0, 0] = reader.array::<4>()? else {
            return None;
        };
        let header = Self {
            codec,
            level,
            count: reader.u32()?,
            raw_len: reader.u32()?,
            stored_len: reader.u32()?,
        };
        let is_sane =
            codec <= ZSTD && header.raw_len <= MAX_RAW && header.stored_len <= header.raw_len;
        is_sane.then_some(header)
    }

    /// The whole block's length in the pack.
    pub(crate) fn block_len(&self) -> u64 {
        let objects = u64::from(self.count) * OBJECT_LEN as u64;
        HEADER_LEN as u64 + objects + u64::from(self.stored_len) + CHECKSUM_LEN as u64
    }
}

/// What a block holds, without the bytes.
pub struct BlockList {
    pub level: u8,
    pub objects: Vec<BlockObject>,
}

/// A block that was read: its checksum holds, its objects can be cut out.
pub struct Block {
    objects: Vec<BlockObject>,
    raw: Vec<u8>,
}

impl Block {
    /// `Err` says what is wrong with the bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let (header, objects, stored) = open(bytes)?;
        let raw = match header.codec {
            ZSTD => zstd::bulk::decompress(stored, header.raw_len as usize)
                .map_err(|_| "it does not decompress")?,
            _ => stored.to_vec(),
        };
        if raw.len() != header.raw_len as usize {
            return Err("the length is wrong");
        }
        Ok(Self { objects, raw })
    }

    /// Only the list of objects.
    pub(crate) fn decode_list(bytes: &[u8]) -> Result<BlockList, &'static str> {
        open(bytes).map(|(header, objects, _)| BlockList { level: header.level, objects })
    }

    /// The objects with their bytes, in order. Whoever serves one checks its hash first.
    pub fn objects(&self) -> impl Iterator<Item = (BlockObject, &[u8])> {
        let mut rest = self.raw.as_slice();
        self.objects.iter().map(move |object| {
            let (bytes, behind) = rest.split_at(object.length as usize);
            rest = behind;
            (*object, bytes)
        })
    }

    pub(crate) fn get(&self, id: &ObjectId) -> Option<&[u8]> {
        self.objects().find(|(object, _)| object.id == *id).map(|(_, bytes)| bytes)
    }

    pub(crate) fn raw_len(&self) -> usize {
        self.raw.len()
    }
}

/// Checks a block as a whole and takes it apart.
fn open(bytes: &[u8]) -> Result<(BlockHeader, Vec<BlockObject>, &[u8]), &'static str> {
    let header = BlockHeader::parse(bytes).ok_or("no block starts here")?;
    if bytes.len() as u64 != header.block_len() {
        return Err("the block is cut off");
    }
    let (body, checksum) = bytes.split_at(bytes.len() - CHECKSUM_LEN);
    let is_whole = blake3::hash(body).as_bytes()[..CHECKSUM_LEN] == *checksum;
    if !is_whole && !sabotage::is(Fault::HashesNotChecked) {
        return Err("the checksum does not match");
    }
    let (objects, stored) =
        parse_objects(&header, &body[HEADER_LEN..]).ok_or("the object list is wrong")?;
    Ok((header, objects, stored))
}

fn parse_objects<'a>(
    header: &BlockHeader,
    bytes: &'a [u8],
) -> Option<(Vec<BlockObject>, &'a [u8])> {
    let mut reader = Reader::new(bytes);
    let mut objects = Vec::with_capacity((header.count as usize).min(bytes.len() / OBJECT_LEN));
    let mut total = 0u64;
    for _ in 0..header.count {
        let kind = ObjectKind::from_code(reader.byte()?)?;
        let length = reader.u32()?;
        total += u64::from(length);
        objects.push(BlockObject { kind, length, id: reader.object_id()? });
    }
    let stored = reader.take(header.stored_len as usize)?;
    (total == u64::from(header.raw_len) && reader.is_empty()).then_some((objects, stored))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(objects: &[Vec<u8>]) -> Vec<u8> {
        let mut builder = BlockBuilder::default();
        for bytes in objects {
            builder.push(ObjectKind::Blob, ObjectId::of(bytes), bytes);
        }
        builder.encode(3)
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(objects in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20)) {
            let block = Block::decode(&block(&objects)).unwrap();
            let back: Vec<Vec<u8>> = block.objects().map(|(_, bytes)| bytes.to_vec()).collect();
            prop_assert_eq!(back, objects);
        }

        #[test]
        fn no_bytes_make_the_decoder_fall(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Block::decode(&bytes).is_err());
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let good = block(&[b"one and one and one and one".to_vec(), b"two".to_vec(), vec![]]);
        for place in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[place / 8] ^= 1 << (place % 8);
            assert!(Block::decode(&bad).is_err(), "bit {place}");
        }
        for length in 0..good.len() {
            assert!(Block::decode(&good[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn bytes_that_do_not_shrink_are_kept_as_they_are() {
        let noise: Vec<u8> = (0..10_000u64)
            .flat_map(|n| ObjectId::of(&n.to_le_bytes()).as_bytes()[..1].to_vec())
            .collect();
        assert!(block(std::slice::from_ref(&noise)).len() < noise.len() + 100);
        assert!(block(&[vec![7; 10_000]]).len() < 200);
    }
}
