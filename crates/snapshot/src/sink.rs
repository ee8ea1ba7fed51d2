//! Where the objects of a scan go: into a pack, or nowhere.

use std::collections::HashMap;
use std::io::Read;

use bivouac_core::id::ObjectId;

use crate::block::ObjectKind;
use crate::chunks::{self, WHOLE_LIMIT};
use crate::objects::Objects;
use crate::pack::PackWriter;
use crate::tree::Content;
use crate::{Error, Result};

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
