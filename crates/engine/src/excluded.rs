//! What is left out: by `workspace.exclude`, which is said with every save, and before a rollback, which restores it
//! only where the checkpoint holds it; and by what the repository is like.

use bivouac_core::checkpoint::{Coverage, Gap};
use bivouac_core::id::ObjectId;
use bivouac_core::path::RelPath;
use bivouac_snapshot::diff::{Filter, Trees};
use bivouac_snapshot::tree::Entry;

use crate::look::Scene;
use crate::{Engine, Result};

/// Paths that a rollback does not restore because they are excluded. In order, each with whether it is a folder, which
/// stands for all that is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excluded {
    /// Excluded by the settings of now.
    pub now: Vec<(RelPath, bool)>,
    /// The patterns that are configured now.
    pub patterns: Vec<String>,
    /// Excluded when the checkpoint was taken, or withheld from the bundle it came in, and not excluded now.
    pub then: Vec<(RelPath, bool)>,
}

impl Engine {
    /// Says what a checkpoint lacks because of what the repository is like.
    pub(crate) fn note_left_out(&mut self, scene: &Scene) {
        if let Some(why) = scene.unknown_index.get() {
            let line = format!("ignored files are left out even if git tracks them, because {why}");
            self.notices.push(line);
        }
        if let Some(folder) = self.home.git_folder_inside() {
            let line = format!(
                "`{folder}/` is left out, because `.git` says that git keeps its data there"
            );
            self.notices.push(line);
        }
    }

    /// The patterns that left something out of this.
    pub(crate) fn excluded_by(&self, coverage: &Coverage) -> Vec<String> {
        match leaves_out(coverage) {
            true => self.config.exclude.clone(),
            false => Vec::new(),
        }
    }

    /// What is excluded in the workspace as it is now and in the checkpoint, among the paths that are asked about.
    /// Trees come with what is known of their coverage: one that excludes nothing is not searched.
    pub(crate) fn excluded_in(
        &self,
        trees: &Trees<'_>,
        [now, then]: [(&ObjectId, &Coverage); 2],
        filter: &Filter,
    ) -> Result<Excluded> {
        let in_tree = |(root, coverage): (&ObjectId, &Coverage)| -> Result<Vec<(RelPath, bool)>> {
            let mut paths = Vec::new();
            if leaves_out(coverage) {
                find(trees, root, &mut paths)?;
            }
            paths.retain(|(path, _)| filter.selects(path) || filter.leads_through(path));
            paths.sort();
            Ok(paths)
        };
        let (now, mut then) = (in_tree(now)?, in_tree(then)?);
        then.retain(|it| now.binary_search(it).is_err());
        Ok(Excluded { now, patterns: self.config.exclude.clone(), then })
    }
}

fn leaves_out(coverage: &Coverage) -> bool {
    coverage.gaps.get(&Gap::Excluded).is_some_and(|number| *number > 0)
}

/// Without recursion: folders may lie thousands deep.
fn find(trees: &Trees<'_>, root: &ObjectId, paths: &mut Vec<(RelPath, bool)>) -> Result<()> {
    let mut waiting: Vec<(Option<RelPath>, ObjectId)> = vec![(None, *root)];
    while let Some((folder, id)) = waiting.pop() {
        for (name, entry) in trees.get(&id)?.entries() {
            let path = match &folder {
                Some(folder) => folder.join(name),
                None => RelPath::new(name.to_vec()),
            };
            let path = path.expect("a decoded tree has only plain names");
            match entry {
                Entry::Folder { tree, .. } => waiting.push((Some(path), *tree)),
                Entry::Gap { why: Gap::Excluded, is_folder } => paths.push((path, *is_folder)),
                Entry::Gap { .. } | Entry::File(_) | Entry::Link(_) => {}
            }
        }
    }
    Ok(())
}
