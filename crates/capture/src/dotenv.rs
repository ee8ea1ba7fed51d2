//! `.env` files: where projects keep them, and what is in them.

use std::fs;
use std::path::{Path, PathBuf};

use bivouac_core::redact::file::is_settings;

use crate::bounded;

/// Files larger than this are no settings.
const MAX_BYTES: u64 = 256 << 10;

/// What is in such a file. Nothing, if it is not a regular file of a usual size.
pub fn read(path: &Path) -> Option<String> {
    let bytes = bounded::read(path, MAX_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_usual(meta: &fs::Metadata) -> bool {
    meta.is_file() && meta.len() <= MAX_BYTES
}

/// The `.env` files of a workspace, down to so many folders below its top.
pub fn files_in(folder: &Path, deepest: usize) -> Vec<PathBuf> {
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
            if is_settings(name.as_bytes()) {
                let is_usual = |meta: fs::Metadata| is_usual(&meta);
                found.extend(fs::metadata(entry.path()).is_ok_and(is_usual).then(|| entry.path()));
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
pub fn assignments(text: &str) -> Vec<(String, String)> {
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
        for path in [
            "kept",
            ".env",
            ".env.example",
            "prod.env",
            "apps/api/.env.local",
            "node_modules/x/.env",
            "a/b/c/.env",
        ] {
            write(path);
        }
        std::os::unix::fs::symlink("../kept", folder.path().join("apps/.env")).unwrap();
        let mut found = files_in(folder.path(), 2);
        found.sort();
        let expected = [".env", "apps/.env", "apps/api/.env.local", "prod.env"];
        assert_eq!(found, expected.map(|path| folder.path().join(path)));
    }
}
