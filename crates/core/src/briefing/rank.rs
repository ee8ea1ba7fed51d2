//! Every fact as a line, with how much it matters. Each line of someone's words is redacted, harmless and no
//! longer than it may be.

use super::select::{Brief, Keep, Line, Part, Room, TaskLine};
use super::{Facts, Said, Who, next};
use crate::budget::cut;
use crate::git::GitFacts;
use crate::text::{Note, count, printable};
use crate::work::{Task, TaskStatus, Thing, Verdict};

/// Ranks, from what goes first to what goes last. Within one, the place in the list decides.
mod worth {
    pub(super) const WORDS: u32 = 1_000;
    pub(super) const CHANGED: u32 = 2_000;
    pub(super) const PARTITIONS: u32 = 3_000;
    pub(super) const REMEMBERED: u32 = 4_000;
    pub(super) const DELEGATIONS: u32 = 5_000;
    pub(super) const REMARKS: u32 = 6_000;
    pub(super) const RECENT: u32 = 7_000;
    pub(super) const GATES: u32 = 8_000;
    pub(super) const DONE: u32 = 9_000;
    pub(super) const WORKTREES: u32 = 10_000;
    pub(super) const COMMITS: u32 = 11_000;
    pub(super) const STEPS: u32 = 12_000;
    pub(super) const DECISIONS: u32 = 13_000;
    /// The last words of each side, which say what was wanted.
    pub(super) const LAST_WORDS: u32 = 14_000;
    pub(super) const DRIFT: u32 = 15_000;
    pub(super) const ARTIFACTS: u32 = 16_000;
    /// Open tasks beyond those that are always told.
    pub(super) const OPEN: u32 = 17_000;
}

/// Turns facts into ranked lines.
pub(super) struct Writer<'f> {
    pub(super) facts: &'f Facts,
    pub(super) room: Room,
}

