//! Our own records: a letter that says which, then its bytes. What is read is written to the same bytes: there is
//! one way to store a thing, or its address would not be its own.

use std::fs;
use std::path::Path;

use bivouac_core::id::ObjectId;
use bivouac_snapshot::chunks::ChunkList;
use bivouac_snapshot::plan::Plan;
use bivouac_snapshot::stat_cache::StatCache;
use bivouac_snapshot::tree::Tree;

pub fn try_one(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let id = ObjectId::of(bytes);
    match which {
        b't' => {
            let Ok(tree) = Tree::decode(&id, bytes) else { return };
            assert_eq!(tree.encode(), bytes);
            for (name, entry) in tree.entries() {
                assert!(!name.is_empty() && name != b"." && name != b".." && name != b".git");
                assert!(!name.contains(&b'/') && !name.contains(&0));
                assert_eq!(tree.get(name), Some(entry));
            }
        }
        b'p' => {
            let Ok(plan) = Plan::decode(&id, bytes) else { return };
            assert_eq!(plan.encode(), bytes);
            assert_eq!(plan.inverted().inverted().steps, plan.steps);
            assert!(plan.changes().count() <= plan.steps.len());
            for step in &plan.steps {
                check_inside(step.path.as_bytes());
            }
        }
        b'c' => {
            let Ok(list) = ChunkList::decode(&id, bytes) else { return };
            assert_eq!(list.encode(), bytes);
            assert_eq!(list.chunks.iter().map(|(_, length)| length).sum::<u64>(), list.size);
        }
        b's' => check_stat_cache(bytes),
        _ => {}
    }
}

/// No path leads out.
fn check_inside(path: &[u8]) {
    let strays = |name: &[u8]| matches!(name, b"" | b"." | b"..") || name.contains(&0);
    assert!(!path.split(|byte| *byte == b'/').any(strays));
}

/// A base of 40 bytes, then records. The checksums are put in: no fuzzer finds one.
fn check_stat_cache(bytes: &[u8]) {
    const BASE_LEN: usize = 40;
    let Some((base, records)) = bytes.split_at_checked(BASE_LEN) else { return };
    let mut base = base.to_vec();
    // Where there is no watcher, its clock says nothing.
    if base[16..32] == [0; 16] {
        base[32..].fill(0);
    }
    let checksum = *blake3::hash(records).as_bytes();
    let tie = *blake3::hash(&[base.as_slice(), &checksum].concat()).as_bytes();
    let file = [b"BIVSTAT3".as_slice(), &checksum, &base, &tie, records].concat();
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("cache.stat");
    fs::write(&path, &file).expect("a new folder takes a file");
    let cache = StatCache::load(&path).expect("its checksums hold");
    assert!(cache.folders().len() <= records.len());
    assert_eq!(cache.base().uuid().as_bytes(), &base[..16]);
    check_damage(&path, file);
}

/// Whatever byte is not what it was: the cache is not believed.
fn check_damage(path: &Path, mut file: Vec<u8>) {
    let at = file.iter().map(|byte| usize::from(*byte)).sum::<usize>() % file.len();
    file[at] ^= 1;
    fs::write(path, &file).expect("our own file");
    assert!(StatCache::load(path).is_none(), "byte {at}");
}
