//! Where everything is: the workspace, the store, the configuration.

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use bivouac_capture::agents::project_folder;
use bivouac_capture::git::Repository;
use bivouac_capture::process::Program;
use bivouac_capture::{agents, folder};
use bivouac_core::id::SessionId;
use bivouac_core::path::{RelPath, WorkspacePath};
use bivouac_snapshot::private;
use etcetera::BaseStrategy;

use crate::local_store::{self, Found, UnusedStore};
use crate::lock::Lock;
use crate::{Error, Result};

/// The file that configures a workspace, and marks one that is not in git.
pub const WORKSPACE_CONFIG: &str = "bivouac.toml";
/// Every name the store uses. In a project that keeps its own store, only these are ours.
pub const STORE_NAMES: [&str; 21] = [
    "sessions.db",
    "sessions.db-wal",
    "sessions.db-shm",
    "sessions.db.building",
    "sessions.db.rebuilt",
    "packs",
    "index",
    "damaged",
    "consent",
    "hooks",
    "restored",
    "runs",
    "spool",
    "watch",
    "store.lock",
    "gate.lock",
    "sweep.lock",
    "create.lock",
    "spool.lock",
    "swept",
    local_store::MARK,
];

/// What was said on the command line.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Where to stand, instead of the current folder.
    pub folder: Option<PathBuf>,
    /// The workspace, instead of the one found from there.
    pub workspace: Option<PathBuf>,
    pub store: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct Home {
    /// Where the person stands.
    pub folder: PathBuf,
    /// The folder being worked on, without links.
    pub workspace: PathBuf,
    pub store: PathBuf,
    /// Where the user's `config.toml` is.
    pub user_config: PathBuf,
    /// Where the local stores are recorded that this user made. `None` where there is no home folder.
    pub local_records: Option<PathBuf>,
    /// A store in the workspace that is not used, as somebody else may have put it there.
    pub unused_store: Option<UnusedStore>,
}

impl Home {
    pub fn find(wishes: &Wishes) -> Result<Self> {
        let whole = |folder: &PathBuf| folder.canonicalize().map_err(Error::io(folder));
        let folder = whole(wishes.folder.as_ref().unwrap_or(&PathBuf::from(".")))?;
        let bases = etcetera::choose_base_strategy().map_err(|_| Error::NoHome);
        let local_records = state_folder().map(|folder| folder.join("local-stores"));
        let workspace = match &wishes.workspace {
            Some(wished) => whole(&folder.join(wished))?,
            None => find_workspace(&folder, local_records.as_deref()),
        };
        let folder = if folder.starts_with(&workspace) { folder } else { workspace.clone() };
        let user_config = match env::var_os("BIV_CONFIG") {
            Some(file) => PathBuf::from(file),
            None => bases
                .as_ref()
                .map(|bases| bases.config_dir().join("bivouac/config.toml"))
                .unwrap_or_default(),
        };
        let wished = wishes.store.clone().or_else(|| {
            env::var_os("BIV_STORE").filter(|value| !value.is_empty()).map(PathBuf::from)
        });
        let (store, unused_store) = match wished {
            Some(folder) => (absolute(&folder)?, None),
            None => match local_store::find(&workspace, local_records.as_deref()) {
                Found::Ours(store) => (store, None),
                Found::Nothing => (bases?.data_dir().join("bivouac"), None),
                Found::NotUsed(found) => (bases?.data_dir().join("bivouac"), Some(found)),
            },
        };
        Ok(Self { folder, workspace, store, user_config, local_records, unused_store })
    }

    pub fn workspace_path(&self) -> WorkspacePath {
        WorkspacePath::new(self.workspace.as_os_str().as_bytes())
    }

    pub fn journal(&self) -> PathBuf {
        self.store.join("sessions.db")
    }

    pub fn packs(&self) -> PathBuf {
        self.store.join("packs")
    }

    fn index_file(&self, suffix: &str) -> PathBuf {
        self.store.join("index").join(format!("{}{suffix}", self.workspace_path().key()))
    }

    /// What the last scan of this workspace saw.
    pub fn stat_cache(&self) -> PathBuf {
        self.index_file(".stat")
    }

    /// What git said last.
    pub fn git_cache(&self) -> PathBuf {
        self.index_file(".git.json")
    }

    /// Where git is shown views of the repository. Each is removed after its question.
    pub fn git_views(&self) -> PathBuf {
        self.store.join("index/views")
    }

    /// Which folder it was at its last checkpoint.
    pub(crate) fn place(&self) -> PathBuf {
        self.index_file(".place.json")
    }

    /// The versions of the tools it uses.
    pub fn tool_cache(&self) -> PathBuf {
        self.index_file(".tools.json")
    }

