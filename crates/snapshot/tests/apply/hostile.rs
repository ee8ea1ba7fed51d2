//! Another user, or another program, interferes while a plan is applied

use std::fs;
use std::io::Write;
use std::os::unix::fs::chown;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use bivouac_core::id::ObjectId;
use bivouac_core::progress::Progress;
use bivouac_snapshot::Error;
use bivouac_snapshot::apply::apply;
use bivouac_snapshot::beneath::Root;
use bivouac_snapshot::objects::Objects;
use bivouac_snapshot::stage::Staging;
use bivouac_snapshot::tree::{Content, Entry, FileEntry};

use crate::stage::{OPERATION, Stage, file, folder, plan, replace, set_mode};

/// Another user of the machine: `nobody`.
const OTHER: u32 = 65_534;

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    let is_root = fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    if !is_root {
        let mut stderr = std::io::stderr();
        writeln!(stderr, "left out: only root can act as two users").unwrap();
    }
    is_root
}

fn program(text: &str, mode: u16) -> Option<Entry> {
    let content = Content::Whole(ObjectId::of(text.as_bytes()));
    Some(Entry::File(FileEntry { mode, size: text.len() as u64, content }))
}

fn mode_of(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_staging_folder_that_is_swapped_by_name_changes_nothing() {
    let stage = Stage::new();
    stage.write("f", "old");
    let stolen = stage.work.join("stolen");
    let outcome = stage.apply_disturbed(&replace(), &|| {
        fs::rename(stage.staging_folder(), &stolen).unwrap();
        stage.write(&stage.staging("0.new"), "evil");
    });
    assert_eq!((stage.read("f"), outcome.unwrap().n_written), ("new".to_owned(), 1));
    assert_eq!(stage.read(&stage.staging("0.new")), "evil", "the other folder was not touched");
    assert_eq!(fs::read_dir(&stolen).unwrap().count(), 0, "ours was emptied, wherever it is");
}

#[test]
fn staged_content_that_was_replaced_is_not_put_into_the_workspace() {
    let stage = Stage::new();
    stage.write("f", "old");
    let staged = stage.work.join(stage.staging("0.new"));
    let disturbances: [&(dyn Fn() + Sync); 2] = [
        &|| {
            let other = stage.work.join("other");
            fs::write(&other, "new").unwrap();
            set_mode(&other, 0o644);
            fs::rename(&other, &staged).unwrap();
        },
        &|| set_mode(&staged, 0o4755),
    ];
    for disturb in disturbances {
        let error = stage.apply_disturbed(&replace(), disturb).unwrap_err();
        assert!(matches!(error, Error::StagingReplaced { .. }), "{error}");
        assert_eq!(stage.read("f"), "old");
        let _not_there = fs::remove_dir_all(stage.staging_folder());
    }
}

#[test]
fn a_staging_folder_that_others_can_enter_is_refused() {
    let stage = Stage::new();
    let root = Root::open(&stage.work).unwrap();
    fs::create_dir(stage.staging_folder()).unwrap();
    for mode in [0o755, 0o770, 0o701] {
        set_mode(&stage.staging_folder(), mode);
        assert!(matches!(Staging::open(&root, OPERATION), Err(Error::StagingReplaced { .. })));
    }
    set_mode(&stage.staging_folder(), 0o700);
    assert!(Staging::open(&root, OPERATION).is_ok());
    if is_root() {
        chown(stage.staging_folder(), Some(OTHER), None).unwrap();
        assert!(matches!(Staging::open(&root, OPERATION), Err(Error::StagingReplaced { .. })));
    }
    fs::remove_dir(stage.staging_folder()).unwrap();
    std::os::unix::fs::symlink("/", stage.staging_folder()).unwrap();
    assert!(Staging::open(&root, OPERATION).is_err());
}

#[test]
fn other_names_in_the_staging_folder_are_not_ours_to_remove() {
    let stage = Stage::new();
    stage.write("f", "old");
    stage.write(&stage.staging("notes.txt"), "not ours");
    stage.write(&stage.staging("7.new"), "not of this plan");
    stage.apply_disturbed(&replace(), &|| ()).unwrap();
    assert_eq!(stage.read("f"), "new");
    assert_eq!(stage.read(&stage.staging("notes.txt")), "not ours");
    assert_eq!(stage.read(&stage.staging("7.new")), "not of this plan");
}

#[test]
fn a_folder_that_is_replaced_during_the_restore_does_not_get_its_permissions() {
    let stage = Stage::new();
    fs::create_dir(stage.work.join("private")).unwrap();
    set_mode(&stage.work.join("private"), 0o700);
    fs::create_dir(stage.work.join("d")).unwrap();
    set_mode(&stage.work.join("d"), 0o755);
    // The last step of the plan is the last moment before permissions are set.
    let plan = plan(&[("d", folder(0o755), folder(0o777)), ("z", None, file("new"))]);
    let root = Root::open(&stage.work).unwrap();
    let objects = Objects::new(&stage.packs, &stage.catalog);
    let staging = Staging::open(&root, OPERATION).unwrap();
    let swap = AtFirstFile(&|| {
        fs::rename(stage.work.join("d"), stage.work.join("moved")).unwrap();
        fs::rename(stage.work.join("private"), stage.work.join("d")).unwrap();
    });
    let outcome = apply(&root, &staging, &objects, &plan, &swap).unwrap();
    assert_eq!(mode_of(&stage.work.join("d")), 0o700);
    assert_eq!(outcome.left_alone.len(), 1);
}

/// Acts when the swap has put the first file in its place.
struct AtFirstFile<'d>(&'d (dyn Fn() + Sync));

