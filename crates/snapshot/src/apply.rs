//! Carrying a plan out. New contents are first staged in a folder of their own inside the workspace;
//! until all are there, durable and verified, nothing has changed. Then each path is swapped in one
//! step with what it was, and what it was is looked at once more: had someone changed it in the
//! meantime, it is swapped back.
//!
//! The same plan can be applied again after an interruption at any point: paths that are already as
//! planned are done, paths that are still as before are ready, all others are left alone.

use std::collections::BTreeSet;
use std::io;

use bivouac_core::id::OperationId;
use bivouac_core::operation::{LeftAlone, Outcome, WhyLeft};
use bivouac_core::path::RelPath;
use bivouac_core::progress::Progress;
use bivouac_core::sabotage::{self, Fault};
use rayon::prelude::*;

use crate::beneath::{Kind, Root, Stat, is_gone, we_are_root};
use crate::diff::is_locked;
use crate::displaced::{self, is_entry, is_of_path};
use crate::objects::Objects;
use crate::plan::{Plan, Step};
use crate::stage::{SYNC_SINGLY, Staging, Task, give_to_owner, stage};
use crate::tree::Entry;
use crate::{Error, Result};

/// Carries out a plan, or the rest of it. What is left alone is told in the outcome.
pub fn apply(
    root: &Root,
    objects: &Objects<'_>,
    plan: &Plan,
    id: OperationId,
    progress: &dyn Progress,
) -> Result<Outcome> {
    let staging = Staging::open(root, id)?;
    let mut outcome = Outcome { left_alone: plan.left_alone.clone(), ..Outcome::default() };
    displaced::put_back(root, &staging, plan, &mut outcome)?;
    let mut tasks = examine(root, &staging, plan, &mut outcome)?;
    stage(root, objects, &tasks, progress)?;
    swap(root, &mut tasks, &mut outcome, progress)?;
    if !sabotage::is(Fault::SwapNotSynced) {
        make_durable(root, plan)?;
    }
    Ok(outcome)
}

/// What a path is now, compared with a step.
enum State {
    AsBefore(Option<Stat>),
    AsAfter,
    Other,
}

/// Looks at every path: only those that are as the plan expects are touched.
fn examine<'p>(
    root: &Root,
    staging: &Staging,
    plan: &'p Plan,
    outcome: &mut Outcome,
) -> Result<Vec<Task<'p>>> {
    let look = |step| state_of(root, step).map_err(Error::write_workspace(&step.path));
    let states = plan.steps.par_iter().map(look).collect::<Result<Vec<State>>>()?;
    let mut tasks = Vec::new();
    for (n, (step, state)) in plan.steps.iter().zip(states).enumerate() {
        let staged = staging.at(n.to_string().as_bytes());
        match state {
            State::AsBefore(seen) => tasks.push(Task { step, staged, seen, is_done: false }),
            State::AsAfter => {}
            State::Other => leave(outcome, step, WhyLeft::ChangedMeanwhile),
        }
    }
    Ok(tasks)
}

fn state_of(root: &Root, step: &Step) -> io::Result<State> {
    let path = step.path.as_bytes();
    let stat = match root.stat_beneath(path) {
        Ok(stat) => Some(stat),
        Err(error) if is_gone(&error) => None,
        Err(error) if is_of_path(&error) => return Ok(State::Other),
        Err(error) => return Err(error),
    };
    let is_now = |entry: &Option<Entry>| match (entry, &stat) {
        (None, None) => Ok(true),
        (Some(entry), Some(stat)) => is_entry(root, path, stat, entry),
        _ => Ok(false),
    };
    Ok(if is_now(&step.after)? {
        State::AsAfter
    } else if is_now(&step.before)? || is_unfinished_folder(step, stat.as_ref()) {
        State::AsBefore(stat)
    } else if is_between(step, stat.as_ref()) {
        State::AsBefore(None)
    } else {
        State::Other
    })
}

/// Is it as a step can leave it half done? A file that makes way for a folder is removed first, and the
/// other way round. Folders get their permissions last, and until then their owner may write.
fn is_between(step: &Step, stat: Option<&Stat>) -> bool {
    match (stat, step.before, step.after) {
        (None, Some(before), Some(after)) => before.is_folder() != after.is_folder(),
        (Some(stat), Some(Entry::Folder { mode, .. }), Some(Entry::Folder { .. })) => {
            stat.kind == Kind::Folder && stat.mode == mode | 0o700
        }
        (Some(stat), _, Some(Entry::Folder { .. })) => stat.kind == Kind::Folder,
        _ => false,
    }
}

