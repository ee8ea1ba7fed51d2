//! Reading objects. Whatever is served was read from a block whose checksum held and matches its
//! own hash; a missing object is an error, never an absent file.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use bivouac_core::id::{ObjectId, PackId};
use bivouac_core::progress::Progress;
use bivouac_core::sabotage::{self, Fault};
use rayon::prelude::*;

use crate::block::{Block, BlockHeader, BlockList, BlockObject, HEADER_LEN, ObjectKind};
use crate::chunks::ChunkList;
use crate::pack::{
    Compression, NewPack, PACK_HEADER_LEN, PackWriter, TRAILER_LEN, header, pack_path, sync_folder,
    trailer,
};
use crate::private::{self, Open};
use crate::tree::{Content, Tree};
use crate::{Error, Result};

/// Where an object is: in the block that starts at `offset` of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub pack: PackId,
    pub offset: u64,
}

/// Knows where objects are: the database, or the packs themselves when there is none.
pub trait Catalog {
    fn locate(&self, id: &ObjectId) -> Result<Option<Place>>;
}

/// The folder of packs.
pub struct Packs {
    folder: PathBuf,
    open: Mutex<HashMap<PackId, Arc<File>>>,
}

impl Packs {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: Mutex::default() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn path(&self, id: PackId) -> PathBuf {
        pack_path(&self.folder, id)
    }

    /// The block at a place, its checksum verified.
    pub fn read_block(&self, place: Place) -> Result<Block> {
        let bytes = self.read_block_bytes(place)?;
        Block::decode(&bytes).map_err(|what| self.damaged(place, what))
    }

    fn read_block_bytes(&self, place: Place) -> Result<Vec<u8>> {
        let path = self.path(place.pack);
        let file = self.file(place.pack)?;
        let mut start = [0; HEADER_LEN];
        let cut_off = |_| self.damaged(place, "the pack is cut off");
        file.read_exact_at(&mut start, place.offset).map_err(cut_off)?;
        let header = BlockHeader::parse(&start)
            .ok_or_else(|| self.damaged(place, "no block starts here"))?;
        let length = file.metadata().map_err(Error::read(&path))?.len();
        if place.offset + header.block_len() > length {
            return Err(self.damaged(place, "the pack is cut off"));
        }
        let mut bytes = vec![0; header.block_len() as usize];
        file.read_exact_at(&mut bytes, place.offset).map_err(Error::read(&path))?;
        Ok(bytes)
    }

    /// What a block holds, without unpacking it.
    pub fn read_block_list(&self, place: Place) -> Result<BlockList> {
        let bytes = self.read_block_bytes(place)?;
        Block::decode_list(&bytes).map_err(|what| self.damaged(place, what))
    }

    fn file(&self, id: PackId) -> Result<Arc<File>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(&id) {
            return Ok(Arc::clone(file));
        }
        let path = self.path(id);
        let file = match private::open(&path, Open::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Damaged { path, offset: 0, what: "the pack is gone" });
            }
            other => Arc::new(other.map_err(Error::read(&path))?),
        };
        // Few commands need more than a handful; a long-lived one must not run out of descriptors.
        if open.len() >= 64 {
            open.clear();
        }
        open.insert(id, Arc::clone(&file));
        Ok(file)
    }

    fn damaged(&self, place: Place, what: &'static str) -> Error {
        Error::Damaged { path: self.path(place.pack), offset: place.offset, what }
    }

    /// Where the blocks of a whole pack start. An error names what is wrong with its frame.
    pub fn blocks(&self, id: PackId) -> Result<Vec<Place>> {
        let path = self.path(id);
        let file = self.file(id)?;
        let length = file.metadata().map_err(Error::read(&path))?.len();
        let damaged = |offset, what| Error::Damaged { path: path.clone(), offset, what };
        let mut start = [0; PACK_HEADER_LEN];
        file.read_exact_at(&mut start, 0).map_err(|_| damaged(0, "the header is cut off"))?;
        if start != header(id) {
            return Err(damaged(0, "the header is wrong"));
        }
        let end = length
            .checked_sub(TRAILER_LEN as u64)
            .ok_or_else(|| damaged(0, "the pack is cut off"))?;
        let mut places = Vec::new();
        let mut offset = PACK_HEADER_LEN as u64;
        while offset < end {
            let mut start = [0; HEADER_LEN];
            file.read_exact_at(&mut start, offset)
                .map_err(|_| damaged(offset, "the pack is cut off"))?;
            let header = BlockHeader::parse(&start)
                .ok_or_else(|| damaged(offset, "no block starts here"))?;
            places.push(Place { pack: id, offset });
            offset += header.block_len();
        }
        let mut tail = [0; TRAILER_LEN];
        file.read_exact_at(&mut tail, end).map_err(|_| damaged(end, "the trailer is cut off"))?;
        if offset != end || tail != trailer(id, places.len() as u32, end) {
            return Err(damaged(end, "the trailer is wrong"));
        }
        Ok(places)
    }

    /// Reads every block of a pack and checks every object in it. Answers what it holds.
    pub fn check(&self, id: PackId) -> Result<Vec<(BlockObject, Place)>> {
        let places = self.blocks(id)?;
        let blocks: Vec<Vec<(BlockObject, Place)>> =
            places.par_iter().map(|place| self.check_block(*place)).collect::<Result<_>>()?;
        Ok(blocks.concat())
    }

    /// Reads one block and checks every object in it.
    pub fn check_block(&self, place: Place) -> Result<Vec<(BlockObject, Place)>> {
        let block = self.read_block(place)?;
        let mut objects = Vec::new();
        for (object, bytes) in block.objects() {
            if ObjectId::of(bytes) != object.id && !sabotage::is(Fault::HashesNotChecked) {
                return Err(self.damaged(place, "an object does not match its hash"));
            }
            objects.push((object, place));
        }
        Ok(objects)
    }

    /// Reads a pack just written back from disk: nothing is called saved before this. What is not as it was
    /// written loses its name again, so that nobody takes it for damage to something that was saved.
    pub fn read_back(&self, pack: &NewPack) -> Result<()> {
        let path = self.path(pack.id);
        let wrong = match self.check(pack.id) {
            Ok(found) if found == pack.objects => return Ok(()),
            Ok(_) => {
                Error::Damaged { path: path.clone(), offset: 0, what: "it is not what was written" }
            }
            Err(error) => error,
        };
        self.forget_open();
        let _then_verify_tells = private::rename(&path, &path.with_extension("pack.tmp"));
        Err(wrong)
    }

    /// The packs in the folder, by name alone.
    pub fn list(&self) -> Result<Vec<PackId>> {
        let mut packs = Vec::new();
        for name in private::list(&self.folder).map_err(Error::read(&self.folder))? {
            packs.extend(
                name.to_str().and_then(|name| name.strip_suffix(".pack")?.parse::<PackId>().ok()),
            );
        }
        packs.sort_unstable();
        Ok(packs)
    }

    /// Forgets open files, so that a pack that was replaced is opened anew.
    pub fn forget_open(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Objects by their id.
pub struct Objects<'a> {
    packs: &'a Packs,
    catalog: &'a dyn Catalog,
    /// Blocks used of late: neighbours in a tree are neighbours in a block.
    recent: RefCell<VecDeque<(Place, Rc<Block>)>>,
}