impl Writer<'_> {
    pub(super) fn write(&self) -> Brief {
        let (facts, work) = (self.facts, &self.facts.work);
        let session = &facts.session;
        let outline = work.outline();
        let (tasks, n_done_left_out) = self.tasks();
        let task = session.task_description.as_ref().map(|task| self.line(task.as_str(), 100));
        Brief {
            title: session
                .title()
                .map_or_else(|| session.handle.to_string(), |it| self.line(&it, 30)),
            session: format!(
                "{} · agent: {} · status: {}",
                session.handle,
                printable(&session.agent_type),
                session.status
            ),
            kind: outline.kind.map(|kind| self.line(&kind, 10)),
            // A session without a name is called by its task already.
            task: task.filter(|_| session.name.is_some()),
            phase: self.phase(),
            checkpoint: self.checkpoint(),
            branch: self.branch(),
            artifacts: self.artifacts(),
            tasks,
            n_open_left_out: 0,
            n_done_left_out,
            blockers: self.blockers(),
            approvals: self.approvals(),
            steps: self.steps(),
            fork_points: self.fork_points(),
            decisions: self.decisions(),
            gates: self.gates(),
            delegations: self.delegations(),
            worktrees: self.worktrees(),
            partitions: self.partitions(),
            commits: self.commits(),
            drift: self.drift(),
            recent: self.ranked(worth::RECENT, facts.recent.iter().map(|it| self.line(it, 40))),
            records: self.records(),
            next: self
                .line(&next::next_action(&facts.work, &facts.said), self.room.line_tokens + 20),
            n_dropped: 0,
            tokens: 0,
        }
    }

    /// One line of someone's words: redacted, harmless, and no longer than so many tokens.
    fn line(&self, text: &str, most: usize) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        cut(&printable(&self.facts.redactor.redact(&words.join(" "))), most)
    }

    fn note(&self, note: Option<&Note>, most: usize) -> String {
        note.map(|note| self.line(note.as_str(), most)).unwrap_or_default()
    }

    fn must(&self, lines: impl Iterator<Item = String>, n_all: usize, what: &str) -> Part {
        let n_told = self.room.n_others.min(n_all);
        let mut lines: Vec<Line> =
            lines.take(n_told).map(|text| Line { text, keep: Keep::Must }).collect();
        if n_all > n_told {
            let text = format!("and {} more (`biv {what} list`)", n_all - n_told);
            lines.push(Line { text, keep: Keep::Must });
        }
        Part { lines }
    }

    /// The first of a list goes first.
    fn ranked(&self, rank: u32, lines: impl Iterator<Item = String>) -> Part {
        let line = |(place, text)| Line { text, keep: Keep::May(rank + (place as u32).min(999)) };
        Part { lines: lines.enumerate().map(line).collect() }
    }

    fn is_missing(&self, name: &str) -> bool {
        self.facts.missing.iter().any(|it| it == name)
    }

    /// A name that was looked for says so where it is not there.
    fn checked(&self, name: &str) -> String {
        let shown = printable(name);
        match self.is_missing(name) {
            true => format!("{shown} (missing)"),
            false if name.contains("://") => format!("{shown} (unverified)"),
            false => shown,
        }
    }

    fn phase(&self) -> Option<String> {
        let phase = self.facts.work.phase()?;
        let place = match (phase.number, phase.total) {
            (Some(number), Some(total)) => format!("{number} of {total}"),
            (Some(number), None) => number.to_string(),
            _ => String::new(),
        };
        let name = phase.name.as_deref().map(|name| self.line(name, 20)).unwrap_or_default();
        let about = self.note(phase.about.as_ref(), self.room.line_tokens);
        let words: Vec<String> =
            [place, name, about].into_iter().filter(|it| !it.is_empty()).collect();
        Some(words.join(" — "))
    }

    fn checkpoint(&self) -> Option<String> {
        let checkpoint = self.facts.checkpoint.as_ref()?;
        let label =
            checkpoint.name.as_ref().map(|name| format!(" \"{}\"", self.line(name.as_str(), 20)));
        let day = checkpoint.taken_at.jiff().strftime("%Y-%m-%d %H:%M").to_string();
        Some(format!(
            "{}{} ({}, {day})",
            checkpoint.handle,
            label.unwrap_or_default(),
            checkpoint.trigger
        ))
    }

    fn branch(&self) -> Option<String> {
        let now = self.facts.git_now.as_ref()?;
        let branch = |git: &GitFacts| match &git.branch {
            Some(name) => self.line(name, 30),
            None => "(no branch)".to_owned(),
        };
        let head = |git: &GitFacts| {
            git.head.as_deref().map_or_else(|| "none".to_owned(), |it| it.chars().take(8).collect())
        };
        let then = self.facts.git_then.as_ref().unwrap_or(now);
        Some(match then.head == now.head {
            true => format!("{} (SHA: {})", branch(now), head(now)),
            false => format!("{} (SHA: {} → current: {})", branch(now), head(then), head(now)),
        })
    }

    fn artifacts(&self) -> Part {
        let artifacts = self.facts.work.artifacts.iter().filter(|it| !it.is_over());
        let line = |it: &crate::work::Artifact| {
            let kind = it.kind.as_deref().map(|kind| self.line(kind, 8)).unwrap_or_default();
            format!("{}: {}", title_case(&kind), self.line(&self.checked(&it.place), 40))
        };
        self.ranked(worth::ARTIFACTS, artifacts.map(|it| line(it)))
    }

    fn tasks(&self) -> (Vec<TaskLine>, usize) {
        let tasks = &self.facts.work.tasks;
        let told = |task: &Task, keep| TaskLine {
            key: self.line(&task.task, 8),
            title: self.note(task.subject.as_ref(), self.room.task_tokens),
            status: task.status(),
            about: self.about(task),
            keep,
        };
        // Those under way first, should there be too many to tell.
        let mut open: Vec<(usize, &Task)> = Vec::new();
        for wanted in
            [TaskStatus::InProgress, TaskStatus::Failed, TaskStatus::Blocked, TaskStatus::Pending]
        {
            let found = tasks.iter().enumerate().filter(|(_, task)| task.status() == wanted);
            open.extend(found.map(|(place, entry)| (place, &entry.item)));
        }
        let done = tasks.iter().enumerate().filter(|(_, task)| task.is_over());
        let done: Vec<(usize, &Task)> = done.map(|(place, entry)| (place, &entry.item)).collect();
        let n_old = done.len().saturating_sub(60);
        let done =
            done.into_iter().skip(n_old).enumerate().map(|(age, (place, task))| {
                (place, told(task, Keep::May(worth::DONE + age as u32)))
            });
        // Those there is no room for whatever happens may still find some.
        let open = open.into_iter().enumerate().map(|(rank, (place, task))| {
            let last = worth::OPEN + 999 - (rank as u32).min(999);
            let keep = if rank < self.room.n_tasks { Keep::Must } else { Keep::May(last) };
            (place, told(task, keep))
        });
        let mut lines: Vec<(usize, TaskLine)> = open.chain(done).collect();
        lines.sort_by_key(|(place, _)| *place);
        (lines.into_iter().map(|(_, line)| line).collect(), n_old)
    }

    fn about(&self, task: &Task) -> Option<String> {
        let words = [
            task.issue.clone(),
            task.agent.clone(),
            task.failure.as_ref().map(|it| self.line(it.as_str(), self.room.line_tokens / 3)),
            task.note.as_ref().map(|it| self.line(it.as_str(), self.room.line_tokens / 3)),
        ];
        let words = words.into_iter().flatten().map(|it| self.line(&it, 20));
        let words: Vec<String> = words.filter(|it| !it.is_empty()).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    fn blockers(&self) -> Part {
        let open: Vec<_> = self.facts.work.open_blockers().collect();
        let lines = open.iter().map(|it| {
            let what = self.note(it.what.as_ref(), self.room.line_tokens);
            let needs =
                it.needs.as_ref().map(|it| self.line(it.as_str(), self.room.line_tokens / 2));
            let needs = needs.map(|needs| format!(" (needs: {needs})")).unwrap_or_default();
            format!("{} {what}{needs}", self.line(&it.blocker, 12))
        });
        self.must(lines, open.len(), "blocker")
    }

    fn approvals(&self) -> Part {
        let asked = self.facts.asked.iter().map(|it| {
            format!("the agent asks for leave: {}", self.line(it, self.room.line_tokens))
        });
        let pending = self.facts.work.pending_approvals().map(|it| {
            let question = self.note(it.question.as_ref(), self.room.line_tokens);
            let places = [&it.provider, &it.channel, &it.thread].into_iter().flatten();
            let place: Vec<String> = places.map(|word| self.line(word, 24)).collect();
            format!("{} {question} ({})", self.line(&it.approval, 12), place.join(" "))
        });
        let lines: Vec<String> = asked.chain(pending).collect();
        let n_all = lines.len();
        self.must(lines.into_iter(), n_all, "approval")
    }

    fn steps(&self) -> Part {
        let lines = self.facts.work.steps.iter().map(|it| {
            let error = self.note(it.error(), 40);
            let cached = self.note(it.cached.as_ref(), 60);
            let words = [self.note(it.title.as_ref(), 20), error, cached];
            let words: Vec<String> = words.into_iter().filter(|it| !it.is_empty()).collect();
            format!("{} {}: {}", self.line(&it.step, 12), it.status(), words.join(" — "))
        });
        self.ranked(worth::STEPS, lines)
    }

    fn fork_points(&self) -> Part {
        let open: Vec<_> = self.facts.work.fork_points.iter().filter(|it| !it.is_over()).collect();
        let lines = open.iter().map(|it| {
            let options = it.options.iter().flatten();
            let options: Vec<String> = options
                .map(|it| format!("{}: {}", self.line(&it.letter, 6), self.line(&it.title, 10)))
                .collect();
            let title = self.note(it.title.as_ref(), self.room.line_tokens / 2);
            format!("{title} ({})", self.line(&options.join("; "), self.room.line_tokens))
        });
        self.must(lines, open.len(), "fork-point")
    }

    fn decisions(&self) -> Part {
        let lines = self.facts.work.decisions.iter().map(|it| {
            let why = self.note(it.why.as_ref(), 40);
            let rejected = it.rejected.iter().flatten().map(|it| self.line(it.as_str(), 20));
            let rejected: Vec<String> = rejected.collect();
            let why = if why.is_empty() { why } else { format!(": {why}") };
            let rejected = match rejected.is_empty() {
                true => String::new(),
                false => format!(" (rejected: {})", rejected.join("; ")),
            };
            format!("{}{why}{rejected}", self.note(it.title.as_ref(), 40))
        });
        self.ranked(worth::DECISIONS, lines)
    }

    fn gates(&self) -> Part {
        let work = &self.facts.work;
        let gates = work.gates.iter().map(|it| {
            let verdict = it.verdict.map_or("?", Verdict::as_str);
            let findings = it.findings.iter().flatten().map(|it| self.line(it.as_str(), 20));
            let findings: Vec<String> = findings.collect();
            let findings = match findings.is_empty() {
                true => String::new(),
                false => format!(" ({})", findings.join("; ")),
            };
            format!("{}: {verdict}{findings} (unverified)", self.line(&it.called(), 20))
        });
        let newest = work.tests.len().saturating_sub(5);
        let tests = work.tests.iter().skip(newest).map(|it| {
            let verdict = it.verdict.map_or("?", Verdict::as_str);
            format!("`{}`: {verdict} (unverified)", self.line(&it.command, 30))
        });
        self.ranked(worth::GATES, gates.chain(tests))
    }

    fn delegations(&self) -> Part {
        let delegations = &self.facts.work.delegations;
        let newest = delegations.len().saturating_sub(20);
        let lines = delegations.iter().skip(newest).map(|it| {
            let agent = it.agent.as_deref().unwrap_or("sub-agent");
            let issue = it.issue.as_ref().map(|issue| format!(" {issue}")).unwrap_or_default();
            self.line(&format!("{} {agent}{issue}: {}", it.delegation, it.status()), 30)
        });
        self.ranked(worth::DELEGATIONS, lines)
    }

    fn worktrees(&self) -> Part {
        let lines = self.facts.work.worktrees.iter().map(|it| {
            let status = it.status.map_or("active", |status| status.as_str());
            format!("{} ({status})", self.line(&self.checked(&it.branch), 30))
        });
        self.ranked(worth::WORKTREES, lines)
    }

    fn partitions(&self) -> Part {
        let lines = self.facts.work.partitions.iter().map(|it| {
            let paths = it.paths.clone().unwrap_or_default().join(", ");
            self.line(&format!("{}: {paths}", it.agent), 40)
        });
        self.ranked(worth::PARTITIONS, lines)
    }

    fn commits(&self) -> Part {
        let mut part = self.ranked(
            worth::COMMITS,
            self.facts.commits_since.iter().rev().map(|it| self.line(it, 30)),
        );
        let n_more = self.facts.n_commits_since.unwrap_or(0) as usize;
        if n_more > part.lines.len() {
            let text = format!("and {} earlier", n_more - part.lines.len());
            part.lines.insert(0, Line { text, keep: Keep::May(worth::COMMITS) });
        }
        part
    }

    fn drift(&self) -> Part {
        const MOST: usize = 20;
        let facts = self.facts;
        let mut part = Part::default();
        let mut push =
            |text: String, rank: u32| part.lines.push(Line { text, keep: Keep::May(rank) });
        if let (Some(then), Some(now)) = (&facts.git_then, &facts.git_now) {
            let name = |git: &GitFacts| git.branch.clone().unwrap_or_else(|| "none".to_owned());
            if then.branch != now.branch {
                let line = format!("branch: {} → {}", name(then), name(now));
                push(self.line(&line, 60), worth::DRIFT + 900);
            }
        }
        if let Some(now) = &facts.git_now {
            if let Some(n_commits) = facts.n_commits_since.filter(|number| *number > 0) {
                push(
                    format!("{} since the checkpoint", count(n_commits, "commit")),
                    worth::DRIFT + 890,
                );
            }
            if now.uncommitted() > 0 {
                push(
                    format!("{} uncommitted", count(now.uncommitted(), "path")),
                    worth::DRIFT + 880,
                );
            }
            if let Some(operation) = now.in_progress {
                push(format!("git is in the middle of a {operation:?}"), worth::DRIFT + 950);
            }
        }
        for name in facts.missing.iter().take(MOST) {
            push(format!("{} is named and not there", self.line(name, 40)), worth::DRIFT + 500);
        }
        if !facts.changed.is_empty() {
            let number = count(facts.changed.len() as u64, "file");
            push(format!("{number} changed since the checkpoint"), worth::DRIFT + 870);
        }
        for (place, path) in facts.changed.iter().take(MOST).enumerate() {
            push(format!("changed: {}", self.line(path, 40)), worth::CHANGED + 900 - place as u32);
        }
        if facts.changed.len() > MOST {
            let n_more = facts.changed.len() - MOST;
            push(format!("changed: and {n_more} more"), worth::CHANGED + 950);
        }
        part
    }

    /// What was said, noted and remembered, oldest first: records, not instructions.
    fn records(&self) -> Part {
        let facts = self.facts;
        let mut lines = Vec::new();
        let mut push = |text: String, rank: u32| lines.push(Line { text, keep: Keep::May(rank) });
        for (place, words) in facts.remembered.iter().take(20).enumerate() {
            push(
                format!("memory: {}", self.line(words, 60)),
                worth::REMEMBERED + 900 - place as u32,
            );
        }
        if let Some(approach) = &facts.work.outline().approach {
            push(format!("approach: {}", self.line(approach.as_str(), 80)), worth::DECISIONS + 999);
        }
        let remarks = &facts.work.remarks;
        let newest = remarks.len().saturating_sub(20);
        for (place, remark) in remarks.iter().skip(newest).enumerate() {
            let words = self.note(remark.text.as_ref(), 60);
            push(format!("note: {words}"), worth::REMARKS + place as u32);
        }
        if let Some(trouble) = &facts.trouble {
            let words = self.line(trouble.as_str(), 80);
            let at = facts.goes_on_at.as_ref().map(|at| format!(" (can go on at {at})"));
            let at = at.unwrap_or_default();
            push(format!("the last turn did not end well: {words}{at}"), worth::LAST_WORDS + 999);
        }
        let n_said = facts.said.len();
        for (place, said) in facts.said.iter().enumerate() {
            let (is_last, most) =
                (n_said - place <= 2, if n_said - place <= 2 { 300 } else { 120 });
            let rank = if is_last { worth::LAST_WORDS } else { worth::WORDS };
            push(self.said(said, most), rank + place as u32);
        }
        Part { lines }
    }

    fn said(&self, said: &Said, most: usize) -> String {
        let who = match said.who {
            Who::Person => "user",
            Who::Agent => "agent",
        };
        format!("{who}: {}", self.line(said.words.as_str(), most))
    }
}

fn title_case(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => "Document".to_owned(),
    }
}
