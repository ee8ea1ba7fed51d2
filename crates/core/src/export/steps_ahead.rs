//! What to do next when nobody wrote it down: it follows from the state of things.

use super::pen::Pen;
use crate::text::Note;
use crate::work::{Entry, ForkPoint, TaskStatus, Work};

/// The comment on lines that were concluded, so that nobody takes them for something somebody said.
pub(super) const CONCLUDED: &str = "not read back";
/// The comment on the line that says what to do first.
pub(super) const NEXT: &str = "the next action";

/// So many are worth telling.
const MOST: usize = 5;

/// What to do, the most urgent first, already escaped. There is always something.
pub(super) fn steps_ahead(pen: &Pen<'_>, work: &Work) -> Vec<String> {
    let mut found = Vec::new();
    for (place, step) in work.steps.iter().enumerate() {
        if step.status() == TaskStatus::Failed {
            let number = step.number().unwrap_or(place as u64 + 1);
            found.push(format!("Retry step {number}{}", named(pen, step.title.as_ref())));
        }
    }
    let is_open = |it: &&Entry<ForkPoint>| pen.word(it.chosen.as_ref()).is_empty();
    for fork in work.fork_points.iter().filter(is_open) {
        let who = pen.word(fork.needed_from.as_ref());
        let who = if who.is_empty() { who } else { format!(" from {who}") };
        found.push(format!("Get a decision{who}{}", named(pen, fork.title.as_ref())));
    }
    let told = [
        (TaskStatus::InProgress, "Finish the task"),
        (TaskStatus::Failed, "Look into the task that failed"),
        (TaskStatus::Pending, "Start the task"),
    ];
    for (status, words) in told {
        let tasks = work.tasks.iter().filter(|task| task.status() == status);
        found.extend(tasks.map(|task| format!("{words}{}", named(pen, task.subject.as_ref()))));
    }
    if found.is_empty() {
        found.push("Ask what is to be done next".to_owned());
    }
    found.truncate(MOST);
    found
}

fn named(pen: &Pen<'_>, title: Option<&Note>) -> String {
    let title = pen.note(title);
    if title.is_empty() { title } else { format!(": {title}") }
}
