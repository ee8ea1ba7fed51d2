//! How the file is read, whoever wrote it.

use super::steps::{note, read_steps};
use super::{APPROVALS, COMPLETED, DELEGATIONS, IN_PROGRESS, NO_PHASE, REASON, REMAINING, REVIEW};
use crate::export::blocks::{
    Bullet, Columns, Kind, Piece, Row, Section, bullets, known_by, labelled, paragraphs, pieces,
    preamble, rows, sections,
};
use crate::export::entry::{Pair, at_colon};
use crate::export::inline::{Marked, find, list, marked, mended, unescape};
use crate::export::steps_ahead::{CONCLUDED, NEXT};
use crate::export::words::{read_moment, read_phase, read_seconds, read_tokens};
use crate::export::{BadMarkdown, Parsed};
use crate::text::Note;
use crate::work::{
    Approval, Author, Blocker, Decision, Delegation, ForkOption, ForkPoint, Item, Outline,
    Partition, Phase, Task, TaskStatus,
};

const BY: Option<Author> = Some(Author::Import);

/// Everything the file says. A file that is bad anywhere says nothing.
pub fn parse(file: &str) -> Result<Parsed, BadMarkdown> {
    let file = mended(file);
    let all = pieces(&file, 1)?;
    let is_title = |it: &Piece<'_>| match it.kind {
        Kind::Heading { level: 1, title } => known_by(title).starts_with("session checkpoint"),
        _ => false,
    };
    let Some(start) = all.iter().position(is_title) else {
        return Err(BadMarkdown::new(1, "the title `# Session Checkpoint` is missing"));
    };
    let mut reader = Reader::default();
    reader.header(&all[start + 1..])?;
    for section in sections(&all[start + 1..], 2) {
        reader.section(&section)?;
    }
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader {
    parsed: Parsed,
    outline: Outline,
    phase: Option<Phase>,
    items: Vec<Item>,
}

impl Reader {
    fn finish(self) -> Parsed {
        let Self { mut parsed, mut outline, phase, items } = self;
        let is_said = outline != Outline::default();
        outline.by = BY;
        let outline = is_said.then(|| Item::Outline(Box::new(outline)));
        let phase = phase.map(|phase| Item::Phase(Box::new(phase)));
        parsed.items = outline.into_iter().chain(phase).chain(items).collect();
        parsed
    }

