//! The files of a database stay together in every plan and while a plan is carried out.
//!
//! A plan that changes one file of a database has a step for all four names: those that stay the same or are
//! absent on both sides as well. So a log that a program creates or extends after the plan was made is noticed
//! like any other change, and then none of the four is touched.

use std::collections::{BTreeSet, HashMap};
use std::io;

use bivouac_core::id::ObjectId;
use bivouac_core::operation::{LeftAlone, Outcome, WhyLeft};
use bivouac_core::path::RelPath;

use crate::beneath::{Kind, Root, is_gone};
use crate::database::{JOURNAL, MAGIC, MAIN, N_MEMBERS, SHM, WAL, is_main, main_of, members};
use crate::diff::{Filter, Trees};
use crate::plan::{Plan, Step};
use crate::renames::{exchange, move_to_free};
use crate::stage::{Staging, Task, TaskState};
use crate::tree::Entry;
use crate::{Error, Result};

/// The places of a database's steps among all steps.
pub(crate) type Family = [usize; N_MEMBERS];

/// The databases among the steps of a plan: those with a step for each name.
pub(crate) fn families(steps: &[Step]) -> Vec<Family> {
    let logs = steps.iter().filter(|step| step.path.as_bytes().ends_with(b"-wal"));
    let mains: Vec<&[u8]> = logs.filter_map(|step| main_of(step.path.as_bytes())).collect();
    if mains.is_empty() {
        return Vec::new();
    }
    let places: HashMap<&[u8], usize> =
        steps.iter().enumerate().map(|(at, step)| (step.path.as_bytes(), at)).collect();
    let family = |main: &[u8]| {
        let mut family = [0; N_MEMBERS];
        for (at, name) in members(main).iter().enumerate() {
            family[at] = *places.get(name.as_slice())?;
        }
        Some(family)
    };
    mains.into_iter().filter_map(family).collect()
}

/// Adds to the plan of a rollback what its databases need to stay whole.
pub(crate) fn bind(
    plan: &mut Plan,
    trees: &Trees<'_>,
    [current, target]: [&ObjectId; 2],
    filter: &Filter,
) -> Result<()> {
    let touched = plan.steps.iter().map(|step| &step.path);
    let touched = touched.chain(plan.left_alone.iter().map(|left| &left.path));
    let folders: BTreeSet<Option<RelPath>> = touched.map(RelPath::parent).collect();
    for folder in folders {
        let mut mains = BTreeSet::new();
        for root in [current, target] {
            mains.extend(mains_in(trees, root, folder.as_ref())?);
        }
        for main in mains {
            if let Some(steps) = steps_of(trees, [current, target], &main)?
                && steps.iter().any(|step| step.before != step.after)
                && steps.iter().any(|step| filter.selects(&step.path))
            {
                plan.put_database(steps);
            }
        }
    }
    Ok(())
}

/// The databases that have siblings in a folder, by their names.
fn mains_in(trees: &Trees<'_>, root: &ObjectId, folder: Option<&RelPath>) -> Result<Vec<RelPath>> {
    let tree = match folder {
        None => Some(*root),
        Some(path) => match trees.find(root, path)? {
            Some(Entry::Folder { tree, .. }) => Some(tree),
            _ => None,
        },
    };
    let Some(tree) = tree else { return Ok(Vec::new()) };
    let tree = trees.get(&tree)?;
    let names = tree.entries().filter_map(|(name, _)| main_of(name));
    let paths = names.filter_map(|name| match folder {
        None => RelPath::new(name).ok(),
        Some(folder) => folder.join(name).ok(),
    });
    Ok(paths.collect())
}

