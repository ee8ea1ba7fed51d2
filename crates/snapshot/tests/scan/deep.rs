//! Folders within folders within folders: too many are a gap, and never the end of the process.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use bivouac_core::checkpoint::Gap;
use bivouac_core::id::{ObjectId, PackId};
use bivouac_snapshot::block::ObjectKind;
use bivouac_snapshot::diff::{Filter, Trees, diff};
use bivouac_snapshot::objects::{Catalog, Objects, Packs, Place};
use bivouac_snapshot::pack::{Compression, PackWriter};
use bivouac_snapshot::since::Since;
use bivouac_snapshot::sweep::Live;
use bivouac_snapshot::tree::{Entry, Tree};
use bivouac_snapshot::verify::Verifier;
use rustix::fs::{CWD, FileType, Mode, OFlags, mkdirat, mknodat, openat};

use crate::stage::{Moment, Stage};

/// The deepest folder that is captured.
const MAX_DEPTH: usize = 512;

/// Makes a row of folders and writes a file into the innermost.
fn dig(work: &Path, name: &[u8], depth: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat(CWD, work, flags, Mode::empty()).unwrap();
    for name in std::iter::once(name).chain(std::iter::repeat_n(&b"d"[..], depth - 1)) {
        mkdirat(&at, name, Mode::RWXU).unwrap();
        at = openat(&at, name, flags, Mode::empty()).unwrap();
    }
    openat(&at, "f", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
}

/// Half of what threads usually have.
fn on_a_small_stack(act: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(act);
    thread.unwrap().join().unwrap();
}

#[test]
fn a_folder_that_is_too_deep_is_a_gap() {
    on_a_small_stack(too_deep);
}

fn too_deep() {
    let stage = Stage::new();
    dig(&stage.work, b"deepest", MAX_DEPTH);
    let scanned = stage.scan(Since::Unknown, Moment::Rested);
    assert_eq!((scanned.coverage.n_files, scanned.coverage.n_gaps()), (1, 0));

    dig(&stage.work, b"too_deep", 2_000);
    let scanned = stage.scan(Since::Unknown, Moment::Rested);
    assert_eq!(scanned.coverage.n_files, 1);
    assert_eq!(scanned.coverage.gaps, [(Gap::Unreadable, 1)].into());
    assert_eq!(scanned.folders.len(), 1 + 2 * MAX_DEPTH);
    // The cache holds it, and the next scan sees the same.
    assert_eq!(stage.scan(Since::Unknown, Moment::Rested).tree, scanned.tree);
    assert_eq!(stage.scan_afresh().tree, scanned.tree);
}

/// Every folder of a row has others beside it, so that the work is shared by all threads.
#[test]
fn deep_folders_side_by_side_do_not_exhaust_a_stack() {
    let stage = Stage::new();
    for number in 0..8u8 {
        dig(&stage.work, &[b'a' + number], MAX_DEPTH);
        let mut folder = stage.work.join(char::from(b'a' + number).to_string());
        for _ in 0..40 {
            for side in ["s", "t"] {
                fs::create_dir(folder.join(side)).unwrap();
            }
            folder.push("d");
        }
    }
    let scanned = stage.scan(Since::Unknown, Moment::Rested);
    assert_eq!((scanned.coverage.n_files, scanned.coverage.n_gaps()), (8, 0));
    assert_eq!(stage.scan(Since::Unknown, Moment::Rested).tree, scanned.tree);
}

#[test]
fn a_pipe_or_a_huge_file_in_place_of_ignore_rules_is_not_read() {
    let stage = Stage::new();
    stage.write("a/file", "1").write("b/file", "1").write("c/file", "1");
    let pipe = stage.work.join("a/.gitignore");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let huge = fs::File::create(stage.work.join("b/.gitignore")).unwrap();
    huge.set_len(64 << 30).unwrap();
    std::os::unix::fs::symlink("/dev/zero", stage.work.join("c/.gitignore")).unwrap();
    let scanned = stage.scan(Since::Unknown, Moment::Rested);
    assert_eq!(scanned.coverage.n_files, 4); // three files and the link
    assert_eq!(scanned.coverage.gaps, [(Gap::Special, 1), (Gap::TooLarge, 1)].into());
}

struct Places(HashMap<ObjectId, Place>);

impl Catalog for Places {
    fn locate(&self, id: &ObjectId) -> bivouac_snapshot::Result<Option<Place>> {
        Ok(self.0.get(id).copied())
    }
}

/// Earlier versions stored trees that are deeper than the walk goes now.
#[test]
fn a_deep_tree_of_the_store_is_compared_checked_and_marked() {
    on_a_small_stack(|| {
        const DEPTH: usize = 3_000;
        let folder = tempfile::tempdir().unwrap();
        let mut pack =
            PackWriter::new(folder.path(), PackId::from_bytes([1; 16]), Compression::quick(1));
        let mut put = |tree: &Tree| {
            let bytes = tree.encode();
            pack.put(ObjectKind::Tree, ObjectId::of(&bytes), &bytes).unwrap();
            ObjectId::of(&bytes)
        };
        let empty = put(&Tree::default());
        let mut tree = empty;
        for _ in 0..DEPTH {
            let entry = Entry::Folder { mode: 0o755, tree };
            tree = put(&Tree::from_sorted(vec![(b"d"[..].into(), entry)]));
        }
        let objects = pack.finish().unwrap().unwrap().objects;
        let places = Places(objects.iter().map(|(object, place)| (object.id, *place)).collect());
        let packs = Packs::new(folder.path());
        let objects = Objects::new(&packs, &places);

        let none_fresh = HashMap::new();
        let trees = Trees::with_fresh(&objects, &none_fresh);
        assert_eq!(diff(&trees, &empty, &tree, &Filter::default()).unwrap().len(), DEPTH);
        assert_eq!(Verifier::default().losses(&objects, &tree).unwrap(), []);
        let mut live = Live::default();
        live.mark_tree(&objects, &tree).unwrap();
        assert_eq!(live.len(), DEPTH + 1);
    });
}
