//! What differs between two checkpoints, or between one and the workspace as it is now.

use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, Instant};

use bivouac_core::checkpoint::{Checkpoint, Gap};
use bivouac_core::environment;
use bivouac_core::id::ObjectId;
use bivouac_core::path::RelPath;
use bivouac_core::work::{Difference, differences};
use bivouac_journal::query::KeptCheckpoint;
use bivouac_snapshot::beneath::Root;
use bivouac_snapshot::diff::{Change, Filter, Trees, diff};
use bivouac_snapshot::objects::Objects;
use bivouac_snapshot::path_set::PathSet;
use bivouac_snapshot::tree::{Content, Entry, FileEntry, Tree};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

use crate::rollback::check_paths;
use crate::{Engine, Result};

/// Two moments side by side.
pub struct Comparison {
    pub from: Checkpoint,
    /// `None` is the workspace now.
    pub to: Option<Checkpoint>,
    pub files: Vec<FileChange>,
    /// What is different about the work.
    pub progress: Vec<Difference>,
    /// What is different about where the agent worked, as far as both sides know.
    pub environment: Vec<environment::Difference>,
}

pub struct FileChange {
    pub path: RelPath,
    pub kind: ChangeKind,
    pub size_before: Option<u64>,
    pub size_after: Option<u64>,
    /// The permissions before and after, where they differ.
    pub modes: Option<(u16, u16)>,
    /// Lines that came and went, where both sides are text.
    pub lines: Option<Lines>,
    /// The change in unified form, where it was asked for and both sides are text.
    pub patch: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    New,
    Modified,
    Deleted,
    /// Only the permissions differ.
    Mode,
    /// A file became a link or a folder, or the other way round.
    Type,
    NewFolder,
    DeletedFolder,
    /// It was captured before and is not any more.
    Uncovered(Gap),
    /// It was there before, but not captured.
    Covered(Gap),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    pub added: u64,
    pub removed: u64,
}

/// How much of each change is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    Lines,
    Patch,
}

impl Engine {
    /// Compares a checkpoint with another, or with the workspace.
    pub fn compare(
        &self,
        from: &KeptCheckpoint,
        to: Option<&KeptCheckpoint>,
        paths: Vec<RelPath>,
        detail: Detail,
    ) -> Result<Comparison> {
        let _store_lock = self.use_store()?;
        let look = match to {
            Some(_) => None,
            None => Some(self.look(&PathSet::default())?),
        };
        let nothing = HashMap::new();
        let fresh = look.as_ref().map_or(&nothing, |look| &look.fresh);
        let index = self.index();
        let objects = self.objects(&index);
        let trees = Trees::with_fresh(&objects, fresh);
        let from = from.taken.checkpoint.clone();
        let to = to.map(|to| to.taken.checkpoint.clone());
        let to_tree = match (&to, &look) {
            (Some(to), _) => to.tree,
            (None, Some(look)) => look.tree,
            (None, None) => unreachable!("without a second checkpoint the workspace was looked at"),
        };
        check_paths(&trees, [&from.tree, &to_tree], &paths)?;
        let changes = diff(&trees, &from.tree, &to_tree, &Filter::new(paths))?;
        let root = if to.is_none() { Some(self.root()?) } else { None };
        let reader = Reader { objects: &objects, workspace: root.as_ref() };
        let files = changes.iter().filter(|change| change.is_covered());
        let files = files
            .filter_map(|change| reader.file_change(change, detail).transpose())
            .collect::<Result<_>>()?;
        let after = match &to {
            Some(to) => self.stored_work(to)?,
            None => self.journal.work(from.session_id)?,
        };
        let progress = differences(&self.stored_work(&from)?, &after);
        let then = self.stored_environment(&from)?;
        let environment = match &to {
            Some(to) => {
                let both = then.zip(self.stored_environment(to)?);
                both.map(|(then, now)| environment::differences(&then, &now)).unwrap_or_default()
            }
            None => self.environment_drift(from.session_id, then.as_ref())?,
        };
        Ok(Comparison { from, to, files, progress, environment })
    }
}

struct Reader<'r> {
    objects: &'r Objects<'r>,
    /// Where the later side is, when it is not stored.
    workspace: Option<&'r Root>,
}

/// Larger files are compared by size only.
const MAX_COMPARED: u64 = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(2);

