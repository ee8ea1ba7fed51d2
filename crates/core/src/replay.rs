//! Trying a failed step again, alone, with what the steps before it produced. And saying when that is not
//! the right thing to do.

use std::fmt;

use crate::redact::Redactor;
use crate::text::{Note, count};
use crate::work::{Entry, Step, TaskStatus, Work};

/// How the world is by now, as far as it matters.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Commits since the step started, where that can be said.
    pub n_commits_since: u64,
    /// What earlier steps produced and is no longer there.
    pub missing: Vec<String>,
}

/// What to try again, and how to ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    pub step: String,
    pub title: Option<String>,
    pub attempt: u32,
    /// The keys of all steps that have to be done again or for the first time.
    pub to_replay: Vec<String>,
    pub cautions: Vec<Caution>,
    pub prompt: String,
}

/// Why a replay may not be the right thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caution {
    BaseMoved { n_commits: u64 },
    ManySteps { n_steps: u64 },
    OutputGone { step: String, paths: Vec<String> },
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BaseMoved { n_commits } => write!(
                f,
                "the code has moved on since the step started ({}): what is cached may no longer be true",
                count(*n_commits, "commit")
            ),
            Self::ManySteps { n_steps } => write!(
                f,
                "{n_steps} steps would be replayed: saving a checkpoint and starting a fresh session may be better"
            ),
            Self::OutputGone { step, paths } => write!(
                f,
                "step {step} produced {} that is no longer there: replay from step {step} instead",
                paths.join(", ")
            ),
        }
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReplay {
    #[error("no step has failed, so there is nothing to replay")]
    NothingFailed,
    #[error("there is no step `{0}`")]
    NoStep(String),
}

/// The step a replay starts with: the one that is asked for, else the first that failed.
pub fn step_to_replay<'w>(
    work: &'w Work,
    from: Option<&str>,
) -> Result<&'w Entry<Step>, BadReplay> {
    match from {
        Some(key) => {
            let found = in_order(work).into_iter().find(|it| it.step == key);
            found.ok_or_else(|| BadReplay::NoStep(key.to_owned()))
        }
        None => {
            // A retry that never told how it ended did not end well.
            let is_due = |it: &&Entry<Step>| match it.status() {
                TaskStatus::Failed => true,
                TaskStatus::InProgress => it.attempt.is_some_and(|attempt| attempt > 1),
                _ => false,
            };
            in_order(work).into_iter().find(is_due).ok_or(BadReplay::NothingFailed)
        }
    }
}

/// Everything about trying a step again.
pub fn plan(work: &Work, step: &Entry<Step>, world: &World, redactor: &Redactor) -> Replay {
    let steps = in_order(work);
    let place = steps.iter().position(|it| it.step == step.step).unwrap_or(0);
    let (before, rest) = steps.split_at(place);
    // What was built on a step has to be built again with it.
    let to_replay: Vec<String> = rest.iter().map(|it| it.step.clone()).collect();
    let mut cautions = Vec::new();
    if world.n_commits_since > 0 {
        cautions.push(Caution::BaseMoved { n_commits: world.n_commits_since });
    }
    if to_replay.len() >= 3 {
        cautions.push(Caution::ManySteps { n_steps: to_replay.len() as u64 });
    }
    for earlier in before {
        let outputs = earlier.outputs.iter().flatten().map(|it| it.path.clone());
        let paths: Vec<String> = outputs.filter(|it| world.missing.contains(it)).collect();
        if !paths.is_empty() {
            cautions.push(Caution::OutputGone { step: earlier.step.clone(), paths });
        }
    }
    let attempt = match step.status() {
        TaskStatus::Pending => 1,
        _ => step.attempt.unwrap_or(1) + 1,
    };
    Replay {
        step: step.step.clone(),
        title: step.title.as_ref().map(Note::headline),
        attempt,
        to_replay,
        cautions,
        prompt: redactor.redact(&prompt(before, step, attempt)),
    }
}

/// Steps by their numbers; those without one stay where they came up, behind them.
fn in_order(work: &Work) -> Vec<&Entry<Step>> {
    let mut steps: Vec<&Entry<Step>> = work.steps.iter().collect();
    steps.sort_by_key(|it| it.number().unwrap_or(u64::MAX));
    steps
}

