//! The secrets we can know of: the values in the `.env` files of workspaces, and in variables whose names give
//! them away. They are blotted out of whatever leaves, in every form they may take.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use bivouac_capture::dotenv::{assignments, files_in};
use bivouac_core::redact::{Redactor, is_telling};

use crate::Engine;

/// More values than this would make every command slow.
const MANY_VALUES: usize = 500;
/// So many other workspaces are asked for theirs.
const MANY_WORKSPACES: u32 = 200;

impl Engine {
    /// What takes the secrets out of a text. At first it knows those of this workspace.
    pub fn redactor(&self) -> &Redactor {
        self.redactor.get_or_init(|| self.redactor_knowing(&[]))
    }

    /// The same, which knows the values in these texts of `.env` files as well.
    pub(crate) fn redactor_knowing(&self, texts: &[String]) -> Redactor {
        let mut secrets = Secrets::of(&self.known_files());
        texts.iter().for_each(|text| secrets.add_text(text));
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
        let others = others.filter(|folder| *folder != self.home.workspace);
        files.extend(others.flat_map(|folder| files_in(&folder, DEPTH)));
        let redactor = Secrets::of(&files).redactor();
        self.journal.set_redactor(redactor.clone());
        self.redactor = OnceLock::from(redactor);
    }

    /// The files at the top, and those that a command with more time found further down.
    fn known_files(&self) -> Vec<PathBuf> {
        let mut files = files_in(&self.home.workspace, 0);
        let listed = fs::read(self.home.env_files()).unwrap_or_default();
        let listed = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        files.extend(listed.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path))));
        files
    }

    /// Losing the list costs what a hook does not know, and the next command brings it back.
    fn remember_files(&self, files: &[PathBuf]) {
        let below = files.iter().filter(|it| it.parent() != Some(&*self.home.workspace));
        let list = below.map(|it| it.as_os_str().as_bytes()).collect::<Vec<_>>().join(&0);
        let known = fs::read(self.home.env_files()).unwrap_or_default();
        if known != list && self.is_writable() {
            let _disposable = fs::write(self.home.env_files(), list);
        }
    }
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
    fn of(files: &[PathBuf]) -> Self {
        let mut secrets = Self::default();
        for (name, value) in std::env::vars_os() {
            if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
                && is_telling(name)
            {
                secrets.sure.push(value.to_owned());
            }
        }
        for file in files {
            if let Ok(bytes) = fs::read(file) {
                secrets.add_text(&String::from_utf8_lossy(&bytes));
            }
        }
        secrets
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
