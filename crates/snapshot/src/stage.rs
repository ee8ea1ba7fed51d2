//! The folder in which a restore prepares new contents and keeps old ones until all is applied.

use std::collections::HashMap;
use std::io::{self, Write};

use bivouac_core::id::OperationId;
use bivouac_core::path::RelPath;
use bivouac_core::progress::Progress;
use bivouac_core::sabotage::{self, Fault};
use rayon::prelude::*;

use crate::beneath::{Named, Root, Stat, set_mode_open, we_are_root};
use crate::displaced::Leftover;
use crate::objects::{Objects, Place};
use crate::plan::{Plan, Step};
use crate::scope::STAGING_PREFIX;
use crate::tree::{Content, Entry, FileEntry};
use crate::{Error, Result};

pub(crate) struct Staging {
    folder: Vec<u8>,
}

impl Staging {
    fn path(id: OperationId) -> Vec<u8> {
        [STAGING_PREFIX, id.to_string().as_bytes()].concat()
    }

    /// Makes the folder, or finds the one an interrupted run left.
    pub(crate) fn open(root: &Root, id: OperationId) -> Result<Self> {
        let staging = Self { folder: Self::path(id) };
        match root.create_folder(&staging.folder, 0o700) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(Error::write_workspace(&staging.as_path())(error))
            }
            _ => Ok(staging),
        }
    }

    /// The folder of an operation, if it is there.
    pub(crate) fn find(root: &Root, id: OperationId) -> Result<Option<Self>> {
        let staging = Self { folder: Self::path(id) };
        match root.stat(&staging.folder) {
            Ok(_) => Ok(Some(staging)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::write_workspace(&staging.as_path())(error)),
        }
    }

    /// What is in it, with the steps of the plan it is for.
    pub(crate) fn leftovers<'p>(&self, root: &Root, plan: &'p Plan) -> Result<Vec<Leftover<'p>>> {
        let names = root.list(&self.folder).map_err(Error::write_workspace(&self.as_path()))?;
        let leftover = |named: Named| {
            let name = std::str::from_utf8(&named.name).unwrap_or_default();
            let (number, suffix) = name.split_once('.').unwrap_or((name, ""));
            let step = number.parse().ok().and_then(|number: usize| plan.steps.get(number));
            Leftover { path: self.at(&named.name), step: step.filter(|_| suffix != "part") }
        };
        Ok(names.into_iter().map(leftover).collect())
    }

    pub(crate) fn remove(&self, root: &Root) -> io::Result<()> {
        root.remove_folder(&self.folder)
    }

    pub(crate) fn at(&self, name: &[u8]) -> Vec<u8> {
        [self.folder.as_slice(), b"/", name].concat()
    }

    pub(crate) fn as_path(&self) -> RelPath {
        RelPath::new(self.folder.clone()).expect("a staging folder's name is a plain name")
    }
}

/// A step that is still to be done.
pub(crate) struct Task<'p> {
    pub(crate) step: &'p Step,
    /// Where its new content waits and its old content goes. The staging folder holds `N.part` while
    /// it is written, `N.new` once it is whole and, after an exchange, what was displaced by it;
    /// `N.old` is what was removed.
    pub(crate) staged: Vec<u8>,
    /// What was there when it was examined; `None` when nothing was, or it is half done already.
    pub(crate) seen: Option<Stat>,
    pub(crate) is_done: bool,
}

impl Task<'_> {
    fn part(&self) -> Vec<u8> {
        [self.staged.as_slice(), b".part"].concat()
    }

    pub(crate) fn new_content(&self) -> Vec<u8> {
        [self.staged.as_slice(), b".new"].concat()
    }

    pub(crate) fn old_content(&self) -> Vec<u8> {
        [self.staged.as_slice(), b".old"].concat()
    }

    /// Does it need new content, rather than new permissions only?
    pub(crate) fn needs_content(&self) -> bool {
        match (&self.step.before, &self.step.after) {
            (Some(Entry::File(before)), Some(Entry::File(after))) => {
                // The permissions of a file with several names would change under all of them.
                let is_shared = self.seen.is_some_and(|seen| seen.n_links > 1);
                before.content != after.content || is_shared
            }
            (_, Some(Entry::File(_) | Entry::Link(_))) => true,
            (_, Some(Entry::Folder { .. } | Entry::Gap { .. }) | None) => false,
        }
    }

    pub(crate) fn is_removal_of_file(&self) -> bool {
        let was_file = matches!(self.step.before, Some(Entry::File(_) | Entry::Link(_)));
        was_file && !matches!(self.step.after, Some(Entry::File(_) | Entry::Link(_)))
    }
}

