//! Carrying a plan out. New contents are first staged in a folder of their own inside the workspace;
//! until all are there, durable and verified, nothing has changed. Then each path is swapped in one
//! step with what it was, and what it was is looked at once more: had someone changed it in the
//! meantime, it is swapped back.
//!
//! The same plan can be applied again after an interruption at any point: paths that are already as
//! planned are done, paths that are still as before are ready, all others are left alone.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::io;

use bivouac_core::operation::{LeftAlone, Outcome, WhyLeft};
use bivouac_core::path::RelPath;
use bivouac_core::progress::Progress;
use bivouac_core::sabotage::{self, Fault};
use rayon::prelude::*;

use crate::beneath::{Kind, Root, Stat, is_gone};
use crate::database;
use crate::displaced::{self, is_entry};
use crate::objects::Objects;
use crate::ownership::SET_ID;
use crate::plan::{Plan, Step};
use crate::refusal::refusal;
use crate::stage::{PRIVATE, SYNC_SINGLY, Staging, Task, stage};
use crate::swap::swap;
use crate::tree::{Entry, FileEntry};
use crate::{Error, Result};

/// Carries out a plan, or the rest of it. Paths that are left alone are in the outcome.
pub fn apply(
    root: &Root,
    staging: &Staging,
    objects: &Objects<'_>,
    plan: &Plan,
    progress: &dyn Progress,
) -> Result<Outcome> {
    let (plan, without_set_id) = withhold_set_id(root, plan);
    let mut outcome = Outcome { left_alone: plan.left_alone.clone(), ..Outcome::default() };
    displaced::put_back(root, staging, &plan, &mut outcome)?;
    let mut tasks = examine(root, &plan, &mut outcome)?;
    stage((root, staging), objects, &tasks, progress)?;
    leave_opened_databases((root, staging), &plan, &mut tasks, &mut outcome);
    swap((root, staging), &mut tasks, &mut outcome, progress)?;
    database::take_back_incomplete((root, staging), &plan, &mut tasks, &mut outcome)?;
    if !sabotage::is(Fault::SwapNotSynced) {
        make_durable(root, &plan)?;
    }
    let left: HashSet<&RelPath> = outcome.left_alone.iter().map(|left| &left.path).collect();
    let without_set_id = without_set_id.into_iter().filter(|path| !left.contains(path)).collect();
    Ok(Outcome { without_set_id, ..outcome })
}

/// The plan without the set-id bits that would be given to something another user can replace, and the
/// paths they are withheld from.
///
/// Set-id bits are given only where the caller owns every folder on the way. Elsewhere the owner of
/// a folder decides what is restored there, and root would give that user's programs root's
/// rights: a restored file belongs to whoever owned what stood at its path, and that may be
/// anything the user moved there. A folder that has such a bit already keeps it.
fn withhold_set_id<'p>(root: &Root, plan: &'p Plan) -> (Cow<'p, Plan>, Vec<RelPath>) {
    let mut plan = Cow::Borrowed(plan);
    let mut withheld = Vec::new();
    for n in 0..plan.steps.len() {
        let step = &plan.steps[n];
        let bits = match (step.before, step.after) {
            (_, Some(Entry::File(file))) => file.mode & SET_ID,
            (Some(Entry::Folder { mode: before, .. }), Some(Entry::Folder { mode, .. })) => {
                mode & !before & SET_ID
            }
            (_, Some(Entry::Folder { mode, .. })) => mode & SET_ID,
            _ => 0,
        };
        if bits == 0 || root.is_way_private(&step.path) {
            continue;
        }
        withheld.push(step.path.clone());
        match &mut plan.to_mut().steps[n].after {
            Some(Entry::File(file)) => file.mode &= !bits,
            Some(Entry::Folder { mode, .. }) => *mode &= !bits,
            Some(Entry::Link(_) | Entry::Gap { .. }) | None => {}
        }
    }
    (plan, withheld)
}

/// What a path is now, compared with a step.
enum State {
    AsBefore(Option<Stat>),
    AsAfter,
    Left(WhyLeft),
}

