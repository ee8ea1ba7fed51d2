//! How the sections are read that a checkpoint's file and a handoff have in common.

use super::blocks::{
    Kind, Piece, Section, bullets, known_by, labelled, paragraphs, pieces, preamble, sections,
};
use super::entry::read_task;
use super::inline::{marked, mended, unescape};
use super::session_checkpoint::{blocker, decision, plain};
use super::steps_ahead::{CONCLUDED, NEXT};
use super::{BadMarkdown, Parsed};
use crate::text::Note;
use crate::work::{Author, Item, Outline};

const BY: Option<Author> = Some(Author::Import);

/// Reads a file whose title begins with one of these words.
pub(super) fn parse(file: &str, first_line: usize, titles: &[&str]) -> Result<Parsed, BadMarkdown> {
    let file = mended(file);
    let all = pieces(&file, first_line)?;
    let level_of = |it: &Piece<'_>| match it.kind {
        Kind::Heading { level, title } => {
            let name = known_by(title);
            titles.iter().any(|it| name.starts_with(it)).then_some(level)
        }
        _ => None,
    };
    let title = all.iter().enumerate().find_map(|(place, it)| Some((place, level_of(it)?)));
    let Some((start, level)) = title else {
        let reason = format!("no heading begins with `{}`", titles.join("` or `"));
        return Err(BadMarkdown::new(first_line, reason));
    };
    let mut reader = Reader::default();
    reader.header(&all[start + 1..]);
    for section in sections(&all[start + 1..], level + 1) {
        reader.section(&section)?;
    }
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader {
    parsed: Parsed,
    outline: Outline,
    items: Vec<Item>,
}

impl Reader {
    fn finish(self) -> Parsed {
        let Self { mut parsed, mut outline, items } = self;
        let is_said = outline != Outline::default();
        outline.by = BY;
        let outline = is_said.then(|| Item::Outline(Box::new(outline)));
        parsed.items = outline.into_iter().chain(items).collect();
        parsed
    }

    fn header(&mut self, all: &[Piece<'_>]) {
        for (_, text) in paragraphs(preamble(all)) {
            let Some((label, value)) = labelled(text) else {
                continue;
            };
            let word = Some(unescape(value)).filter(|it| !it.is_empty());
            match label.as_str() {
                "created" | "updated" | "last updated" => self.parsed.updated = word,
                "branch" => self.parsed.branch = word,
                _ => {}
            }
        }
    }

    fn section(&mut self, section: &Section<'_, '_>) -> Result<(), BadMarkdown> {
        match known_by(section.title).as_str() {
            "task" => {
                self.outline.feature = text(section)?;
                self.parsed.feature =
                    self.outline.feature.as_ref().map(|it| it.as_str().to_owned());
            }
            "decisions made" | "decisions" | "key decisions" | "key decisions made" => {
                for bullet in bullets(section.pieces) {
                    self.items.push(Item::Decision(Box::new(decision(&bullet)?)));
                }
            }
            "progress" => self.progress(section)?,
            "approach rationale" | "approach" => {
                self.outline.approach = text(section)?.filter(|it| known_by(it.as_str()) != "none");
            }
            "blockers open questions" | "blockers" | "open questions" => {
                let is_said = |text: &str| {
                    known_by(text) != "none" && marked(text).remark.as_deref() != Some(CONCLUDED)
                };
                for bullet in bullets(section.pieces).iter().filter(|it| is_said(&it.text)) {
                    self.items.push(Item::Blocker(Box::new(blocker(bullet)?)));
                }
            }
            "next steps" | "next" => self.next_steps(section)?,
            "key files" | "context for resumption" => {}
            _ => self.parsed.ignored.push(section.title.to_owned()),
        }
        Ok(())
    }

    fn progress(&mut self, section: &Section<'_, '_>) -> Result<(), BadMarkdown> {
        for bullet in bullets(section.pieces) {
            let nested = bullet.nested.iter().map(|(line, text)| (*line, text));
            for (line, text) in [(bullet.line, &bullet.text)].into_iter().chain(nested) {
                let found = marked(text);
                let Some(mut task) = read_task(&found.text) else {
                    self.parsed.ignored.push(format!("line {line}: {text}"));
                    continue;
                };
                if text.len() > Note::MAX_BYTES * 2 {
                    return Err(BadMarkdown::new(line, "the line is too long for a task"));
                }
                task.task = found.key;
                task.by = BY;
                self.items.push(Item::Task(Box::new(task)));
            }
        }
        Ok(())
    }

    /// The first step is the next action, unless another line says it is.
    fn next_steps(&mut self, section: &Section<'_, '_>) -> Result<(), BadMarkdown> {
        let mut said = Vec::new();
        for bullet in bullets(section.pieces) {
            let line = marked(&bullet.whole());
            let text = plain(bullet.line, &unescape(&line.text))?;
            match line.remark.as_deref() {
                Some(CONCLUDED) => {}
                Some(NEXT) => self.outline.next = text,
                _ => said.extend(text),
            }
        }
        if self.outline.next.is_none() {
            self.outline.next = said.first().cloned();
        }
        self.outline.instructions = Some(said).filter(|it| !it.is_empty());
        Ok(())
    }
}

/// The lines of a section, as one text.
fn text(section: &Section<'_, '_>) -> Result<Option<Note>, BadMarkdown> {
    let lines = paragraphs(section.pieces).into_iter().map(|(_, text)| marked(text));
    let lines = lines.filter(|line| line.remark.as_deref() != Some(CONCLUDED));
    let lines: Vec<String> = lines.map(|line| unescape(&line.text)).collect();
    plain(section.line, &lines.join("\n"))
}
