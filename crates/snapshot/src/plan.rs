//! What a restore would do, path by path, before it does anything. A plan can be shown, stored,
//! carried out, finished later and turned around.

use std::collections::{BTreeMap, HashSet};

use bivouac_core::checkpoint::Gap;
use bivouac_core::id::ObjectId;
use bivouac_core::operation::{LeftAlone, WhyLeft};
use bivouac_core::path::RelPath;

use crate::bytes::{Reader, put_varint};
use crate::database::{self, Candidate};
use crate::diff::{Change, Filter, Trees, diff_to_write, is_locked};
use crate::tree::{Entry, decode_entry, encode_entry};
use crate::{Error, Result};

/// Every path that changes, in order, with what it is and what it becomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// Paths that ought to change and cannot be touched.
    pub left_alone: Vec<LeftAlone>,
}

/// Neither side is ever a gap. Both are the same for a folder that is only opened for a while, and for a file of a
/// database that changes in other files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub path: RelPath,
    pub before: Option<Entry>,
    pub after: Option<Entry>,
}

/// Plans the way from one tree to another. Only what `current` captured is ever changed, and only
/// what `target` knew to be absent is ever removed.
pub fn plan(
    trees: &Trees<'_>,
    current: &ObjectId,
    target: &ObjectId,
    filter: &Filter,
) -> Result<Plan> {
    let changes = diff_to_write(trees, current, target, filter)?;
    let mut plan = Plan::default();
    let mut closed: Option<RelPath> = None;
    let mut uncovered = Vec::new();
    for Change { path, before, after } in changes {
        if closed.as_ref().is_some_and(|closed| path.is_within(closed)) {
            continue;
        }
        match (before, after) {
            (Some(Entry::Gap { why, .. }), None) => {
                // What no rule leaves out is expected to go.
                let is_trouble = matches!(why, Gap::Unreadable | Gap::ChangedWhileRead);
                if is_trouble && filter.selects(&path) {
                    plan.left_alone.push(LeftAlone { path: path.clone(), why: WhyLeft::Uncovered });
                }
                uncovered.push(path);
            }
            (Some(Entry::Gap { .. }), Some(Entry::Gap { .. }))
            | (None, Some(Entry::Gap { .. })) => {}
            (Some(Entry::Gap { .. }), Some(_)) => {
                plan.left_alone.push(LeftAlone { path: path.clone(), why: WhyLeft::Uncovered });
                closed = Some(path);
            }
            // The target did not know what was here, so what is here now stays.
            (Some(_), Some(Entry::Gap { .. })) => closed = Some(path),
            (before, after) => {
                // A folder on the way to a selected path is made, or opened and closed again.
                let is_way = after.is_some_and(|after| after.is_folder())
                    && before.is_none_or(|before| is_same_folder(before, after));
                if filter.selects(&path) || is_way {
                    plan.steps.push(Step { path, before, after });
                }
            }
        }
    }
    database::bind(&mut plan, trees, [current, target], filter)?;
    plan.keep_folders_of(&uncovered);
    Ok(plan)
}

/// Plans to make certain paths what they once were. `reference` is the tree they were in then: from
/// it come the folders that are missing on the way.
pub fn plan_paths(
    trees: &Trees<'_>,
    current: &ObjectId,
    reference: &ObjectId,
    wanted: impl IntoIterator<Item = (RelPath, Option<Entry>)>,
) -> Result<Plan> {
    let mut goals: BTreeMap<RelPath, Option<Entry>> = wanted.into_iter().collect();
    let mut ways = Vec::new();
    for path in goals.iter().filter(|(_, goal)| goal.is_some()).map(|(path, _)| path) {
        let folders = std::iter::successors(path.parent(), RelPath::parent);
        ways.extend(folders.take_while(|folder| !goals.contains_key(folder)));
    }
    for folder in ways {
        match trees.find(current, &folder)? {
            None => {
                let entry = trees.find(reference, &folder)?;
                goals.insert(folder, entry.filter(Entry::is_folder));
            }
            locked @ Some(Entry::Folder { mode, .. }) if is_locked(mode) => {
                goals.insert(folder, locked);
            }
            Some(_) => {}
        }
    }
    let mut candidates = Vec::with_capacity(goals.len());
    for (path, after) in goals {
        let before = trees.find(current, &path)?;
        let is_same = match (&before, &after) {
            (Some(Entry::Folder { mode, .. }), Some(_)) if is_locked(*mode) => false,
            (Some(before), Some(after)) => before.is_same_thing(after),
            (None, None) => true,
            _ => false,
        };
        let is_gap = before.is_some_and(|it| it.is_gap());
        let why_left = (is_gap && !is_same).then_some(WhyLeft::Uncovered);
        candidates.push(Candidate { step: Step { path, before, after }, why_left, is_same });
    }
    Ok(database::complete(candidates))
}

/// Are both the same folder, whatever is in it?
fn is_same_folder(before: Entry, after: Option<Entry>) -> bool {
    before.is_folder() && after.is_some_and(|after| after.is_same_thing(&before))
}

impl Step {
    /// A folder that is only opened for a while, or a file of a database that changes in other files.
    fn is_way(&self) -> bool {
        self.before == self.after
            || self.before.is_some_and(|before| is_same_folder(before, self.after))
    }