/// Looks at every path: only those that are as the plan expects are touched.
fn examine<'p>(root: &Root, plan: &'p Plan, outcome: &mut Outcome) -> Result<Vec<Task<'p>>> {
    let look = |step| state_of(root, step).map_err(Error::write_workspace(&step.path));
    let states = plan.steps.par_iter().map(look).collect::<Result<Vec<State>>>()?;
    let why_left = |state: &State| match state {
        State::Left(why) => Some(*why),
        State::AsBefore(_) | State::AsAfter => None,
    };
    let mut whys: Vec<Option<WhyLeft>> = states.iter().map(why_left).collect();
    database::spread(&plan.steps, &mut whys);
    let mut tasks = Vec::new();
    for (number, (step, (state, why))) in
        plan.steps.iter().zip(states.into_iter().zip(whys)).enumerate()
    {
        match (state, why) {
            (_, Some(why)) if step.before.is_some() || step.after.is_some() => {
                leave(outcome, step, why);
            }
            (State::AsBefore(seen), None) => tasks.push(Task::new(number, step, seen)),
            (State::AsBefore(_) | State::AsAfter | State::Left(_), _) => {}
        }
    }
    Ok(tasks)
}

/// Leaves databases alone that a program opened after the plan was made.
fn leave_opened_databases(
    folders: (&Root, &Staging),
    plan: &Plan,
    tasks: &mut Vec<Task<'_>>,
    outcome: &mut Outcome,
) {
    let planned: BTreeSet<&[u8]> = plan.steps.iter().map(|step| step.path.as_bytes()).collect();
    tasks.retain(|task| {
        let is_touchable = database::is_touchable(folders, task, &planned);
        if !is_touchable {
            leave(outcome, task.step, WhyLeft::ChangedMeanwhile);
        }
        is_touchable
    });
}

fn leave(outcome: &mut Outcome, step: &Step, why: WhyLeft) {
    outcome.left_alone.push(LeftAlone { path: step.path.clone(), why });
}

fn state_of(root: &Root, step: &Step) -> io::Result<State> {
    let path = step.path.as_bytes();
    let stat = match root.stat_beneath(path) {
        Ok(stat) => Some(stat),
        Err(error) if is_gone(&error) => None,
        Err(error) => return refusal(root, &error).map(State::Left).ok_or(error),
    };
    let is_now = |entry: &Option<Entry>| match (entry, &stat) {
        (None, None) => Ok(true),
        (Some(entry), Some(stat)) => is_entry(root, path, stat, entry),
        _ => Ok(false),
    };
    Ok(if is_now(&step.after)? {
        State::AsAfter
    } else if is_now(&step.before)?
        || without_set_id(root, step).map_or(Ok(false), |entry| is_now(&Some(entry)))?
        || is_unfinished_folder(step, stat.as_ref())
    {
        State::AsBefore(stat)
    } else if is_between(step, stat.as_ref()) {
        State::AsBefore(None)
    } else {
        State::Left(WhyLeft::ChangedMeanwhile)
    })
}

/// What was there before, as an operation that is now taken back has put it there: without the set-id
/// bits, if they are withheld here.
fn without_set_id(root: &Root, step: &Step) -> Option<Entry> {
    let is_withheld = |mode: u16| mode & SET_ID != 0 && !root.is_way_private(&step.path);
    match step.before? {
        Entry::File(file) if is_withheld(file.mode) => {
            Some(Entry::File(FileEntry { mode: file.mode & !SET_ID, ..file }))
        }
        Entry::Folder { mode, tree } if is_withheld(mode) => {
            Some(Entry::Folder { mode: mode & !SET_ID, tree })
        }
        _ => None,
    }
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
    let is_new = |stat: &Stat| stat.kind == Kind::Folder && stat.mode & 0o777 == PRIVATE;
    step.is_removal_of_folder() && stat.is_some_and(is_new)
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

/// Does this error say nothing about the disk? The file's mode does not let us open it, a pipe or socket
/// stands there by now, or the file system does not support syncing folders.
fn cannot_be_synced(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput)
        || error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}
