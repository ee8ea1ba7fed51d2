//! File systems whose times tell nothing: images with fixed times, overlays of them, FUSE that makes up the time of the
//! last change, and a clock that is behind ours. A file that is another is saved as another.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::ground::{Ground, Outcome, Stop, World, ensure, need, quietly};
use super::mounts::Mount;
use super::{Case, case};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in ["squashfs", "erofs", "overlay", "overlay-upper", "squashfuse"] {
        cases.push(case(format!("fixed {kind}"), move |ground| fixed(ground, kind, "vendor")));
        cases.push(case(format!("fixed-workspace {kind}"), move |ground| fixed(ground, kind, "")));
    }
    cases.extend([
        case("fuse", |ground| fuse(ground, &["--ctime-from-mtime"])),
        case("clock lagging", lagging_clock),
        case("clock seconds", whole_seconds),
        case("same-times ext4", |ground| same_times(ground, "ext4")),
        case("same-times xfs", |ground| same_times(ground, "xfs")),
        case("same-times btrfs", |ground| same_times(ground, "btrfs")),
    ]);
    cases
}

/// An image with one file of this content, whose times are all the same.
fn image(world: &World, kind: &str, content: &str) -> Result<PathBuf, Stop> {
    let source = world.env.root().join(format!("source-{content}"));
    fs::create_dir_all(&source)?;
    fs::write(source.join("lib.txt"), content)?;
    File::open(source.join("lib.txt"))?.set_modified(std::time::UNIX_EPOCH)?;
    File::open(&source)?.set_modified(std::time::UNIX_EPOCH)?;
    let image = world.env.root().join(format!("{content}.image"));
    let (from, to) = (source.to_string_lossy(), image.to_string_lossy());
    match kind {
        "erofs" => {
            need("mkfs.erofs", "erofs-utils")?;
            let id = "11111111-1111-4111-8111-111111111111";
            quietly("mkfs.erofs", &["-T", "0", "-U", id, &to, &from])?;
        }
        _ => {
            need("mksquashfs", "squashfs-tools")?;
            quietly(
                "mksquashfs",
                &[
                    &from,
                    &to,
                    "-quiet",
                    "-no-progress",
                    "-all-time",
                    "0",
                    "-mkfs-time",
                    "0",
                    "-noappend",
                ],
            )?;
        }
    }
    Ok(image)
}

/// Mounts an image, as it is or as what lies below an overlay.
fn mounted(world: &World, kind: &str, image: &Path, place: &Path) -> Result<Vec<Mount>, Stop> {
    // What goes last was mounted first.
    match kind {
        "overlay" | "overlay-upper" => {
            let lower = world.env.root().join("lower");
            let below = Mount::read_only(image, &lower)?;
            let upper = world.env.root().join("upper");
            let upper = (kind == "overlay-upper").then_some(upper.as_path());
            Ok(vec![Mount::overlay(&lower, upper, place)?, below])
        }
        "squashfuse" => Ok(vec![Mount::fuse("squashfuse", &[&image.to_string_lossy()], place)?]),
        _ => Ok(vec![Mount::read_only(image, place)?]),
    }
}

/// One image takes the place of another: same names, sizes, numbers and times, another content.
fn fixed(ground: &Ground<'_>, kind: &str, below: &str) -> Outcome {
    let world = ground.world_on_disk()?;
    let place = world.env.path(below);
    let (one, two) = (image(&world, kind, "one")?, image(&world, kind, "two")?);
    let mounts = mounted(&world, kind, &one, &place)?;
    let name = if below.is_empty() { "lib.txt".to_owned() } else { format!("{below}/lib.txt") };
    let first = fs::metadata(world.env.path(&name))?;
    world.save("one")?;
    world.save("one-again")?;
    drop(mounts);
    let _mounts = mounted(&world, kind, &two, &place)?;
    let second = fs::metadata(world.env.path(&name))?;
    let is_fixed = (first.mtime(), first.len()) == (second.mtime(), second.len());
    ensure(is_fixed, || "the times are real after all".to_owned())?;
    world.save("two")?;
    let tree = world.restored("two")?;
    let kept = tree.get(name.as_bytes()).map(|it| String::from_utf8_lossy(&it.2).into_owned());
    ensure(kept.as_deref() == Some("two"), || {
        format!("the checkpoint holds {kept:?} instead of `two`")
    })?;
    Ok(1)
}

