//! Large files in content-defined chunks: where two versions agree, their chunks agree, so that
//! appending to a 50 MB transcript stores only its new end.

use std::io::Read;

use bivouac_core::id::ObjectId;
use fastcdc::v2020::StreamCDC;

use crate::bytes::{Reader, put_varint};
use crate::{Error, Result};

/// Files up to this size are one object.
pub const WHOLE_LIMIT: u64 = 1 << 20;

const MIN_CHUNK: usize = 128 << 10;
const AVERAGE_CHUNK: usize = 512 << 10;
const MAX_CHUNK: usize = 2 << 20;

/// The stored list of a large file's chunks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChunkList {
    pub size: u64,
    pub chunks: Vec<(ObjectId, u64)>,
}

const VERSION: u8 = 1;

impl ChunkList {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_varint(&mut out, self.size);
        put_varint(&mut out, self.chunks.len() as u64);
        for (id, length) in &self.chunks {
            put_varint(&mut out, *length);
            out.extend_from_slice(id.as_bytes());
        }
        out
    }

    pub fn decode(id: &ObjectId, bytes: &[u8]) -> Result<Self> {
        decode(bytes).ok_or(Error::Malformed { id: *id, what: "list of chunks" })
    }
}

fn decode(bytes: &[u8]) -> Option<ChunkList> {
    let mut reader = Reader::new(bytes);
    if reader.byte()? != VERSION {
        return None;
    }
    let size = reader.varint()?;
    let count = usize::try_from(reader.varint()?).ok()?;
    let mut chunks = Vec::with_capacity(count.min(bytes.len() / ObjectId::LEN));
    let mut total = 0u64;
    for _ in 0..count {
        let length = reader.varint()?;
        total = total.checked_add(length)?;
        chunks.push((reader.object_id()?, length));
    }
    (total == size && reader.is_empty()).then_some(ChunkList { size, chunks })
}

/// Cuts a stream into chunks and hands each to `keep`. Memory stays at a few chunks.
pub(crate) fn cut<E>(
    source: impl Read,
    mut keep: impl FnMut(ObjectId, &[u8]) -> Result<(), E>,
) -> Result<std::io::Result<ChunkList>, E> {
    let mut list = ChunkList::default();
    for chunk in StreamCDC::new(source, MIN_CHUNK, AVERAGE_CHUNK, MAX_CHUNK) {
        let chunk = match chunk {
            Ok(chunk) => chunk.data,
            Err(error) => return Ok(Err(error.into())),
        };
        let id = ObjectId::of(&chunk);
        list.size += chunk.len() as u64;
        list.chunks.push((id, chunk.len() as u64));
        keep(id, &chunk)?;
    }
    Ok(Ok(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks_of(bytes: &[u8]) -> ChunkList {
        cut(bytes, |_, _| Ok::<(), ()>(())).unwrap().unwrap()
    }

    fn noise(length: usize) -> Vec<u8> {
        let blocks =
            (0..length.div_ceil(32) as u64).map(|n| *ObjectId::of(&n.to_le_bytes()).as_bytes());
        blocks.flatten().take(length).collect()
    }

    #[test]
    fn appending_stores_only_the_new_end() {
        let mut bytes = noise(20 << 20);
        let before = chunks_of(&bytes);
        bytes.extend_from_slice(b"one more line\n");
        let after = chunks_of(&bytes);
        let n_new = after.chunks.iter().filter(|chunk| !before.chunks.contains(chunk)).count();
        assert_eq!(n_new, 1);
    }

    #[test]
    fn inserting_at_the_front_shifts_little() {
        let mut bytes = noise(20 << 20);
        let before = chunks_of(&bytes);
        bytes.splice(0..0, *b"a few bytes");
        let after = chunks_of(&bytes);
        let n_new = after.chunks.iter().filter(|chunk| !before.chunks.contains(chunk)).count();
        assert!(n_new <= 3, "{n_new} of {}", after.chunks.len());
    }

    #[test]
    fn a_list_survives_being_stored() {
        let list = chunks_of(&noise(5 << 20));
        let bytes = list.encode();
        assert_eq!(ChunkList::decode(&ObjectId::of(&bytes), &bytes).unwrap(), list);
        assert!(ChunkList::decode(&ObjectId::of(b""), &bytes[..bytes.len() - 1]).is_err());
    }
}
