//! File systems whose times prove nothing: a change there is saved although no stat shows it

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bivouac_testkit::{FixedTimes, Mounted, TestEnv, erofs, left_out, make_ext4, make_old, until};

use crate::env;

/// Waits until the times in the workspace are old enough for the first scan to believe them.
pub(crate) fn settle(env: &TestEnv) {
    let probe = env.root().join("probe");
    let stamp = || {
        fs::write(&probe, "").unwrap();
        let meta = fs::metadata(&probe).unwrap();
        meta.ctime() * 1_000_000_000 + meta.ctime_nsec()
    };
    let newest = stamp();
    until("another time", || stamp() > newest + 200_000_000);
}

/// Saves, and answers what the checkpoint holds at a path.
fn saved(env: &TestEnv, path: &str) -> String {
    let handle = env.json("checkpoint create")["handle"].as_str().unwrap().to_owned();
    let out = env.root().join(&handle);
    env.biv(&["checkpoint", "restore", &handle, "--into", out.to_str().unwrap()]).ok();
    fs::read_to_string(out.join(path)).unwrap()
}

fn stat(path: &Path) -> (u64, i64, i64, u64) {
    let meta = fs::metadata(path).unwrap();
    (meta.ino(), meta.ctime(), meta.mtime(), meta.size())
}

#[test]
fn an_image_with_fixed_times_is_read_again() {
    let env = env();
    let (first, second) = (env.root().join("first"), env.root().join("second"));
    fs::write(&first, erofs("file", b"first")).unwrap();
    fs::write(&second, erofs("file", b"other")).unwrap();
    env.write("own", "1");
    let place = env.path("image");
    let Some(mounted) = Mounted::image(&place, &first, "ro") else {
        return left_out("erofs images cannot be mounted here");
    };
    settle(&env);
    assert_eq!(saved(&env, "image/file"), "first");
    let before = stat(&place.join("file"));
    mounted.unmount();
    let _mounted = Mounted::image(&place, &second, "ro").unwrap();
    assert_eq!(stat(&place.join("file")), before);
    assert_eq!(env.json("status")["changes"]["modified"], 1);
    assert_eq!(saved(&env, "image/file"), "other");
}

#[test]
fn a_fuse_server_that_does_not_keep_times_is_read_again() {
    let env = env();
    env.write("own", "1");
    let Some(served) = FixedTimes::mount(&env.path("served"), "first") else {
        return left_out("FUSE file systems cannot be mounted here");
    };
    settle(&env);
    assert_eq!(saved(&env, "served/file"), "first");
    let before = stat(&env.path("served/file"));
    served.set("other");
    assert_eq!(stat(&env.path("served/file")), before);
    assert_eq!(env.json("status")["changes"]["modified"], 1);
    assert_eq!(saved(&env, "served/file"), "other");
}

/// Someone edits a disk image while it is not mounted: its own times stay what they were.
#[test]
fn an_image_that_was_edited_in_between_is_another_file_system() {
    let env = env();
    env.write("own", "1");
    let (source, image) = (env.root().join("source"), env.root().join("disk.img"));
    fs::create_dir(&source).unwrap();
    let marked = |word: &str| format!("{word} content of the file");
    fs::write(source.join("file"), marked("first")).unwrap();
    if !make_ext4(&image, &source) {
        return left_out("there is no `mkfs.ext4` here");
    }
    make_old(&image, "file");
    let place = env.path("disk");
    let Some(mounted) = Mounted::image(&place, &image, "ro") else {
        return left_out("ext4 images cannot be mounted here");
    };
    settle(&env);
    assert_eq!(saved(&env, "disk/file"), marked("first"));
    let before = stat(&place.join("file"));
    mounted.unmount();
    let mut bytes = fs::read(&image).unwrap();
    let old = marked("first").into_bytes();
    let at = bytes.windows(old.len()).position(|window| window == old).unwrap();
    bytes[at..at + old.len()].copy_from_slice(marked("other").as_bytes());
    fs::write(&image, bytes).unwrap();
    let _mounted = Mounted::image(&place, &image, "ro").unwrap();
    assert_eq!(stat(&place.join("file")), before);
    assert_eq!(saved(&env, "disk/file"), marked("other"));
}

/// A new lower layer under the same upper one: what container images do.
#[test]
fn an_overlay_with_another_lower_layer_is_another_file_system() {
    let env = env();
    env.write("own", "1");
    let root = env.root().canonicalize().unwrap();
    for (name, content) in [("first", b"first"), ("second", b"other")] {
        fs::write(root.join(name), erofs("file", content)).unwrap();
    }
    fs::create_dir_all(root.join("upper")).unwrap();
    fs::create_dir_all(root.join("worked")).unwrap();
    let (lower, place) = (root.join("lower"), env.path("over"));
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        root.join("upper").display(),
        root.join("worked").display()
    );
    let mount = |image: &str| {
        let lower = Mounted::image(&lower, &root.join(image), "ro")?;
        let over = Mounted::at(&place, &["-t", "overlay", "-o", &options, "overlay"])?;
        Some((over, lower))
    };
    let Some((over, below)) = mount("first") else {
        return left_out("overlays over erofs cannot be mounted here");
    };
    settle(&env);
    assert_eq!(saved(&env, "over/file"), "first");
    // What is changed through the overlay is copied up, and shows.
    fs::write(place.join("new"), "1").unwrap();
    assert_eq!(saved(&env, "over/new"), "1");
    over.unmount();
    below.unmount();
    let _mounted = mount("second").unwrap();
    assert_eq!(saved(&env, "over/file"), "other");
    fs::write(place.join("file"), "third").unwrap();
    assert_eq!(saved(&env, "over/file"), "third");
}

/// A file system that comes and goes over a folder, with nobody watching.
#[test]
fn what_is_mounted_over_a_folder_is_saved_and_so_is_what_comes_back() {
    let env = env();
    env.write("folder/file", "below");
    settle(&env);
    assert_eq!(saved(&env, "folder/file"), "below");
    let Some(mounted) = Mounted::at(&env.path("folder"), &["-t", "tmpfs", "tmpfs"]) else {
        return left_out("nothing can be mounted here");
    };
    env.write("folder/file", "above");
    assert_eq!(saved(&env, "folder/file"), "above");
    mounted.unmount();
    assert_eq!(saved(&env, "folder/file"), "below");
}
