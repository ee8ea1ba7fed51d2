//! Applying a plan from any state an interrupted run can leave behind

use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;

use bivouac_core::operation::WhyLeft;
use bivouac_core::path::RelPath;
use bivouac_core::progress::Silent;
use bivouac_snapshot::apply::apply;
use bivouac_snapshot::beneath::Root;
use bivouac_snapshot::displaced::clean_up;
use bivouac_snapshot::objects::Objects;
use bivouac_snapshot::stage::Staging;
use bivouac_snapshot::tree::{Entry, FileEntry};

use crate::stage::{OPERATION, Stage, file, folder, plan, replace, set_mode};

#[test]
fn a_file_is_replaced_once() {
    let stage = Stage::new();
    stage.write("f", "old");
    let outcome = stage.apply(&replace());
    assert_eq!((stage.read("f"), outcome.n_written), ("new".to_owned(), 1));
    let again = stage.apply(&replace());
    assert_eq!(
        (stage.read("f"), again.n_written, again.left_alone.len()),
        ("new".to_owned(), 0, 0)
    );
}

#[test]
fn half_written_new_content_is_written_again() {
    let stage = Stage::new();
    stage.write("f", "old");
    stage.write(&stage.staging("0.part"), "ne");
    assert_eq!(stage.apply(&replace()).n_written, 1);
    assert_eq!(stage.read("f"), "new");
}

#[test]
fn whole_new_content_that_was_never_swapped_in_is_used() {
    let stage = Stage::new();
    stage.write("f", "old");
    stage.write(&stage.staging("0.new"), "new");
    stage.apply(&replace());
    assert_eq!(stage.read("f"), "new");
}

#[test]
fn after_the_swap_nothing_is_left_to_do() {
    let stage = Stage::new();
    stage.write("f", "new");
    stage.write(&stage.staging("0.new"), "old");
    let outcome = stage.apply(&replace());
    assert_eq!((stage.read("f"), outcome.left_alone.len()), ("new".to_owned(), 0));
}

#[test]
fn what_was_displaced_by_mistake_is_put_back() {
    // Someone saved the file in the instant before the swap, and we died in the instant after it.
    let stage = Stage::new();
    stage.write("f", "new");
    stage.write(&stage.staging("0.new"), "someone's work");
    let outcome = stage.apply(&replace());
    assert_eq!(stage.read("f"), "someone's work");
    assert_eq!(outcome.left_alone[0].why, WhyLeft::ChangedMeanwhile);
}

#[test]
fn what_a_program_writes_into_a_file_that_was_replaced_is_kept() {
    let stage = Stage::new();
    stage.write("f", "old");
    stage.write("f.kept", "someone else's");
    let mut open = fs::File::options().append(true).open(stage.work.join("f")).unwrap();
    let root = Root::open(&stage.work).unwrap();
    let objects = Objects::new(&stage.packs, &stage.catalog);
    let staging = Staging::open(&root, OPERATION).unwrap();
    apply(&root, &staging, &objects, &replace(), &Silent).unwrap();
    open.write_all(b" and more").unwrap();
    let kept = clean_up(&root, &staging, &replace()).unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].path, "f.kept-2".parse::<RelPath>().unwrap());
    assert_eq!((stage.read("f"), stage.read("f.kept-2")), ("new".into(), "old and more".into()));
    assert_eq!(stage.read("f.kept"), "someone else's");
}

#[test]
fn what_was_on_its_way_aside_comes_back_first() {
    let stage = Stage::new();
    stage.write(&stage.staging("0.new"), "new");
    stage.write(&stage.staging("0.new.aside"), "old");
    let outcome = stage.apply(&replace());
    assert_eq!((stage.read("f"), outcome.n_written), ("new".to_owned(), 1));
    stage.write(&stage.staging("0.new.aside"), "someone's work");
    fs::remove_file(stage.work.join("f")).unwrap();
    let outcome = stage.apply(&replace());
    assert_eq!((stage.read("f"), outcome.n_written), ("someone's work".to_owned(), 0));
}

#[test]
fn what_was_removed_by_mistake_is_put_back() {
    let stage = Stage::new();
    stage.write(&stage.staging("0.old"), "someone's work");
    let outcome = stage.apply(&plan(&[("f", file("old"), None)]));
    assert_eq!(stage.read("f"), "someone's work");
    assert_eq!(outcome.left_alone.len(), 1);
}

#[test]
fn a_changed_file_is_left_alone() {
    let stage = Stage::new();
    for (text, left) in [("edited", 1), ("old", 0)] {
        stage.write("f", text);
        let outcome = stage.apply(&plan(&[("f", file("old"), None)]));
        assert_eq!(outcome.left_alone.len(), left, "{text}");
    }
    stage.write("f", "already there");
    assert_eq!(stage.apply(&plan(&[("f", None, file("new"))])).left_alone.len(), 1);
    assert_eq!(stage.read("f"), "already there");
}

