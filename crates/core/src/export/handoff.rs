//! `HANDOFF.md`: a block of ours in a file that may be somebody else's. Every byte outside of it is kept.

use super::body::{Body, Extras, Room, push};
use super::fence::{ByteLine, ending, lines};
use super::pen::Pen;
use super::{BadMarkdown, Parsed, Sheet, body_parse};

/// The most a block may have.
pub const MAX_BYTES: usize = 16 * 1_024;

const BEGIN: &str = "<!-- biv:begin (written by biv; changes within are overwritten) -->";
const BEGINS: &[u8] = b"<!-- biv:begin";
const END: &str = "<!-- biv:end -->";
const ENDS: &[u8] = b"<!-- biv:end";

/// A file whose block cannot be told from the rest. It is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct BadHandoff {
    pub line: usize,
    pub reason: String,
}

/// The rooms that are tried, until all that must be told fits into one.
const ROOMS: [Room; 4] = [
    Room { n_past: 0, ..Room::ALL },
    Room { n_past: 0, n_open: 60, n_others: 20, letters: Some(400), extras: Extras::LeftOut },
    Room { n_past: 0, n_open: 20, n_others: 10, letters: Some(120), extras: Extras::LeftOut },
    Room { n_past: 0, n_open: 5, n_others: 3, letters: Some(40), extras: Extras::LeftOut },
];

/// The block with its markers. What does not fit is left out, the oldest done tasks and decisions first.
pub fn write(sheet: &Sheet) -> String {
    let whole = block(sheet, Room::ALL);
    if whole.len() <= MAX_BYTES {
        return whole;
    }
    let fits = |room: &Room| block(sheet, *room).len() <= MAX_BYTES;
    let room = ROOMS.into_iter().find(fits).unwrap_or(ROOMS[ROOMS.len() - 1]);
    let (mut most, mut too_many) = (0, sheet.work.tasks.len() + sheet.work.decisions.len() + 1);
    while too_many - most > 1 {
        let middle = most + (too_many - most) / 2;
        match fits(&Room { n_past: middle, ..room }) {
            true => most = middle,
            false => too_many = middle,
        }
    }
    block(sheet, Room { n_past: most, ..room })
}

fn block(sheet: &Sheet, room: Room) -> String {
    let pen = Pen::new(&sheet.redactor);
    let pen = room.letters.map_or(pen, |most| pen.with_most(most));
    let name = sheet.session.title().unwrap_or_else(|| sheet.session.handle.to_string());
    let none = || "none".to_owned();
    let word = |word: Option<&String>| Some(pen.word(word)).filter(|it| !it.is_empty());
    let mut text = String::new();
    push(&mut text, format_args!("{BEGIN}"));
    push(&mut text, format_args!("## Session Handoff: {}", pen.text(&name)));
    push(&mut text, format_args!("Updated: {}", pen.text(&sheet.updated)));
    push(&mut text, format_args!("Git SHA: {}", word(sheet.sha.as_ref()).unwrap_or_else(none)));
    push(&mut text, format_args!("Branch: {}", word(sheet.branch.as_ref()).unwrap_or_else(none)));
    Body::new(sheet, "###", room).write(&mut text);
    push(&mut text, format_args!("{END}"));
    text
}

/// The file with this block in place of the one it has, or behind everything else.
pub fn merge(existing: &[u8], block: &str) -> Result<Vec<u8>, BadHandoff> {
    let ending = ending(existing);
    let block = block.trim_end_matches('\n').replace('\n', ending);
    let mut merged = existing.to_vec();
    match find(existing)? {
        Some((begin, end)) => {
            let last = end.start + end.trimmed().len();
            merged.splice(begin.start..last, block.into_bytes());
        }
        None => {
            if !existing.is_empty() {
                let is_ended = existing.ends_with(b"\n");
                let gap = if is_ended { ending.to_owned() } else { ending.repeat(2) };
                merged.extend_from_slice(gap.as_bytes());
            }
            merged.extend_from_slice(block.as_bytes());
            merged.extend_from_slice(ending.as_bytes());
        }
    }
    Ok(merged)
}

/// The lines that begin and end the block.
fn find(file: &[u8]) -> Result<Option<(ByteLine<'_>, ByteLine<'_>)>, BadHandoff> {
    let (lines, open) = lines(file);
    if let Some(line) = open {
        let reason = "the code fence is never closed".to_owned();
        return Err(BadHandoff { line, reason });
    }
    let bad = |line: &ByteLine<'_>, reason: &str| {
        Err(BadHandoff { line: line.number, reason: reason.to_owned() })
    };
    let (mut begin, mut end): (Option<ByteLine<'_>>, Option<ByteLine<'_>>) = (None, None);
    for line in lines.into_iter().filter(|line| !line.is_fenced) {
        // A byte order mark is not ours, and stays where it is.
        let is = |marker: &[u8]| line.bytes.starts_with(marker) && line.trimmed().ends_with(b"-->");
        if is(BEGINS) {
            match (begin, end) {
                (_, Some(_)) => return bad(&line, "there is a second block"),
                (Some(_), None) => return bad(&line, "the block before this one does not end"),
                (None, None) => begin = Some(line),
            }
        } else if is(ENDS) {
            match (begin, end) {
                (None, _) => return bad(&line, "the block ends before it begins"),
                (_, Some(_)) => return bad(&line, "the block ends a second time"),
                (Some(_), None) => end = Some(line),
            }
        }
    }
    match (begin, end) {
        (Some(begin), Some(end)) => Ok(Some((begin, end))),
        (Some(begin), None) => bad(&begin, "the block does not end"),
        (None, _) => Ok(None),
    }
}

/// Reads the block; a file without one is read as if it were one.
pub fn parse(existing: &[u8]) -> Result<Parsed, BadMarkdown> {
    let found = find(existing).map_err(|bad| BadMarkdown::new(bad.line, bad.reason))?;
    let (bytes, first_line) = match found {
        Some((begin, end)) => (&existing[begin.end()..end.start], begin.number + 1),
        None => (existing, 1),
    };
    let text = std::str::from_utf8(bytes).map_err(|bad| {
        let before = &bytes[..bad.valid_up_to()];
        let n_lines = before.iter().filter(|byte| **byte == b'\n').count();
        BadMarkdown::new(first_line + n_lines, "the line is not UTF-8")
    })?;
    body_parse::parse(text, first_line, &["session handoff", "handoff"])
}