    /// Held by whoever scans or restores this workspace.
    pub fn workspace_lock(&self) -> PathBuf {
        self.index_file(".lock")
    }

    /// Says that a checkpoint is being taken; empty when none is.
    pub(crate) fn saving_mark(&self) -> PathBuf {
        self.index_file(".saving")
    }

    /// Held together by those who write objects or rely on them, alone by those who remove any.
    pub fn store_lock(&self) -> PathBuf {
        self.store.join("store.lock")
    }

    /// Passed by whoever comes to use objects; closed for moments by whoever waits to be alone with them.
    pub fn gate_lock(&self) -> PathBuf {
        self.store.join("gate.lock")
    }

    /// Held by whoever has to be alone with the store.
    pub(crate) fn lock_store(&self) -> Result<Lock> {
        Lock::wait_alone(&self.store_lock(), &self.gate_lock(), "using the store")
    }

    /// Held by the one sweep there may be at a time.
    pub fn sweep_lock(&self) -> PathBuf {
        self.store.join("sweep.lock")
    }

    /// Where damaged files are kept. Nothing ever deletes them.
    pub fn damaged(&self) -> Result<PathBuf> {
        let folder = self.store.join("damaged");
        self.make_folder(&folder)?;
        Ok(folder)
    }

    /// Held by the one command that takes in what waits there.
    pub(crate) fn spool_lock(&self) -> PathBuf {
        self.store.join("spool.lock")
    }

    /// What hooks could not record in time.
    pub fn spool(&self) -> PathBuf {
        self.store.join("spool")
    }

    /// The `.env` files near the top of the workspace, as the last command found them.
    pub fn env_files(&self) -> PathBuf {
        self.index_file(".env")
    }

    /// The `.env` files that checkpoints of a workspace hold, at any depth.
    pub fn settings_of(&self, workspace: &WorkspacePath) -> PathBuf {
        self.store.join("index").join(format!("{}.settings", workspace.key()))
    }

    /// What was written into files of this workspace.
    pub fn papers(&self) -> PathBuf {
        self.index_file(".papers.json")
    }

    /// What we changed in settings of agents.
    pub fn hooks(&self) -> PathBuf {
        self.store.join("hooks")
    }

    /// What models ask leave for in this workspace.
    pub fn consent(&self) -> PathBuf {
        self.store.join("consent").join(format!("{}.json", self.workspace_path().key()))
    }

    /// Conversations on their way back to an agent.
    pub fn restored(&self) -> PathBuf {
        self.store.join("restored")
    }

    /// Held by the supervisor of a session as long as it lives; its time is the last sign of life.
    pub fn run_lock(&self, session: SessionId) -> PathBuf {
        self.runs().join(format!("{session}.lock"))
    }

    /// What commands say that nobody is looking at.
    pub fn run_log(&self, session: SessionId) -> PathBuf {
        self.runs().join(format!("{session}.log"))
    }

    pub fn runs(&self) -> PathBuf {
        self.store.join("runs")
    }

    /// Held by the one watcher a workspace may have.
    pub fn watch_lock(&self) -> PathBuf {
        self.watch().join(format!("{}.lock", self.workspace_path().key()))
    }

    /// Where that watcher answers.
    pub fn watch_socket(&self) -> PathBuf {
        self.watch().join(format!("{}.sock", self.workspace_path().key()))
    }

    pub fn watch(&self) -> PathBuf {
        self.store.join("watch")
    }

    /// Touched when a sweep ends.
    pub fn sweep_stamp(&self) -> PathBuf {
        self.store.join("swept")
    }

    pub fn workspace_config(&self) -> PathBuf {
        self.workspace.join(WORKSPACE_CONFIG)
    }

    /// Makes the folders of the store, private to the user and durable.
    pub fn create_store(&self) -> Result<()> {
        let below = [self.packs(), self.store.join("index"), self.runs(), self.watch()];
        below.iter().try_for_each(|folder| self.make_folder(folder))?;
        // Whoever made them may have been killed before their names were durable.
        [Some(self.store.as_path()), self.store.parent()]
            .into_iter()
            .flatten()
            .try_for_each(sync_folder)
    }

    /// Makes a folder of the store, and the store itself, durable. The way to the store may lead through links,
    /// but nothing in the store is one.
    pub(crate) fn make_folder(&self, folder: &Path) -> Result<()> {
        folder::make(&self.store).map_err(Error::io(&self.store))?;
        let below = folder.strip_prefix(&self.store).unwrap_or(Path::new(""));
        let mut way = self.store.clone();
        below.iter().try_for_each(|name| {
            way.push(name);
            private::make_folder(&way).map_err(Error::io(&way))
        })
    }

    /// A command of ours, for this workspace and store.
    pub(crate) fn own_command(&self, words: impl IntoIterator<Item = OsString>) -> Result<Program> {
        Ok(Program::ours()?.args(self.own_words(words)))
    }

