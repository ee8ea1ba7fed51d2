//! The secrets we can know of: the values in the `.env` files of workspaces, and in variables whose names give
//! them away. They are blotted out of whatever leaves, in every form they may take.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bivouac_core::redact::{Redactor, is_telling};

use crate::Engine;

/// Files larger than this are no settings.
const MAX_BYTES: u64 = 256 << 10;
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

/// The `.env` files of a workspace, down to so many folders below its top.
fn files_in(folder: &Path, deepest: usize) -> Vec<PathBuf> {
    const MANY_FOLDERS: usize = 200;
    const NEVER: [&str; 6] = ["node_modules", "target", "dist", "build", "vendor", "out"];
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    let mut n_seen = 0;
    while let Some((folder, depth)) = folders.pop() {
        n_seen += 1;
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(".env") {
                let is_small = |meta: fs::Metadata| meta.is_file() && meta.len() <= MAX_BYTES;
                found.extend(fs::metadata(entry.path()).is_ok_and(is_small).then(|| entry.path()));
            } else if depth < deepest
                && n_seen + folders.len() < MANY_FOLDERS
                && !name.starts_with('.')
                && !NEVER.contains(&&*name)
                && entry.file_type().is_ok_and(|it| it.is_dir())
            {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// Names and values, as shells and their many relatives read them: `export KEY="value" # why`. A value in
/// quotes may go over several lines.
fn assignments(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find('\n').unwrap_or(rest.len());
        let line = &rest[..end];
        let after = rest.get(end + 1..).unwrap_or_default();
        let Some((name, value)) =
            line.split_once('=').filter(|_| !line.trim_start().starts_with('#'))
        else {
            rest = after;
            continue;
        };
        let name = name.trim().trim_start_matches("export ").trim().to_owned();
        let value_at = line.len() - value.len() + (value.len() - value.trim_start().len());
        let value = &rest[value_at..];
        let mark = value.chars().next().filter(|letter| matches!(letter, '"' | '\''));
        match mark.and_then(|mark| quoted(value, mark)) {
            Some((value, length)) => {
                found.push((name, value));
                rest = rest[value_at + length..].split_once('\n').map_or("", |(_, after)| after);
            }
            None => {
                let value = line[value_at..].split(" #").next().unwrap_or_default().trim();
                found.push((name, value.to_owned()));
                rest = after;
            }
        }
    }
    found
}

/// What stands between two marks, and how much of the text that is.
fn quoted(text: &str, mark: char) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if mark == '"' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            letter if letter == mark => return Some((value, at + 1)),
            letter => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_shells_read_them() {
        let check = |text: &str, expected: &[&str]| {
            let values: Vec<String> =
                assignments(text).into_iter().map(|(_, value)| value).collect();
            assert_eq!(values, expected, "{text}");
        };
        check("KEY=plain", &["plain"]);
        check("export KEY=\"with blanks\" # why\nB=2", &["with blanks", "2"]);
        check("KEY='single'\r\n", &["single"]);
        check("KEY=value # comment", &["value"]);
        check("# KEY=not me\nno assignment", &[]);
        check("KEY=\"one\ntwo\"\nB=\"a\\\"b\"", &["one\ntwo", "a\"b"]);
        check("KEY=\"never closed\nB=2", &["\"never closed", "2"]);
    }

    #[test]
    fn files_are_found_where_projects_keep_them() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "A=b").unwrap();
        };
        for path in ["kept", ".env", "apps/api/.env.local", "node_modules/x/.env", "a/b/c/.env"] {
            write(path);
        }
        std::os::unix::fs::symlink("../kept", folder.path().join("apps/.env")).unwrap();
        let mut found = files_in(folder.path(), DEPTH);
        found.sort();
        let expected = [".env", "apps/.env", "apps/api/.env.local"];
        assert_eq!(found, expected.map(|path| folder.path().join(path)));
    }
}