/// Was this folder made by a step that is now taken back, and not given its permissions yet?
fn is_unfinished_folder(step: &Step, stat: Option<&Stat>) -> bool {
    let is_new = |stat: &Stat| stat.kind == Kind::Folder && stat.mode & 0o777 == NEW_FOLDER;
    step.is_removal_of_folder() && stat.is_some_and(is_new)
}

/// Until all is in it, nobody else looks into a folder.
const NEW_FOLDER: u16 = 0o700;

/// Folders without write permission are opened for the time of the swap.
fn unlock_folders(root: &Root, tasks: &[Task<'_>]) -> Vec<(Vec<u8>, u16)> {
    if we_are_root() {
        return Vec::new();
    }
    let parents: BTreeSet<RelPath> =
        tasks.iter().filter_map(|task| task.step.path.parent()).collect();
    let mut locked = Vec::new();
    for folder in parents {
        let folder = folder.as_bytes();
        let Ok(stat) = root.stat_beneath(folder) else {
            continue;
        };
        if stat.kind == Kind::Folder
            && is_locked(stat.mode)
            && root.set_mode(folder, stat.mode | 0o700).is_ok()
        {
            locked.push((folder.to_vec(), stat.mode));
        }
    }
    locked
}

/// Removes, creates and exchanges, in the order in which each step finds what it needs.
fn swap(
    root: &Root,
    tasks: &mut [Task<'_>],
    outcome: &mut Outcome,
    progress: &dyn Progress,
) -> Result<()> {
    progress.begin("Restoring", tasks.len() as u64);
    let locked = unlock_folders(root, tasks);
    let swapped = swap_all(&Swapper { root, progress }, tasks, outcome);
    for (folder, mode) in locked {
        let _gone_meanwhile = root.set_mode(&folder, mode);
    }
    swapped?;
    // Permissions last and from the inside out: a folder may be about to lose its own.
    for task in tasks.iter().rev().filter(|task| task.is_done) {
        if let Some(Entry::Folder { mode, .. }) = task.step.after {
            root.set_mode(task.step.path.as_bytes(), mode)
                .map_err(Error::write_workspace(&task.step.path))?;
        }
    }
    progress.end();
    Ok(())
}

fn swap_all(swapper: &Swapper<'_>, tasks: &mut [Task<'_>], outcome: &mut Outcome) -> Result<()> {
    for task in
        tasks.iter_mut().rev().filter(|task| task.is_removal_of_file() && task.seen.is_some())
    {
        swapper.remove_file(task, outcome)?;
    }
    for task in tasks
        .iter_mut()
        .rev()
        .filter(|task| task.step.is_removal_of_folder() && task.seen.is_some())
    {
        swapper.remove_folder(task, outcome)?;
    }
    for task in tasks.iter_mut() {
        match task.step.after {
            Some(Entry::Folder { .. }) => swapper.make_folder(task, outcome)?,
            Some(Entry::File(_) | Entry::Link(_)) => swapper.put_file(task, outcome)?,
            Some(Entry::Gap { .. }) | None => {}
        }
    }
    Ok(())
}

struct Swapper<'s> {
    root: &'s Root,
    progress: &'s dyn Progress,
}