fn prompt(before: &[&Entry<Step>], step: &Step, attempt: u32) -> String {
    let name = step.issue.clone().unwrap_or_else(|| format!("Step {}", step.step));
    let mut parts = vec![format!("**Retry: {name} (attempt {attempt})**")];
    let done = before.iter().filter(|it| it.status() == TaskStatus::Completed);
    let cached: Vec<String> =
        done.map(|it| format!("\n- Step {} produced: {}", it.step, produced(it))).collect();
    if !cached.is_empty() {
        const CACHED: &str = "Previous steps completed successfully. Here is the cached context:";
        parts.push(format!("{CACHED}{}", cached.concat()));
    }
    let title = step.title.as_ref().map_or_else(|| format!("step {}", step.step), Note::headline);
    match step.error() {
        Some(error) => {
            parts.push(format!("Step {} failed with: {}", step.step, error.as_str().trim()));
            parts.push(format!(
                "Your task: {title}\nDo only this step: the earlier ones are done. \
                 Deal with the cause of the error above first."
            ));
        }
        None => parts.push(format!("Your task: {title}")),
    }
    parts.extend(step.objective.as_ref().map(|it| it.as_str().trim().to_owned()));
    parts.join("\n\n") + "\n"
}

/// What a later step has to know of an earlier one.
fn produced(step: &Step) -> String {
    let outputs: Vec<String> = step.outputs.iter().flatten().map(ToString::to_string).collect();
    match (&step.cached, outputs.is_empty()) {
        (Some(cached), _) => cached.as_str().split_whitespace().collect::<Vec<_>>().join(" "),
        (None, false) => outputs.join("; "),
        (None, true) => step.title.as_ref().map(Note::headline).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;

    fn work() -> Work {
        let step = |key: &str, status, cached: Option<&str>, error: Option<&str>| Step {
            step: key.to_owned(),
            title: Some(format!("do {key}").parse().unwrap()),
            status: Some(status),
            issue: (key == "3").then(|| "TAS-7".to_owned()),
            objective: (key == "3").then(|| "Write the API on top of the schema.".parse().unwrap()),
            outputs: (key == "1").then(|| vec!["created db/schema.sql".parse().unwrap()]),
            cached: cached.map(|it| it.parse().unwrap()),
            error: error.map(|it| it.parse().unwrap()),
            attempt: Some(1),
            ..Step::default()
        };
        let mut work = Work::default();
        for it in [
            step("1", TaskStatus::Completed, Some("The schema has three tables."), None),
            step("2", TaskStatus::Completed, None, None),
            step("3", TaskStatus::Failed, None, Some("type error in api.ts")),
        ] {
            let at = "2026-03-07T10:00:00Z".parse().unwrap();
            work.apply(&Event::StepChanged(Box::new(it)), at);
        }
        work
    }

    #[test]
    fn a_retry_is_asked_for_in_the_words_of_the_template() {
        let work = work();
        let step = step_to_replay(&work, None).unwrap();
        let replay = plan(&work, step, &World::default(), &Redactor::default());
        assert_eq!(
            replay.prompt,
            "**Retry: TAS-7 (attempt 2)**\n\n\
             Previous steps completed successfully. Here is the cached context:\n\
             - Step 1 produced: The schema has three tables.\n\
             - Step 2 produced: do 2\n\n\
             Step 3 failed with: type error in api.ts\n\n\
             Your task: do 3\n\
             Do only this step: the earlier ones are done. Deal with the cause of the error above first.\n\n\
             Write the API on top of the schema.\n"
        );
        assert_eq!((replay.attempt, replay.to_replay), (2, vec!["3".to_owned()]));
        assert_eq!(replay.cautions, []);
    }

    #[test]
    fn it_says_when_a_replay_is_not_the_right_thing() {
        let work = work();
        let world = World { n_commits_since: 2, missing: vec!["db/schema.sql".to_owned()] };
        let step = step_to_replay(&work, None).unwrap();
        let cautions = plan(&work, step, &world, &Redactor::default()).cautions;
        let gone = Caution::OutputGone { step: "1".to_owned(), paths: world.missing.clone() };
        assert_eq!(cautions, [Caution::BaseMoved { n_commits: 2 }, gone]);
        let first = step_to_replay(&work, Some("1")).unwrap();
        let cautions = plan(&work, first, &World::default(), &Redactor::default()).cautions;
        assert_eq!(cautions, [Caution::ManySteps { n_steps: 3 }]);
        assert_eq!(step_to_replay(&work, Some("9")), Err(BadReplay::NoStep("9".to_owned())));
        assert_eq!(step_to_replay(&Work::default(), None), Err(BadReplay::NothingFailed));
    }
}
