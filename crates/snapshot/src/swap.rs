//! Swapping staged contents with what the workspace holds, path by path. A path that the system does
//! not let us change is left alone with its reason, and the others go on.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use bivouac_core::operation::{LeftAlone, Outcome, WhyLeft};
use bivouac_core::path::RelPath;
use bivouac_core::progress::Progress;
use bivouac_core::sabotage::{self, Fault};
use rustix::io::Errno;

use crate::beneath::{Kind, Root, Stat};
use crate::diff::is_locked;
use crate::displaced::{is_entry, is_of_path};
use crate::ownership::{Identity, Inode, SET_ID, identity_of, we_are_root};
use crate::refusal::{refusal, refusal_to_give};
use crate::renames::{exchange, move_to_free};
use crate::stage::{PRIVATE, Prepared, Staging, Task, TaskState, enter_private, give_to_owner};
use crate::tree::Entry;
use crate::{Error, Result};

/// Removes, creates and exchanges, in the order in which each step finds what it needs.
pub(crate) fn swap(
    (root, staging): (&Root, &Staging),
    tasks: &mut [Task<'_>],
    outcome: &mut Outcome,
    progress: &dyn Progress,
) -> Result<()> {
    progress.begin("Restoring", tasks.len() as u64);
    let locked = unlock_folders(root, tasks);
    let mut swapper = Swapper {
        root,
        top: root.stat(b"").map_err(Error::read("."))?,
        staging: staging.folder(),
        outcome,
        refused: BTreeMap::new(),
        folders: BTreeMap::new(),
        progress,
    };
    let swapped = swapper.swap_all(tasks);
    for (path, folder, mode) in locked {
        let _gone_meanwhile = root.set_folder_mode(path.as_bytes(), folder, mode);
    }
    swapped?;
    swapper.bring_back_folders(tasks)?;
    swapper.set_folder_modes(tasks)?;
    progress.end();
    Ok(())
}

/// Folders without write permission are opened for the time of the swap.
fn unlock_folders(root: &Root, tasks: &[Task<'_>]) -> Vec<(RelPath, Inode, u16)> {
    if we_are_root() {
        return Vec::new();
    }
    let parents: BTreeSet<RelPath> =
        tasks.iter().filter_map(|task| task.step.path.parent()).collect();
    let mut locked = Vec::new();
    for path in parents {
        let Ok(stat) = root.stat_beneath(path.as_bytes()) else { continue };
        if stat.kind != Kind::Folder || !is_locked(stat.mode) {
            continue;
        }
        let (folder, mode) = (Inode::of(&stat), stat.mode);
        if matches!(root.set_folder_mode(path.as_bytes(), folder, mode | 0o700), Ok(true)) {
            locked.push((path, folder, mode));
        }
    }
    locked
}

struct Swapper<'s> {
    root: &'s Root,
    /// The workspace itself.
    top: Stat,
    /// The staging folder.
    staging: &'s Root,
    outcome: &'s mut Outcome,
    /// Paths the system did not let us change. What lies below them is left alone for the same reason.
    refused: BTreeMap<RelPath, WhyLeft>,
    /// The folders whose permissions are set at the end, so that no other folder gets them.
    folders: BTreeMap<RelPath, Inode>,
    progress: &'s dyn Progress,
}

impl Swapper<'_> {
    fn swap_all(&mut self, tasks: &mut [Task<'_>]) -> Result<()> {
        let is_there = |task: &&mut Task<'_>| task.seen.is_some();
        for task in tasks.iter_mut().rev().filter(is_there) {
            if task.is_removal_of_file() {
                self.remove_file(task)?;
            }
        }
        for task in tasks.iter_mut().rev().filter(is_there) {
            if task.step.is_removal_of_folder() {
                self.remove_folder(task)?;
            }
        }
        for task in tasks.iter_mut().filter(|task| task.state != TaskState::LeftAlone) {
            match task.step.after {
                Some(Entry::Folder { .. }) => self.make_folder(task)?,
                Some(Entry::File(_) | Entry::Link(_)) => self.put_file(task)?,
                Some(Entry::Gap { .. }) | None => {}
            }
        }
        Ok(())
    }

    fn remove_file(&mut self, task: &mut Task<'_>) -> Result<()> {
        let path = task.step.path.as_bytes();
        let failed = |error| Error::write_workspace(&task.step.path)(error);
        if !is_as_seen(self.root, task).map_err(failed)? {
            self.leave(task, WhyLeft::ChangedMeanwhile);
            return Ok(());
        }
        let name = task.old_content();
        let aside = self.staging.spot(&name);
        if let Err(error) = move_to_free(self.root.spot(path), aside) {
            return self.or_leave(error, task);
        }
        if !is_what_was_seen(self.staging, &name, task.seen.as_ref()).map_err(failed)? {
            self.leave(task, WhyLeft::ChangedMeanwhile);
            return move_to_free(aside, self.root.spot(path)).map_err(failed);
        }
        task.state = TaskState::Done;
        self.outcome.n_removed += 1;
        self.progress.add(1);
        Ok(())
    }

    fn remove_folder(&mut self, task: &mut Task<'_>) -> Result<()> {
        // Unlike a rename, this works on every mount, and nothing could bring the folder back from here.
        let is_elsewhere = |seen: &Stat| !Inode::of(seen).is_on_device_of(&self.top);
        if task.seen.as_ref().is_some_and(is_elsewhere) {
            self.leave(task, WhyLeft::OtherFileSystem);
            return Ok(());
        }
        let error = match self.root.remove_folder(task.step.path.as_bytes()) {
            Ok(()) => {
                task.state = TaskState::Done;
                self.progress.add(1);
                return Ok(());
            }
            Err(error) => error,
        };
        if error.kind() != io::ErrorKind::DirectoryNotEmpty {
            return self.or_leave(error, task);
        }
        let why = match task.step.after {
            None => WhyLeft::NotEmpty,
            // Something was to take its place, and cannot.
            Some(_) => self.refused_below(&task.step.path).unwrap_or(WhyLeft::ChangedMeanwhile),
        };
        self.leave(task, why);
        Ok(())
    }

    fn make_folder(&mut self, task: &mut Task<'_>) -> Result<()> {
        let path = task.step.path.as_bytes();
        let was_there = task.step.before.is_some_and(|it| it.is_folder());
        let made = match was_there {
            true => Err(io::ErrorKind::AlreadyExists.into()),
            false if we_are_root() => self.make_in_staging(task),
            false => self.make_in_place(path),
        };
        let folder = match made {
            Ok(identity) => {
                self.progress.add(1);
                Some(identity.inode())
            }
            // It was there before, or an interrupted run made it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let stat = self.root.stat_beneath(path).ok();
                stat.filter(|stat| stat.kind == Kind::Folder).map(|stat| Inode::of(&stat))
            }
            Err(error) => {
                let why = refusal_to_give(self.root, &error);
                return self.leave_for(why, error, task);
            }
        };
        match folder {
            Some(inode) => {
                self.folders.insert(task.step.path.clone(), inode);
                task.state = TaskState::Done;
            }
            None => self.leave(task, WhyLeft::ChangedMeanwhile),
        }
        Ok(())
    }

    /// What root makes has to be given to its owner. In the workspace, another user could replace the
    /// folder before that, so it is made in the staging folder and moved to its place.
    fn make_in_staging(&self, task: &Task<'_>) -> io::Result<Identity> {
        let name = task.new_folder();
        let _interrupted_earlier = self.staging.remove_folder(&name);
        self.staging.create_folder(&name, PRIVATE)?;
        let folder = self.staging.enter(&name)?;
        give_to_owner(self.root, task.step, &folder.fd)?;
        move_to_free(self.staging.spot(&name), self.root.spot(task.step.path.as_bytes()))?;
        identity_of(&folder.fd)
    }

    /// Made in its place, a folder gets the group that its parent passes on.
    fn make_in_place(&self, path: &[u8]) -> io::Result<Identity> {
        self.root.create_folder(path, PRIVATE)?;
        match enter_private(self.root, path)? {
            Some(folder) if folder.list(b"")?.is_empty() => identity_of(&folder.fd),
            // It was replaced in this instant.
            _ => Err(Errno::NOENT.into()),
        }
    }

    fn put_file(&mut self, task: &mut Task<'_>) -> Result<()> {
        let path = task.step.path.as_bytes();
        let was_file = matches!(task.step.before, Some(Entry::File(_) | Entry::Link(_)));
        let failed = |error| Error::write_workspace(&task.step.path)(error);
        if was_file && !is_as_seen(self.root, task).map_err(failed)? {
            self.leave(task, WhyLeft::ChangedMeanwhile);
            return Ok(());
        }
        let identity = match task.prepared.get().copied() {
            Some(Prepared::Ready(identity)) => identity,
            Some(Prepared::Refused(why)) => {
                self.leave(task, why);
                return Ok(());
            }
            None => return self.set_file_mode(task),
        };
        let name = task.new_content();
        // Directly before the rename: what goes into the workspace is what was written and checked.
        if self.staging.identity(&name).map_err(failed)? != identity {
            return Err(Error::StagingReplaced { path: task.step.path.clone() });
        }
        let (new, place) = (self.staging.spot(&name), self.root.spot(path));
        let put = if was_file { exchange(new, place) } else { move_to_free(new, place) };
        if let Err(error) = put {
            return self.or_leave(error, task);
        }
        if was_file && !is_what_was_seen(self.staging, &name, task.seen.as_ref()).map_err(failed)? {
            self.leave(task, WhyLeft::ChangedMeanwhile);
            return exchange(new, place).map_err(failed);
        }
        self.wrote(task);
        Ok(())
    }

    /// Only the permissions differ.
    fn set_file_mode(&mut self, task: &mut Task<'_>) -> Result<()> {
        let (Some(Entry::File(file)), Some(seen)) = (task.step.after, task.seen) else {
            self.leave(task, WhyLeft::ChangedMeanwhile);
            return Ok(());
        };
        let is_expected = |now: &Stat| now.is_same(&seen) && now.device == seen.device;
        match self.root.set_mode_if(task.step.path.as_bytes(), file.mode, is_expected) {
            Ok(true) => self.wrote(task),
            Ok(false) => self.leave(task, WhyLeft::ChangedMeanwhile),
            Err(error) => return self.or_leave(error, task),
        }
        Ok(())
    }

    /// A folder that was to make way for a file, and could not, is left alone as a whole: what was already removed from
    /// it goes back.
    fn bring_back_folders(&mut self, tasks: &mut [Task<'_>]) -> Result<()> {
        let is_kept = |task: &&Task<'_>| {
            let becomes_file = task.step.after.is_some_and(|after| !after.is_folder());
            let was_folder = task.step.before.is_some_and(|before| before.is_folder());
            task.state == TaskState::LeftAlone && was_folder && becomes_file
        };
        let kept: Vec<RelPath> =
            tasks.iter().filter(is_kept).map(|task| task.step.path.clone()).collect();
        for folder in kept {
            let why = self.refused.get(&folder).copied().unwrap_or(WhyLeft::ChangedMeanwhile);
            let is_in = |task: &&mut Task<'_>| task.step.path.is_within(&folder);
            for task in tasks.iter_mut().filter(is_in) {
                self.bring_back(task, why).map_err(Error::write_workspace(&task.step.path))?;
            }
            for task in tasks.iter_mut().filter(is_in).rev() {
                if let Some(Entry::Folder { mode, .. }) = task.step.before {
                    let is_private = self.root.is_way_private(&task.step.path);
                    let mode = if is_private { mode } else { mode & !SET_ID };
                    let path = task.step.path.as_bytes();
                    let set = self.root.set_mode_if(path, mode, |now| now.kind == Kind::Folder);
                    set.map_err(Error::write_workspace(&task.step.path))?;
                }
            }
        }
        Ok(())
    }

    fn bring_back(&mut self, task: &mut Task<'_>, why: WhyLeft) -> io::Result<()> {
        let path = task.step.path.as_bytes();
        match task.step.before {
            Some(Entry::Folder { .. }) => match self.root.create_folder(path, PRIVATE) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made?;
                    give_to_owner(self.root, task.step, &self.root.enter(path)?.fd)?;
                }
            },
            Some(_) if task.state == TaskState::Done && task.step.after.is_none() => {
                let name = task.old_content();
                move_to_free(self.staging.spot(&name), self.root.spot(path))?;
                self.outcome.n_removed = self.outcome.n_removed.saturating_sub(1);
            }
            Some(_) | None => {}
        }
        if task.state == TaskState::Done {
            self.leave(task, why);
        }
        Ok(())
    }

    /// Permissions last and from the inside out: a folder may be about to lose its own.
    fn set_folder_modes(&mut self, tasks: &mut [Task<'_>]) -> Result<()> {
        for task in tasks.iter_mut().rev() {
            let (TaskState::Done, Some(Entry::Folder { mode, .. })) = (task.state, task.step.after)
            else {
                continue;
            };
            let path = &task.step.path;
            let folder = *self.folders.get(path).expect("every folder that is done is remembered");
            // The top of what is mounted here is not the folder that was captured.
            let was_there = task.step.before.is_some_and(|before| before.is_folder());
            if was_there && !folder.is_on_device_of(&self.top) {
                self.leave(task, WhyLeft::OtherFileSystem);
                continue;
            }
            match self.root.set_folder_mode(path.as_bytes(), folder, mode) {
                Ok(true) => {}
                Ok(false) => self.leave(task, WhyLeft::ChangedMeanwhile),
                Err(error) => self.or_leave(error, task)?,
            }
        }
        Ok(())
    }

    fn wrote(&mut self, task: &mut Task<'_>) {
        task.state = TaskState::Done;
        self.outcome.n_written += 1;
        self.progress.add(1);
    }

    /// What concerns one path leaves it alone; trouble with the disk ends the operation.
    fn or_leave(&mut self, error: io::Error, task: &mut Task<'_>) -> Result<()> {
        let why = refusal(self.root, &error);
        self.leave_for(why, error, task)
    }

    fn leave_for(
        &mut self,
        why: Option<WhyLeft>,
        error: io::Error,
        task: &mut Task<'_>,
    ) -> Result<()> {
        let path = &task.step.path;
        let why = match why {
            // It is missing because a folder on the way could not be made or removed.
            Some(WhyLeft::ChangedMeanwhile) => {
                self.refused_above(path).unwrap_or(WhyLeft::ChangedMeanwhile)
            }
            Some(other) => other,
            None => return Err(Error::write_workspace(path)(error)),
        };
        self.leave(task, why);
        Ok(())
    }

    fn leave(&mut self, task: &mut Task<'_>, why: WhyLeft) {
        let path = task.step.path.clone();
        if why.is_refusal() {
            self.refused.insert(path.clone(), why);
        }
        self.outcome.left_alone.push(LeftAlone { path, why });
        task.state = TaskState::LeftAlone;
    }

    fn refused_above(&self, path: &RelPath) -> Option<WhyLeft> {
        let mut folders = std::iter::successors(path.parent(), RelPath::parent);
        folders.find_map(|folder| self.refused.get(&folder).copied())
    }

    fn refused_below(&self, path: &RelPath) -> Option<WhyLeft> {
        let (_, why) = self.refused.iter().find(|(refused, _)| refused.is_within(path))?;
        Some(*why)
    }
}