    fn header(&mut self, all: &[Piece<'_>]) -> Result<(), BadMarkdown> {
        for (line, text) in paragraphs(preamble(all)) {
            let Some((label, value)) = labelled(text) else {
                continue;
            };
            let word = || Some(unescape(value)).filter(|it| !it.is_empty());
            match label.as_str() {
                "last updated" | "updated" => self.parsed.updated = word(),
                "branch" => self.parsed.branch = word(),
                "feature" => {
                    self.outline.feature = note(line, value)?;
                    self.parsed.feature = word();
                }
                "linear issues" | "issues" | "jira issues" | "github issues" => {
                    self.parsed.issues = list(value, ',');
                    self.outline.issues =
                        Some(self.parsed.issues.clone()).filter(|it| !it.is_empty());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn section(&mut self, section: &Section<'_, '_>) -> Result<(), BadMarkdown> {
        let pieces = section.pieces;
        match known_by(section.title).as_str() {
            "current phase" | "phase" => self.current_phase(pieces),
            "completed work" | "completed" => {
                self.tasks(pieces, COMPLETED, TaskStatus::Completed)?;
            }
            "in progress" => self.tasks(pieces, IN_PROGRESS, TaskStatus::InProgress)?,
            "remaining work" | "remaining" => self.tasks(pieces, REMAINING, TaskStatus::Pending)?,
            "pending approvals" | "approvals" => self.approvals(pieces)?,
            "key decisions made" | "key decisions" | "decisions made" | "decisions" => {
                for bullet in bullets(pieces) {
                    self.items.push(Item::Decision(Box::new(decision(&bullet)?)));
                }
            }
            "blockers issues" | "blockers" => {
                for bullet in bullets(pieces).iter().filter(|it| known_by(&it.text) != "none") {
                    self.items.push(Item::Blocker(Box::new(blocker(bullet)?)));
                }
            }
            "delegation cost log" | "delegations" => self.delegations(pieces)?,
            "file partitions" | "partitions" => self.partitions(pieces),
            "resume instructions" => self.instructions(pieces)?,
            "step output log" => {
                let steps = read_steps(section, &mut self.parsed.ignored)?;
                self.items.extend(steps.into_iter().map(|step| Item::Step(Box::new(step))));
            }
            title if title.starts_with("fork point") => {
                self.items.push(Item::ForkPoint(Box::new(fork_point(section)?)));
            }
            _ => self.parsed.ignored.push(section.title.to_owned()),
        }
        Ok(())
    }

    fn current_phase(&mut self, pieces: &[Piece<'_>]) {
        let lines: Vec<&str> = paragraphs(pieces).into_iter().map(|(_, text)| text).collect();
        let text = lines.join("<br>");
        if !text.is_empty() && text != NO_PHASE {
            self.phase = Some(Phase { by: BY, ..read_phase(&text) });
        }
    }

    fn tasks(
        &mut self,
        pieces: &[Piece<'_>],
        columns: Columns,
        usually: TaskStatus,
    ) -> Result<(), BadMarkdown> {
        for row in rows(pieces, columns)? {
            let Marked { text, key, .. } = marked(row.cell("task"));
            let (done, reason) = notes(row.cell("notes"));
            let task = Task {
                task: key,
                subject: note(row.line, &text)?,
                status: Some(status(&row, row.cell("status"))?.unwrap_or(usually)),
                issue: word(&row, "linear"),
                agent: word(&row, "agent"),
                files: words(&row, "files"),
                depends_on: words(&row, "dependencies"),
                note: note(row.line, done)?,
                failure: note(row.line, reason)?,
                by: BY,
                listed: None,
            };
            self.items.push(Item::Task(Box::new(task)));
        }
        Ok(())
    }

    fn approvals(&mut self, pieces: &[Piece<'_>]) -> Result<(), BadMarkdown> {
        for row in rows(pieces, APPROVALS)? {
            let Marked { text, key, .. } = marked(row.cell("question"));
            let posted_at = self.understood(&row, "posted at", read_moment);
            let approval = Approval {
                approval: key,
                question: note(row.line, &text)?,
                provider: word(&row, "provider"),
                channel: word(&row, "channel"),
                thread: word(&row, "thread id"),
                posted_at,
                answer: None,
                by: BY,
            };
            self.items.push(Item::Approval(Box::new(approval)));
        }
        Ok(())
    }

    fn delegations(&mut self, pieces: &[Piece<'_>]) -> Result<(), BadMarkdown> {
        for row in rows(pieces, DELEGATIONS)? {
            let number = marked(row.cell("#"));
            let agent = marked(row.cell("agent"));
            let told = row.cell("status");
            let (told, about) = told.split_once('→').unwrap_or((told, ""));
            let agent_name = Some(unescape(&agent.text)).filter(|it| !it.is_empty());
            let delegation = Delegation {
                delegation: if number.key.is_empty() { unescape(&number.text) } else { number.key },
                agent: agent_name,
                issue: word(&row, "linear"),
                tier: word(&row, "model tier"),
                tokens: self.understood(&row, "est tokens", read_tokens),
                seconds: self.understood(&row, "duration", read_seconds),
                status: status(&row, told)?,
                is_review: (agent.remark.as_deref() == Some(REVIEW)).then_some(true),
                note: note(row.line, about)?,
                by: BY,
            };
            self.items.push(Item::Delegation(Box::new(delegation)));
        }
        Ok(())
    }

    /// What a cell says in numbers. Words that are none are ignored, and that is said.
    fn understood<T>(
        &mut self,
        row: &Row<'_>,
        name: &str,
        read: fn(&str) -> Option<T>,
    ) -> Option<T> {
        let cell = row.cell(name);
        let found = read(cell);
        if found.is_none() && !cell.is_empty() {
            self.parsed.ignored.push(format!("line {}: {name}: {cell}", row.line));
        }
        found
    }

    /// In a fence, or as a list.
    fn partitions(&mut self, pieces: &[Piece<'_>]) {
        let fenced = pieces.iter().filter_map(|it| match &it.kind {
            Kind::Fence(lines) => Some(lines.iter().map(|line| (*line).to_owned())),
            _ => None,
        });
        let listed = bullets(pieces).into_iter().map(|it| it.text);
        for line in fenced.flatten().chain(listed).filter(|line| !line.trim().is_empty()) {
            let (agent, paths) = at_colon(line.trim());
            let partition = Partition {
                agent: unescape(agent.trim()),
                paths: Some(list(paths, ',')).filter(|it| !it.is_empty()),
                by: BY,
            };
            self.items.push(Item::Partition(Box::new(partition)));
        }
    }

    fn instructions(&mut self, pieces: &[Piece<'_>]) -> Result<(), BadMarkdown> {
        let mut said = Vec::new();
        for bullet in bullets(pieces) {
            let line = marked(&bullet.whole());
            let text = note(bullet.line, &line.text)?;
            match line.remark.as_deref() {
                Some(CONCLUDED) => {}
                Some(NEXT) => self.outline.next = text,
                _ => said.extend(text),
            }
        }
        self.outline.instructions = Some(said).filter(|it| !it.is_empty());
        Ok(())
    }
}

fn word(row: &Row<'_>, name: &str) -> Option<String> {
    Some(unescape(row.cell(name))).filter(|it| !it.is_empty())
}

fn words(row: &Row<'_>, name: &str) -> Option<Vec<String>> {
    Some(list(row.cell(name), ',')).filter(|it| !it.is_empty())
}

fn status(row: &Row<'_>, told: &str) -> Result<Option<TaskStatus>, BadMarkdown> {
    let told = told.trim();
    if told.is_empty() {
        return Ok(None);
    }
    let bad = || BadMarkdown::new(row.line, format!("`{told}` is no status"));
    TaskStatus::from_word(told).map(Some).ok_or_else(bad)
}

/// What was done so far, and why it does not go on.
fn notes(cell: &str) -> (&str, &str) {
    if let Some(reason) = cell.strip_prefix(REASON) {
        return ("", reason);
    }
    let begins = |rest: &str| rest.strip_prefix("<br>").is_some_and(|it| it.starts_with(REASON));
    match find(cell, begins) {
        Some(place) => (&cell[..place], &cell[place + "<br>".len() + REASON.len()..]),
        None => (cell, ""),
    }
}

/// A line of a list of decisions, in any of our files.
pub(crate) fn decision(bullet: &Bullet) -> Result<Decision, BadMarkdown> {
    let Marked { text, key, .. } = marked(&bullet.whole());
    let pair = Pair::read(&text, "rejected:");
    let rejected: Result<Vec<Note>, _> =
        pair.aside.iter().map(|it| plain(bullet.line, it)).filter_map(Result::transpose).collect();
    Ok(Decision {
        decision: key,
        title: plain(bullet.line, &pair.head)?,
        why: plain(bullet.line, &pair.tail)?,
        rejected: Some(rejected?).filter(|it| !it.is_empty()),
        by: BY,
    })
}

/// A line of a list of blockers, in any of our files.
pub(crate) fn blocker(bullet: &Bullet) -> Result<Blocker, BadMarkdown> {
    let Marked { text, key, .. } = marked(&bullet.whole());
    let pair = Pair::read(&text, "ref:");
    Ok(Blocker {
        blocker: key,
        what: plain(bullet.line, &pair.head)?,
        needs: plain(bullet.line, &pair.tail)?,
        reference: Some(pair.aside.join("; ")).filter(|it| !it.is_empty()),
        resolution: None,
        by: BY,
    })
}

/// A text that is read already, as a note.
pub(crate) fn plain(line: usize, text: &str) -> Result<Option<Note>, BadMarkdown> {
    let bad = |bad: crate::text::BadNote| BadMarkdown::new(line, bad.to_string());
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(bad) }
}

fn fork_point(section: &Section<'_, '_>) -> Result<ForkPoint, BadMarkdown> {
    let Marked { text, key, .. } = marked(section.title);
    let title = text.split_once(':').map_or("", |(_, title)| title);
    let mut fork = ForkPoint {
        fork_point: key,
        title: note(section.line, title)?,
        by: BY,
        ..ForkPoint::default()
    };
    let options: Vec<ForkOption> = sections(section.pieces, 3).iter().map(option).collect();
    fork.options = Some(options).filter(|it| !it.is_empty());
    for (line, text) in paragraphs(section.pieces) {
        if !text.starts_with("**") {
            continue;
        }
        match labelled(text) {
            Some((label, value)) if label == "decision needed from" => {
                fork.needed_from = Some(unescape(value)).filter(|it| !it.is_empty());
            }
            Some((label, value)) if label == "decided" => {
                let (chosen, why) = at_colon(value);
                fork.chosen = Some(unescape(chosen.trim())).filter(|it| !it.is_empty());
                fork.why = note(line, why)?;
            }
            _ => {}
        }
    }
    Ok(fork)
}

fn option(section: &Section<'_, '_>) -> ForkOption {
    let title = section.title.trim();
    let named = title.get(..6).filter(|it| it.eq_ignore_ascii_case("option"));
    let title = named.map_or(title, |named| &title[named.len()..]);
    let (letter, title) = at_colon(title.trim());
    let mut option = ForkOption {
        letter: unescape(letter.trim()),
        title: unescape(title.trim()),
        ..ForkOption::default()
    };
    for bullet in bullets(section.pieces) {
        let Some((label, value)) = labelled(&bullet.text) else {
            continue;
        };
        let nested = bullet.nested.iter().map(|(_, text)| unescape(text));
        let all = list(value, ',').into_iter().chain(nested).collect();
        match label.as_str() {
            "pros" => option.pros = all,
            "cons" => option.cons = all,
            "files" => option.files = all,
            _ => {}
        }
    }
    option
}