const RECENT_BYTES: usize = 24 << 20;

impl<'a> Objects<'a> {
    pub fn new(packs: &'a Packs, catalog: &'a dyn Catalog) -> Self {
        Self { packs, catalog, recent: RefCell::default() }
    }

    pub fn packs(&self) -> &'a Packs {
        self.packs
    }

    pub fn find(&self, id: &ObjectId) -> Result<Option<Place>> {
        self.catalog.locate(id)
    }

    pub fn contains(&self, id: &ObjectId) -> Result<bool> {
        Ok(self.find(id)?.is_some())
    }

    pub fn locate(&self, id: &ObjectId) -> Result<Place> {
        self.find(id)?.ok_or(Error::Missing { id: *id })
    }

    pub fn get(&self, id: &ObjectId) -> Result<Vec<u8>> {
        let place = self.locate(id)?;
        let block = self.block(place)?;
        self.packs.cut_out(&block, place, id).map(<[u8]>::to_vec)
    }

    pub fn tree(&self, id: &ObjectId) -> Result<Tree> {
        Tree::decode(id, &self.get(id)?)
    }

    pub fn chunk_list(&self, id: &ObjectId) -> Result<ChunkList> {
        ChunkList::decode(id, &self.get(id)?)
    }

    /// Hands out a file's bytes, chunk by chunk where it is large.
    pub fn each_part(
        &self,
        content: &Content,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        match content {
            Content::Whole(id) => take(&self.get(id)?),
            Content::Chunked(id) => {
                let list = self.chunk_list(id)?;
                list.chunks.iter().try_for_each(|(chunk, _)| take(&self.get(chunk)?))
            }
        }
    }

    fn block(&self, place: Place) -> Result<Rc<Block>> {
        let mut recent = self.recent.borrow_mut();
        if let Some(found) = recent.iter().position(|(known, _)| *known == place) {
            let hit = recent.remove(found).expect("it was found at this place");
            let block = Rc::clone(&hit.1);
            recent.push_front(hit);
            return Ok(block);
        }
        let block = Rc::new(self.packs.read_block(place)?);
        recent.push_front((place, Rc::clone(&block)));
        let mut total = 0;
        let fitting = recent.iter().take_while(|(_, block)| {
            total += block.raw_len();
            total <= RECENT_BYTES
        });
        let kept = fitting.count().max(1);
        recent.truncate(kept);
        Ok(block)
    }
}

impl Packs {
    /// One object out of its block, its hash checked.
    pub fn cut_out<'b>(&self, block: &'b Block, place: Place, id: &ObjectId) -> Result<&'b [u8]> {
        let bytes =
            block.get(id).ok_or_else(|| self.damaged(place, "the object is not in its block"))?;
        match ObjectId::of(bytes) == *id || sabotage::is(Fault::HashesNotChecked) {
            true => Ok(bytes),
            false => Err(self.damaged(place, "an object does not match its hash")),
        }
    }
}