/// What each file of a database is and becomes. `None` if it is not a database.
fn steps_of(
    trees: &Trees<'_>,
    [current, target]: [&ObjectId; 2],
    main: &RelPath,
) -> Result<Option<[Step; N_MEMBERS]>> {
    let mut steps = Vec::with_capacity(N_MEMBERS);
    for name in members(main.as_bytes()) {
        let path = RelPath::new(name).expect("a path with letters behind it");
        let (before, after) = (trees.find(current, &path)?, trees.find(target, &path)?);
        steps.push(Step { path, before, after });
    }
    let Ok(mut steps) = <[Step; N_MEMBERS]>::try_from(steps) else { return Ok(None) };
    // SQLite rebuilds an index that the checkpoint lacks.
    let is_captured = matches!(steps[MAIN].after, Some(Entry::File(_)));
    if is_captured && steps[SHM].after.is_some_and(|after| after.is_gap()) {
        steps[SHM].after = None;
    }
    let sides = [steps[MAIN].before, steps[MAIN].after];
    let is_file = |it: &Entry| matches!(it, Entry::File(_) | Entry::Gap { is_folder: false, .. });
    if !sides.iter().flatten().any(is_file) || !sides.iter().flatten().all(is_file) {
        return Ok(None);
    }
    let looks: Vec<bool> =
        sides.iter().flatten().filter_map(|it| trees.begins_with(it, MAGIC)).collect();
    // What cannot be read was not stored yet; the names alone speak for a database then.
    Ok((looks.is_empty() || looks.contains(&true)).then_some(steps))
}

impl Plan {
    /// Replaces whatever the plan says of a database's files: all of them change, or none does.
    fn put_database(&mut self, steps: [Step; N_MEMBERS]) {
        let is_member = |path: &RelPath| steps.iter().any(|step| step.path == *path);
        self.steps.retain(|step| !is_member(&step.path));
        self.left_alone.retain(|left| !is_member(&left.path));
        let is_gap = |entry: Option<Entry>| entry.is_some_and(|it| it.is_gap());
        match steps.iter().any(|step| is_gap(step.before) || is_gap(step.after)) {
            false => self.steps.extend(steps),
            true => {
                let differing = steps.into_iter().filter(|step| step.before != step.after);
                let left =
                    differing.map(|step| LeftAlone { path: step.path, why: WhyLeft::Uncovered });
                self.left_alone.extend(left);
            }
        }
    }
}

/// A path that an undo may change.
pub(crate) struct Candidate {
    pub(crate) step: Step,
    pub(crate) why_left: Option<WhyLeft>,
    /// It already is what it is to become.
    pub(crate) is_same: bool,
}

/// Makes the plan of an undo. A file that stays the same is a step if it belongs to a database that changes.
pub(crate) fn complete(candidates: Vec<Candidate>) -> Plan {
    let mut is_needed: Vec<bool> = candidates.iter().map(|it| !it.is_same).collect();
    let mut whys: Vec<Option<WhyLeft>> = candidates.iter().map(|it| it.why_left).collect();
    let steps: Vec<Step> = candidates.into_iter().map(|it| it.step).collect();
    spread(&steps, &mut whys);
    for family in families(&steps) {
        let is_changing = family.iter().any(|at| is_needed[*at]);
        family.iter().for_each(|at| is_needed[*at] = is_changing);
    }
    let all = steps.into_iter().zip(whys).zip(is_needed);
    let (steps, whys) = all.filter_map(|(step, needed)| needed.then_some(step)).unzip();
    let (steps, left_alone) = set_apart(steps, whys);
    Plan { steps, left_alone }
}

/// What is left alone is left alone with all of its database.
pub(crate) fn spread(steps: &[Step], whys: &mut [Option<WhyLeft>]) {
    for family in families(steps) {
        if let Some(why) = family.iter().find_map(|at| whys[*at]) {
            family.iter().for_each(|at| whys[*at] = whys[*at].or(Some(why)));
        }
    }
}

/// The steps of an operation that were carried out: those not left alone, nor with a database that was.
pub fn carried_out(steps: Vec<Step>, left_alone: &[LeftAlone]) -> Vec<Step> {
    let left: BTreeSet<&RelPath> = left_alone.iter().map(|left| &left.path).collect();
    let mut whys: Vec<Option<WhyLeft>> = steps
        .iter()
        .map(|step| left.contains(&step.path).then_some(WhyLeft::ChangedMeanwhile))
        .collect();
    spread(&steps, &mut whys);
    steps.into_iter().zip(whys).filter_map(|(step, why)| why.is_none().then_some(step)).collect()
}

/// Takes the databases out of an operation's steps that a program changed after the operation: taking the
/// operation back would throw away what the program wrote.
pub fn set_apart_changed(
    trees: &Trees<'_>,
    current: &ObjectId,
    steps: Vec<Step>,
) -> Result<(Vec<Step>, Vec<LeftAlone>)> {
    let mut whys: Vec<Option<WhyLeft>> = vec![None; steps.len()];
    for at in families(&steps).into_iter().flatten() {
        if trees.find(current, &steps[at].path)? != steps[at].after {
            whys[at] = Some(WhyLeft::ChangedMeanwhile);
        }
    }
    spread(&steps, &mut whys);
    Ok(set_apart(steps, whys))
}

