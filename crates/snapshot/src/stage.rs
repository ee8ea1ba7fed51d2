//! The folder in which a restore prepares new contents and keeps old ones until all is applied.
//!
//! It lies in the workspace, because only within one file system a rename is one step. If another
//! user owns the workspace, that user can rename the staging folder and put another in its place.
//! So its descriptor is held from the moment it is made until it is removed, and everything in it is
//! reached through that descriptor. Nobody but the caller can look or write into it (mode 0700).

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use bivouac_core::id::OperationId;
use bivouac_core::operation::WhyLeft;
use bivouac_core::path::RelPath;
use bivouac_core::progress::Progress;
use bivouac_core::sabotage::{self, Fault};
use rayon::prelude::*;

use crate::beneath::{Named, Root, Stat};
use crate::displaced::Leftover;
use crate::objects::{Objects, Place};
use crate::ownership::{Identity, Owner, identity_of, set_mode_open, set_owner_open, we_are_root};
use crate::plan::{Plan, Step};
use crate::refusal::refusal_to_give;
use crate::scope::STAGING_PREFIX;
use crate::sparse::SparseWriter;
use crate::tree::{Content, Entry, FileEntry};
use crate::{Error, Result};

pub struct Staging {
    name: Vec<u8>,
    folder: Root,
}

impl Staging {
    /// Makes the folder, or takes up the one an interrupted run left. A folder that is not the
    /// caller's own, and closed to everyone else, is refused.
    pub fn open(root: &Root, id: OperationId) -> Result<Self> {
        let name = [STAGING_PREFIX, id.to_string().as_bytes()].concat();
        let path = RelPath::new(name.clone()).expect("a staging folder's name is a plain name");
        let failed = |error| Error::write_workspace(&path)(error);
        let is_new = match root.create_folder(&name, PRIVATE) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(failed(error)),
        };
        let folder = enter_private(root, &name).map_err(failed)?;
        // Between making it and opening it, another folder of the caller's may have been put in its place.
        let is_unexpected =
            |folder: &Root| Ok(is_new && !folder.list(b"").map_err(failed)?.is_empty());
        match folder {
            Some(folder) if !is_unexpected(&folder)? => Ok(Self { name, folder }),
            _ => Err(Error::StagingReplaced { path }),
        }
    }

    pub(crate) const fn folder(&self) -> &Root {
        &self.folder
    }

    /// What an earlier run left in it, with the steps of the plan it is for. Other names are not ours.
    pub(crate) fn leftovers<'p>(&self, plan: &'p Plan) -> Result<Vec<Leftover<'p>>> {
        let names = self.folder.list(b"").map_err(Error::write_workspace(&self.as_path()))?;
        let leftover = |named: Named| {
            let name = std::str::from_utf8(&named.name).ok()?;
            let (number, suffix) = name.split_once('.')?;
            let step = plan.steps.get(number.parse::<usize>().ok()?)?;
            let is_whole = match suffix {
                "new" | "old" | "new.aside" => true,
                "part" | "folder" => false,
                _ => return None,
            };
            Some(Leftover { name: named.name, step: is_whole.then_some(step) })
        };
        Ok(names.into_iter().filter_map(leftover).collect())
    }

    /// Removes the folder, once it is empty. If its name leads to something else by now, that stays.
    pub(crate) fn remove(&self, root: &Root) -> io::Result<()> {
        let is_still_here = root
            .identity(&self.name)
            .is_ok_and(|found| identity_of(&self.folder.fd).is_ok_and(|own| found == own));
        if is_still_here { root.remove_folder(&self.name) } else { Ok(()) }
    }

    /// A path in it, as the person finds it in the workspace.
    pub(crate) fn path_of(&self, name: &[u8]) -> RelPath {
        self.as_path().join(name).expect("names in a staging folder are plain names")
    }

    pub(crate) fn as_path(&self) -> RelPath {
        RelPath::new(self.name.clone()).expect("a staging folder's name is a plain name")
    }
}

/// Opens a folder, unless it is not the caller's own and closed to everyone else.
pub(crate) fn enter_private(root: &Root, name: &[u8]) -> io::Result<Option<Root>> {
    let folder = root.enter(name)?;
    let identity = identity_of(&folder.fd)?;
    let is_private = identity.is_callers() && identity.mode() & 0o777 == PRIVATE;
    Ok(is_private.then_some(folder))
}

/// Only the caller may look into it.
pub(crate) const PRIVATE: u16 = 0o700;

/// A step that is still to be done.
pub(crate) struct Task<'p> {
    pub(crate) step: &'p Step,
    /// Its number in the plan. In the staging folder `N.part` is new content while it is written, `N.new`
    /// is new content that is whole and, after an exchange, what was displaced by it; `N.old` is what
    /// was removed; `N.folder` is a new folder.
    pub(crate) number: usize,
    /// What was there when it was examined; `None` when nothing was, or it is half done already.
    pub(crate) seen: Option<Stat>,
    pub(crate) prepared: OnceLock<Prepared>,
    pub(crate) state: TaskState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskState {
    Open,
    Done,
    /// It is reported, with its reason.
    LeftAlone,
}

