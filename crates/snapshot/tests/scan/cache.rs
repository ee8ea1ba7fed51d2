//! The stat cache is never wrong: whatever happens between two scans, a scan that uses it sees the
//! very tree that a scan without it sees.

use std::fs;
use std::path::Path;

use bivouac_snapshot::since::Since;
use bivouac_snapshot::stat_cache::{StatCache, Token};
use proptest::prelude::*;

use crate::acts::{Act, Seen, act, any_act};
use crate::stage::{Ask, Moment, Stage, TOKEN, texts};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_scan_with_the_cache_sees_what_a_scan_without_it_sees(acts in prop::collection::vec(any_act(), 1..40)) {
        let stage = Stage::new();
        for it in acts.iter().chain([&Act::Scan(Moment::AtOnce)]) {
            act(&stage, it, &mut Seen::default());
            if let Act::Scan(moment) = it {
                let scanned = stage.scan(Since::Unknown, *moment);
                let afresh = stage.scan_afresh();
                prop_assert_eq!((scanned.tree, scanned.coverage), (afresh.tree, afresh.coverage));
            }
        }
    }
}

#[test]
fn an_unchanged_folder_is_not_even_opened() {
    let stage = Stage::new();
    stage.write("deep/er/file", "x");
    let tree = stage.scan(Since::Unknown, Moment::Rested).tree;
    let bytes = fs::read(&stage.cache).unwrap();
    assert_eq!(stage.scan(Since::Unknown, Moment::Rested).tree, tree);
    // The records were copied, not made anew; only the checkpoint they belong to may differ.
    assert_eq!(fs::read(&stage.cache).unwrap(), bytes);
}

#[test]
fn the_cache_knows_its_folders() {
    let stage = Stage::new();
    stage
        .write(".gitignore", "out\n")
        .write("a/b/file", "x")
        .write("c/file", "x")
        .write("out/x", "");
    let first = stage.scan(Since::Unknown, Moment::Rested);
    assert_eq!(first.folders, ["", "a", "a/b", "c"]);
    assert_eq!(first.new_folders, first.folders);

    stage.write("a/new/er/file", "x");
    fs::rename(stage.work.join("c"), stage.work.join("d")).unwrap();
    let second = stage.scan(Since::Unknown, Moment::Rested);
    assert_eq!(second.folders, ["", "a", "a/b", "a/new", "a/new/er", "d"]);
    assert_eq!(second.new_folders, ["a/new", "a/new/er", "d"]);
    assert_eq!(texts(StatCache::load(&stage.cache).unwrap().folders()), second.folders);
}

fn token(cache: &Path) -> Option<Token> {
    StatCache::load(cache).unwrap().token()
}

#[test]
fn the_watchers_clock_is_kept_with_the_records_and_replaced_with_the_checkpoint() {
    let stage = Stage::new();
    stage.write("file", "x").scan(Since::Unknown, Moment::Rested);
    assert_eq!(token(&stage.cache), Some(TOKEN));
    for later in [Some(Token { tick: TOKEN.tick + 1, ..TOKEN }), None] {
        let now_ns = stage.now_ns(Moment::Rested);
        let ask = Ask::new(Some(&stage.cache), Since::Unknown, now_ns);
        stage.ask(&Ask { token: later, ..ask });
        assert_eq!(token(&stage.cache), later);
    }
}

#[test]
fn no_part_of_the_base_can_be_damaged_unnoticed() {
    let stage = Stage::new();
    stage.write("file", "x");
    for token in [Some(TOKEN), None] {
        let now_ns = stage.now_ns(Moment::Rested);
        stage.ask(&Ask { token, ..Ask::new(Some(&stage.cache), Since::Unknown, now_ns) });
        let bytes = fs::read(&stage.cache).unwrap();
        // After the magic and the checksum of the records: checkpoint, watcher and tick, and their checksum.
        for at in 40..40 + 40 + 32 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&stage.cache, damaged).unwrap();
            assert!(StatCache::load(&stage.cache).is_none(), "byte {at}");
        }
        fs::write(&stage.cache, bytes).unwrap();
    }
}
