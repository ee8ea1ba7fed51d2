//! How the file is written.

use std::fmt::Write as _;

use super::steps::write_steps;
use super::{NO_PHASE, REASON, REVIEW};
use crate::export::Sheet;
use crate::export::entry::Pair;
use crate::export::inline::guarded;
use crate::export::pen::Pen;
use crate::export::steps_ahead::{CONCLUDED, NEXT, steps_ahead};
use crate::export::words::{minutes, rounded_tokens, write_moment, write_phase, write_tokens};
use crate::text::{Note, count};
use crate::work::{Delegation, Entry, ForkPoint, Task, TaskStatus};

/// The whole file.
pub fn write(sheet: &Sheet) -> String {
    let writer = Writer { sheet, pen: Pen::new(&sheet.redactor) };
    let mut text = String::new();
    writer.header(&mut text);
    writer.tasks(&mut text);
    writer.approvals(&mut text);
    writer.decisions(&mut text);
    writer.blockers(&mut text);
    writer.delegations(&mut text);
    writer.partitions(&mut text);
    writer.instructions(&mut text);
    sheet.work.fork_points.iter().for_each(|fork| writer.fork_point(&mut text, fork));
    if !sheet.work.steps.is_empty() {
        write_steps(&mut text, &writer.pen, &sheet.work.steps);
    }
    text
}

pub(super) fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string takes everything");
}

struct Writer<'a> {
    sheet: &'a Sheet,
    pen: Pen<'a>,
}

