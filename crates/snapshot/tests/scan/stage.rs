//! A workspace that is scanned, and what a scan needs beside it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bivouac_core::checkpoint::Coverage;
use bivouac_core::id::{CheckpointId, ObjectId};
use bivouac_core::progress::Silent;
use bivouac_snapshot::beneath::Root;
use bivouac_snapshot::path_set::PathSet;
use bivouac_snapshot::scope::{Repository, Settings};
use bivouac_snapshot::since::Since;
use bivouac_snapshot::stat_cache::{StatCache, Token};
use bivouac_snapshot::take::{Request, Sink, take};
use tempfile::TempDir;

pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) work: PathBuf,
    pub(crate) cache: PathBuf,
}

/// When a scan happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    /// Right after the last change: what was just written cannot be trusted.
    AtOnce,
    /// So long after it that everything can.
    Rested,
}

/// A scan that is asked for.
pub(crate) struct Ask<'a> {
    pub(crate) cache: Option<&'a Path>,
    pub(crate) since: Since<'a>,
    pub(crate) forced: PathSet,
    pub(crate) now_ns: i64,
    /// What the watcher's clock said.
    pub(crate) token: Option<Token>,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(cache: Option<&'a Path>, since: Since<'a>, now_ns: i64) -> Self {
        Self { cache, since, forced: PathSet::default(), now_ns, token: Some(TOKEN) }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scanned {
    pub(crate) tree: ObjectId,
    pub(crate) coverage: Coverage,
    pub(crate) folders: Vec<String>,
    pub(crate) new_folders: Vec<String>,
}

pub(crate) const TOKEN: Token = Token { watcher: [7; 16], tick: 42 };

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let (work, cache) = (top.join("work"), top.join("cache.stat"));
        fs::create_dir(&work).unwrap();
        Self { folder, work, cache }
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// The user's global ignore file.
    pub(crate) fn global_ignore(&self) -> PathBuf {
        self.folder.path().join("global")
    }

    /// The present, by the clock that stamps files. Bytes are trusted after a minute: rather than wait
    /// for that, one tick of the clock is waited for, and the minute is added.
    pub(crate) fn now_ns(&self, moment: Moment) -> i64 {
        let ahead = match moment {
            Moment::AtOnce => Duration::ZERO,
            Moment::Rested => {
                self.wait_for_a_tick();
                Duration::from_secs(63)
            }
        };
        #[expect(clippy::disallowed_methods, reason = "the test is its own engine")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        (now + ahead).as_nanos() as i64
    }

    /// From here on, every change has another time than those before.
    fn wait_for_a_tick(&self) {
        let probe = self.folder.path().join("probe");
        let stamp = || {
            fs::write(&probe, "x").unwrap();
            let meta = fs::metadata(&probe).unwrap();
            (meta.ctime(), meta.ctime_nsec())
        };
        let first = stamp();
        while stamp() == first {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Scans with the cache, which becomes what this scan saw.
    pub(crate) fn scan(&self, since: Since<'_>, moment: Moment) -> Scanned {
        self.ask(&Ask::new(Some(&self.cache), since, self.now_ns(moment)))
    }

    /// Scans as if for the first time.
    pub(crate) fn scan_afresh(&self) -> Scanned {
        self.ask(&Ask::new(None, Since::Unknown, self.now_ns(Moment::AtOnce)))
    }

    pub(crate) fn ask(&self, ask: &Ask<'_>) -> Scanned {
        let root = Root::open(&self.work).unwrap();
        let global_ignore = fs::read(self.global_ignore()).unwrap_or_default();
        let settings = Settings { max_file_size: 3, global_ignore, ..Settings::default() };
        let loaded = ask.cache.and_then(StatCache::load);
        let request = Request {
            root: &root,
            settings: &settings,
            find_repository: &|folder| find_repository(&self.work, folder),
            cache: loaded.as_ref(),
            since: ask.since,
            forced: &ask.forced,
            now_ns: ask.now_ns,
        };
        let mut sink = Sink::look();
        let taken = take(&request, &mut sink, &Silent).unwrap();
        if let Some(cache) = ask.cache {
            taken.remember(cache, CheckpointId::from_bytes([1; 16]), ask.token).unwrap();
        }
        let (folders, new_folders) = (texts(taken.folders()), texts(taken.new_folders()));
        Scanned { tree: taken.tree, coverage: taken.coverage, folders, new_folders }
    }
}

/// Our repositories are files called `.git`, which are their own index: a line for each tracked path.
fn find_repository(work: &Path, folder: &[u8]) -> Option<Repository> {
    let folder = work.join(std::str::from_utf8(folder).unwrap());
    let index = fs::read_to_string(folder.join(".git")).ok()?;
    Some(Repository {
        index: blake3::hash(index.as_bytes()).as_bytes()[..8].try_into().unwrap(),
        exclude: Vec::new(),
        above: None,
        load_tracked: Box::new(move || {
            Ok(index.lines().map(|path| Box::from(path.as_bytes())).collect())
        }),
    })
}

pub(crate) fn paths(paths: &[&str]) -> PathSet {
    paths.iter().map(|path| Box::from(path.as_bytes())).collect()
}

pub(crate) fn texts(paths: Vec<Box<[u8]>>) -> Vec<String> {
    paths.into_iter().map(|path| String::from_utf8(path.into()).unwrap()).collect()
}
