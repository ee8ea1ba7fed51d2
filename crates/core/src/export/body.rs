//! The eight sections that a checkpoint's file and a handoff have in common.

use std::fmt::Write as _;

use super::Sheet;
use super::entry::{Pair, write_output, write_task};
use super::inline::{escape, guarded};
use super::pen::Pen;
use super::steps_ahead::{CONCLUDED, NEXT, steps_ahead};
use crate::text::{Note, count, printable};
use crate::time::Timestamp;
use crate::work::{Artifact, Decision, Entry, Output, Task, Thing};

/// The most of somebody's pipeline state that is shown.
const PIPELINE_BYTES: usize = 4_096;
const SPINE_LINES: usize = 60;
/// So many files are worth reading first.
const FIRST_FILES: usize = 5;

/// How much there is room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// How many of the done tasks and the decisions are told, the newest of them.
    pub n_past: usize,
    pub n_open: usize,
    pub n_others: usize,
    /// The most letters of one text.
    pub letters: Option<usize>,
    pub extras: Extras,
}

impl Room {
    pub(super) const ALL: Self = Self {
        n_past: usize::MAX,
        n_open: usize::MAX,
        n_others: usize::MAX,
        letters: None,
        extras: Extras::Shown,
    };
}

/// What other tools have to say about progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extras {
    Shown,
    LeftOut,
}

pub(super) struct Body<'a> {
    sheet: &'a Sheet,
    pen: Pen<'a>,
    /// What headings begin with.
    marks: &'static str,
    room: Room,
}

impl<'a> Body<'a> {
    pub(super) fn new(sheet: &'a Sheet, marks: &'static str, room: Room) -> Self {
        let pen = Pen::new(&sheet.redactor);
        let pen = room.letters.map_or(pen, |most| pen.with_most(most));
        Self { sheet, pen, marks, room }
    }

    pub(super) fn write(&self, text: &mut String) {
        let past = self.past();
        self.task(text);
        self.decisions(text, &past);
        self.progress(text, &past);
        self.heading(text, "Key Files");
        let files = self.sheet.key_files.iter().take(self.room.n_others.max(FIRST_FILES));
        self.files(text, files.map(|it| (it.path.clone(), it.about.clone())).collect());
        self.heading(text, "Approach & Rationale");
        let approach = self.sheet.work.outline().approach;
        self.paragraph(text, approach.as_ref().map(Note::as_str).unwrap_or_default());
        self.blockers(text);
        self.next_steps(text);
        self.heading(text, "Context for Resumption");
        push(text, format_args!("If resuming from this checkpoint, read these files first:"));
        self.files(text, self.first_files());
    }

    fn heading(&self, text: &mut String, title: &str) {
        push(text, format_args!("\n{} {title}", self.marks));
    }

    /// When the oldest of what is told came up; what is older is left out.
    fn past(&self) -> Past {
        let work = &self.sheet.work;
        let tasks = work.tasks.iter().enumerate().filter(|(_, it)| it.is_over());
        let tasks = tasks.map(|(place, it)| (it.created_at, 0, place));
        let decisions = work.decisions.iter().enumerate();
        let decisions = decisions.map(|(place, it)| (it.created_at, 1, place));
        let mut all: Vec<(Timestamp, u8, usize)> = tasks.chain(decisions).collect();
        all.sort_unstable();
        all.truncate(all.len().saturating_sub(self.room.n_past));
        Past(all)
    }

    /// Lines of text, each of which stays a line of text.
    fn paragraph(&self, text: &mut String, words: &str) {
        let words = self.pen.clean(words);
        if words.is_empty() {
            push(text, format_args!("None"));
        }
        for line in words.lines() {
            push(text, format_args!("{}", guarded(escape(line, &[]))));
        }
    }

    fn task(&self, text: &mut String) {
        self.heading(text, "Task");
        let session = &self.sheet.session;
        let said = |text: &str| Some(text.to_owned()).filter(|it| !self.pen.clean(it).is_empty());
        let feature = self.sheet.work.outline().feature.and_then(|it| said(it.as_str()));
        let described = session.task_description.as_ref().and_then(|it| said(it.as_str()));
        let otherwise = || session.title().unwrap_or_else(|| session.handle.to_string());
        let task = feature.clone().or_else(|| described.clone()).unwrap_or_else(otherwise);
        self.paragraph(text, &task);
        let more = described.filter(|_| feature.is_some()).filter(|it| *it != task);
        if let Some(more) = more {
            let more = guarded(self.pen.text(&more));
            push(text, format_args!("\n{more} <!-- {CONCLUDED} -->"));
        }
    }

