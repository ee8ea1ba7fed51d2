//! Giving space back: mark what is reachable, then drop packs that hold nothing of it and rewrite
//! those that hold little or are small. Only full knowledge deletes: one object that cannot be read
//! while marking ends the sweep before it began.

use std::collections::HashSet;

use bivouac_core::id::{ObjectId, PackId};
use bivouac_core::progress::Progress;

use crate::Result;
use crate::block::BlockObject;
use crate::objects::Objects;
use crate::pack::{Compression, NewPack, PackWriter};
use crate::private;
use crate::tree::{Content, Entry};

/// Objects that something living needs.
#[derive(Default)]
pub struct Live {
    ids: HashSet<ObjectId>,
}

impl Live {
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.ids.contains(id)
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.ids.iter()
    }

    /// Marks an object that names no others.
    pub fn mark(&mut self, id: ObjectId) {
        self.ids.insert(id);
    }

    /// Marks a tree and all it names. Trees seen before are not read again.
    pub fn mark_tree(&mut self, objects: &Objects<'_>, root: &ObjectId) -> Result<()> {
        let mut waiting = vec![*root];
        while let Some(id) = waiting.pop() {
            if !self.ids.insert(id) {
                continue;
            }
            for (_, entry) in objects.tree(&id)?.entries() {
                match entry {
                    Entry::Folder { tree, .. } => waiting.push(*tree),
                    Entry::Link(id) => self.mark(*id),
                    Entry::File(file) => self.mark_content(objects, &file.content)?,
                    Entry::Gap { .. } => {}
                }
            }
        }
        Ok(())
    }

    fn mark_content(&mut self, objects: &Objects<'_>, content: &Content) -> Result<()> {
        let is_new = self.ids.insert(*content.id());
        if let (Content::Chunked(id), true) = (content, is_new) {
            let list = objects.chunk_list(id)?;
            self.ids.extend(list.chunks.iter().map(|(chunk, _)| *chunk));
        }
        Ok(())
    }
}

/// How much of a pack is still needed.
#[derive(Clone, Debug)]
pub struct PackUse {
    pub id: PackId,
    pub size_bytes: u64,
    pub live_bytes: u64,
    pub dead_bytes: u64,
    pub dead: Vec<ObjectId>,
    /// Some of it was compressed while someone waited, and can be made smaller.
    pub is_hasty: bool,
}

impl PackUse {
    /// Bytes on disk that would come back, near enough: the dead share of the pack.
    pub fn reclaimable(&self) -> u64 {
        let total = self.live_bytes + self.dead_bytes;
        if total == 0 {
            return self.size_bytes;
        }
        (u128::from(self.size_bytes) * u128::from(self.dead_bytes) / u128::from(total)) as u64
    }

    pub fn is_dead(&self) -> bool {
        self.live_bytes == 0
    }

    fn is_mostly_dead(&self) -> bool {
        self.live_bytes < self.dead_bytes
    }

    fn is_small(&self) -> bool {
        self.size_bytes < SMALL_PACK
    }
}

/// Packs below this size are merged.
const SMALL_PACK: u64 = 4 << 20;
/// So many small packs make a merge worth it.
const MANY_SMALL: usize = 8;
/// A merged pack is closed at about this size, so that no sweep needs more room than that.
const MERGED_PACK: u64 = 64 << 20;

/// So many objects go at once: nobody saves meanwhile.
const DEAD_AT_ONCE: u64 = 20_000;

/// So much is compressed again in one sweep, beside what has to be done anyway.
const HASTY_AT_ONCE: u64 = 512 << 20;

/// Counts what is needed of a pack.
pub fn survey(objects: &Objects<'_>, id: PackId, live: &Live) -> Result<PackUse> {
    let size_bytes = private::facts(&objects.packs().path(id)).map_or(0, |it| it.size_bytes);
    let mut usage =
        PackUse { id, size_bytes, live_bytes: 0, dead_bytes: 0, dead: Vec::new(), is_hasty: false };
    let mut levels = Vec::new();
    each_object(objects, id, |object, copy, level| {
        levels.push(level);
        // An empty object needs its entry too.
        let bytes = u64::from(object.length) + 1;
        match copy {
            Copy::Used if live.contains(&object.id) => usage.live_bytes += bytes,
            Copy::Used => {
                usage.dead_bytes += bytes;
                usage.dead.push(object.id);
            }
            Copy::Spare => usage.dead_bytes += bytes,
        }
    })?;
    usage.is_hasty = levels.iter().any(|level| i32::from(*level) < Compression::THOROUGH.level);
    Ok(usage)
}