impl Reader<'_> {
    fn file_change(&self, change: &Change, detail: Detail) -> Result<Option<FileChange>> {
        let Some(kind) = kind_of(change) else {
            return Ok(None);
        };
        let size = |entry: &Option<Entry>| match entry {
            Some(Entry::File(file)) => Some(file.size),
            _ => None,
        };
        let mut result = FileChange {
            path: change.path.clone(),
            kind,
            size_before: size(&change.before),
            size_after: size(&change.after),
            modes: modes(change),
            lines: None,
            patch: None,
        };
        if detail == Detail::Patch && kind == ChangeKind::Mode {
            result.patch = git_header(change);
        }
        if matches!(kind, ChangeKind::New | ChangeKind::Modified | ChangeKind::Deleted) {
            self.compare_contents(change, detail, &mut result)?;
        }
        Ok(Some(result))
    }

    fn compare_contents(
        &self,
        change: &Change,
        detail: Detail,
        result: &mut FileChange,
    ) -> Result<()> {
        let before = self.text(&change.path, change.before.as_ref(), None)?;
        let after = self.text(&change.path, change.after.as_ref(), self.workspace)?;
        let (Some(before), Some(after)) = (before, after) else {
            return Ok(());
        };
        let (before, after) = (lines_of(&before), lines_of(&after));
        let deadline = Instant::now() + PATIENCE;
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &before, &after, Some(deadline));
        result.lines = Some(count(&ops));
        if detail == Detail::Patch {
            let mut patch = git_header(change).unwrap_or_default();
            if !ops.iter().all(|op| matches!(op, DiffOp::Equal { .. })) {
                let names = (change.before.is_some(), change.after.is_some());
                patch.extend(unified(&change.path, names, &before, &after, ops));
            }
            result.patch = Some(patch);
        }
        Ok(())
    }

    /// The text of one side; nothing there is an empty text. `None` when it is not text, or too large.
    fn text(
        &self,
        path: &RelPath,
        entry: Option<&Entry>,
        workspace: Option<&Root>,
    ) -> Result<Option<Vec<u8>>> {
        let bytes = match (entry, workspace) {
            (None, _) => Some(Vec::new()),
            (Some(Entry::File(file)), _) if file.size > MAX_COMPARED => None,
            (Some(Entry::File(file)), Some(root)) => read_workspace(root, path, file),
            (Some(Entry::File(file)), None) => {
                let mut bytes = Vec::new();
                self.objects.each_part(&file.content, &mut |part| {
                    bytes.extend_from_slice(part);
                    Ok(())
                })?;
                Some(bytes)
            }
            (Some(Entry::Link(_)), Some(root)) => root.read_link(path.as_bytes()).ok(),
            (Some(Entry::Link(target)), None) => Some(self.objects.get(target)?),
            (Some(Entry::Folder { .. } | Entry::Gap { .. }), _) => None,
        };
        Ok(bytes.filter(|bytes| !bytes.iter().take(8_000).any(|byte| *byte == 0)))
    }
}

/// `None` when it changed again since it was looked at.
fn read_workspace(root: &Root, path: &RelPath, file: &FileEntry) -> Option<Vec<u8>> {
    let bytes = root.read_small(path.as_bytes(), MAX_COMPARED)?;
    match file.content {
        Content::Whole(id) => (ObjectId::of(&bytes) == id).then_some(bytes),
        Content::Chunked(_) => (bytes.len() as u64 == file.size).then_some(bytes),
    }
}

/// What git says before the lines, where these cannot tell all: new permissions, a link, an empty file.
fn git_header(change: &Change) -> Option<Vec<u8>> {
    let mode = |entry: &Entry| match entry {
        Entry::File(file) => Some(0o100_000 | u32::from(file.mode)),
        Entry::Link(_) => Some(0o120_000),
        Entry::Folder { .. } | Entry::Gap { .. } => None,
    };
    let is_plain = |entry: &Entry| matches!(entry, Entry::File(file) if file.size > 0 && file.mode & 0o100 == 0);
    let lines = match (&change.before, &change.after) {
        (Some(before), Some(after)) if mode(before) != mode(after) => {
            format!("old mode {:o}\nnew mode {:o}\n", mode(before)?, mode(after)?)
        }
        (None, Some(after)) if !is_plain(after) => format!("new file mode {:o}\n", mode(after)?),
        (Some(before), None) if !is_plain(before) => {
            format!("deleted file mode {:o}\n", mode(before)?)
        }
        _ => return None,
    };
    let path = change.path.as_bytes();
    Some([b"diff --git a/", path, b" b/", path, b"\n", lines.as_bytes()].concat())
}