impl Writer<'_> {
    fn header(&self, text: &mut String) {
        let (sheet, pen) = (self.sheet, &self.pen);
        let feature = sheet.work.outline().feature.map(|it| pen.text(it.as_str()));
        let title = || sheet.session.title().map(|title| pen.text(&title));
        let feature = feature.filter(|it| !it.is_empty()).or_else(title).unwrap_or_default();
        push(text, format_args!("# Session Checkpoint\n"));
        let lines = [
            ("Last Updated", pen.text(&sheet.updated)),
            ("Feature", feature),
            ("Branch", pen.word(sheet.branch.as_ref())),
            ("Linear Issues", self.issues()),
        ];
        for (name, value) in lines {
            push(text, format_args!("{}", format!("**{name}:** {value}").trim_end()));
        }
        push(text, format_args!("\n## Current Phase\n"));
        let phase = sheet.work.phase().map(|phase| write_phase(pen, phase)).unwrap_or_default();
        push(text, format_args!("{}", if phase.is_empty() { NO_PHASE } else { &phase }));
    }

    /// Each issue once, as it is written.
    fn issues(&self) -> String {
        let mut found: Vec<String> = Vec::new();
        for issue in self.sheet.work.issues() {
            let issue = self.pen.clean(&issue);
            if !found.contains(&issue) {
                found.push(issue);
            }
        }
        self.pen.list(&found, ',')
    }

    fn tasks(&self, text: &mut String) {
        let pen = &self.pen;
        let of = |wanted: &'static [TaskStatus]| {
            self.sheet.work.tasks.iter().filter(move |task| wanted.contains(&task.status()))
        };
        push(text, format_args!("\n## Completed Work\n"));
        push(text, format_args!("| Task | Linear | Agent | Status | Files |"));
        push(text, format_args!("|------|--------|-------|--------|-------|"));
        for task in of(&[TaskStatus::Completed, TaskStatus::Dropped]) {
            let files = guarded(pen.list(task.files.as_deref().unwrap_or_default(), ','));
            push(
                text,
                format_args!("| {} | {} | {files} |", self.task(task), task.status().badge()),
            );
        }
        push(text, format_args!("\n## In Progress\n"));
        push(text, format_args!("| Task | Linear | Agent | Status | Notes |"));
        push(text, format_args!("|------|--------|-------|--------|-------|"));
        for task in of(&[TaskStatus::InProgress, TaskStatus::Blocked, TaskStatus::Failed]) {
            let (badge, notes) = (task.status().badge(), self.notes(task));
            push(text, format_args!("| {} | {badge} | {notes} |", self.task(task)));
        }
        push(text, format_args!("\n## Remaining Work\n"));
        push(text, format_args!("| Task | Linear | Agent | Dependencies | Files |"));
        push(text, format_args!("|------|--------|-------|-------------|-------|"));
        for task in of(&[TaskStatus::Pending]) {
            let needs = guarded(pen.list(task.depends_on.as_deref().unwrap_or_default(), ','));
            let files = guarded(pen.list(task.files.as_deref().unwrap_or_default(), ','));
            push(text, format_args!("| {} | {needs} | {files} |", self.task(task)));
        }
    }

    /// The three cells that all tasks have.
    fn task(&self, task: &Entry<Task>) -> String {
        let pen = &self.pen;
        let title = format!("{}{}", guarded(pen.note(task.subject.as_ref())), pen.key(&task.task));
        let (issue, agent) = (pen.cell(task.issue.as_ref()), pen.cell(task.agent.as_ref()));
        format!("{} | {issue} | {agent}", title.trim())
    }

    /// What was done so far, and why it does not go on.
    fn notes(&self, task: &Task) -> String {
        let note = self.pen.note(task.note.as_ref());
        let lines = note.split("<br>").map(|line| match line.strip_prefix(REASON) {
            Some(rest) => format!("{}\\:{rest}", REASON.trim_end_matches(':')),
            None => line.to_owned(),
        });
        let note = guarded(lines.collect::<Vec<_>>().join("<br>"));
        let reason = self.pen.note(task.failure.as_ref());
        match (note.as_str(), reason.as_str()) {
            (_, "") => note,
            ("", _) => format!("{REASON} {reason}"),
            _ => format!("{note}<br>{REASON} {reason}"),
        }
    }

    fn approvals(&self, text: &mut String) {
        let pen = &self.pen;
        push(text, format_args!("\n## Pending Approvals\n"));
        push(text, format_args!("| Provider | Channel | Thread ID | Question | Posted At |"));
        push(text, format_args!("|----------|---------|-----------|----------|-----------|"));
        for it in self.sheet.work.pending_approvals() {
            let places = [&it.provider, &it.channel, &it.thread];
            let places = places.map(|place| pen.cell(place.as_ref())).join(" | ");
            let question = guarded(pen.note(it.question.as_ref()));
            let posted_at = it.posted_at.map(write_moment).unwrap_or_default();
            let question = format!("{question}{}", pen.key(&it.approval));
            push(text, format_args!("| {places} | {} | {posted_at} |", question.trim()));
        }
    }

    fn decisions(&self, text: &mut String) {
        push(text, format_args!("\n## Key Decisions Made\n"));
        for it in &self.sheet.work.decisions {
            let words = |note: &Option<Note>| note.as_ref().map(|it| it.as_str().to_owned());
            let rejected = it.rejected.iter().flatten().map(|it| it.as_str().to_owned());
            let pair = Pair {
                head: words(&it.title).unwrap_or_default(),
                tail: words(&it.why).unwrap_or_default(),
                aside: rejected.collect(),
            };
            let line =
                format!("{}{}", pair.write(&self.pen, "rejected:"), self.pen.key(&it.decision));
            push(text, format_args!("- {}", line.trim()));
        }
        if self.sheet.work.decisions.is_empty() {
            push(text, format_args!("None"));
        }
    }

    fn blockers(&self, text: &mut String) {
        push(text, format_args!("\n## Blockers & Issues\n"));
        for it in self.sheet.work.open_blockers() {
            let words = |note: &Option<Note>| note.as_ref().map(|it| it.as_str().to_owned());
            let pair = Pair {
                head: words(&it.what).unwrap_or_default(),
                tail: words(&it.needs).unwrap_or_default(),
                aside: it.reference.iter().cloned().collect(),
            };
            let line = format!("{}{}", pair.write(&self.pen, "ref:"), self.pen.key(&it.blocker));
            push(text, format_args!("- {}", line.trim()));
        }
        if self.sheet.work.open_blockers().next().is_none() {
            push(text, format_args!("None"));
        }
    }

    fn delegations(&self, text: &mut String) {
        let delegations = &self.sheet.work.delegations;
        push(text, format_args!("\n## Delegation Cost Log\n"));
        push(
            text,
            format_args!("| # | Agent | Linear | Model Tier | Est. Tokens | Duration | Status |"),
        );
        push(
            text,
            format_args!("|---|-------|--------|------------|-------------|----------|--------|"),
        );
        for (place, it) in delegations.iter().enumerate() {
            push(text, format_args!("| {} |", self.delegation(place + 1, it)));
        }
        // The sum of what is shown, so that the table adds up.
        let shown = delegations.iter().filter_map(|it| it.tokens).map(rounded_tokens);
        let tokens = write_tokens(shown.fold(0, u64::saturating_add));
        let n_reviews = delegations.iter().filter(|it| it.is_review == Some(true)).count();
        let n_all = count(delegations.len() as u64, "delegation");
        let reviews = count(n_reviews as u64, "panel review");
        push(text, format_args!("\n**Running totals:** {n_all} / {tokens} tokens / {reviews}"));
    }

    fn delegation(&self, number: usize, it: &Delegation) -> String {
        let pen = &self.pen;
        let is_number =
            it.delegation.parse::<u64>().is_ok_and(|own| own.to_string() == it.delegation);
        let number = match is_number {
            true => it.delegation.clone(),
            false => format!("{number}{}", pen.key(&it.delegation)),
        };
        let review =
            if it.is_review == Some(true) { format!(" <!-- {REVIEW} -->") } else { String::new() };
        let agent = format!("{}{review}", pen.cell(it.agent.as_ref()));
        let note = pen.note(it.note.as_ref());
        let note = if note.is_empty() { note } else { format!(" → {note}") };
        let cells = [
            number,
            agent.trim().to_owned(),
            pen.cell(it.issue.as_ref()),
            pen.cell(it.tier.as_ref()),
            it.tokens.map(write_tokens).unwrap_or_default(),
            it.seconds.map(|it| format!("{} min", minutes(it))).unwrap_or_default(),
            format!("{}{note}", it.status().badge()),
        ];
        cells.join(" | ")
    }

    fn partitions(&self, text: &mut String) {
        let pen = &self.pen;
        push(text, format_args!("\n## File Partitions\n\n```"));
        for it in &self.sheet.work.partitions {
            // The agent is the key, so one that cleaning would change is spelt out.
            let agent = match pen.clean(&it.agent) == it.agent && !it.agent.contains('\n') {
                true => pen.before(&it.agent, &[':']),
                false => pen.bare_key(&it.agent),
            };
            let line =
                format!("{agent}: {}", pen.list(it.paths.as_deref().unwrap_or_default(), ','));
            push(text, format_args!("{}", line.trim_end()));
        }
        push(text, format_args!("```"));
    }

    fn instructions(&self, text: &mut String) {
        let pen = &self.pen;
        let outline = self.sheet.work.outline();
        let said = outline.instructions.iter().flatten().map(|it| pen.text(it.as_str()));
        let mut lines: Vec<String> = said.filter(|it| !it.is_empty()).map(guarded).collect();
        let next =
            outline.next.map(|it| guarded(pen.text(it.as_str()))).filter(|it| !it.is_empty());
        if lines.is_empty() {
            let branch = pen.before(self.sheet.branch.as_deref().unwrap_or_default(), &['`']);
            let issues = self.issues();
            if !branch.is_empty() {
                lines.push(format!("Check out branch `{branch}` <!-- {CONCLUDED} -->"));
            }
            if !issues.is_empty() {
                lines.push(format!("Read the issues {issues} for context <!-- {CONCLUDED} -->"));
            }
            if next.is_none() {
                let ahead = steps_ahead(pen, &self.sheet.work);
                lines.extend(ahead.iter().map(|line| format!("{line} <!-- {CONCLUDED} -->")));
            }
        }
        lines.extend(next.map(|line| format!("{line} <!-- {NEXT} -->")));
        push(text, format_args!("\n## Resume Instructions\n"));
        for (place, line) in lines.iter().enumerate() {
            push(text, format_args!("{}. {line}", place + 1));
        }
    }

    fn fork_point(&self, text: &mut String, fork: &ForkPoint) {
        let pen = &self.pen;
        let title = format!("{}{}", pen.note(fork.title.as_ref()), pen.key(&fork.fork_point));
        push(text, format_args!("\n## Fork Point: {}", title.trim()));
        for option in fork.options.iter().flatten() {
            let letter = pen.before(&option.letter, &[':']);
            let heading = format!("### Option {letter}: {}", pen.text(&option.title));
            push(text, format_args!("\n{}", heading.trim_end()));
            let lists = [("Pros", &option.pros), ("Cons", &option.cons), ("Files", &option.files)];
            for (name, list) in lists {
                let list = pen.list(list, ',');
                if !list.is_empty() {
                    push(text, format_args!("- {name}: {list}"));
                }
            }
        }
        let who = pen.word(fork.needed_from.as_ref());
        if !who.is_empty() {
            push(text, format_args!("\n**Decision needed from:** {who}"));
        }
        let chosen = fork.chosen.as_ref().map(|it| pen.before(it, &[':'])).unwrap_or_default();
        if !chosen.is_empty() {
            let line = format!("**Decided:** {chosen}: {}", pen.note(fork.why.as_ref()));
            push(text, format_args!("\n{}", line.trim_end()));
        }
    }
}
