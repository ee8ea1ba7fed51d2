//! The files of a database stay together while a plan is applied

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bivouac_core::operation::WhyLeft;
use bivouac_core::progress::Progress;
use bivouac_snapshot::plan::Plan;

use crate::stage::{Stage, database, file, plan};

/// A program that does something at a certain moment of a restore.
struct At<'a> {
    /// Of the files that are restored, after so many.
    n_restored: u64,
    act: &'a (dyn Fn() + Sync),
    is_restoring: AtomicBool,
    n_seen: AtomicU64,
}

impl<'a> At<'a> {
    fn new(n_restored: u64, act: &'a (dyn Fn() + Sync)) -> Self {
        Self { n_restored, act, is_restoring: AtomicBool::new(false), n_seen: AtomicU64::new(0) }
    }
}

impl Progress for At<'_> {
    fn begin(&self, what: &str, _total: u64) {
        self.is_restoring.store(what == "Restoring", Ordering::Relaxed);
        if self.n_restored == 0 && what == "Preparing files" {
            (self.act)();
        }
    }

    fn add(&self, n: u64) {
        if self.is_restoring.load(Ordering::Relaxed)
            && self.n_seen.fetch_add(n, Ordering::Relaxed) + n == self.n_restored
        {
            (self.act)();
        }
    }

    fn end(&self) {}
}

/// The database `d` changes, its log is replaced, its index goes, and it has no journal.
fn replace_database() -> Plan {
    plan(&[
        ("d", file("old"), file("new")),
        ("d-journal", None, None),
        ("d-shm", file("old"), None),
        ("d-wal", file("old"), file("new")),
    ])
}

/// The files of `d`; `-` for one that is not there.
fn files_of(stage: &Stage) -> [String; 4] {
    ["d", "d-journal", "d-shm", "d-wal"].map(|name| stage.read(name))
}

fn write_database(stage: &Stage) {
    ["d", "d-shm", "d-wal"].into_iter().for_each(|name| stage.write(name, "old"));
}

#[test]
fn all_files_of_a_database_are_replaced() {
    let stage = Stage::new();
    write_database(&stage);
    let outcome = stage.apply(&replace_database());
    assert_eq!((outcome.n_written, outcome.n_removed, outcome.left_alone.len()), (2, 1, 0));
    assert_eq!(files_of(&stage), ["new", "-", "-", "new"]);
    stage.apply(&replace_database().inverted());
    assert_eq!(files_of(&stage), ["old", "-", "old", "old"]);
}

#[test]
fn a_database_of_which_one_file_changed_is_left_alone() {
    for name in ["d", "d-journal", "d-shm", "d-wal"] {
        let stage = Stage::new();
        write_database(&stage);
        stage.write(name, "other");
        let before = files_of(&stage);
        let outcome = stage.apply(&replace_database());
        assert_eq!(files_of(&stage), before, "{name}");
        assert_eq!((outcome.n_written, outcome.n_removed), (0, 0), "{name}");
        assert!(outcome.left_alone.iter().all(|it| it.why == WhyLeft::ChangedMeanwhile));
        assert_eq!(outcome.left_alone.len(), 3, "{name}");
    }
}

#[test]
fn a_database_that_changes_while_it_is_replaced_is_put_back() {
    for n_restored in 0..=2 {
        let stage = Stage::new();
        write_database(&stage);
        let outcome = stage.apply_while(
            &replace_database(),
            &At::new(n_restored, &|| stage.write("d-wal", "other")),
        );
        assert_eq!(files_of(&stage), ["old", "-", "old", "other"], "after {n_restored}");
        assert_eq!((outcome.n_written, outcome.n_removed), (0, 0), "after {n_restored}");
        assert!(!outcome.left_alone.is_empty(), "after {n_restored}");
    }
}

#[test]
fn a_database_that_a_program_opened_after_the_plan_is_left_alone() {
    let (old, new) = (database("a"), database("b"));
    let plan = plan(&[("d", file(&old), file(&new)), ("f", file("old"), file("new"))]);
    let stage = Stage::new();
    stage.write("d", &old);
    stage.write("f", "old");
    let outcome = stage.apply_while(&plan, &At::new(0, &|| stage.write("d-wal", "its log")));
    assert_eq!(stage.read("d"), old);
    assert_eq!(stage.read("f"), "new", "a file that is no database is restored");
    assert_eq!(outcome.left_alone.len(), 1);
    fs::remove_file(stage.work.join("d-wal")).unwrap();
    assert_eq!(stage.apply(&plan).n_written, 1);
    assert_eq!(stage.read("d"), new);
}