/// Up to so many files are made durable one by one; beyond, the whole file system at once.
pub(crate) const SYNC_SINGLY: usize = 64;

/// Writes all new contents beside the old ones. Nothing has changed until this is through.
pub(crate) fn stage(
    root: &Root,
    objects: &Objects<'_>,
    tasks: &[Task<'_>],
    progress: &dyn Progress,
) -> Result<()> {
    let needed: Vec<&Task<'_>> = tasks.iter().filter(|task| task.needs_content()).collect();
    progress.begin("Preparing files", needed.len() as u64);
    let stager = Stager { root, syncs: needed.len() <= SYNC_SINGLY };
    let mut by_place: HashMap<Place, Vec<(&Task<'_>, FileEntry)>> = HashMap::new();
    for task in needed {
        // Left over from an interrupted run, and never moved: the path is still as before.
        let _part = root.remove_file(&task.part());
        let _whole = root.remove_file(&task.new_content());
        match &task.step.after {
            Some(Entry::Link(target)) => {
                let target = objects.get(target)?;
                root.create_link(&task.new_content(), &target)
                    .and_then(|()| give_to_owner(root, task.step, &task.new_content()))
                    .map_err(Error::write_workspace(&task.step.path))?;
            }
            Some(Entry::File(file)) => match file.content {
                Content::Whole(id) => {
                    by_place.entry(objects.locate(&id)?).or_default().push((task, *file));
                }
                Content::Chunked(_) => {
                    stager.write(task, file, |to| {
                        objects.each_part(&file.content, &mut |bytes| to(bytes))
                    })?;
                }
            },
            Some(Entry::Folder { .. } | Entry::Gap { .. }) | None => {}
        }
    }
    let packs = objects.packs();
    by_place.into_par_iter().try_for_each(|(place, files)| {
        let block = packs.read_block(place)?;
        for (task, file) in files {
            let bytes = packs.cut_out(&block, place, file.content.id())?;
            stager.write(task, &file, |to| to(bytes))?;
            progress.add(1);
        }
        Ok::<(), Error>(())
    })?;
    if !stager.syncs && !sabotage::is(Fault::StagedNotSynced) {
        root.sync_all().map_err(Error::write("."))?;
    }
    progress.end();
    Ok(())
}

struct Stager<'s> {
    root: &'s Root,
    /// Is each file made durable as it is written?
    syncs: bool,
}

/// Takes a piece of a file.
type Put<'p> = &'p mut dyn FnMut(&[u8]) -> Result<()>;

impl Stager<'_> {
    fn write(
        &self,
        task: &Task<'_>,
        file: &FileEntry,
        fill: impl FnOnce(Put<'_>) -> Result<()>,
    ) -> Result<()> {
        let failed = |error| Error::write_workspace(&task.step.path)(error);
        let mut staged = self.root.create_file(&task.part()).map_err(failed)?;
        fill(&mut |bytes| staged.write_all(bytes).map_err(failed))?;
        give_to_owner(self.root, task.step, &task.part()).map_err(failed)?;
        if !sabotage::is(Fault::ModeLost) {
            set_mode_open(&staged, file.mode).map_err(failed)?;
        }
        if self.syncs && !sabotage::is(Fault::StagedNotSynced) {
            staged.sync_all().map_err(failed)?;
        }
        self.root.move_to_free(&task.part(), &task.new_content()).map_err(failed)
    }
}

/// What root writes belongs to whoever owned what was there, else to the owner of the nearest folder.
pub(crate) fn give_to_owner(root: &Root, step: &Step, written: &[u8]) -> io::Result<()> {
    if !we_are_root() {
        return Ok(());
    }
    let places = std::iter::successors(Some(step.path.clone()), RelPath::parent);
    let mut places = places.filter(|path| path.as_bytes() != written);
    let owner = places.find_map(|path| root.owner(path.as_bytes()).ok());
    root.set_owner(written, owner.map_or_else(|| root.owner(b""), Ok)?)
}
