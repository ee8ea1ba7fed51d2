//! The secrets we can know of: the values in the `.env` files of workspaces, and in variables whose names give
//! them away. They are blotted out of whatever leaves, in every form they may take. Files near the top of a workspace
//! are looked for by every command; those that a checkpoint captured are known at any depth.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bivouac_capture::dotenv::{assignments, files_in, read};
use bivouac_core::path::WorkspacePath;
use bivouac_core::redact::file::is_settings;
use bivouac_core::redact::{Redactor, is_telling};
use bivouac_snapshot::private;
use bivouac_snapshot::take::{Among, Taken};

use crate::Engine;

/// More values than this would make every command slow.
const MANY_VALUES: usize = 2_000;
/// So many other workspaces are asked for theirs.
const MANY_WORKSPACES: u32 = 200;

impl Engine {
    /// What takes the secrets out of a text. At first it knows those of this workspace.
    pub fn redactor(&self) -> &Redactor {
        self.redactor.get_or_init(|| self.redactor_knowing(&[]))
    }

    /// The same, which knows the values in these texts of `.env` files as well.
    pub(crate) fn redactor_knowing(&self, texts: &[String]) -> Redactor {
        let mut secrets = Secrets::default();
        // These come first, so that no limit drops them.
        texts.iter().for_each(|text| secrets.add_text(text));
        secrets.add_environment();
        secrets.add_files(&self.known_files());
        secrets.redactor()
    }

    /// From now on, the secrets of all workspaces that have sessions here are known.
    pub fn know_all_secrets(&mut self) {
        // A store that cannot answer shows nothing of others either.
        let known = self.journal.newest_workspaces(MANY_WORKSPACES).unwrap_or_default();
        let others =
            known.iter().map(|it| PathBuf::from(std::ffi::OsStr::from_bytes(it.as_bytes())));
        let mut files = files_in(&self.home.workspace, DEPTH);
        self.remember_files(&files);
        files.extend(self.captured_settings(&self.home.workspace));
        for folder in others.filter(|folder| *folder != self.home.workspace) {
            files.extend(files_in(&folder, DEPTH));
            files.extend(self.captured_settings(&folder));
        }
        let mut secrets = Secrets::default();
        secrets.add_environment();
        secrets.add_files(&files);
        let redactor = secrets.redactor();
        self.journal.set_redactor(redactor.clone());
        self.redactor = OnceLock::from(redactor);
    }

    /// The files at the top, and those that a command with more time found further down.
    fn known_files(&self) -> Vec<PathBuf> {
        let mut files = files_in(&self.home.workspace, 0);
        let listed = private::read(&self.home.env_files()).unwrap_or_default();
        let listed = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        files.extend(listed.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path))));
        files.extend(self.captured_settings(&self.home.workspace));
        files
    }

    /// The `.env` files that checkpoints of a workspace hold, wherever they lie in it.
    fn captured_settings(&self, workspace: &Path) -> Vec<PathBuf> {
        let listed = private::read(&self.settings_list(workspace)).unwrap_or_default();
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        paths.map(|path| workspace.join(std::ffi::OsStr::from_bytes(path))).collect()
    }

    fn settings_list(&self, workspace: &Path) -> PathBuf {
        self.home.settings_of(&WorkspacePath::new(workspace.as_os_str().as_bytes()))
    }

    /// Adds the `.env` files of a scan to the list of those that are known. A scan sees a new file in a
    /// folder that changed; all folders are looked at only if there is no list yet. Failing to write the list is no failure
    /// of the save: without it, the next save looks at all folders.
    pub(crate) fn remember_settings(&self, taken: &Taken<'_>) {
        let list = self.settings_list(&self.home.workspace);
        let known = private::read(&list).ok();
        let among = if known.is_some() { Among::Changed } else { Among::All };
        let found = taken.files_named(among, &is_settings);
        if found.is_empty() && known.is_some() {
            return;
        }
        let known = known.unwrap_or_default();
        let listed = known.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let is_there = |path: &&[u8]| {
            let path = self.home.workspace.join(std::ffi::OsStr::from_bytes(path));
            path.symlink_metadata().is_ok()
        };
        let mut paths: BTreeSet<&[u8]> = listed.filter(is_there).collect();
        paths.extend(found.iter().map(|path| &**path));
        let joined = paths.into_iter().collect::<Vec<_>>().join(&0);
        if joined != known || known.is_empty() {
            let _disposable = replace(&list, &joined);
        }
    }

    /// Losing the list costs what a hook does not know, and the next command brings it back.
    fn remember_files(&self, files: &[PathBuf]) {
        let below = files.iter().filter(|it| it.parent() != Some(&*self.home.workspace));
        let list = below.map(|it| it.as_os_str().as_bytes()).collect::<Vec<_>>().join(&0);
        let known = private::read(&self.home.env_files()).unwrap_or_default();
        if known != list && self.is_writable() {
            let _disposable = private::write_disposable(&self.home.env_files(), &list);
        }
    }
}

/// Writes a list that a reader sees as it was or as it is. It need not survive a power cut.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let beside = path.with_extension(format!("settings-{}", std::process::id()));
    private::write_disposable(&beside, bytes)?;
    private::rename(&beside, path)
}

/// Parts of a project are seldom deeper.
const DEPTH: usize = 2;

/// Values that may be secrets, and those whose names say that they are.
#[derive(Default)]
struct Secrets {
    values: Vec<String>,
    sure: Vec<String>,
}

impl Secrets {
    fn add_environment(&mut self) {
        for (name, value) in std::env::vars_os() {
            if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
                && is_telling(name)
            {
                self.sure.push(value.to_owned());
            }
        }
    }

    fn add_files(&mut self, files: &[PathBuf]) {
        let mut seen = BTreeSet::new();
        for text in files.iter().filter(|file| seen.insert(*file)).filter_map(|file| read(file)) {
            self.add_text(&text);
        }
    }

    fn add_text(&mut self, text: &str) {
        for (name, value) in assignments(text) {
            let list = if is_telling(&name) { &mut self.sure } else { &mut self.values };
            // A value of several lines may be quoted by one of them.
            let lines = value.lines().filter(|_| value.contains('\n')).map(str::to_owned);
            list.extend(lines);
            list.push(value);
        }
    }

    fn redactor(mut self) -> Redactor {
        self.sure.truncate(MANY_VALUES);
        self.values.truncate(MANY_VALUES);
        Redactor::knowing_surely(self.values, self.sure)
    }
}
