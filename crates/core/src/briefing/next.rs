//! The next action: what someone said it is, else what follows from the state of things.

use super::Said;
use crate::text::Note;
use crate::work::{Step, Task, TaskStatus, Thing, Work};

/// What to do first, in one sentence.
pub fn next_action(work: &Work, said: &[Said]) -> String {
    if let Some(next) = work.outline().next {
        return next.headline();
    }
    if let Some(step) = work.steps.iter().find(|step| step.status() == TaskStatus::Failed) {
        let error = step.error().map(|error| format!(" ({})", error.headline()));
        return format!(
            "Retry step {} with `biv replay`{}.",
            name_of::<Step>(step),
            error.unwrap_or_default()
        );
    }
    if let Some(fork) = work.fork_points.iter().find(|fork| fork.chosen.is_none()) {
        let who = fork.needed_from.as_deref().unwrap_or("the user");
        return format!("Get a decision from {who} on {}.", name_of(&fork.item));
    }
    let in_state = |status| work.tasks.iter().find(|task| task.status() == status);
    if let Some(task) = in_state(TaskStatus::InProgress) {
        return format!("Check how far task {} is, and finish it.", name_of::<Task>(task));
    }
    if let Some(task) = in_state(TaskStatus::Failed) {
        return format!("Look into why task {} failed.", name_of::<Task>(task));
    }
    if let Some(task) = work.tasks.iter().find(|task| is_ready(task, work)) {
        return format!("Start task {}.", name_of::<Task>(task));
    }
    if let Some(blocker) = work.open_blockers().next() {
        return format!("Resolve blocker {}.", name_of(&blocker.item));
    }
    if let Some(task) = work.open_tasks().next() {
        return format!("Find out what task {} waits for.", name_of::<Task>(task));
    }
    match said.is_empty() {
        true => "Ask what is to be done next.".to_owned(),
        false => "Go on with the last request on record.".to_owned(),
    }
}

/// Is it open, and is everything done that it needs?
fn is_ready(task: &Task, work: &Work) -> bool {
    let tasks = &work.tasks;
    let is_done = |word: &String| {
        let is_meant = |it: &Task| {
            let names = [Some(it.key().to_owned()), it.issue.clone(), it.title()];
            names.into_iter().flatten().any(|name| name.eq_ignore_ascii_case(word))
        };
        tasks.iter().find(|it| is_meant(it)).is_some_and(|it| it.is_over())
    };
    task.status() == TaskStatus::Pending && task.depends_on.iter().flatten().all(is_done)
}

fn name_of<T: Thing>(thing: &T) -> String {
    let title = thing.title().map(|title| Note::cut(&title).headline());
    match title {
        Some(title) if !thing.key().is_empty() => format!("{} {title}", thing.key()),
        Some(title) => title,
        None => thing.key().to_owned(),
    }
}
