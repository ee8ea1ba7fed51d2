//! The `Working State` section of a `MEMORY.md`: a few lines of ours in a file that is somebody else's.

use super::Sheet;
use super::fence::{ByteLine, ending, heading, lines};
use super::inline::escape;
use super::pen::{Pen, cut};
use super::steps_ahead::steps_ahead;
use super::words::write_phase;
use crate::text::{Note, count};
use crate::work::{TaskStatus, Verdict};

/// The most letters a line has.
const MAX_CHARS: usize = 160;
const TITLE: &[u8] = b"working state";
/// Ends the section where no heading does.
const CLOSING: &str = "<!-- end of Working State -->";

/// A file whose section is not ours to replace. It is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct BadMemory {
    pub line: usize,
    pub reason: String,
}

/// Nine lines: a heading, and what there is to know at a glance.
pub fn section(sheet: &Sheet) -> String {
    let pen = Pen::new(&sheet.redactor);
    let work = &sheet.work;
    let outline = work.outline();
    let note = |note: Option<&Note>| note.map(|it| it.as_str().to_owned()).unwrap_or_default();
    let described = || note(sheet.session.task_description.as_ref());
    let named = || sheet.session.title().unwrap_or_default();
    let task = [note(outline.feature.as_ref()), described(), named()];
    let blockers: Vec<String> = work.open_blockers().map(|it| note(it.what.as_ref())).collect();
    let first = outline.instructions.as_ref().and_then(|it| it.first());
    let next = [note(outline.next.as_ref()), note(first)];
    let next = next.into_iter().find(|it| !it.trim().is_empty()).map(|it| one_line(&pen, &it));
    let ahead = || steps_ahead(&pen.with_most(MAX_CHARS / 2), work).into_iter().next();
    let phase = work.phase().map(|phase| write_phase(&pen.with_most(MAX_CHARS / 2), phase));
    let phase = phase.unwrap_or_default().replace("<br>", " ");
    let phase = phase.strip_prefix("Phase ").unwrap_or(&phase).to_owned();
    let lines = [
        ("Branch", one_line(&pen, sheet.branch.as_deref().unwrap_or_default())),
        (
            "Task",
            one_line(&pen, &task.into_iter().find(|it| !it.trim().is_empty()).unwrap_or_default()),
        ),
        ("Phase", phase),
        ("Progress", progress(sheet)),
        ("Approach", one_line(&pen, &note(outline.approach.as_ref()))),
        ("Blockers", one_line(&pen, &blockers.join("; "))),
        ("Next", next.or_else(ahead).unwrap_or_default().replace("<br>", " ")),
        ("Checkpoint", checkpoint(&pen, sheet)),
    ];
    let lines = lines.map(|(key, value)| {
        let value = if value.is_empty() { "None" } else { &value };
        format!("- **{key}**: {value}\n")
    });
    format!("## Working State\n{}", lines.concat())
}

fn one_line(pen: &Pen<'_>, text: &str) -> String {
    escape(&cut(&pen.clean(text).replace('\n', " "), MAX_CHARS), &[])
}

/// `2/5 tasks done, 2 in progress; tests passing`.
fn progress(sheet: &Sheet) -> String {
    let work = &sheet.work;
    let number = |status| work.tasks.iter().filter(|task| task.status() == status).count();
    let n_all = work.tasks.len() - number(TaskStatus::Dropped);
    let mut words = Vec::new();
    if n_all > 0 {
        let done = number(TaskStatus::Completed);
        let mut told = vec![format!("{done}/{} done", count(n_all as u64, "task"))];
        let others = [
            (TaskStatus::InProgress, "in progress"),
            (TaskStatus::Blocked, "blocked"),
            (TaskStatus::Failed, "failed"),
        ];
        let others = others.into_iter().filter(|(status, _)| number(*status) > 0);
        told.extend(others.map(|(status, word)| format!("{} {word}", number(status))));
        words.push(told.join(", "));
    }
    let is_failing = work.tests.iter().any(|run| run.verdict == Some(Verdict::Fail));
    if !work.tests.is_empty() {
        words.push(format!("tests {}", if is_failing { "failing" } else { "passing" }));
    }
    words.join("; ")
}

fn checkpoint(pen: &Pen<'_>, sheet: &Sheet) -> String {
    let sha = sheet.sha.as_deref().unwrap_or("none");
    let (label, date, sha) =
        (one_line(pen, &sheet.label), one_line(pen, &sheet.date), one_line(pen, sha));
    format!("{label} ({date}, SHA: {sha})")
}

