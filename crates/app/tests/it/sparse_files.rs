//! Sparse files come back sparse

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::env;

const SIZE: u64 = 64 << 20;

/// 64 MB with a little in the front, in the middle and at the end of its data; then a hole.
fn make_sparse(path: &Path, text: &str) {
    let file = fs::File::create(path).unwrap();
    file.set_len(SIZE).unwrap();
    for at in [0, 20_000_123, SIZE - 3_000_000] {
        file.write_all_at(text.as_bytes(), at).unwrap();
    }
    file.sync_all().unwrap();
}

fn allocated(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn a_sparse_file_takes_no_more_room_after_a_restore() {
    let env = env();
    let (first, second) = (env.root().join("first"), env.root().join("second"));
    make_sparse(&first, "one");
    make_sparse(&second, "two");
    if allocated(&first) > SIZE / 2 {
        return bivouac_testkit::left_out("this file system has no sparse files");
    }
    fs::rename(&first, env.path("disk.img")).unwrap();
    let original = allocated(&env.path("disk.img"));
    let bytes = fs::read(env.path("disk.img")).unwrap();
    env.biv(&["checkpoint", "create"]).ok();
    fs::rename(&second, env.path("disk.img")).unwrap();
    let check = |path: &Path| {
        assert!(fs::read(path).unwrap() == bytes, "{}", path.display());
        let now = allocated(path);
        assert!(now <= original + (1 << 20), "{now} instead of {original}");
    };
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    check(&env.path("disk.img"));
    let into = env.root().join("into");
    env.biv(&["checkpoint", "restore", "cp-001", "--into", into.to_str().unwrap()]).ok();
    check(&into.join("disk.img"));
    // Smaller than a chunk: such files are stored whole.
    let small = env.path("small.img");
    fs::File::create(&small).unwrap().write_all_at(b"end", 900_000).unwrap();
    env.biv(&["checkpoint", "create", "--name", "small"]).ok();
    fs::remove_file(&small).unwrap();
    env.biv(&["checkpoint", "rollback", "small", "--yes"]).ok();
    assert!(allocated(&small) <= 128 << 10, "{}", allocated(&small));
    assert_eq!(fs::read(&small).unwrap().len(), 900_003);
}
