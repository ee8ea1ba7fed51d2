//! What git says about the workspace, for a checkpoint. When it has to be asked about everything, that
//! happens while the files are scanned.

use std::thread::{self, JoinHandle};

use bivouac_capture::git::{self, Changed, Reading, Repository};
use bivouac_core::git::GitFacts;
use bivouac_core::id::ObjectId;
use bivouac_core::path::RelPath;
use bivouac_snapshot::diff::{Filter, Trees, diff};
use bivouac_snapshot::private;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::home::Home;
use crate::save::to_json;

/// A question to git that is under way, or waits to know what changed.
pub(crate) struct GitReader<'h> {
    home: &'h Home,
    repository: Repository,
    known: Option<GitCache>,
    /// Set when everything has to be asked.
    under_way: Option<JoinHandle<Reading>>,
}

/// What git said about a tree.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct GitCache {
    tree: ObjectId,
    reading: Reading,
}

impl<'h> GitReader<'h> {
    /// `None` outside a repository.
    pub(crate) fn start(home: &'h Home) -> Option<Self> {
        let repository = home.repository()?;
        let cached = private::read(&home.git_cache()).ok();
        let known: Option<GitCache> = cached.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let known = known.filter(|known| known.reading.is_current(&repository));
        let under_way = match known {
            Some(_) => None,
            None => {
                let (repository, workspace) = (repository.clone(), home.workspace.clone());
                let ask = move || git::read(&repository, &workspace, None, &Changed::Unknown);
                Some(thread::spawn(ask))
            }
        };
        Some(Self { home, repository, known, under_way })
    }

    /// The facts that belong to a tree.
    pub(crate) fn finish(self, trees: &Trees<'_>, tree: &ObjectId) -> GitFacts {
        let asked = self.under_way.and_then(|thread| thread.join().ok());
        let reading = asked.unwrap_or_else(|| {
            let known = self.known.as_ref();
            let paths = known.and_then(|known| changed_paths(trees, &known.tree, tree).ok());
            let changed = match &paths {
                Some(paths) if paths.is_empty() => Changed::Nothing,
                Some(paths) => Changed::Paths(paths),
                None => Changed::Unknown,
            };
            let previous = known.map(|known| &known.reading);
            git::read(&self.repository, &self.home.workspace, previous, &changed)
        });
        let cache = GitCache { tree: *tree, reading };
        if self.known.as_ref() != Some(&cache) {
            let _disposable = private::write_disposable(&self.home.git_cache(), &to_json(&cache));
        }
        cache.reading.facts
    }
}

fn changed_paths(trees: &Trees<'_>, from: &ObjectId, to: &ObjectId) -> Result<Vec<RelPath>> {
    let changes = diff(trees, from, to, &Filter::default())?;
    Ok(changes.into_iter().map(|change| change.path).collect())
}