/// The file with this section in place of the one it has, or at its top.
pub fn merge(existing: &[u8], section: &str) -> Result<Vec<u8>, BadMemory> {
    let ending = ending(existing);
    let section = section.trim_end_matches('\n').replace('\n', ending);
    let mut merged = existing.to_vec();
    match find(existing)? {
        Some((start, end)) => {
            merged.splice(start..end, section.into_bytes());
        }
        None => {
            let top = top(existing);
            let is_ended =
                top == 0 || existing[..top].ends_with(b"\n") || is_mark(&existing[..top]);
            let before = if is_ended { "" } else { ending };
            let after = match first_line(&existing[top..]) {
                None => ending.repeat(if top < existing.len() { 2 } else { 1 }),
                Some(line) if heading(line).is_some_and(|(level, _)| level <= 2) => {
                    ending.repeat(2)
                }
                // Text without a heading would become a part of our section.
                Some(_) => format!("{ending}{CLOSING}{ending}{ending}"),
            };
            merged.splice(top..top, format!("{before}{section}{after}").into_bytes());
        }
    }
    Ok(merged)
}

/// The first line that says something.
fn first_line(file: &[u8]) -> Option<&[u8]> {
    file.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).find(|line| !line.is_empty())
}

const MARK: &[u8] = "\u{feff}".as_bytes();

fn is_mark(bytes: &[u8]) -> bool {
    bytes == MARK
}

/// Where the section that is there begins, and where its last line ends.
fn find(file: &[u8]) -> Result<Option<(usize, usize)>, BadMemory> {
    let start = top(file);
    let n_above = file[..start].iter().filter(|byte| **byte == b'\n').count();
    let bad = |line: usize, reason: &str| {
        Err(BadMemory { line: n_above + line, reason: reason.to_owned() })
    };
    let (lines, _) = lines(&file[start..]);
    let mut found = lines.iter().enumerate().filter(|(_, line)| is_title(line));
    let Some((place, first)) = found.next() else {
        return Ok(None);
    };
    if let Some((_, second)) = found.next() {
        return bad(second.number, "there is a second section `Working State`");
    }
    let mut end = first.start + first.trimmed().len();
    for line in &lines[place + 1..] {
        let is_closing = line.trimmed() == CLOSING.as_bytes();
        if is_closing || title(line).is_some_and(|(level, _)| level <= 2) {
            break;
        }
        if !is_of_our_shape(line) {
            return bad(line.number, "the section `Working State` holds notes that are not ours");
        }
        if !line.trimmed().is_empty() {
            end = line.start + line.trimmed().len();
        }
    }
    Ok(Some((start + first.start, start + end)))
}

fn title<'a>(line: &ByteLine<'a>) -> Option<(usize, &'a [u8])> {
    if line.is_fenced { None } else { heading(line.trimmed()) }
}

/// `## Working State`, with or without signs behind it.
fn is_title(line: &ByteLine<'_>) -> bool {
    title(line).is_some_and(|(level, words)| {
        let n_signs = words.iter().rev().take_while(|byte| **byte == b'#').count();
        let words = words[..words.len() - n_signs].trim_ascii_end();
        level == 2 && words.eq_ignore_ascii_case(TITLE)
    })
}

/// The facts a section tells.
const OWN_KEYS: [&[u8]; 8] =
    [b"Branch", b"Task", b"Phase", b"Progress", b"Approach", b"Blockers", b"Next", b"Checkpoint"];

/// `- **Key**: value` with a key of ours, a line that goes on with one, or nothing.
fn is_of_our_shape(line: &ByteLine<'_>) -> bool {
    let text = line.trimmed();
    let is_continued = text.first().is_some_and(u8::is_ascii_whitespace);
    let value = text.strip_prefix(b"- **").and_then(|rest| {
        let end = rest.windows(2).position(|pair| pair == b"**")?;
        OWN_KEYS.contains(&&rest[..end]).then(|| &rest[end + 2..])
    });
    text.is_empty() || is_continued || value.is_some_and(|rest| rest.starts_with(b":"))
}

/// Where the text of a file begins: behind a byte order mark and what stands between lines of dashes.
fn top(file: &[u8]) -> usize {
    let start = if file.starts_with(MARK) { MARK.len() } else { 0 };
    let mut lines = file[start..].split_inclusive(|byte| *byte == b'\n');
    let is_rule = |line: &[u8]| line.trim_ascii_end() == b"---";
    let Some(first) = lines.next().filter(|line| is_rule(line)) else {
        return start;
    };
    let mut end = start + first.len();
    for line in lines {
        end += line.len();
        if is_rule(line) {
            return end;
        }
    }
    start
}