fn modes(change: &Change) -> Option<(u16, u16)> {
    match (change.before, change.after) {
        (Some(Entry::File(before)), Some(Entry::File(after))) if before.mode != after.mode => {
            Some((before.mode, after.mode))
        }
        (Some(Entry::Folder { mode: before, .. }), Some(Entry::Folder { mode: after, .. }))
            if before != after =>
        {
            Some((before, after))
        }
        _ => None,
    }
}

pub(crate) fn kind_of(change: &Change) -> Option<ChangeKind> {
    let is_empty_folder = |tree: &ObjectId| *tree == ObjectId::of(&Tree::default().encode());
    let Some(before) = change.before else {
        return match change.after? {
            Entry::Folder { tree, .. } => is_empty_folder(&tree).then_some(ChangeKind::NewFolder),
            Entry::File(_) | Entry::Link(_) => Some(ChangeKind::New),
            Entry::Gap { .. } => None,
        };
    };
    let kind = match (before, change.after) {
        (Entry::Gap { why, .. }, Some(_)) => ChangeKind::Covered(why),
        (_, Some(Entry::Gap { why, .. })) => ChangeKind::Uncovered(why),
        (Entry::Folder { .. }, Some(Entry::Folder { .. })) => ChangeKind::Mode,
        // What was in the folder is told by itself.
        (Entry::Folder { tree, .. }, None) => {
            return is_empty_folder(&tree).then_some(ChangeKind::DeletedFolder);
        }
        (_, None) => ChangeKind::Deleted,
        (Entry::File(before), Some(Entry::File(after))) if before.content == after.content => {
            ChangeKind::Mode
        }
        (Entry::File(_), Some(Entry::File(_))) | (Entry::Link(_), Some(Entry::Link(_))) => {
            ChangeKind::Modified
        }
        (_, Some(_)) => ChangeKind::Type,
    };
    Some(kind)
}

fn lines_of(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn count(ops: &[DiffOp]) -> Lines {
    let mut lines = Lines::default();
    for op in ops {
        let (_, old, new) = op.as_tag_tuple();
        if !matches!(op, DiffOp::Equal { .. }) {
            lines.removed += old.len() as u64;
            lines.added += new.len() as u64;
        }
    }
    lines
}

fn unified(
    path: &RelPath,
    (was, is): (bool, bool),
    before: &[&[u8]],
    after: &[&[u8]],
    ops: Vec<DiffOp>,
) -> Vec<u8> {
    let mut out = Vec::new();
    let name = |exists: bool, side: &str| match exists {
        true => [side.as_bytes(), path.as_bytes()].concat(),
        false => b"/dev/null".to_vec(),
    };
    let mut line = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
    line(&[b"--- ", &name(was, "a/"), b"\n+++ ", &name(is, "b/"), b"\n"]);
    for group in group_diff_ops(ops, 3) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let (old, new) = (
            first.old_range().start..last.old_range().end,
            first.new_range().start..last.new_range().end,
        );
        // A side without lines is told by the line before it.
        let start = |range: &std::ops::Range<usize>| range.start + usize::from(!range.is_empty());
        let mut header = Vec::new();
        let _to_memory =
            writeln!(header, "@@ -{},{} +{},{} @@", start(&old), old.len(), start(&new), new.len());
        line(&[&header]);
        for op in &group {
            let (_, old, new) = op.as_tag_tuple();
            let is_equal = matches!(op, DiffOp::Equal { .. });
            let removed =
                before[old].iter().map(|text| (if is_equal { b" " } else { b"-" }, *text));
            let added = if is_equal { &[] } else { &after[new] };
            for (sign, text) in removed.chain(added.iter().map(|text| (b"+", *text))) {
                let end: &[u8] =
                    if text.ends_with(b"\n") { b"" } else { b"\n\\ No newline at end of file\n" };
                line(&[sign, text, end]);
            }
        }
    }
    out
}
