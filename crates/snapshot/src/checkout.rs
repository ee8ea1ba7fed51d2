//! Writing a whole tree into an empty folder.

use std::collections::HashMap;
use std::path::Path;

use bivouac_core::id::ObjectId;
use bivouac_core::path::RelPath;
use bivouac_core::progress::Progress;
use rayon::prelude::*;

use crate::beneath::Root;
use crate::diff::{Filter, Trees, diff};
use crate::objects::{Objects, Place};
use crate::ownership::{Inode, SET_ID, set_mode_open};
use crate::sparse::SparseWriter;
use crate::tree::{Content, Entry, FileEntry, Tree};
use crate::{Error, Result};

/// How much was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub n_files: u64,
    pub size_bytes: u64,
    /// Written without the set-user-id and set-group-id bits they had.
    pub without_set_id: Vec<RelPath>,
}

/// What becomes of set-user-id and set-group-id bits. Files that are written belong to the caller, so
/// the bits would let anyone run them with the caller's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetId {
    /// Only for contents that nobody but the caller can have chosen.
    Restore,
    Drop,
}

/// Writes a tree into `into`, which is made if it is not there and must be empty if it is.
pub fn checkout(
    objects: &Objects<'_>,
    tree: &ObjectId,
    into: &Path,
    set_id: SetId,
    progress: &dyn Progress,
) -> Result<Written> {
    std::fs::create_dir_all(into).map_err(Error::write(into))?;
    let root = Root::open(into).map_err(Error::read(into))?;
    if !root.list(b"").map_err(Error::read(into))?.is_empty() {
        return Err(Error::NotEmpty { path: into.to_owned() });
    }
    let set_id = if root.is_callers_alone() { set_id } else { SetId::Drop };
    let mut entries = entries_of(objects, tree)?;
    let mut written =
        Written { without_set_id: drop_set_id(&mut entries, set_id), ..Written::default() };
    progress.begin("Writing files", entries.len() as u64);
    let mut folders = Vec::new();
    let mut by_place: HashMap<Place, Vec<(&RelPath, FileEntry)>> = HashMap::new();
    let mut large = Vec::new();
    for (path, entry) in &entries {
        match entry {
            Entry::Folder { mode, .. } => {
                let made = root.create_folder(path.as_bytes(), 0o700);
                let identity = made.and_then(|()| root.identity(path.as_bytes()));
                let identity = identity.map_err(Error::write_workspace(path))?;
                folders.push((path, identity.inode(), *mode));
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
        let failed = |error| Error::write_workspace(path)(error);
        let to = root.create_file(path.as_bytes()).map_err(failed)?;
        let mut writer = SparseWriter::new(&to);
        objects.each_part(&file.content, &mut |bytes| writer.write(bytes).map_err(failed))?;
        writer.finish().map_err(failed)?;
        set_mode_open(&to, file.mode).map_err(failed)?;
    }
    written.n_files += write_links(&root, objects, &entries)?;
    set_folder_modes(&root, &folders)?;
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
            let failed = |error| Error::write_workspace(path)(error);
            let to = root.create_file(path.as_bytes()).map_err(failed)?;
            let mut writer = SparseWriter::new(&to);
            writer.write(bytes).and_then(|()| writer.finish()).map_err(failed)?;
            set_mode_open(&to, file.mode).map_err(failed)?;
            progress.add(1);
        }
        Ok(())
    })
}

/// Takes the bits away, and answers where there were some.
fn drop_set_id(entries: &mut [(RelPath, Entry)], set_id: SetId) -> Vec<RelPath> {
    let mut dropped = Vec::new();
    for (path, entry) in entries.iter_mut().filter(|_| set_id == SetId::Drop) {
        let (Entry::File(FileEntry { mode, .. }) | Entry::Folder { mode, .. }) = entry else {
            continue;
        };
        if *mode & SET_ID != 0 {
            *mode &= !SET_ID;
            dropped.push(path.clone());
        }
    }
    dropped
}

/// Links after all files, so that nothing is ever written through one.
fn write_links(root: &Root, objects: &Objects<'_>, entries: &[(RelPath, Entry)]) -> Result<u64> {
    let mut n_links = 0;
    for (path, entry) in entries {
        if let Entry::Link(target) = entry {
            root.create_link(path.as_bytes(), &objects.get(target)?)
                .map_err(Error::write_workspace(path))?;
            n_links += 1;
        }
    }
    Ok(n_links)
}

/// Permissions of folders last and from the inside out: a folder may be about to lose its own.
fn set_folder_modes(root: &Root, folders: &[(&RelPath, Inode, u16)]) -> Result<()> {
    for (path, folder, mode) in folders.iter().rev() {
        let is_set = root.set_folder_mode(path.as_bytes(), *folder, *mode);
        if !is_set.map_err(Error::write_workspace(path))? {
            return Err(Error::StagingReplaced { path: (*path).clone() });
        }
    }
    Ok(())
}