    fn decisions(&self, text: &mut String, past: &Past) {
        self.heading(text, "Decisions Made");
        let all = &self.sheet.work.decisions;
        self.left_out(text, past.count(1), "earlier decision");
        for (number, (_, it)) in past.kept(1, all).enumerate() {
            push(text, format_args!("{}. {}", number + 1, self.decision(it)));
        }
        if all.is_empty() {
            push(text, format_args!("None"));
        }
    }

    fn decision(&self, it: &Decision) -> String {
        let rejected = it.rejected.iter().flatten().map(|it| it.as_str().to_owned());
        let aside = rejected.collect();
        let pair = Pair { head: words(it.title.as_ref()), tail: words(it.why.as_ref()), aside };
        let line = format!("{}{}", pair.write(&self.pen, "rejected:"), self.pen.key(&it.decision));
        line.trim().to_owned()
    }

    fn left_out(&self, text: &mut String, number: usize, what: &str) {
        if number > 0 {
            push(text, format_args!("{} left out\n", count(number as u64, what)));
        }
    }

    fn progress(&self, text: &mut String, past: &Past) {
        self.heading(text, "Progress");
        let tasks = &self.sheet.work.tasks;
        let n_open = self.sheet.work.open_tasks().count();
        self.left_out(text, past.count(0), "earlier done task");
        self.left_out(text, n_open.saturating_sub(self.room.n_open), "later open task");
        let mut room = self.room.n_open;
        for (_, task) in past.kept(0, tasks) {
            if !task.is_over() {
                if room == 0 {
                    continue;
                }
                room -= 1;
            }
            let line = self.checked(task);
            push(text, format_args!("- {line}"));
        }
        if tasks.is_empty() {
            push(text, format_args!("None"));
        }
        if self.room.extras == Extras::Shown {
            self.extras(text);
        }
    }

    fn checked(&self, task: &Entry<Task>) -> String {
        format!("{}{}", write_task(&self.pen, task), self.pen.key(&task.task))
    }

    /// What other tools keep, word for word but for secrets.
    fn extras(&self, text: &mut String) {
        let shown = |text: &str| -> Vec<String> {
            self.sheet.redactor.redact(text).lines().map(printable).collect()
        };
        if !self.sheet.spine.is_empty() {
            let lines = shown(&self.sheet.spine.join("\n"));
            let lines: Vec<String> = lines.into_iter().take(SPINE_LINES).collect();
            push(text, format_args!("\nProgress spine:\n"));
            fenced(text, "text", &lines.join("\n"));
        }
        if let Some(pipeline) = &self.sheet.pipeline {
            let mut all = shown(pipeline).join("\n");
            if all.len() > PIPELINE_BYTES {
                all.truncate(all.floor_char_boundary(PIPELINE_BYTES - "…".len()));
                all.push('…');
            }
            push(text, format_args!("\nPipeline state:\n"));
            fenced(text, "json", &all);
        }
    }

    fn files(&self, text: &mut String, files: Vec<(String, String)>) {
        let lines = files.into_iter().filter_map(|(path, about)| {
            let output = Output { what: None, path, about: Some(Note::cut(&about)) };
            write_output(&self.pen, &output)
        });
        let lines: Vec<String> = lines.collect();
        lines.iter().for_each(|line| push(text, format_args!("- {line}")));
        if lines.is_empty() {
            push(text, format_args!("None"));
        }
    }

    /// Designs and plans first, then other documents, then what was worked on.
    fn first_files(&self) -> Vec<(String, String)> {
        let artifacts = self.sheet.work.artifacts.iter().filter(|it| !it.is_over());
        let mut documents: Vec<&Entry<Artifact>> =
            artifacts.filter(|it| !it.place.contains("://")).collect();
        documents.sort_by_key(|it| match it.kind.as_deref() {
            Some("design") => 0,
            Some("plan") => 1,
            _ => 2,
        });
        let documents = documents
            .into_iter()
            .map(|it| (it.place.clone(), it.kind.clone().unwrap_or_else(|| "document".to_owned())));
        let files = self.sheet.key_files.iter().map(|it| (it.path.clone(), it.about.clone()));
        let mut found: Vec<(String, String)> = Vec::new();
        for (path, about) in documents.chain(files) {
            if !found.iter().any(|it| it.0 == path) {
                found.push((path, about));
            }
        }
        found.truncate(FIRST_FILES);
        found
    }