impl Progress for AtFirstFile<'_> {
    fn begin(&self, what: &str, _total: u64) {
        if what == "Restoring" {
            SWAPPING.store(true, Ordering::Relaxed);
        }
    }
    fn add(&self, _n: u64) {
        if SWAPPING.swap(false, Ordering::Relaxed) {
            (self.0)();
        }
    }
    fn end(&self) {}
}

static SWAPPING: AtomicBool = AtomicBool::new(false);

#[test]
fn set_id_bits_are_given_only_where_nobody_else_can_write() {
    let stage = Stage::new();
    stage.write("tool", "old");
    stage.write("shared/tool", "old");
    set_mode(&stage.work.join("shared"), 0o777);
    let plan = plan(&[
        ("shared/new", None, folder(0o2755)),
        ("shared/tool", file("old"), program("new", 0o6755)),
        ("tool", file("old"), program("new", 0o4755)),
    ]);
    let outcome = stage.apply(&plan);
    let withheld: Vec<String> = outcome.without_set_id.iter().map(ToString::to_string).collect();
    assert_eq!(withheld, ["shared/new", "shared/tool"]);
    let modes = ["tool", "shared/tool", "shared/new"].map(|path| mode_of(&stage.work.join(path)));
    assert_eq!(modes, [0o4755, 0o755, 0o755]);
    // Applied again, as after an interruption, everything is found done.
    let again = stage.apply(&plan);
    assert_eq!((again.n_written, again.left_alone.len()), (0, 0));
    // Taken back from any point, too.
    let back = stage.apply(&plan.inverted());
    assert_eq!((stage.read("tool"), stage.read("shared/tool")), ("old".into(), "old".into()));
    assert_eq!(back.n_written, 2);
}

#[test]
fn root_gives_no_set_id_bits_in_another_users_workspace() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    stage.write("tool", "old");
    chown(&stage.work, Some(OTHER), Some(OTHER)).unwrap();
    // What stands at the path belongs to root, so the restored file will, too.
    let outcome = stage.apply(&plan(&[("tool", file("old"), program("new", 0o4755))]));
    assert_eq!((stage.read("tool"), outcome.n_written), ("new".to_owned(), 1));
    assert_eq!(mode_of(&stage.work.join("tool")), 0o755);
    assert_eq!(outcome.without_set_id.len(), 1);
    let outcome = stage.apply(&plan(&[("tool", program("new", 0o755), program("new", 0o4755))]));
    assert_eq!((mode_of(&stage.work.join("tool")), outcome.without_set_id.len()), (0o755, 1));
}
