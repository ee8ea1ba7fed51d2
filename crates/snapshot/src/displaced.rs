//! What a restore displaced waits in the staging folder until all is applied. Before it goes, it is
//! looked at once more: a program may have had the file open and written to it all the while, or an
//! interrupted run may have displaced something else than it expected. Then it is someone's work.

use std::io::{self, Read};

use bivouac_core::id::{ObjectId, OperationId};
use bivouac_core::operation::{LeftAlone, Outcome, WhyLeft};
use bivouac_core::path::RelPath;
use bivouac_core::sabotage::{self, Fault};
use rayon::prelude::*;

use crate::beneath::{Kind, Root, Stat, is_gone, stat_open};
use crate::chunks;
use crate::plan::{Plan, Step};
use crate::stage::Staging;
use crate::tree::{Content, Entry};
use crate::{Error, Result};

/// Throws away what an operation displaced, once all of it was applied, and makes that durable: after the end is on
/// record, nobody looks for it again. Answers where things are that were written to meanwhile.
pub fn clean_up(root: &Root, plan: &Plan, id: OperationId) -> Result<Vec<RelPath>> {
    let kept = match Staging::find(root, id)? {
        Some(staging) => empty(root, plan, &staging)?,
        None => Vec::new(),
    };
    let folders =
        kept.iter().map(|path| path.parent().map_or(Vec::new(), |it| it.as_bytes().to_vec()));
    for folder in folders.chain([Vec::new()]) {
        root.sync(&folder).map_err(Error::write("."))?;
    }
    Ok(kept)
}

fn empty(root: &Root, plan: &Plan, staging: &Staging) -> Result<Vec<RelPath>> {
    let report = |error| Error::write_workspace(&staging.as_path())(error);
    let leftovers = staging.leftovers(root, plan)?;
    let looks = leftovers.par_iter().map(|it| it.is_foreign(root));
    let foreign = looks.collect::<io::Result<Vec<bool>>>().map_err(report)?;
    let mut kept = Vec::new();
    for (leftover, is_foreign) in leftovers.iter().zip(foreign) {
        match (is_foreign, leftover.step) {
            (true, Some(step)) => kept.push(keep(root, step, &leftover.path)?),
            _ => root.remove_file(&leftover.path).map_err(report)?,
        }
    }
    staging.remove(root).map_err(report)?;
    Ok(kept)
}

/// Puts things back that an interrupted run took away: what was on its way aside, and what it displaced
/// without expecting it.
pub(crate) fn put_back(
    root: &Root,
    staging: &Staging,
    plan: &Plan,
    outcome: &mut Outcome,
) -> Result<()> {
    for leftover in staging.leftovers(root, plan)? {
        let Some(step) = leftover.step else {
            continue;
        };
        let path = step.path.as_bytes();
        let failed = |error| Error::write_workspace(&step.path)(error);
        if leftover.is_aside() {
            if root.stat_beneath(path).is_err() {
                root.move_to_free(&leftover.path, path).map_err(failed)?;
            }
        } else if leftover.is_foreign(root).map_err(failed)? {
            // Back in its place, it is found to have changed, and stays.
            let Ok(now) = root.stat_beneath(path) else {
                root.move_to_free(&leftover.path, path).map_err(failed)?;
                continue;
            };
            let is_ours = match step.after {
                Some(after) if now.kind != Kind::Folder => is_entry(root, path, &now, &after),
                _ => Ok(false),
            };
            if is_ours.map_err(failed)? {
                root.exchange(&leftover.path, path).map_err(failed)?;
            } else {
                let path = keep(root, step, &leftover.path)?;
                outcome.left_alone.push(LeftAlone { path, why: WhyLeft::ChangedMeanwhile });
            }
        }
    }
    Ok(())
}

/// Moves something out of the staging folder, beside the path it came from.
fn keep(root: &Root, step: &Step, leftover: &[u8]) -> Result<RelPath> {
    let failed = Error::write_workspace(&step.path);
    let mut number = 1;
    loop {
        let suffix = if number == 1 { ".kept".to_owned() } else { format!(".kept-{number}") };
        let beside = [step.path.as_bytes(), suffix.as_bytes()].concat();
        match root.move_to_free(leftover, &beside) {
            Ok(()) => return Ok(RelPath::new(beside).expect("a plain name and letters")),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => {
                number += 1;
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// A file in the staging folder, and the step it belongs to.
pub(crate) struct Leftover<'p> {
    pub(crate) path: Vec<u8>,
    /// `None` for what is only half written, and for what is none of ours.
    pub(crate) step: Option<&'p Step>,
}

impl Leftover<'_> {
    fn is_aside(&self) -> bool {
        self.path.ends_with(b".aside")
    }

    /// Is it neither what the step found nor what it put there? What cannot be looked at may be anything.
    fn is_foreign(&self, root: &Root) -> io::Result<bool> {
        let Some(step) = self.step else {
            return Ok(false);
        };
        let stat = match root.stat_beneath(&self.path) {
            Err(error) if is_gone(&error) => return Ok(false),
            looked => looked?,
        };
        for known in [&step.before, &step.after].into_iter().flatten() {
            if is_entry(root, &self.path, &stat, known)? {
                return Ok(false);
            }
        }
        Ok(!sabotage::is(Fault::RecheckLost))
    }
}

/// Is what stands at a path exactly this entry? A folder is, whatever is in it. What may not be read is something else.
pub(crate) fn is_entry(root: &Root, path: &[u8], stat: &Stat, entry: &Entry) -> io::Result<bool> {
    let is_it = match entry {
        Entry::File(file) => {
            let looks_alike =
                stat.kind == Kind::File && stat.size == file.size && stat.mode == file.mode;
            if looks_alike { has_content(root, path, &file.content) } else { Ok(false) }
        }
        Entry::Link(target) if stat.kind == Kind::Link => {
            root.read_link(path).map(|found| ObjectId::of(&found) == *target)
        }
        Entry::Folder { mode, .. } => Ok(stat.kind == Kind::Folder && stat.mode == *mode),
        Entry::Link(_) | Entry::Gap { .. } => Ok(false),
    };
    is_it.or_else(|error| if is_of_path(&error) { Ok(false) } else { Err(error) })
}

/// Does an error speak of what stands at the path, and not of the disk, or of us?
pub(crate) fn is_of_path(error: &io::Error) -> bool {
    is_gone(error) || error.kind() == io::ErrorKind::PermissionDenied
}

/// Reads the file and compares its hash, also of a large one, without help from any cache.
fn has_content(root: &Root, path: &[u8], content: &Content) -> io::Result<bool> {
    let mut file = root.open_file(path)?;
    let before = stat_open(&file)?;
    let found = match content {
        Content::Whole(_) => {
            let mut bytes = Vec::with_capacity(before.size as usize + 1);
            file.read_to_end(&mut bytes)?;
            ObjectId::of(&bytes)
        }
        Content::Chunked(_) => {
            let list = chunks::cut(&mut file, |_, _| Ok::<(), std::convert::Infallible>(()));
            let Ok(list) = list;
            ObjectId::of(&list?.encode())
        }
    };
    Ok(found == *content.id() && stat_open(&file)?.is_same(&before))
}