/// What became of the new content of a task.
#[derive(Clone, Copy)]
pub(crate) enum Prepared {
    /// It is in the staging folder, and this is what its descriptor said when it was complete.
    Ready(Identity),
    /// The system does not let us make it.
    Refused(WhyLeft),
}

impl<'p> Task<'p> {
    pub(crate) const fn new(number: usize, step: &'p Step, seen: Option<Stat>) -> Self {
        Self { step, number, seen, prepared: OnceLock::new(), state: TaskState::Open }
    }

    fn part(&self) -> Vec<u8> {
        format!("{}.part", self.number).into_bytes()
    }

    pub(crate) fn new_content(&self) -> Vec<u8> {
        format!("{}.new", self.number).into_bytes()
    }

    pub(crate) fn old_content(&self) -> Vec<u8> {
        format!("{}.old", self.number).into_bytes()
    }

    pub(crate) fn new_folder(&self) -> Vec<u8> {
        format!("{}.folder", self.number).into_bytes()
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
    (root, staging): (&Root, &Staging),
    objects: &Objects<'_>,
    tasks: &[Task<'_>],
    progress: &dyn Progress,
) -> Result<()> {
    let needed: Vec<&Task<'_>> = tasks.iter().filter(|task| task.needs_content()).collect();
    progress.begin("Preparing files", needed.len() as u64);
    let syncs = needed.len() <= SYNC_SINGLY;
    let stager = Stager { root, folder: staging.folder(), syncs };
    let mut by_place: HashMap<Place, Vec<(&Task<'_>, FileEntry)>> = HashMap::new();
    for task in needed {
        // Left over from an interrupted run, and never moved: the path is still as before.
        let _part = stager.folder.remove_file(&task.part());
        let _whole = stager.folder.remove_file(&task.new_content());
        match &task.step.after {
            Some(Entry::Link(target)) => stager.link(task, &objects.get(target)?)?,
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
    /// The staging folder.
    folder: &'s Root,
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
        let staged = self.folder.create_file(&task.part()).map_err(failed)?;
        let mut writer = SparseWriter::new(&staged);
        fill(&mut |bytes| writer.write(bytes).map_err(failed))?;
        writer.finish().map_err(failed)?;
        let given = give_to_owner(self.root, task.step, &staged).and_then(|()| {
            if sabotage::is(Fault::ModeLost) { Ok(()) } else { set_mode_open(&staged, file.mode) }
        });
        if let Err(error) = given {
            return self.refused(task, error);
        }
        if self.syncs && !sabotage::is(Fault::StagedNotSynced) {
            staged.sync_all().map_err(failed)?;
        }
        self.folder.move_to_free(&task.part(), &task.new_content()).map_err(failed)?;
        let _once = task.prepared.set(Prepared::Ready(identity_of(&staged).map_err(failed)?));
        Ok(())
    }

    fn link(&self, task: &Task<'_>, target: &[u8]) -> Result<()> {
        let failed = |error| Error::write_workspace(&task.step.path)(error);
        let name = task.new_content();
        let made = self.folder.create_link(&name, target).and_then(|()| {
            match owner_after(self.root, task.step)? {
                Some(owner) => self.folder.set_owner_of_link(&name, owner),
                None => Ok(()),
            }
        });
        if let Err(error) = made {
            return self.refused(task, error);
        }
        let identity = self.folder.identity(&name).map_err(failed)?;
        let _once = task.prepared.set(Prepared::Ready(identity));
        Ok(())
    }

    /// The task is left alone for the system's reason, unless that is one to end the operation for.
    fn refused(&self, task: &Task<'_>, error: io::Error) -> Result<()> {
        let Some(why) = refusal_to_give(self.root, &error) else {
            return Err(Error::write_workspace(&task.step.path)(error));
        };
        let _once = task.prepared.set(Prepared::Refused(why));
        Ok(())
    }
}

/// What root writes belongs to whoever owned what was there, else to the owner of the nearest folder. `None` for
/// everyone else, who can give nothing away.
///
/// A checkpoint does not say whose a file was, and a user who can write in a folder decides what stands in it. So
/// contents that not everybody may read are given only to the owner of the workspace: root's key in a folder of
/// another user must not become that user's because they put an empty file in its place.
fn owner_after(root: &Root, step: &Step) -> io::Result<Option<Owner>> {
    if !we_are_root() {
        return Ok(None);
    }
    let top = root.identity(b"")?.owner();
    let is_readable_by_all = match step.after {
        Some(Entry::File(FileEntry { mode, .. }) | Entry::Folder { mode, .. }) => mode & 0o004 != 0,
        Some(Entry::Link(_) | Entry::Gap { .. }) | None => true,
    };
    let places = std::iter::successors(Some(step.path.clone()), RelPath::parent);
    let mut owners = places.filter_map(|path| Some(root.identity(path.as_bytes()).ok()?.owner()));
    let found = owners.find(|owner| is_readable_by_all || owner.is_same_user(&top));
    Ok(Some(found.unwrap_or(top)))
}

/// Gives a new file or folder, held by its descriptor, to the owner it is to have.
pub(crate) fn give_to_owner(root: &Root, step: &Step, new: &impl AsFd) -> io::Result<()> {
    match owner_after(root, step)? {
        Some(owner) if identity_of(new)?.owner() != owner => set_owner_open(new, owner),
        Some(_) | None => Ok(()),
    }
}