/// Parts the steps that are left alone from the others. A name that is absent on both sides is not told.
pub(crate) fn set_apart(
    steps: Vec<Step>,
    whys: Vec<Option<WhyLeft>>,
) -> (Vec<Step>, Vec<LeftAlone>) {
    let mut kept = Vec::new();
    let mut left = Vec::new();
    for (step, why) in steps.into_iter().zip(whys) {
        match why {
            None => kept.push(step),
            Some(why) if step.before.is_some() || step.after.is_some() => {
                left.push(LeftAlone { path: step.path, why });
            }
            Some(_) => {}
        }
    }
    (kept, left)
}

/// May this step be carried out, as far as databases are concerned? Not if it replaces a database that has a
/// journal or a log of which the plan knows nothing: a program opened it after the plan was made.
pub(crate) fn is_touchable(
    (root, staging): (&Root, &Staging),
    task: &Task<'_>,
    planned: &BTreeSet<&[u8]>,
) -> bool {
    let main = task.step.path.as_bytes();
    let sides = [task.step.before, task.step.after];
    // Pages have at least 512 bytes, so the sizes of nearly all other files rule them out.
    let may_be_database = sides.iter().flatten().any(|side| match side {
        Entry::File(file) => file.size > 0 && file.size.is_multiple_of(512),
        _ => false,
    });
    if !may_be_database || !task.needs_content() && task.step.after.is_some() {
        return true;
    }
    let names = members(main);
    let is_unplanned = |name: &[u8]| {
        !planned.contains(name) && root.stat_beneath(name).is_ok_and(|stat| stat.kind == Kind::File)
    };
    if ![JOURNAL, SHM, WAL].iter().any(|at| is_unplanned(&names[*at])) {
        return true;
    }
    let is_database =
        |folder: &Root, path: &[u8]| folder.open_file(path).is_ok_and(|file| is_main(&file));
    !is_database(root, main) && !is_database(staging.folder(), &task.new_content())
}

/// Puts back what was done of a database when not all of it could be done.
pub(crate) fn take_back_incomplete(
    folders: (&Root, &Staging),
    plan: &Plan,
    tasks: &mut [Task<'_>],
    outcome: &mut Outcome,
) -> Result<()> {
    for family in families(&plan.steps) {
        let is_member =
            |task: &Task<'_>| family.iter().any(|at| plan.steps[*at].path == task.step.path);
        if !tasks.iter().any(|task| is_member(task) && task.state != TaskState::Done) {
            continue;
        }
        for task in
            tasks.iter_mut().rev().filter(|task| task.state == TaskState::Done && is_member(task))
        {
            take_back(folders, task, outcome)?;
        }
    }
    Ok(())
}

fn take_back(
    (root, staging): (&Root, &Staging),
    task: &mut Task<'_>,
    outcome: &mut Outcome,
) -> Result<()> {
    let path = task.step.path.as_bytes();
    let place = root.spot(path);
    let (new, old) = (task.new_content(), task.old_content());
    let (new, old) = (staging.folder().spot(&new), staging.folder().spot(&old));
    let back = match (task.step.before, task.step.after) {
        (Some(_), None) => move_to_free(old, place),
        (None, Some(_)) => move_to_free(place, new),
        (Some(Entry::File(before)), Some(_)) if !task.needs_content() => {
            root.set_mode_if(path, before.mode, |_| true).map(|_is_set| ())
        }
        (Some(_), Some(_)) => exchange(new, place),
        (None, None) => Ok(()),
    };
    match back {
        Ok(()) => {}
        // A program was there first; its file stays.
        Err(error) if is_gone(&error) || error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(Error::write_workspace(&task.step.path)(error)),
    }
    task.state = TaskState::LeftAlone;
    match task.step.after {
        Some(_) => outcome.n_written = outcome.n_written.saturating_sub(1),
        None => outcome.n_removed = outcome.n_removed.saturating_sub(1),
    }
    let why = WhyLeft::ChangedMeanwhile;
    outcome.left_alone.push(LeftAlone { path: task.step.path.clone(), why });
    Ok(())
}
