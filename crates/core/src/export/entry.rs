//! Lines that say several things at once, as they are written and read: decisions, blockers, tasks of a
//! checklist, outputs of a step.

use super::inline::{find, find_last, guarded, list, unescape};
use super::pen::Pen;
use crate::text::Note;
use crate::work::{Output, Task, TaskStatus};

/// `Head: tail (word: a; b)`, each part of which may be missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pair {
    pub head: String,
    pub tail: String,
    pub aside: Vec<String>,
}

impl Pair {
    /// How it is written. `word` is what the bracket begins with.
    pub(super) fn write(&self, pen: &Pen<'_>, word: &str) -> String {
        let head = pen.before(&self.head, &[':']);
        // What is bold at the beginning is a head, to those who write by hand.
        let head = if head.starts_with("**") { format!("\\{head}") } else { head };
        let tail = pen.text(&self.tail);
        let aside = pen.list(&self.aside, ';');
        let aside = if aside.is_empty() { aside } else { format!("({word} {aside})") };
        let said = if tail.is_empty() { head } else { format!("{head}: {tail}") };
        guarded(format!("{said} {aside}").trim().to_owned())
    }

    pub(super) fn read(line: &str, word: &str) -> Self {
        let line = line.trim();
        let begins = |rest: &str| {
            let inner = rest.strip_prefix('(').and_then(|rest| rest.get(..word.len()));
            inner.is_some_and(|inner| inner.eq_ignore_ascii_case(word))
        };
        let place = find_last(line, begins).filter(|_| line.ends_with(')'));
        let (said, aside) = match place {
            Some(place) => {
                (&line[..place], list(&line[place + 1 + word.len()..line.len() - 1], ';'))
            }
            None => (line, Vec::new()),
        };
        let (head, tail) = head_and_tail(said.trim());
        Self { head: unescape(head.trim()), tail: unescape(tail.trim()), aside }
    }
}

/// The two sides of the first colon that is followed by a blank.
pub(super) fn at_colon(said: &str) -> (&str, &str) {
    let colon = |rest: &str| rest == ":" || rest.starts_with(": ");
    match find(said, colon) {
        Some(place) => (&said[..place], &said[place + 1..]),
        None => (said, ""),
    }
}

/// The same for a line of a list, with a head that may be bold.
fn head_and_tail(said: &str) -> (&str, &str) {
    let bold = said.strip_prefix("**").and_then(|rest| rest.split_once("**"));
    if let Some((head, tail)) = bold {
        let head = head.strip_suffix(':').unwrap_or(head);
        return (head, tail.trim_start().trim_start_matches([':', '—', '–', '-']));
    }
    at_colon(said)
}

/// The status that begins what stands in brackets, as in `failed: the server is down)`.
pub(super) fn status_aside(words: &str) -> Option<TaskStatus> {
    TaskStatus::ALL.into_iter().find(|status| {
        words.strip_prefix(status.as_str()).is_some_and(|rest| rest.starts_with([':', ')']))
    })
}

/// `[ ] subject (in-progress: note)`.
pub(super) fn write_task(pen: &Pen<'_>, task: &Task) -> String {
    let sign = if task.status().is_over() { 'x' } else { ' ' };
    let about = match task.status() {
        TaskStatus::InProgress => pen.note(task.note.as_ref()),
        TaskStatus::Blocked | TaskStatus::Failed => pen.note(task.failure.as_ref()),
        _ => String::new(),
    };
    let aside = match task.status() {
        TaskStatus::Pending | TaskStatus::Completed => String::new(),
        status if about.is_empty() => format!("({status})"),
        status => format!("({status}: {about})"),
    };
    let subject = pen.note(task.subject.as_ref());
    format!("[{sign}] {}", format!("{subject} {aside}").trim())
}

/// Reads a line of a checklist; none when it has no box.
pub(super) fn read_task(line: &str) -> Option<Task> {
    let boxes = [
        ("[x]", TaskStatus::Completed),
        ("[X]", TaskStatus::Completed),
        ("[ ]", TaskStatus::Pending),
    ];
    let (rest, status) =
        boxes.iter().find_map(|(sign, status)| Some((line.strip_prefix(sign)?.trim(), *status)))?;
    let begins = |rest: &str| rest.strip_prefix('(').is_some_and(|it| status_aside(it).is_some());
    let place = find_last(rest, begins).filter(|_| rest.ends_with(')'));
    let mut task = Task { status: Some(status), ..Task::default() };
    let subject = match place {
        Some(place) => {
            let aside = &rest[place + 1..rest.len() - 1];
            let about = aside.split_once(':').map(|(_, about)| unescape(about.trim()));
            let about = about.filter(|it| !it.is_empty()).map(|it| Note::cut(&it));
            task.status = status_aside(&rest[place + 1..]);
            match task.status {
                Some(TaskStatus::Blocked | TaskStatus::Failed) => task.failure = about,
                _ => task.note = about,
            }
            &rest[..place]
        }
        None => rest,
    };
    let subject = unescape(subject.trim());
    task.subject = (!subject.is_empty()).then(|| Note::cut(&subject));
    Some(task)
}

