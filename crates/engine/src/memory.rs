//! The person's memory server, if there is one: checkpoints taken by hand are told to it, and it is asked when
//! work is taken up again. Both are redacted: what it remembers is out of our hands.

use bivouac_capture::memory::{Entity, Memory};
use bivouac_core::briefing::next_action;
use bivouac_core::text::{Note, printable};
use bivouac_core::work::Work;

use crate::save::SaveReport;
use crate::{Engine, Error, Result};

/// What is asked for, and how many answers to each are taken: the newest.
const QUESTIONS: [(&str, usize); 3] = [("checkpoint:", 8), ("session:", 6), ("blocker:", 6)];
const LONGEST_LINE: usize = 300;
const LONGEST_OBSERVATION: usize = 1_000;
/// What is said where there is nothing to say.
const NONE: &str = "none";

impl Engine {
    /// Tells the memory server of a checkpoint. `false` if there is none to tell.
    pub fn tell_memory(&self, report: &SaveReport) -> Result<bool> {
        let Some(mut memory) = self.open_memory()? else {
            return Ok(false);
        };
        let entity = self.entity_of(report)?;
        memory.remember(&entity).map_err(Error::Memory)?;
        Ok(true)
    }

    /// What the memory server knows about checkpoints, sessions and blockers, a line each.
    pub fn ask_memory(&self) -> Result<Vec<String>> {
        let mut lines: Vec<String> = Vec::new();
        let Some(mut memory) = self.open_memory()? else {
            return Ok(lines);
        };
        for (words, most) in QUESTIONS {
            let found = memory.search(words).map_err(Error::Memory)?;
            let told = found.iter().rev().map(|it| self.line_of(it));
            let new: Vec<String> = told.filter(|it| !lines.contains(it)).take(most).collect();
            lines.extend(new);
        }
        Ok(lines)
    }

    fn open_memory(&self) -> Result<Option<Memory>> {
        Memory::open(&self.config.memory_command, &self.home.workspace).map_err(Error::Memory)
    }

    fn entity_of(&self, report: &SaveReport) -> Result<Entity> {
        let checkpoint = &report.checkpoint;
        let label = checkpoint
            .name
            .as_ref()
            .map_or_else(|| checkpoint.handle.to_string(), |name| name.as_str().to_owned());
        let work = self.work_of(checkpoint)?;
        let git = checkpoint.git.as_ref();
        let branch = git.and_then(|it| it.branch.as_deref()).unwrap_or(NONE);
        let sha = git.and_then(|it| it.head.as_deref()).unwrap_or(NONE);
        let (said, _) = self.journal.last_words(checkpoint.session_id, 1)?;
        let observations = [
            format!("Created: {}", checkpoint.taken_at),
            format!("Branch: {branch}, SHA: {}", sha.get(..7).unwrap_or(sha)),
            format!("Task: {}", task_of(report, &work)),
            format!("Phase: {}", work.phase().and_then(|it| it.name.as_deref()).unwrap_or(NONE)),
            format!("Next: {}", next_action(&work, &said)),
        ];
        Ok(Entity {
            name: self.in_one_line(&format!("checkpoint:{label}"), LONGEST_LINE),
            kind: "checkpoint".to_owned(),
            observations: observations
                .map(|it| self.in_one_line(&it, LONGEST_OBSERVATION))
                .to_vec(),
        })
    }

    fn line_of(&self, entity: &Entity) -> String {
        let text = format!("{}: {}", entity.name, entity.observations.join("; "));
        self.in_one_line(&text, LONGEST_LINE)
    }

    /// Redacted and harmless, and with no more than so many characters.
    fn in_one_line(&self, text: &str, most: usize) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        let safe = printable(&self.redactor().redact(&words.join(" ")));
        match safe.char_indices().nth(most) {
            None => safe,
            Some(_) => safe.chars().take(most - 1).chain(['…']).collect(),
        }
    }
}

/// What is being worked on, in the words at hand.
fn task_of(report: &SaveReport, work: &Work) -> String {
    let session = &report.session;
    let described = session.task_description.clone().or_else(|| work.outline().feature);
    let described = described.as_ref().map(Note::as_str).map(str::to_owned);
    described.or_else(|| session.title()).unwrap_or_else(|| NONE.to_owned())
}