/// A file system that shows the time of modification, which anyone can set, as that of the last change.
fn fuse(ground: &Ground<'_>, options: &[&str]) -> Outcome {
    let world = ground.world_on_disk()?;
    let below = world.env.root().join("below");
    fs::create_dir(&below)?;
    let from = below.to_string_lossy().into_owned();
    let _mount = Mount::fuse("bindfs", &[options, &[&from]].concat(), &world.env.work())?;
    let mut n_tried = 0;
    for n in 0..ground.size(5, 50) {
        world.env.write("a", format!("old {n:04}"));
        set_time(&world.env.path("a"))?;
        world.save(&format!("old-{n}"))?;
        world.save(&format!("old-again-{n}"))?;
        let before = fs::metadata(world.env.path("a"))?;
        world.env.write("a", format!("new {n:04}"));
        set_time(&world.env.path("a"))?;
        let after = fs::metadata(world.env.path("a"))?;
        let same = |meta: &fs::Metadata| {
            (meta.ctime(), meta.ctime_nsec(), meta.mtime(), meta.len(), meta.ino())
        };
        ensure(same(&before) == same(&after), || "the times are real after all".to_owned())?;
        world.save(&format!("new-{n}"))?;
        let tree = world.restored(&format!("new-{n}"))?;
        let kept = tree.get(b"a".as_slice()).map(|it| String::from_utf8_lossy(&it.2).into_owned());
        ensure(kept == Some(format!("new {n:04}")), || format!("the checkpoint holds {kept:?}"))?;
        n_tried += 1;
    }
    Ok(n_tried)
}

fn set_time(path: &Path) -> Result<(), Stop> {
    quietly("touch", &["-d", "2021-01-01", &path.to_string_lossy()]).map(drop)
}

/// A file system with a clock of its own, which is behind ours: what was written right before the scan looks old.
fn lagging_clock(ground: &Ground<'_>) -> Outcome {
    need("faketime", "faketime")?;
    need("fuse2fs", "fuse2fs")?;
    need("mkfs.ext2", "e2fsprogs")?;
    let world = ground.world_on_disk()?;
    let image = world.env.root().join("disk.image");
    File::create(&image)?.set_len(16 << 20)?;
    quietly("mkfs.ext2", &["-q", "-I", "128", &image.to_string_lossy()])?;
    // The program that sets a clock back waits for what it started; the library it uses does not.
    let library = quietly("faketime", &["-f", "-30s", "sh", "-c", "echo $LD_PRELOAD"])?;
    let behind = [format!("LD_PRELOAD={library}"), "FAKETIME=-30s".to_owned()];
    let place = image.to_string_lossy();
    let words = [&behind[0], &behind[1], "fuse2fs", &place, "-o", "rw"];
    let _disk = Mount::fuse("env", &words, &world.env.work())?;
    within_one_second(ground, &world)
}

/// A disk that counts in whole seconds.
fn whole_seconds(ground: &Ground<'_>) -> Outcome {
    let world = ground.world_on_disk()?;
    let _disk = Mount::image("ext2", &["-I", "128"], &world.env.work())?;
    within_one_second(ground, &world)
}

/// Two contents of the same size, within one second of the disk's clock, and a checkpoint of each.
fn within_one_second(ground: &Ground<'_>, world: &World) -> Outcome {
    let _not_there = fs::remove_dir(world.env.path("lost+found"));
    let same = |meta: &fs::Metadata| (meta.ctime(), meta.mtime(), meta.len(), meta.ino());
    let (mut n_tried, wanted) = (0, ground.size(2, 20));
    // Only where both writes fall into one second is there anything to see. A slow machine needs more turns.
    for n in 0..200 {
        world.env.write("a", format!("old {n:04}"));
        world.save(&format!("old-{n}"))?;
        let before = fs::metadata(world.env.path("a"))?;
        fs::write(world.env.path("a"), format!("new {n:04}"))?;
        let after = fs::metadata(world.env.path("a"))?;
        if same(&before) != same(&after) {
            continue;
        }
        world.save(&format!("new-{n}"))?;
        let tree = world.restored(&format!("new-{n}"))?;
        let kept = tree.get(b"a".as_slice()).map(|it| String::from_utf8_lossy(&it.2).into_owned());
        ensure(kept == Some(format!("new {n:04}")), || format!("the checkpoint holds {kept:?}"))?;
        n_tried += 1;
        if n_tried == wanted {
            return Ok(n_tried);
        }
    }
    Err(Stop::LeftOut("this machine never wrote twice within a second".to_owned()))
}

/// Where times are real, an edit of the same size whose time of modification was put back is found by its other time.
fn same_times(ground: &Ground<'_>, kind: &str) -> Outcome {
    let world = ground.world_on_disk()?;
    let _disk = Mount::image(kind, &[], &world.env.work())?;
    let _not_there = fs::remove_dir(world.env.path("lost+found"));
    let n_rounds = ground.size(5, 100);
    for n in 0..n_rounds {
        for word in ["old", "new"] {
            world.env.write("a", format!("{word} {n:04}"));
            set_time(&world.env.path("a"))?;
            world.save(&format!("{word}-{n}"))?;
            let tree = world.restored(&format!("{word}-{n}"))?;
            let kept =
                tree.get(b"a".as_slice()).map(|it| String::from_utf8_lossy(&it.2).into_owned());
            ensure(kept == Some(format!("{word} {n:04}")), || {
                format!("the checkpoint holds {kept:?}")
            })?;
        }
    }
    Ok(n_rounds)
}
