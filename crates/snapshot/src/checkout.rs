//! Writing a whole tree into an empty folder.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use bivouac_core::id::ObjectId;
use bivouac_core::path::RelPath;
use bivouac_core::progress::Progress;
use rayon::prelude::*;

use crate::beneath::{Root, set_mode_open};
use crate::diff::{Filter, Trees, diff};
use crate::objects::{Objects, Place};
use crate::tree::{Content, Entry, FileEntry, Tree};
use crate::{Error, Result};

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub n_files: u64,
    pub size_bytes: u64,
}

/// Writes a tree into `into`, which is made if it is not there and must be empty if it is.
pub fn checkout(
    objects: &Objects<'_>,
    tree: &ObjectId,
    into: &Path,
    progress: &dyn Progress,
) -> Result<Written> {
    std::fs::create_dir_all(into).map_err(Error::write(into))?;
    let root = Root::open(into).map_err(Error::read(into))?;
    if !root.list(b"").map_err(Error::read(into))?.is_empty() {
        return Err(Error::NotEmpty { path: into.to_owned() });
    }
    let entries = entries_of(objects, tree)?;
    progress.begin("Writing files", entries.len() as u64);
    let mut written = Written::default();
    let mut by_place: HashMap<Place, Vec<(&RelPath, FileEntry)>> = HashMap::new();
    let mut large = Vec::new();
    for (path, entry) in &entries {
        match entry {
            Entry::Folder { .. } => {
                root.create_folder(path.as_bytes(), 0o700).map_err(Error::write_workspace(path))?;
            }
            Entry::File(file) => {
                written.n_files += 1;
                written.size_bytes += file.size;
                match file.content {
                    Content::Whole(id) => {
                        by_place.entry(objects.locate(&id)?).or_default().push((path, *file));
                    }
                    Content::Chunked(_) => large.push((path, *file)),
                }
            }
            Entry::Link(_) | Entry::Gap { .. } => {}
        }
    }
    write_files(&root, objects, by_place, progress)?;
    for (path, file) in large {
        let mut to = root.create_file(path.as_bytes()).map_err(Error::write_workspace(path))?;
        objects.each_part(&file.content, &mut |bytes| {
            to.write_all(bytes).map_err(Error::write_workspace(path))
        })?;
        set_mode_open(&to, file.mode).map_err(Error::write_workspace(path))?;
    }
    written.n_files += write_links_and_modes(&root, objects, &entries)?;
    root.sync_all().map_err(Error::write(into))?;
    progress.end();
    Ok(written)
}

/// Everything in a tree, a folder before what is in it.
pub fn entries_of(objects: &Objects<'_>, tree: &ObjectId) -> Result<Vec<(RelPath, Entry)>> {
    let empty = Tree::default().encode();
    let empty_id = ObjectId::of(&empty);
    let fresh = HashMap::from([(empty_id, empty)]);
    let changes = diff(&Trees::with_fresh(objects, &fresh), &empty_id, tree, &Filter::default())?;
    Ok(changes.into_iter().filter_map(|change| Some((change.path, change.after?))).collect())
}

fn write_files(
    root: &Root,
    objects: &Objects<'_>,
    by_place: HashMap<Place, Vec<(&RelPath, FileEntry)>>,
    progress: &dyn Progress,
) -> Result<()> {
    let packs = objects.packs();
    by_place.into_par_iter().try_for_each(|(place, files)| {
        let block = packs.read_block(place)?;
        for (path, file) in files {
            let bytes = packs.cut_out(&block, place, file.content.id())?;
            let mut to = root.create_file(path.as_bytes()).map_err(Error::write_workspace(path))?;
            to.write_all(bytes).map_err(Error::write_workspace(path))?;
            set_mode_open(&to, file.mode).map_err(Error::write_workspace(path))?;
            progress.add(1);
        }
        Ok(())
    })
}

/// Links after all files, so that nothing is ever written through one; permissions of folders last.
fn write_links_and_modes(
    root: &Root,
    objects: &Objects<'_>,
    entries: &[(RelPath, Entry)],
) -> Result<u64> {
    let mut n_links = 0;
    for (path, entry) in entries {
        if let Entry::Link(target) = entry {
            root.create_link(path.as_bytes(), &objects.get(target)?)
                .map_err(Error::write_workspace(path))?;
            n_links += 1;
        }
    }
    for (path, entry) in entries.iter().rev() {
        if let Entry::Folder { mode, .. } = entry {
            root.set_mode(path.as_bytes(), *mode).map_err(Error::write_workspace(path))?;
        }
    }
    Ok(n_links)
}