fn is_as_seen(root: &Root, task: &Task<'_>) -> io::Result<bool> {
    let (path, seen) = (task.step.path.as_bytes(), task.seen.as_ref());
    if compare(root, path, seen, Stat::is_same)? {
        return Ok(true);
    }
    // Moving another name of the same file away, as this operation may just have done, changes the change time of
    // all its names. What it holds tells then whether somebody wrote to it.
    let has_more_names = seen.is_some_and(|seen| seen.n_links > 1);
    match (task.step.before, root.stat_beneath(path)) {
        (Some(before), Ok(now)) if has_more_names && is_what_was_seen(root, path, seen)? => {
            is_entry(root, path, &now, &before)
        }
        _ => Ok(false),
    }
}

/// The same, after a rename: that alone may change the change time.
fn is_what_was_seen(root: &Root, path: &[u8], seen: Option<&Stat>) -> io::Result<bool> {
    let is_same = |now: &Stat, seen: &Stat| now.is_same(&Stat { ctime_ns: now.ctime_ns, ..*seen });
    compare(root, path, seen, is_same)
}

fn compare(
    root: &Root,
    path: &[u8],
    seen: Option<&Stat>,
    is_same: fn(&Stat, &Stat) -> bool,
) -> io::Result<bool> {
    match (root.stat_beneath(path), seen) {
        (Ok(now), Some(seen)) => Ok(is_same(&now, seen) || sabotage::is(Fault::RecheckLost)),
        (Err(error), _) if !is_of_path(&error) => Err(error),
        _ => Ok(false),
    }
}