    /// Blockers are read back; questions are only told, because they are kept elsewhere.
    fn blockers(&self, text: &mut String) {
        self.heading(text, "Blockers / Open Questions");
        let (work, pen) = (&self.sheet.work, &self.pen);
        let blockers = work.open_blockers().map(|it| {
            let aside = it.reference.iter().cloned().collect();
            let pair =
                Pair { head: words(it.what.as_ref()), tail: words(it.needs.as_ref()), aside };
            format!("{}{}", pair.write(pen, "ref:"), pen.key(&it.blocker))
        });
        let approvals = work.pending_approvals().map(|it| {
            format!("Approval pending: {} <!-- {CONCLUDED} -->", pen.note(it.question.as_ref()))
        });
        let forks = work.fork_points.iter().filter(|it| !it.is_over()).map(|it| {
            format!("Decision needed: {} <!-- {CONCLUDED} -->", pen.note(it.title.as_ref()))
        });
        let most = self.room.n_others;
        let lines: Vec<String> =
            blockers.take(most).chain(approvals.take(most)).chain(forks.take(most)).collect();
        let numbers = [
            work.open_blockers().count(),
            work.pending_approvals().count(),
            work.fork_points.iter().filter(|it| !it.is_over()).count(),
        ];
        let n_more = numbers.iter().map(|number| number.saturating_sub(most)).sum();
        self.left_out(text, n_more, "more");
        lines.iter().for_each(|line| push(text, format_args!("- {}", line.trim())));
        if lines.is_empty() {
            push(text, format_args!("None"));
        }
    }

    fn next_steps(&self, text: &mut String) {
        self.heading(text, "Next Steps");
        let pen = &self.pen;
        let outline = self.sheet.work.outline();
        let said = outline.instructions.iter().flatten().map(|it| guarded(pen.text(it.as_str())));
        let mut lines: Vec<String> = said.filter(|it| !it.is_empty()).collect();
        let n_more = lines.len().saturating_sub(self.room.n_others);
        lines.truncate(self.room.n_others);
        let next =
            outline.next.map(|it| guarded(pen.text(it.as_str()))).filter(|it| !it.is_empty());
        match next {
            Some(next) if lines.first() != Some(&next) => {
                lines.insert(0, format!("{next} <!-- {NEXT} -->"));
            }
            None if lines.is_empty() => {
                let ahead = steps_ahead(pen, &self.sheet.work);
                lines.extend(ahead.iter().map(|line| format!("{line} <!-- {CONCLUDED} -->")));
            }
            _ => {}
        }
        self.left_out(text, n_more, "later step");
        for (place, line) in lines.iter().enumerate() {
            push(text, format_args!("{}. {line}", place + 1));
        }
    }
}

/// What is left out: when it came up, whether it is a task or a decision, and its place in its list.
struct Past(Vec<(Timestamp, u8, usize)>);

impl Past {
    fn count(&self, kind: u8) -> usize {
        self.0.iter().filter(|it| it.1 == kind).count()
    }

    fn kept<'a, T>(
        &self,
        kind: u8,
        all: &'a [Entry<T>],
    ) -> impl Iterator<Item = (usize, &'a Entry<T>)> {
        let dropped: std::collections::HashSet<usize> =
            self.0.iter().filter(|it| it.1 == kind).map(|it| it.2).collect();
        all.iter().enumerate().filter(move |(place, _)| !dropped.contains(place))
    }
}

fn words(note: Option<&Note>) -> String {
    note.map(|note| note.as_str().to_owned()).unwrap_or_default()
}

/// Text between fences that are longer than any in it.
fn fenced(text: &mut String, language: &str, inside: &str) {
    let runs = inside.split(|it| it != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(runs.max(2) + 1);
    push(text, format_args!("{fence}{language}\n{inside}\n{fence}"));
}

pub(super) fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string takes everything");
}