/// ``Created `path` — about``; none without a path.
pub(super) fn write_output(pen: &Pen<'_>, output: &Output) -> Option<String> {
    let path = pen.before(&output.path, &['`']);
    if path.is_empty() {
        return None;
    }
    let what = output.what.as_ref().map(|it| pen.before(it, &['`'])).unwrap_or_default();
    let about = pen.note(output.about.as_ref());
    let about = if about.is_empty() { about } else { format!(" — {about}") };
    Some(guarded(format!("{what} `{path}`{about}").trim().to_owned()))
}

pub(super) fn read_output(line: &str) -> Option<Output> {
    let line = line.trim();
    let tick = |rest: &str| rest.starts_with('`');
    let coded = find(line, tick).and_then(|start| {
        let rest = &line[start + 1..];
        let end = find(rest, tick)?;
        Some((&line[..start], &rest[..end], &rest[end + 1..]))
    });
    let Some((what, path, about)) = coded.filter(|(_, path, _)| !path.trim().is_empty()) else {
        return unescape(line).parse().ok();
    };
    let about = about.trim();
    let dash = ["—", "–", "-", ":"].iter().find_map(|dash| about.strip_prefix(dash));
    let about = unescape(dash.unwrap_or(about).trim());
    let what = unescape(what.trim());
    Some(Output {
        what: (!what.is_empty()).then_some(what),
        path: unescape(path.trim()),
        about: (!about.is_empty()).then(|| Note::cut(&about)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::Redactor;

    fn pair(head: &str, tail: &str, aside: &[&str]) -> Pair {
        let aside = aside.iter().map(|it| (*it).to_owned()).collect();
        Pair { head: head.to_owned(), tail: tail.to_owned(), aside }
    }

    #[test]
    fn a_pair_is_read_back_whatever_it_says() {
        let redactor = Redactor::default();
        for it in [
            pair("Use SQLite", "one file, no server", &["Postgres", "flat files"]),
            pair("a: b", "c: d (rejected: e)", &["f; g", "h)"]),
            pair("", "why", &[]),
            pair("title:", "", &["x"]),
            pair("", "", &["only (this)"]),
            pair("**bold**", "why", &[]),
            pair("- dash", "(ref: x)", &[]),
            pair("http://host:80", "", &[]),
        ] {
            let line = it.write(&Pen::new(&redactor), "rejected:");
            assert_eq!(Pair::read(&line, "rejected:"), it, "{line}");
        }
        assert_eq!(Pair::read("**Title:** why", "ref:"), pair("Title", "why", &[]));
        assert_eq!(Pair::read("**Title** — why (Ref: A)", "ref:"), pair("Title", "why", &["A"]));
    }

    #[test]
    fn a_task_of_a_checklist_is_read_back() {
        let redactor = Redactor::default();
        for status in TaskStatus::ALL {
            let about: Note = "half way (failed: no) :)".parse().unwrap();
            let is_note = status == TaskStatus::InProgress;
            let is_failure = matches!(status, TaskStatus::Blocked | TaskStatus::Failed);
            let task = Task {
                subject: Some("routes (blocked)".parse().unwrap()),
                status: Some(status),
                note: is_note.then(|| about.clone()),
                failure: is_failure.then_some(about),
                ..Task::default()
            };
            let line = write_task(&Pen::new(&redactor), &task);
            assert_eq!(read_task(&line), Some(task), "{line}");
        }
        assert_eq!(read_task("no box"), None);
    }

    #[test]
    fn an_output_is_read_back() {
        let redactor = Redactor::default();
        for (what, path, about) in [
            (Some("Created"), "src/a.rs", Some("the parser")),
            (Some("# odd `what`"), "a`b", Some("— dash")),
            (None, "my file.md", None),
        ] {
            let output = Output {
                what: what.map(str::to_owned),
                path: path.to_owned(),
                about: about.map(|it| it.parse().unwrap()),
            };
            let line = write_output(&Pen::new(&redactor), &output).unwrap();
            assert_eq!(read_output(&line), Some(output), "{line}");
        }
        let plain = read_output("created src/b.rs: new").unwrap();
        assert_eq!((plain.what.as_deref(), plain.path.as_str()), (Some("Created"), "src/b.rs"));
    }
}
