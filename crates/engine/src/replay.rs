//! Trying a failed step again.

use bivouac_capture::agents::{self, restore::Launch};
use bivouac_core::replay::{self, Replay, World};
use bivouac_core::session::Session;
use bivouac_core::work::{Item, Noun, Step, TaskStatus, Thing};

use crate::progress::{Saying, find};
use crate::resume::agent_of;
use crate::{Engine, Error, Result};

impl Engine {
    /// The commit the workspace is at.
    pub fn head(&self) -> Option<String> {
        self.home.repository()?.commit()
    }

    /// What to try again, from the step that is named or the first that failed.
    pub fn plan_replay(&self, session: &Session, from: Option<&str>) -> Result<Replay> {
        let work = self.journal.work(session.id)?;
        let from = from.map(|word| find(&work.steps, Noun::Step, word)).transpose()?;
        let from = from.map(|step| step.key().to_owned());
        let step = replay::step_to_replay(&work, from.as_deref())?;
        let heads = step.base.clone().zip(self.head());
        let commits = heads.and_then(|(then, now)| self.commits_since(&then, &now));
        let outputs = work.steps.iter().flat_map(|it| it.outputs.iter().flatten());
        let missing = outputs
            .filter(|it| self.home.workspace.join(&it.path).symlink_metadata().is_err())
            .map(|it| it.path.clone())
            .collect();
        let world = World { n_commits_since: commits.map_or(0, |it| it.len() as u64), missing };
        Ok(replay::plan(&work, step, &world, self.redactor()))
    }

    /// Puts the attempt on record, and answers how to start the agent with it.
    pub fn start_replay(
        &mut self,
        session: &Session,
        replay: &Replay,
        (extra, is_headless): (&[String], bool),
    ) -> Result<Launch> {
        let agent = agents::of(agent_of(session));
        let step = Step {
            step: replay.step.clone(),
            attempt: Some(replay.attempt),
            status: Some(TaskStatus::InProgress),
            base: self.head(),
            ..Step::default()
        };
        self.say(session, vec![Item::Step(Box::new(step))], &Saying::default())?;
        let opening = match is_headless {
            true => vec!["-p".to_owned(), replay.prompt.clone()],
            false => agent.opening(&replay.prompt),
        };
        let args: Vec<String> = extra.iter().cloned().chain(opening).collect();
        Ok(agent.start(&args))
    }
}

/// Refuses to start what is probably the wrong thing.
pub fn check_replay(replay: &Replay) -> Result<()> {
    match replay.cautions.is_empty() {
        true => Ok(()),
        false => {
            let cautions = replay.cautions.iter().map(ToString::to_string).collect();
            Err(Error::ReplayRefused { cautions })
        }
    }
}