impl Swapper<'_> {
    fn remove_file(&self, task: &mut Task<'_>, outcome: &mut Outcome) -> Result<()> {
        let path = task.step.path.as_bytes();
        let failed = |error| Error::write_workspace(&task.step.path)(error);
        if !self.is_as_seen(path, task.seen.as_ref()).map_err(failed)? {
            leave(outcome, task.step, WhyLeft::ChangedMeanwhile);
            return Ok(());
        }
        let aside = task.old_content();
        if let Err(error) = self.root.move_to_free(path, &aside) {
            return or_leave(error, task.step, outcome);
        }
        if !self.is_what_was_seen(&aside, task.seen.as_ref()).map_err(failed)? {
            leave(outcome, task.step, WhyLeft::ChangedMeanwhile);
            return self.root.move_to_free(&aside, path).map_err(failed);
        }
        task.is_done = true;
        outcome.n_removed += 1;
        self.progress.add(1);
        Ok(())
    }

    fn remove_folder(&self, task: &mut Task<'_>, outcome: &mut Outcome) -> Result<()> {
        match self.root.remove_folder(task.step.path.as_bytes()) {
            Ok(()) => {
                task.is_done = true;
                self.progress.add(1);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                leave(outcome, task.step, WhyLeft::NotEmpty);
                Ok(())
            }
            Err(error) => or_leave(error, task.step, outcome),
        }
    }

    fn make_folder(&self, task: &mut Task<'_>, outcome: &mut Outcome) -> Result<()> {
        let path = task.step.path.as_bytes();
        if task.step.before.is_some_and(|it| it.is_folder()) {
            task.is_done = true;
            return Ok(());
        }
        let is_there = || self.root.stat_beneath(path).is_ok_and(|stat| stat.kind == Kind::Folder);
        match self.root.create_folder(path, NEW_FOLDER) {
            Err(error) if !is_there() => or_leave(error, task.step, outcome),
            _ => {
                give_to_owner(self.root, task.step, path)
                    .map_err(Error::write_workspace(&task.step.path))?;
                task.is_done = true;
                self.progress.add(1);
                Ok(())
            }
        }
    }

    fn put_file(&self, task: &mut Task<'_>, outcome: &mut Outcome) -> Result<()> {
        let path = task.step.path.as_bytes();
        let was_file = matches!(task.step.before, Some(Entry::File(_) | Entry::Link(_)));
        let failed = |error| Error::write_workspace(&task.step.path)(error);
        if was_file && !self.is_as_seen(path, task.seen.as_ref()).map_err(failed)? {
            leave(outcome, task.step, WhyLeft::ChangedMeanwhile);
            return Ok(());
        }
        let put = match task.step.after {
            Some(Entry::File(file)) if !task.needs_content() => self.root.set_mode(path, file.mode),
            _ if was_file => self.root.exchange(&task.new_content(), path),
            _ => self.root.move_to_free(&task.new_content(), path),
        };
        if let Err(error) = put {
            return or_leave(error, task.step, outcome);
        }
        if was_file && task.needs_content() {
            let displaced = task.new_content();
            if !self.is_what_was_seen(&displaced, task.seen.as_ref()).map_err(failed)? {
                leave(outcome, task.step, WhyLeft::ChangedMeanwhile);
                return self.root.exchange(&displaced, path).map_err(failed);
            }
        }
        task.is_done = true;
        outcome.n_written += 1;
        self.progress.add(1);
        Ok(())
    }

    fn is_as_seen(&self, path: &[u8], seen: Option<&Stat>) -> io::Result<bool> {
        self.compare(path, seen, Stat::is_same)
    }

    /// The same, after a rename: that alone may change the change time.
    fn is_what_was_seen(&self, path: &[u8], seen: Option<&Stat>) -> io::Result<bool> {
        let is_same =
            |now: &Stat, seen: &Stat| now.is_same(&Stat { ctime_ns: now.ctime_ns, ..*seen });
        self.compare(path, seen, is_same)
    }

    fn compare(
        &self,
        path: &[u8],
        seen: Option<&Stat>,
        is_same: fn(&Stat, &Stat) -> bool,
    ) -> io::Result<bool> {
        match (self.root.stat_beneath(path), seen) {
            (Ok(now), Some(seen)) => Ok(is_same(&now, seen) || sabotage::is(Fault::RecheckLost)),
            (Err(error), _) if !is_of_path(&error) => Err(error),
            _ => Ok(false),
        }
    }
}

/// Someone else's doing leaves the path alone; trouble with the disk ends the operation.
fn or_leave(error: io::Error, step: &Step, outcome: &mut Outcome) -> Result<()> {
    let is_taken =
        matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::IsADirectory);
    if is_taken || is_gone(&error) {
        leave(outcome, step, WhyLeft::ChangedMeanwhile);
        return Ok(());
    }
    Err(Error::write_workspace(&step.path)(error))
}

/// Names, and modes that were set in place. Whoever was interrupted may have left some of them to us, so all are
/// made durable, whichever of them were done now.
fn make_durable(root: &Root, plan: &Plan) -> Result<()> {
    let mut places: BTreeSet<Vec<u8>> = BTreeSet::new();
    for step in &plan.steps {
        places.insert(step.path.parent().map_or(Vec::new(), |folder| folder.as_bytes().to_vec()));
        let in_place = match (step.before, step.after) {
            (Some(Entry::File(before)), Some(Entry::File(after))) => {
                before.content == after.content
            }
            (_, after) => after.is_some_and(|it| it.is_folder()),
        };
        if in_place {
            places.insert(step.path.as_bytes().to_vec());
        }
    }
    if places.len() > SYNC_SINGLY {
        return root.sync_all().map_err(Error::write("."));
    }
    for place in places {
        match root.sync(&place) {
            // One that was itself removed afterwards needs no sync.
            Err(error) if is_gone(&error) => {}
            Err(error) if cannot_be_synced(&error) => {
                return root.sync_all().map_err(Error::write("."));
            }
            synced => synced.map_err(Error::write("."))?,
        }
    }
    Ok(())
}

/// Does this say nothing about the disk? A file that may not be opened, as its mode says, or somebody's pipe or socket
/// that stands there by now, and file systems that know no sync of folders.
fn cannot_be_synced(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput)
        || error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}

fn leave(outcome: &mut Outcome, step: &Step, why: WhyLeft) {
    outcome.left_alone.push(LeftAlone { path: step.path.clone(), why });
}
