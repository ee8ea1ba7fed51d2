//! What a restore displaced waits in the staging folder until all is applied. Before it goes, it is
//! looked at once more: a program may have had the file open and written to it all the while, or an
//! interrupted run may have displaced something else than it expected. Then it is someone's work.

use std::io::{self, Read};

use bivouac_core::id::ObjectId;
use bivouac_core::operation::{LeftAlone, Outcome, WhyLeft};
use bivouac_core::path::RelPath;
use bivouac_core::sabotage::{self, Fault};
use rayon::prelude::*;

use crate::beneath::{Kind, Root, Stat, is_gone, stat_open};
use crate::chunks;
use crate::ownership::SET_ID;
use crate::plan::{Plan, Step};
use crate::refusal::refusal;
use crate::renames::{exchange, move_to_free};
use crate::stage::Staging;
use crate::tree::{Content, Entry, FileEntry};
use crate::{Error, Result};

/// Throws away what an operation displaced, once all of it was applied, and makes that durable: after the end is on
/// record, no command looks for it again. Answers what stays: things that were written to meanwhile, and a staging
/// folder that the system does not let us remove.
pub fn clean_up(root: &Root, staging: &Staging, plan: &Plan) -> Result<Vec<LeftAlone>> {
    let kept = empty(root, staging, plan)?;
    let folder_of = |left: &LeftAlone| left.path.parent().map(|it| it.as_bytes().to_vec());
    let folders = kept.iter().map(|left| folder_of(left).unwrap_or_default());
    for folder in folders.chain([Vec::new()]) {
        root.sync(&folder).map_err(Error::write("."))?;
    }
    Ok(kept)
}

fn empty(root: &Root, staging: &Staging, plan: &Plan) -> Result<Vec<LeftAlone>> {
    let report = |error| Error::write_workspace(&staging.as_path())(error);
    let leftovers = staging.leftovers(plan)?;
    let looks = leftovers.par_iter().map(|it| {
        // What an interrupted exchange took away and could not be put back is all there is of it.
        let is_stranded = |step: &Step| root.stat_beneath(step.path.as_bytes()).is_err();
        Ok((it.is_aside() && it.step.is_some_and(is_stranded))
            || it.is_foreign(staging.folder())?)
    });
    let foreign = looks.collect::<io::Result<Vec<bool>>>().map_err(report)?;
    let mut kept = Vec::new();
    for (leftover, is_foreign) in leftovers.iter().zip(foreign) {
        match (is_foreign, leftover.step) {
            (true, Some(step)) => {
                let path = keep((root, staging), step, &leftover.name)?;
                kept.push(LeftAlone { path, why: WhyLeft::ChangedMeanwhile });
            }
            _ => leftover.remove(staging.folder()).map_err(report)?,
        }
    }
    match staging.remove(root) {
        // What could not be kept beside its path is still in it, or something that is not ours.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
        removed => {
            if let Err(error) = removed {
                // In a folder that may only grow, the empty staging folder has to stay.
                let why = refusal(root, &error).filter(|why| *why == WhyLeft::NotPermitted);
                let why = why.ok_or_else(|| report(error))?;
                kept.push(LeftAlone { path: staging.as_path(), why });
            }
        }
    }
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
    let folder = staging.folder();
    for leftover in staging.leftovers(plan)? {
        let Some(step) = leftover.step else {
            continue;
        };
        let path = step.path.as_bytes();
        let failed = |error| Error::write_workspace(&step.path)(error);
        let (from, to) = (folder.spot(&leftover.name), root.spot(path));
        let now = root.stat_beneath(path).ok();
        if leftover.is_aside() && now.is_some()
            || !leftover.is_aside() && !leftover.is_foreign(folder).map_err(failed)?
        {
            continue;
        }
        // Back in its place, it is found to have changed, and stays.
        let moved = match (now, step.after) {
            (None, _) => move_to_free(from, to),
            (Some(now), Some(after))
                if now.kind != Kind::Folder
                    && is_entry_but_for_set_id(root, path, &now, &after).map_err(failed)? =>
            {
                exchange(from, to)
            }
            (Some(_), _) => Err(io::ErrorKind::AlreadyExists.into()),
        };
        match moved {
            Err(error) if refusal(root, &error).is_some() => {
                let path = keep((root, staging), step, &leftover.name)?;
                outcome.left_alone.push(LeftAlone { path, why: WhyLeft::ChangedMeanwhile });
            }
            other => other.map_err(failed)?,
        }
    }
    Ok(())
}

/// Moves something out of the staging folder, beside the path it came from. Where nothing may be put
/// there, it stays in the staging folder, and so does the folder.
fn keep((root, staging): (&Root, &Staging), step: &Step, name: &[u8]) -> Result<RelPath> {
    let failed = Error::write_workspace(&step.path);
    let mut number = 1;
    loop {
        let suffix = if number == 1 { ".kept".to_owned() } else { format!(".kept-{number}") };
        let beside = [step.path.as_bytes(), suffix.as_bytes()].concat();
        match move_to_free(staging.folder().spot(name), root.spot(&beside)) {
            Ok(()) => return Ok(RelPath::new(beside).expect("a plain name and letters")),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => {
                number += 1;
            }
            Err(error) if refusal(root, &error).is_some() => return Ok(staging.path_of(name)),
            Err(error) => return Err(failed(error)),
        }
    }
}

/// A file in the staging folder, and the step it belongs to.
pub(crate) struct Leftover<'p> {
    pub(crate) name: Box<[u8]>,
    /// `None` for what is only half made.
    pub(crate) step: Option<&'p Step>,
}

impl Leftover<'_> {
    fn is_aside(&self) -> bool {
        self.name.ends_with(b".aside")
    }

    /// Is it neither what the step found nor what it put there? What cannot be looked at may be anything.
    fn is_foreign(&self, folder: &Root) -> io::Result<bool> {
        let Some(step) = self.step else {
            return Ok(false);
        };
        let stat = match folder.stat_beneath(&self.name) {
            Err(error) if is_gone(&error) => return Ok(false),
            looked => looked?,
        };
        for known in [&step.before, &step.after].into_iter().flatten() {
            if is_entry_but_for_set_id(folder, &self.name, &stat, known)? {
                return Ok(false);
            }
        }
        Ok(!sabotage::is(Fault::RecheckLost))
    }

    fn remove(&self, folder: &Root) -> io::Result<()> {
        match self.name.ends_with(b".folder") {
            true => folder.remove_folder(&self.name),
            false => folder.remove_file(&self.name),
        }
    }
}

/// The same, where a restore may have had to leave the set-id bits out. Nobody's work is in them.
fn is_entry_but_for_set_id(
    root: &Root,
    path: &[u8],
    stat: &Stat,
    entry: &Entry,
) -> io::Result<bool> {
    let stat = Stat { mode: stat.mode & !SET_ID, ..*stat };
    let entry = match *entry {
        Entry::File(file) => Entry::File(FileEntry { mode: file.mode & !SET_ID, ..file }),
        other => other,
    };
    is_entry(root, path, &stat, &entry)
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
