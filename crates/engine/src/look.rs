//! Looking at the workspace: what a snapshot of it would be now.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};

use bivouac_capture::git::{self, Repository};
use bivouac_core::autosave;
use bivouac_core::checkpoint::{Coverage, Trigger};
use bivouac_core::id::ObjectId;
use bivouac_core::path::RelPath;
use bivouac_snapshot::beneath::Root;
use bivouac_snapshot::path_set::PathSet;
use bivouac_snapshot::scope::{self, Above, Settings};
use bivouac_snapshot::stat_cache::StatCache;
use bivouac_snapshot::take::{Request, Sink, Taken, take};

use crate::home::Home;
use crate::watch::News;
use crate::{Engine, Error, Result};

/// The workspace as it is, stored nowhere.
pub(crate) struct Look {
    pub(crate) tree: ObjectId,
    pub(crate) coverage: Coverage,
    /// Trees the store does not have.
    pub(crate) fresh: HashMap<ObjectId, Vec<u8>>,
}

/// Everything a scan is made of. It outlives what was taken.
pub(crate) struct Scene {
    root: Root,
    settings: Settings,
    cache: Option<StatCache>,
    /// What a watcher says changed since that cache.
    pub(crate) news: News,
    /// Why it is not known which ignored files git tracks.
    pub(crate) unknown_index: Arc<OnceLock<String>>,
}

/// How much of the workspace a scan looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Thoroughness {
    /// The stat of every file and folder.
    #[default]
    Everything,
    /// What the watcher says may have changed, if there is a watcher.
    AsWatched,
}

impl Thoroughness {
    /// What a checkpoint with this trigger needs.
    pub(crate) fn of(trigger: Trigger) -> Self {
        if autosave::may_rely_on_watcher(trigger) { Self::AsWatched } else { Self::Everything }
    }
}

impl Engine {
    /// Sees what a checkpoint taken now would hold. `forced` paths are captured whatever the rules say.
    ///
    /// No watcher is asked: rollback plans, `status`, `checkpoint diff` and briefings state what changed, and a
    /// watcher does not see everything (see `core::autosave::may_rely_on_watcher`).
    pub(crate) fn look(&self, forced: &PathSet) -> Result<Look> {
        self.look_at(&self.make_scene(self.stat_cache()?, News::default())?, forced)
    }

    /// The same for a hook while its agent waits: what a watcher knows is enough.
    pub(crate) fn look_quickly(&self) -> Result<Look> {
        self.look_at(&self.scene(Thoroughness::AsWatched)?, &PathSet::default())
    }

    /// The same without relying on what the last scan saw: every tree of it is at hand, whatever the store
    /// has lost.
    pub(crate) fn look_anew(&self) -> Result<Look> {
        self.look_at(&self.make_scene(None, News::default())?, &PathSet::default())
    }

    fn look_at(&self, scene: &Scene, forced: &PathSet) -> Result<Look> {
        self.home.check_workspace()?;
        let mut sink = Sink::look();
        let taken = self.scan(scene, forced, &mut sink)?;
        Ok(Look { tree: taken.tree, coverage: taken.coverage, fresh: sink.fresh })
    }

    /// Scans the workspace; what is new goes into the sink.
    pub(crate) fn scan<'s>(
        &self,
        scene: &'s Scene,
        forced: &PathSet,
        sink: &mut Sink<'_>,
    ) -> Result<Taken<'s>> {
        let home = &self.home;
        let request = Request {
            root: &scene.root,
            settings: &scene.settings,
            find_repository: &|folder: &[u8]| find_repository(home, folder, &scene.unknown_index),
            cache: scene.cache.as_ref(),
            forced,
            since: scene.news.as_since(),
            now_ns: self.clock.file_ns(),
        };
        Ok(take(&request, sink, self.progress.as_ref())?)
    }

    /// The workspace, to be scanned for a checkpoint. The watcher is asked in any case, so that what the scan
    /// sees can be remembered under its token.
    pub(crate) fn scene(&self, thoroughness: Thoroughness) -> Result<Scene> {
        let cache = self.stat_cache()?;
        let token = cache.as_ref().and_then(StatCache::token);
        self.make_scene(cache, News::since(&self.home, token, thoroughness))
    }

    fn make_scene(&self, cache: Option<StatCache>, news: News) -> Result<Scene> {
        let unknown_index = Arc::default();
        Ok(Scene { root: self.root()?, settings: self.settings(), cache, news, unknown_index })
    }

    pub(crate) fn root(&self) -> Result<Root> {
        Root::open(&self.home.workspace).map_err(Error::io(&self.home.workspace))
    }

    fn settings(&self) -> Settings {
        let repository = self.home.repository();
        Settings {
            include: self.config.include.clone(),
            exclude: self.config.exclude.clone(),
            max_file_size: self.config.max_file_size.0,
            own_state: self.home.own_state(),
            global_ignore: git::global_ignore(&self.home.workspace, repository.as_ref()),
        }
    }

    /// What the last scan saw, as long as the checkpoint it was for is there: its objects are then, too.
    fn stat_cache(&self) -> Result<Option<StatCache>> {
        match StatCache::load(&self.home.stat_cache()) {
            Some(cache) if self.journal.has_checkpoint(cache.base())? => Ok(Some(cache)),
            _ => Ok(None),
        }
    }
}

/// The repository whose top a folder is; for the workspace itself, the one it is in.
fn find_repository(
    home: &Home,
    folder: &[u8],
    unknown_index: &Arc<OnceLock<String>>,
) -> Option<scope::Repository> {
    let repository = match folder {
        b"" => home.repository()?,
        _ => Repository::at(&home.workspace.join(OsStr::from_bytes(folder)))?
            .with_views(home.git_views()),
    };
    let unknown_index = Arc::clone(unknown_index);
    let way = home
        .workspace
        .strip_prefix(&repository.top)
        .ok()
        .map(|way| way.as_os_str().as_bytes().to_vec());
    let above = way.and_then(|way| RelPath::new(way).ok()).map(|prefix| Above {
        prefix,
        ignore_files: git::ignore_files_above(&repository, &home.workspace),
    });
    Some(scope::Repository {
        index: repository.index_fingerprint(),
        exclude: repository.exclude_file(),
        above,
        load_tracked: Box::new(move || match repository.tracked() {
            Ok(tracked) => Ok(tracked.into_iter().collect()),
            // Whoever put something else in its place must not keep us from saving the rest.
            Err(error @ bivouac_capture::Error::BadIndex { .. }) => {
                let _the_first_counts = unknown_index.set(error.to_string());
                Ok(PathSet::default())
            }
            Err(error) => Err(error.to_string()),
        }),
    })
}
