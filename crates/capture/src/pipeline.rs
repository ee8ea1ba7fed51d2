//! What a project's own pipeline says about a branch: its state, and the files of its progress spine.

use std::fs;
use std::path::{Path, PathBuf};

use crate::bounded;

/// Larger files are something else.
const MAX_BYTES: u64 = 1 << 20;

/// The text of `pipeline_state.json`, if the project has one.
pub fn state(folder: &Path) -> Option<String> {
    text_of(&folder.join("pipeline_state.json"))
}

/// What a progress spine says: a line for each of its files, with the status in it or its first heading.
pub fn spine(folder: &Path) -> Vec<String> {
    let folder = folder.join("progress");
    const MOST: usize = 50;
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let line = |path: PathBuf| {
        let text = text_of(&path)?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        let document: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let status = document.and_then(|it| {
            let word = |key: &str| it.get(key)?.as_str().map(str::to_owned);
            word("status").or_else(|| word("state"))
        });
        let heading = || Some(text.lines().find(|line| !line.trim().is_empty())?.trim().to_owned());
        Some(format!("{name}: {}", status.or_else(heading)?))
    };
    paths.into_iter().filter_map(line).take(MOST).collect()
}

fn text_of(path: &Path) -> Option<String> {
    // A link in a workspace can lead anywhere.
    path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    bounded::read_text(path, MAX_BYTES).ok()
}
