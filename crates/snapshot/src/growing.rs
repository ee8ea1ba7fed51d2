//! Files that mostly grow, such as the transcripts of agents: small chunks, so that a turn stores its own
//! records and little more, and long ones are read on from where they ended last time.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use bivouac_core::id::ObjectId;
use fastcdc::v2020::StreamCDC;

use crate::block::ObjectKind;
use crate::chunks::ChunkList;
use crate::objects::Objects;
use crate::pack::PackWriter;
use crate::tree::Content;
use crate::{Error, Result};

const MIN_CHUNK: usize = 32 << 10;
const AVERAGE_CHUNK: usize = 128 << 10;
const MAX_CHUNK: usize = 512 << 10;
/// Up to this size a file is always read whole.
const SHORT: u64 = 8 << 20;

/// Where new objects go, unless the store has them.
pub struct Shelf<'s, 'o> {
    pub objects: &'s Objects<'o>,
    pub pack: &'s mut PackWriter,
}

impl Shelf<'_, '_> {
    /// Stores a file as it is now. `known` is what was stored of it last time.
    pub fn put_file(
        &mut self,
        path: &Path,
        mut file: File,
        known: Option<Content>,
    ) -> Result<(Content, u64)> {
        let size = file.metadata().map_err(Error::read(path))?.len();
        let mut list = ChunkList::default();
        if let Some(Content::Chunked(id)) = known
            && size > SHORT
        {
            list = self.still_there(&mut file, &id, size).map_err(Error::read(path))?;
        }
        file.seek(SeekFrom::Start(list.size)).map_err(Error::read(path))?;
        let rest = file.take(size - list.size);
        self.put_rest(list, rest, path)
    }

    pub fn put_bytes(&mut self, bytes: &[u8]) -> Result<(Content, u64)> {
        self.put_rest(ChunkList::default(), bytes, Path::new("memory"))
    }

    /// The chunks of last time that the file still begins with: all but the last one, if the one before
    /// it is where it was. Files that only grow are not read again from the start.
    fn still_there(&self, file: &mut File, known: &ObjectId, size: u64) -> io::Result<ChunkList> {
        let Ok(mut list) = self.objects.chunk_list(known) else {
            return Ok(ChunkList::default());
        };
        let Some((_, length)) = list.chunks.pop() else {
            return Ok(ChunkList::default());
        };
        list.size -= length;
        let Some((id, length)) = list.chunks.last().copied() else {
            return Ok(ChunkList::default());
        };
        let mut bytes = vec![0; length as usize];
        let is_same = list.size <= size
            && file.seek(SeekFrom::Start(list.size - length)).is_ok()
            && file.read_exact(&mut bytes).is_ok()
            && ObjectId::of(&bytes) == id;
        Ok(if is_same { list } else { ChunkList::default() })
    }

    fn put_rest(
        &mut self,
        mut list: ChunkList,
        rest: impl Read,
        path: &Path,
    ) -> Result<(Content, u64)> {
        for chunk in StreamCDC::new(rest, MIN_CHUNK, AVERAGE_CHUNK, MAX_CHUNK) {
            let bytes = chunk.map_err(|error| Error::read(path)(error.into()))?.data;
            let id = self.put(ObjectKind::Blob, &bytes)?;
            list.size += bytes.len() as u64;
            list.chunks.push((id, bytes.len() as u64));
        }
        match list.chunks[..] {
            [] => Ok((Content::Whole(self.put(ObjectKind::Blob, b"")?), 0)),
            [(id, size)] => Ok((Content::Whole(id), size)),
            _ => {
                let id = self.put(ObjectKind::Chunks, &list.encode())?;
                Ok((Content::Chunked(id), list.size))
            }
        }
    }

    pub fn put(&mut self, kind: ObjectKind, bytes: &[u8]) -> Result<ObjectId> {
        let id = ObjectId::of(bytes);
        if !self.pack.contains(&id) && !self.objects.contains(&id)? {
            self.pack.put(kind, id, bytes)?;
        }
        Ok(id)
    }
}