/// What the packs hold, read from the packs alone and checked. The catalog when there is no database.
#[derive(Default)]
pub struct PackScan {
    /// Sorted. An object may be in several packs.
    places: Vec<(ObjectId, Place)>,
    pub manifests: Vec<ObjectId>,
    /// Blocks and packs that could not be read, and why.
    pub damage: Vec<Error>,
    /// The packs those are in.
    pub damaged: BTreeSet<PackId>,
    pub n_packs: usize,
}

impl PackScan {
    /// Reads every pack. Damage is noted, and what is around it still found.
    pub fn read(packs: &Packs, progress: &dyn Progress) -> Result<Self> {
        let mut scan = Self::default();
        let ids = packs.list()?;
        progress.begin("Reading packs", ids.len() as u64);
        for id in ids {
            scan.n_packs += 1;
            let places = match packs.blocks(id) {
                Ok(places) => places,
                Err(error) => {
                    scan.note(id, error);
                    packs.blocks_before_damage(id)
                }
            };
            let checked: Vec<_> =
                places.par_iter().map(|place| packs.check_block(*place)).collect();
            for objects in checked {
                match objects {
                    Ok(objects) => scan.add(&objects),
                    Err(error) => scan.note(id, error),
                }
            }
            progress.add(1);
        }
        scan.places.sort_unstable();
        scan.manifests.sort_unstable();
        scan.manifests.dedup();
        progress.end();
        Ok(scan)
    }

    fn note(&mut self, pack: PackId, damage: Error) {
        self.damage.push(damage);
        self.damaged.insert(pack);
    }

    fn add(&mut self, objects: &[(BlockObject, Place)]) {
        for (object, place) in objects {
            self.places.push((object.id, *place));
            if object.kind == ObjectKind::Manifest {
                self.manifests.push(object.id);
            }
        }
    }

    pub fn places(&self) -> impl ExactSizeIterator<Item = &(ObjectId, Place)> {
        self.places.iter()
    }

    /// Is this object at this very place?
    pub fn holds(&self, id: &ObjectId, place: Place) -> bool {
        self.places.binary_search(&(*id, place)).is_ok()
    }
}

impl Catalog for PackScan {
    fn locate(&self, id: &ObjectId) -> Result<Option<Place>> {
        let first = self.places.partition_point(|(own, _)| own < id);
        Ok(self.places.get(first).filter(|(own, _)| own == id).map(|(_, place)| *place))
    }
}

impl Packs {
    /// Writes what is still good of a damaged pack into a new one, and moves the damaged one to another
    /// folder: it is kept, and no longer counts.
    pub fn set_aside(
        &self,
        damaged: PackId,
        scan: &PackScan,
        new: PackId,
        to: &Path,
    ) -> Result<PathBuf> {
        let mut writer = PackWriter::new(&self.folder, new, Compression::THOROUGH);
        let mut good: Vec<Place> =
            scan.places().map(|(_, place)| *place).filter(|place| place.pack == damaged).collect();
        good.sort_unstable();
        good.dedup();
        for place in good {
            let block = self.read_block(place)?;
            for (object, bytes) in block.objects() {
                writer.put(object.kind, object.id, bytes)?;
            }
        }
        if let Some(pack) = writer.finish()? {
            self.read_back(&pack)?;
        }
        let (path, aside) = (self.path(damaged), pack_path(to, damaged));
        private::rename(&path, &aside).map_err(Error::write(&path))?;
        self.forget_open();
        sync_folder(to)?;
        sync_folder(&self.folder)?;
        Ok(aside)
    }

    /// As many block starts as can be found in a pack whose frame is damaged.
    fn blocks_before_damage(&self, id: PackId) -> Vec<Place> {
        let Ok(file) = self.file(id) else {
            return Vec::new();
        };
        let mut places = Vec::new();
        let mut offset = PACK_HEADER_LEN as u64;
        let mut start = [0; HEADER_LEN];
        while file.read_exact_at(&mut start, offset).is_ok() {
            let Some(header) = BlockHeader::parse(&start) else {
                break;
            };
            places.push(Place { pack: id, offset });
            offset += header.block_len();
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_that_a_disk_did_not_keep_is_no_pack() {
        let folder = tempfile::tempdir().unwrap();
        let id = PackId::from_bytes([1; 16]);
        let mut writer = PackWriter::new(folder.path(), id, Compression::quick(3));
        writer.put(ObjectKind::Blob, ObjectId::of(b"kept"), b"kept").unwrap();
        let pack = writer.finish().unwrap().unwrap();
        let packs = Packs::new(folder.path());
        packs.read_back(&pack).unwrap();
        assert_eq!(packs.list().unwrap(), [id]);
        packs.forget_open();
        let path = packs.path(id);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(packs.read_back(&pack).is_err());
        assert_eq!(packs.list().unwrap(), []);
    }
}