    pub(crate) fn is_removal_of_folder(&self) -> bool {
        let is_folder = |entry: Option<Entry>| entry.is_some_and(|it| it.is_folder());
        is_folder(self.before) && !is_folder(self.after)
    }
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.changes().next().is_none()
    }

    /// The steps that leave something different from what it was.
    pub fn changes(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| !step.is_way())
    }

    /// The way back.
    pub fn inverted(&self) -> Self {
        let invert =
            |step: &Step| Step { path: step.path.clone(), before: step.after, after: step.before };
        Self { steps: self.steps.iter().map(invert).collect(), left_alone: Vec::new() }
    }

    /// Leaves alone what a snapshot does not hold the way the plan expects it, and what could not be
    /// given back from it.
    pub fn settle(
        self,
        trees: &Trees<'_>,
        saved: &ObjectId,
        unreadable: &HashSet<ObjectId>,
    ) -> Result<Self> {
        let mut whys = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let saved = trees.find(saved, &step.path)?;
            let is_saved = match (&saved, &step.before) {
                (Some(saved), Some(before)) => saved.is_same_thing(before),
                (None, None) => true,
                _ => false,
            };
            let is_readable = step
                .before
                .and_then(|before| before.content())
                .is_none_or(|content| !unreadable.contains(content.id()));
            whys.push(match (is_saved, is_readable) {
                (true, true) => None,
                (false, _) if saved.is_some_and(|it| it.is_gap()) => Some(WhyLeft::Uncovered),
                (false, _) => Some(WhyLeft::ChangedMeanwhile),
                (true, false) => Some(WhyLeft::Unreadable),
            });
        }
        database::spread(&self.steps, &mut whys);
        let (steps, newly_left) = database::set_apart(self.steps, whys);
        let mut left_alone = self.left_alone;
        left_alone.extend(newly_left);
        Ok(Self { steps, left_alone })
    }

    /// Folders that hold something uncovered cannot go; neither can a file take their place.
    fn keep_folders_of(&mut self, uncovered: &[RelPath]) {
        let mut kept = Vec::new();
        self.steps.retain(|step| {
            let goes = step.before.is_some_and(|it| it.is_folder())
                && !step.after.is_some_and(|it| it.is_folder());
            let must_stay = goes && uncovered.iter().any(|path| path.is_within(&step.path));
            if must_stay {
                let why = if step.after.is_some() { WhyLeft::Uncovered } else { WhyLeft::NotEmpty };
                kept.push(LeftAlone { path: step.path.clone(), why });
            }
            !must_stay
        });
        self.left_alone.extend(kept);
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_varint(&mut out, self.steps.len() as u64);
        for step in &self.steps {
            put_path(&mut out, &step.path);
            for side in [&step.before, &step.after] {
                out.push(u8::from(side.is_some()));
                if let Some(entry) = side {
                    encode_entry(&mut out, entry);
                }
            }
        }
        put_varint(&mut out, self.left_alone.len() as u64);
        for left in &self.left_alone {
            put_path(&mut out, &left.path);
            out.push(why_code(left.why));
        }
        out
    }

    /// Reads a stored plan.
    pub fn decode(id: &ObjectId, bytes: &[u8]) -> Result<Self> {
        decode(bytes).ok_or(Error::Malformed { id: *id, what: "plan" })
    }
}

const VERSION: u8 = 1;

fn decode(bytes: &[u8]) -> Option<Plan> {
    let mut reader = Reader::new(bytes);
    if reader.byte()? != VERSION {
        return None;
    }
    let count = usize::try_from(reader.varint()?).ok()?;
    let mut plan =
        Plan { steps: Vec::with_capacity(count.min(bytes.len() / 4)), ..Plan::default() };
    for _ in 0..count {
        let path = take_path(&mut reader)?;
        let before = decode_side(&mut reader)?;
        let after = decode_side(&mut reader)?;
        plan.steps.push(Step { path, before, after });
    }
    for _ in 0..reader.varint()? {
        let path = take_path(&mut reader)?;
        let why = why_from_code(reader.byte()?)?;
        plan.left_alone.push(LeftAlone { path, why });
    }
    reader.is_empty().then_some(plan)
}

fn put_path(out: &mut Vec<u8>, path: &RelPath) {
    put_varint(out, path.as_bytes().len() as u64);
    out.extend_from_slice(path.as_bytes());
}

fn take_path(reader: &mut Reader<'_>) -> Option<RelPath> {
    let length = usize::try_from(reader.varint()?).ok()?;
    RelPath::new(reader.take(length)?).ok()
}

const fn why_code(why: WhyLeft) -> u8 {
    match why {
        WhyLeft::ChangedMeanwhile => 0,
        WhyLeft::NotEmpty => 1,
        WhyLeft::Uncovered => 2,
        WhyLeft::Unreadable => 3,
        // Refusals of the system are met while a plan is applied, never while one is made.
        WhyLeft::OtherFileSystem => 4,
        WhyLeft::NotPermitted => 5,
        WhyLeft::NoAccess => 6,
    }
}

const fn why_from_code(code: u8) -> Option<WhyLeft> {
    match code {
        0 => Some(WhyLeft::ChangedMeanwhile),
        1 => Some(WhyLeft::NotEmpty),
        2 => Some(WhyLeft::Uncovered),
        3 => Some(WhyLeft::Unreadable),
        4 => Some(WhyLeft::OtherFileSystem),
        5 => Some(WhyLeft::NotPermitted),
        6 => Some(WhyLeft::NoAccess),
        _ => None,
    }
}

fn decode_side(reader: &mut Reader<'_>) -> Option<Option<Entry>> {
    match reader.byte()? {
        0 => Some(None),
        1 => decode_entry(reader).filter(|entry| !entry.is_gap()).map(Some),
        _ => None,
    }
}
