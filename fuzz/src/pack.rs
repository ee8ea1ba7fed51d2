//! A pack: a letter that says what is put right first, then its blocks. Whatever the file is, an object that is
//! served matches its hash, and what was good in a damaged pack is still there when the pack was set aside.

use std::fs;

use bivouac_core::id::{ObjectId, PackId};
use bivouac_core::progress::Silent;
use bivouac_snapshot::objects::{Objects, PackScan, Packs};

/// Objects get the ids they should have.
const NAME: u8 = 1;
/// Blocks get their checksums.
const SEAL: u8 = 2;
/// The pack gets its header and its trailer.
const FRAME: u8 = 4;

pub fn try_one(bytes: &[u8]) {
    let Some((mend, bytes)) = bytes.split_first() else { return };
    let ids = [1u128, 2].map(|number| PackId::new(uuid::Uuid::from_u128(number)));
    let file = mended(*mend, bytes, ids[0]);
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let aside = tempfile::tempdir().expect("there is room for a folder");
    let packs = Packs::new(folder.path());
    fs::write(packs.path(ids[0]), &file).expect("a new folder takes a file");
    let scan = PackScan::read(&packs, &Silent).expect("the folder can be read");
    let held = check_served(&packs, &scan);
    match packs.check(ids[0]) {
        Ok(objects) => {
            assert!(scan.damage.is_empty());
            assert_eq!(objects.len(), scan.places().len());
        }
        Err(_) => {
            assert!(scan.damaged.contains(&ids[0]));
            packs.set_aside(ids[0], &scan, ids[1], aside.path()).expect("there is room for it");
            let scan = PackScan::read(&packs, &Silent).expect("the folder can be read");
            assert!(scan.damage.is_empty(), "what was written anew is good");
            let mut saved = check_served(&packs, &scan);
            saved.dedup();
            let mut wanted = held;
            wanted.dedup();
            assert_eq!(saved, wanted);
        }
    }
}

/// Every object that is said to be there is what it is called. Answers them in order.
fn check_served(packs: &Packs, scan: &PackScan) -> Vec<ObjectId> {
    let objects = Objects::new(packs, scan);
    let check = |id: &ObjectId| {
        let bytes = objects.get(id).expect("what the scan found can be read");
        assert_eq!(ObjectId::of(&bytes), *id);
        *id
    };
    scan.places().map(|(id, _)| check(id)).collect()
}

const HEADER_LEN: usize = 20;
const OBJECT_LEN: usize = 37;
const CHECKSUM_LEN: usize = 16;

/// A pack of these blocks, with right what the letter says.
fn mended(mend: u8, blocks: &[u8], id: PackId) -> Vec<u8> {
    let mut header = b"BIVPACK1".to_vec();
    header.extend_from_slice(id.uuid().as_bytes());
    if mend & FRAME == 0 {
        return [&header, blocks].concat();
    }
    let mut file = header.clone();
    let (mut rest, mut n_blocks) = (blocks.to_vec(), 0u32);
    while let Some(length) = block_len(&rest) {
        let behind = rest.split_off(length);
        mend_block(mend, &mut rest);
        file.append(&mut rest);
        rest = behind;
        n_blocks += 1;
    }
    let mut trailer = b"END1".to_vec();
    trailer.extend_from_slice(&n_blocks.to_le_bytes());
    trailer.extend_from_slice(&(file.len() as u64).to_le_bytes());
    let hash = blake3::hash(&[header, trailer.clone()].concat());
    file.extend_from_slice(&trailer);
    file.extend_from_slice(&hash.as_bytes()[..CHECKSUM_LEN]);
    file
}

/// How long the block that begins here says it is, if there is that much.
fn block_len(bytes: &[u8]) -> Option<usize> {
    let number = |at: usize| {
        let field: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(field) as usize)
    };
    let length = HEADER_LEN + number(8)? * OBJECT_LEN + number(16)? + CHECKSUM_LEN;
    (length <= bytes.len()).then_some(length)
}

fn mend_block(mend: u8, block: &mut [u8]) {
    let n_objects = u32::from_le_bytes([block[8], block[9], block[10], block[11]]) as usize;
    let is_raw = block[4] == 0;
    if mend & NAME != 0 && is_raw {
        let list_end = HEADER_LEN + n_objects * OBJECT_LEN;
        let (list, stored) = block.split_at_mut(list_end);
        let mut rest = &stored[..stored.len() - CHECKSUM_LEN];
        for object in list[HEADER_LEN..].chunks_exact_mut(OBJECT_LEN) {
            let length = u32::from_le_bytes([object[1], object[2], object[3], object[4]]) as usize;
            let Some((bytes, behind)) = rest.split_at_checked(length) else { break };
            object[5..].copy_from_slice(ObjectId::of(bytes).as_bytes());
            rest = behind;
        }
    }
    if mend & SEAL != 0 {
        let end = block.len() - CHECKSUM_LEN;
        let hash = blake3::hash(&block[..end]);
        block[end..].copy_from_slice(&hash.as_bytes()[..CHECKSUM_LEN]);
    }
}