#[test]
fn what_cannot_be_synced_is_left_alone_and_ends_nothing() {
    let stage = Stage::new();
    let _listens = UnixListener::bind(stage.work.join("a")).unwrap();
    let Some(Entry::File(before)) = file("old") else { unreachable!() };
    let after = Entry::File(FileEntry { mode: 0o600, ..before });
    let outcome = stage.apply(&plan(&[("a", file("old"), Some(after))]));
    assert_eq!(outcome.left_alone[0].why, WhyLeft::ChangedMeanwhile);
}

#[test]
fn a_file_becomes_a_folder_from_every_point_on_the_way() {
    let plan = plan(&[("p", file("old"), folder(0o755)), ("p/f", None, file("new"))]);
    let points: [&dyn Fn(&Stage); 5] = [
        &|stage| stage.write("p", "old"),
        &|stage| stage.write(&stage.staging("0.old"), "old"),
        &|stage| {
            stage.write(&stage.staging("0.old"), "old");
            fs::create_dir(stage.work.join("p")).unwrap();
            set_mode(&stage.work.join("p"), 0o700);
        },
        &|stage| {
            stage.write("p/f", "new");
            set_mode(&stage.work.join("p"), 0o700);
        },
        &|stage| stage.write("p/f", "new"),
    ];
    for (n, point) in points.iter().enumerate() {
        let stage = Stage::new();
        point(&stage);
        let outcome = stage.apply(&plan);
        assert_eq!(
            (stage.read("p/f"), outcome.left_alone.len()),
            ("new".to_owned(), 0),
            "point {n}"
        );
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(stage.work.join("p")).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o755, "point {n}");
    }
}

#[test]
fn a_folder_becomes_a_file_from_every_point_on_the_way() {
    let plan = plan(&[("p", folder(0o755), file("new")), ("p/f", file("old"), None)]);
    let points: [&dyn Fn(&Stage); 4] = [
        &|stage| stage.write("p/f", "old"),
        &|stage| {
            fs::create_dir(stage.work.join("p")).unwrap();
            stage.write(&stage.staging("1.old"), "old");
        },
        &|stage| stage.write(&stage.staging("1.old"), "old"),
        &|stage| stage.write("p", "new"),
    ];
    for (n, point) in points.iter().enumerate() {
        let stage = Stage::new();
        point(&stage);
        let outcome = stage.apply(&plan);
        assert_eq!((stage.read("p"), outcome.left_alone.len()), ("new".to_owned(), 0), "point {n}");
    }
}

#[test]
fn the_way_back_undoes_it_from_every_point_too() {
    let forth = plan(&[
        ("a", file("old"), file("new")),
        ("b", file("old"), None),
        ("c", None, file("new")),
    ]);
    for done in 0..=3 {
        let stage = Stage::new();
        stage.write("a", if done > 0 { "new" } else { "old" });
        if done <= 1 {
            stage.write("b", "old");
        }
        if done > 2 {
            stage.write("c", "new");
        }
        let outcome = stage.apply(&forth.inverted());
        let texts = (stage.read("a"), stage.read("b"), stage.read("c"));
        assert_eq!(texts, ("old".to_owned(), "old".to_owned(), "-".to_owned()), "{done} done");
        assert_eq!(outcome.left_alone.len(), 0);
    }
}

#[test]
fn a_folder_that_was_made_and_not_finished_goes_on_the_way_back() {
    let forth = plan(&[
        ("f", None, folder(0o755)),
        ("f/new", None, file("new")),
        ("way", file("old"), folder(0o755)),
        ("way/new", None, file("new")),
    ]);
    for n_files in 0..=2 {
        let stage = Stage::new();
        for (n, name) in ["f", "way"].into_iter().enumerate() {
            fs::DirBuilder::new().mode(0o700).create(stage.work.join(name)).unwrap();
            if n < n_files {
                stage.write(&format!("{name}/new"), "new");
            }
        }
        let outcome = stage.apply(&forth.inverted());
        assert_eq!((stage.read("f"), stage.read("way")), ("-".to_owned(), "old".to_owned()));
        assert!(!stage.work.join("f").exists());
        assert_eq!(outcome.left_alone.len(), 0);
    }
}

#[test]
fn a_missing_object_is_an_error_before_anything_changes() {
    let stage = Stage::new();
    stage.write("a", "old");
    stage.write("b", "old");
    let root = Root::open(&stage.work).unwrap();
    let objects = Objects::new(&stage.packs, &stage.catalog);
    let plan = plan(&[("a", file("old"), file("new")), ("b", file("old"), file("never stored"))]);
    let staging = Staging::open(&root, OPERATION).unwrap();
    assert!(apply(&root, &staging, &objects, &plan, &Silent).is_err());
    assert_eq!((stage.read("a"), stage.read("b")), ("old".to_owned(), "old".to_owned()));
}
