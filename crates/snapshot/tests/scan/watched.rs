//! A scan that is told what changed looks at that, and at what no watcher can see. It sees the very tree,
//! and leaves the very cache, that a scan of everything does.

use std::fs;

use bivouac_snapshot::path_set::PathSet;
use bivouac_snapshot::since::{Changed, Since};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::acts::{Act, Seen, act, any_act};
use crate::stage::{Ask, Moment, Stage, paths};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_watched_scan_sees_what_a_scan_of_everything_sees(acts in prop::collection::vec(any_act(), 1..40)) {
        let stage = Stage::new();
        let mut seen = Seen::default();
        for it in acts.iter().chain([&Act::Scan(Moment::Rested)]) {
            act(&stage, it, &mut seen);
            if let Act::Scan(moment) = it {
                compare(&stage, &std::mem::take(&mut seen).changed(), *moment)?;
            }
        }
    }
}

fn compare(stage: &Stage, changed: &Changed, moment: Moment) -> TestCaseResult {
    let full = stage.cache.with_extension("full");
    let _none_yet = fs::copy(&stage.cache, &full);
    let now_ns = stage.now_ns(moment);
    let scan = |cache, since| stage.ask(&Ask::new(Some(cache), since, now_ns));
    let watched = scan(&stage.cache, Since::Only(changed));
    prop_assert_eq!(&watched, &scan(&full, Since::Unknown));
    prop_assert_eq!(watched.tree, stage.scan_afresh().tree);
    prop_assert!(fs::read(&stage.cache).unwrap() == fs::read(&full).unwrap(), "the caches differ");
    Ok(())
}

/// Scans the stage as it is, lets something happen, and says whether a scan that is told no more than
/// `changed` sees it.
fn sees(stage: &Stage, happen: impl FnOnce(), changed: &Changed) -> bool {
    happen();
    stage.scan(Since::Only(changed), Moment::Rested).tree == stage.scan_afresh().tree
}

#[test]
fn what_nobody_reports_is_not_looked_at() {
    let stage = Stage::new();
    stage.write("quiet/file", "1").write("busy/file", "1").write("busy/other", "1");
    stage.scan(Since::Unknown, Moment::Rested);
    stage.write("busy/file", "2");
    let only_reported = stage.scan_afresh().tree;

    stage.write("quiet/file", "2").write("busy/other", "2").write("quiet/new", "2");
    let changed = Changed::new(paths(&["busy/file"]), PathSet::default());
    assert_eq!(stage.scan(Since::Only(&changed), Moment::Rested).tree, only_reported);
}

#[test]
fn in_a_folder_that_is_listed_again_quiet_files_are_not_looked_at() {
    let stage = Stage::new();
    stage.write("busy/file", "1").scan(Since::Unknown, Moment::Rested);
    stage.write("busy/new", "1");
    let only_reported = stage.scan_afresh().tree;

    stage.write("busy/file", "2");
    let changed = Changed::new(paths(&["busy/new"]), PathSet::default());
    assert_eq!(stage.scan(Since::Only(&changed), Moment::Rested).tree, only_reported);
}

#[test]
fn of_a_tree_nothing_is_taken_for_granted() {
    let check = |tree: &str, seen: bool| {
        let stage = Stage::new();
        stage.write("a/b/file", "1").write("c/file", "1").scan(Since::Unknown, Moment::Rested);
        let happen = || write("a/b/file", "2")(&stage);
        let changed = Changed::new(PathSet::default(), paths(&[tree]));
        assert_eq!(sees(&stage, happen, &changed), seen, "{tree}");
    };
    check("", true);
    check("a", true);
    check("a/b", true);
    check("c", false);
}

#[test]
fn under_other_rules_everything_below_is_looked_at() {
    let check = |ignore_file: &str, seen: bool| {
        let stage = Stage::new();
        stage.write("a/b/file", "1").write("c/file", "1").scan(Since::Unknown, Moment::Rested);
        let happen = || {
            stage.write(ignore_file, "*.o").write("a/b/file", "2");
        };
        let changed = Changed::new(paths(&[ignore_file]), PathSet::default());
        assert_eq!(sees(&stage, happen, &changed), seen, "{ignore_file}");
    };
    check(".gitignore", true);
    check("a/.gitignore", true);
    check("c/.gitignore", false);
}

/// Scans what is arranged, and lets happen what nobody reports.
fn check_seen(arrange: impl Fn(&Stage), moment: Moment, happen: impl Fn(&Stage)) {
    let stage = Stage::new();
    arrange(&stage);
    stage.scan(Since::Unknown, moment);
    assert!(sees(&stage, || happen(&stage), &Changed::default()));
}

fn write(path: &'static str, text: &'static str) -> impl Fn(&Stage) {
    move |stage| {
        stage.write(path, text);
    }
}

#[test]
fn what_was_just_written_is_looked_at_again() {
    check_seen(write("a/b/file", "1"), Moment::AtOnce, write("a/b/file", "2"));
    check_seen(write("a/b/file", "1"), Moment::AtOnce, write("a/b/new", "1"));
}

#[test]
fn what_was_too_large_is_looked_at_again() {
    check_seen(write("a/b/file", "12345"), Moment::Rested, write("a/b/file", "2"));
}

#[test]
fn a_file_with_another_name_is_looked_at_again() {
    let elsewhere = |stage: &Stage| stage.cache.with_extension("elsewhere");
    let arrange = |stage: &Stage| {
        stage.write("a/b/file", "1");
        fs::hard_link(stage.work.join("a/b/file"), elsewhere(stage)).unwrap();
    };
    check_seen(arrange, Moment::Rested, |stage| fs::write(elsewhere(stage), "2").unwrap());
}

#[test]
fn what_git_tracks_is_asked_for_again() {
    let arrange = |stage: &Stage| {
        stage.write(".git", "").write("a/.git", "");
        stage.write("a/b/.gitignore", "f*").write("a/b/file", "1");
        stage.write("c/d/.gitignore", "f*").write("c/d/file", "1");
    };
    check_seen(arrange, Moment::Rested, write("a/.git", "b/file"));
    check_seen(arrange, Moment::Rested, write(".git", "c/d/file"));
}

#[test]
fn a_second_name_makes_the_first_one_doubtful() {
    let stage = Stage::new();
    stage.write("a/file", "1").write("b/other", "1").scan(Since::Unknown, Moment::Rested);
    let happen = || {
        fs::hard_link(stage.work.join("a/file"), stage.work.join("b/name")).unwrap();
        stage.write("b/name", "2");
    };
    let changed = Changed::new(paths(&["b/name"]), PathSet::default());
    assert!(sees(&stage, happen, &changed));
}

#[test]
fn a_scan_with_forced_paths_looks_at_everything() {
    let stage = Stage::new();
    stage.write(".gitignore", "out\n").write("a/file", "1").write("out/file", "1");
    stage.scan(Since::Unknown, Moment::Rested);
    stage.write("a/file", "2").write("out/file", "2");
    let now_ns = stage.now_ns(Moment::Rested);
    let forced = |since, cache| {
        stage.ask(&Ask { forced: paths(&["out/file"]), ..Ask::new(cache, since, now_ns) }).tree
    };
    let nothing = Changed::default();
    assert_eq!(
        forced(Since::Only(&nothing), Some(stage.cache.as_path())),
        forced(Since::Unknown, None)
    );
}
