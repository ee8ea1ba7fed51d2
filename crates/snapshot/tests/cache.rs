//! The stat cache is never wrong: whatever happens between two scans, a scan that uses it sees the
//! very tree that a scan without it sees.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bivouac_core::id::{CheckpointId, ObjectId};
use bivouac_core::progress::Silent;
use bivouac_snapshot::beneath::Root;
use bivouac_snapshot::path_set::PathSet;
use bivouac_snapshot::scope::Settings;
use bivouac_snapshot::stat_cache::StatCache;
use bivouac_snapshot::take::{Request, Sink, take};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Act {
    Write {
        path: usize,
        letter: u8,
        length: usize,
    },
    /// Other bytes of the same length, with the old modification time put back.
    Disguise {
        path: usize,
        letter: u8,
    },
    Remove {
        path: usize,
    },
    Rename {
        from: usize,
        to: usize,
    },
    Folder {
        path: usize,
    },
    Link {
        path: usize,
        target: usize,
    },
    Mode {
        path: usize,
        mode: u32,
    },
    Ignore {
        path: usize,
        rules: usize,
    },
    Wait,
    Scan,
}

const PATHS: &[&str] = &["a", "b", "d/a", "d/b", "d/e/a", "d/e/b", "x/y/z", "x/y", "x", "d/e", "d"];
const RULES: &[&str] = &["", "a\n", "b\n", "*\n!.gitignore\n", "/d/\n", "e/\n!a\n", "x/y\n"];

fn any_act() -> impl Strategy<Value = Act> {
    let path = 0..PATHS.len();
    prop_oneof![
        5 => (path.clone(), b'a'..b'e', 0usize..4)
            .prop_map(|(path, letter, length)| Act::Write { path, letter, length }),
        3 => (path.clone(), b'a'..b'e').prop_map(|(path, letter)| Act::Disguise { path, letter }),
        2 => path.clone().prop_map(|path| Act::Remove { path }),
        2 => (path.clone(), path.clone()).prop_map(|(from, to)| Act::Rename { from, to }),
        1 => path.clone().prop_map(|path| Act::Folder { path }),
        1 => (path.clone(), path.clone()).prop_map(|(path, target)| Act::Link { path, target }),
        1 => (path.clone(), prop::sample::select(vec![0o600, 0o644, 0o755]))
            .prop_map(|(path, mode)| Act::Mode { path, mode }),
        2 => (path, 0..RULES.len()).prop_map(|(path, rules)| Act::Ignore { path, rules }),
        1 => Just(Act::Wait),
        5 => Just(Act::Scan),
    ]
}

fn act(root: &Path, act: &Act) {
    let path = |n: usize| root.join(PATHS[n]);
    let _in_the_way = match act {
        Act::Write { path: at, letter, length } => {
            let _in_the_way = fs::create_dir_all(path(*at).parent().unwrap());
            fs::write(path(*at), vec![*letter; *length])
        }
        Act::Disguise { path: at, letter } => disguise(&path(*at), *letter),
        Act::Remove { path: at } => {
            fs::remove_file(path(*at)).or_else(|_| fs::remove_dir_all(path(*at)))
        }
        Act::Rename { from, to } => fs::rename(path(*from), path(*to)),
        Act::Folder { path: at } => fs::create_dir_all(path(*at)),
        Act::Link { path: at, target } => symlink(PATHS[*target], path(*at)),
        Act::Mode { path: at, mode } => match path(*at).is_file() {
            true => fs::set_permissions(path(*at), fs::Permissions::from_mode(*mode)),
            false => Ok(()),
        },
        Act::Ignore { path: at, rules } => {
            let folder = if path(*at).is_dir() { path(*at) } else { root.to_owned() };
            fs::write(folder.join(".gitignore"), RULES[*rules])
        }
        // Long enough for file times to move on, so that entries come to be trusted.
        Act::Wait => {
            std::thread::sleep(Duration::from_millis(60));
            Ok(())
        }
        Act::Scan => Ok(()),
    };
}

fn disguise(path: &Path, letter: u8) -> std::io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_file() {
        return Ok(());
    }
    fs::write(path, vec![letter; meta.len() as usize])?;
    File::options().write(true).open(path)?.set_modified(meta.modified()?)
}

/// The tree of a folder, and with a cache file what it becomes.
fn scan(folder: &Path, cache: Option<&Path>) -> ObjectId {
    let root = Root::open(folder).unwrap();
    let settings = Settings { max_file_size: 3, ..Settings::default() };
    let loaded = cache.and_then(StatCache::load);
    #[expect(clippy::disallowed_methods, reason = "the test is its own engine")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let request = Request {
        root: &root,
        settings: &settings,
        find_repository: &|_| None,
        cache: loaded.as_ref(),
        forced: &PathSet::default(),
        now_ns: now.as_nanos() as i64,
    };
    let mut sink = Sink::look();
    let taken = take(&request, &mut sink, &Silent).unwrap();
    if let Some(cache) = cache {
        taken.remember(cache, CheckpointId::from_bytes([1; 16]), None).unwrap();
    }
    taken.tree
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_scan_with_the_cache_sees_what_a_scan_without_it_sees(acts in prop::collection::vec(any_act(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let (work, cache) = (folder.path().join("work"), folder.path().join("cache.stat"));
        fs::create_dir(&work).unwrap();
        for it in &acts {
            act(&work, it);
            if matches!(it, Act::Scan) {
                prop_assert_eq!(scan(&work, Some(&cache)), scan(&work, None));
            }
        }
        prop_assert_eq!(scan(&work, Some(&cache)), scan(&work, None));
    }
}

#[test]
fn an_unchanged_folder_is_not_even_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (work, cache) = (folder.path().join("work"), folder.path().join("cache.stat"));
    fs::create_dir_all(work.join("deep/er")).unwrap();
    fs::write(work.join("deep/er/file"), "x").unwrap();
    std::thread::sleep(Duration::from_millis(60));
    let tree = scan(&work, Some(&cache));
    let bytes = fs::read(&cache).unwrap();
    assert_eq!(scan(&work, Some(&cache)), tree);
    // The records were copied, not made anew; only the checkpoint they belong to may differ.
    assert_eq!(fs::read(&cache).unwrap(), bytes);
}