/// Is this copy of an object the one the index knows?
#[derive(Debug, PartialEq, Eq)]
pub enum Copy {
    Used,
    Spare,
}

/// Every object of a pack, with the level its block was compressed at. Only lists are read, not the
/// objects themselves.
pub fn each_object(
    objects: &Objects<'_>,
    id: PackId,
    mut take: impl FnMut(&BlockObject, Copy, u8),
) -> Result<()> {
    let packs = objects.packs();
    for place in packs.blocks(id)? {
        let list = packs.read_block_list(place)?;
        for object in &list.objects {
            let is_used = objects.find(&object.id)? == Some(place);
            take(object, if is_used { Copy::Used } else { Copy::Spare }, list.level);
        }
    }
    Ok(())
}

/// Packs that go together: they are replaced by what is still needed of them, which may be nothing.
pub fn plan_sweep(usage: &[PackUse]) -> Vec<Vec<&PackUse>> {
    let (dead, living): (Vec<_>, Vec<_>) = usage.iter().partition(|it| it.is_dead());
    let mut groups = in_groups(dead, DEAD_AT_ONCE, |it| it.dead.len() as u64);
    let (small, large): (Vec<_>, Vec<_>) = living.into_iter().partition(|it| it.is_small());
    let mut hasty_bytes = 0;
    for pack in large {
        hasty_bytes += if pack.is_hasty { pack.size_bytes } else { 0 };
        if pack.is_mostly_dead() || (pack.is_hasty && hasty_bytes <= HASTY_AT_ONCE) {
            groups.push(vec![pack]);
        }
    }
    let is_worth_it = small.len() >= MANY_SMALL || small.iter().any(|it| it.is_mostly_dead());
    if is_worth_it && (small.len() > 1 || small.iter().any(|it| it.dead_bytes > 0)) {
        groups.extend(in_groups(small, MERGED_PACK, |it| it.size_bytes));
    }
    groups
}

/// Packs one after the other, in groups that each end when they weigh enough.
fn in_groups(
    packs: Vec<&PackUse>,
    enough: u64,
    weight: impl Fn(&PackUse) -> u64,
) -> Vec<Vec<&PackUse>> {
    let mut groups = Vec::new();
    let mut group = Vec::new();
    let mut total = 0;
    for pack in packs {
        total += weight(pack);
        group.push(pack);
        if total >= enough {
            groups.push(std::mem::take(&mut group));
            total = 0;
        }
    }
    groups.extend(Some(group).filter(|group| !group.is_empty()));
    groups
}

/// Writes what is still needed of some packs into a new one. The old ones stay until the new one is
/// in the index. `None` when nothing is needed.
pub fn rewrite(
    objects: &Objects<'_>,
    group: &[&PackUse],
    live: &Live,
    id: PackId,
    progress: &dyn Progress,
) -> Result<Option<NewPack>> {
    let packs = objects.packs();
    let mut writer = PackWriter::new(packs.folder(), id, Compression::THOROUGH);
    for pack in group.iter().filter(|pack| !pack.is_dead()) {
        for place in packs.blocks(pack.id)? {
            let block = packs.read_block(place)?;
            for (object, _) in block.objects().filter(|(object, _)| live.contains(&object.id)) {
                if objects.find(&object.id)? == Some(place) {
                    writer.put(
                        object.kind,
                        object.id,
                        packs.cut_out(&block, place, &object.id)?,
                    )?;
                }
            }
        }
        progress.add(1);
    }
    let written = writer.finish()?;
    if let Some(pack) = &written {
        packs.read_back(pack)?;
    }
    Ok(written)
}