    /// What follows our name on such a command line.
    pub(crate) fn own_words(
        &self,
        words: impl IntoIterator<Item = OsString>,
    ) -> impl Iterator<Item = OsString> {
        let place = [
            "--root".into(),
            self.workspace.clone().into_os_string(),
            "--store".into(),
            self.store.clone().into_os_string(),
        ];
        place.into_iter().chain(words)
    }

    /// The repository the workspace is in. One that spans the whole home folder is not about it.
    pub fn repository(&self) -> Option<Repository> {
        let home = home_folder();
        Repository::discover(&self.workspace)
            .filter(|it| it.top.parent().is_some() && Some(&it.top) != home.as_ref())
            .map(|it| it.with_views(self.git_views()))
    }

    /// Where the store of a project is that keeps it in its own folder.
    pub fn local_store(&self) -> PathBuf {
        self.workspace.join(local_store::FOLDER)
    }

    /// The root and the home folder hold other people's work, or all of it.
    pub fn check_workspace(&self) -> Result<()> {
        let refused = |what| Err(Error::WorkspaceRefused { path: self.workspace.clone(), what });
        if self.workspace.parent().is_none() {
            return refused("the root of the file system");
        }
        if home_folder().is_some_and(|home| home == self.workspace) {
            return refused("your home folder");
        }
        if self.store == self.workspace {
            return refused("the store itself");
        }
        Ok(())
    }

    /// The folder of the workspace, other than `.git`, that git keeps its data in.
    pub fn git_folder_inside(&self) -> Option<RelPath> {
        let repository = self.repository()?;
        let inside = |folder: &Path| {
            let folder = folder.canonicalize().ok()?;
            RelPath::new(folder.strip_prefix(&self.workspace).ok()?.as_os_str().as_bytes()).ok()
        };
        let is_other =
            |path: &RelPath| !path.as_bytes().split(|byte| *byte == b'/').any(|it| it == b".git");
        repository.own_folders().filter_map(inside).find(is_other)
    }

    /// Our own store, the repository and the agents' state, where they lie inside the workspace.
    pub fn own_state(&self) -> Vec<RelPath> {
        let mut folders = agents::state_folders(home_folder().as_deref());
        // What else the project keeps beside a store of its own is the project's.
        match self.store == self.local_store() {
            true => folders.extend(STORE_NAMES.map(|name| self.store.join(name))),
            false => folders.push(self.store.clone()),
        }
        // `.git` is never looked into; a repository can be kept under another name.
        let repository = self.repository();
        folders.extend(repository.iter().flat_map(Repository::own_folders).map(Path::to_owned));
        let inside = folders.iter().filter_map(|folder| {
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            let path = folder.strip_prefix(&self.workspace).ok()?;
            RelPath::new(path.as_os_str().as_bytes()).ok()
        });
        inside.collect()
    }
}

/// The git top level, else where a `bivouac.toml` or a local store of ours is, else the folder itself. A home folder or `/` that is a
/// repository (people keep their settings so) is not taken. Neither is a folder above whose `.git` or
/// `bivouac.toml` another user put there, say in `/tmp`: it would make the files of others ours to restore.
fn find_workspace(folder: &Path, local_records: Option<&Path>) -> PathBuf {
    let home = home_folder();
    let candidates =
        || folder.ancestors().filter(|it| it.parent().is_some() && Some(*it) != home.as_deref());
    let owner_here = folder.metadata().map(|meta| meta.uid()).ok();
    let us = rustix::process::geteuid().as_raw();
    let is_trusted = |marker: &Path| {
        let owner = marker.symlink_metadata().map(|meta| meta.uid());
        owner.is_ok_and(|owner| owner == us || owner == 0 || Some(owner) == owner_here)
    };
    let in_git =
        candidates().find(|it| is_trusted(&it.join(".git")) && Repository::at(it).is_some());
    let is_marked = |it: &&Path| {
        is_trusted(&it.join(WORKSPACE_CONFIG))
            || matches!(local_store::find(it, local_records), Found::Ours(_))
    };
    in_git.or_else(|| candidates().find(is_marked)).unwrap_or(folder).to_owned()
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    folder::sync(folder).map_err(Error::io(folder))
}

/// Where we keep what is about stores, and therefore not in them.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let bases = etcetera::choose_base_strategy().ok()?;
    Some(bases.state_dir().unwrap_or_else(|| bases.data_dir()).join("bivouac"))
}

pub(crate) fn home_folder() -> Option<PathBuf> {
    let home = etcetera::home_dir().ok()?;
    Some(home.canonicalize().unwrap_or(home))
}

fn absolute(folder: &Path) -> Result<PathBuf> {
    std::path::absolute(folder).map_err(Error::io(folder))
}
