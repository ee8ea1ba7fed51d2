//! What is around a workspace when a checkpoint is taken: git, the environment, the terminal. Looked at while
//! the files are scanned.

use std::thread::{self, JoinHandle};

use bivouac_capture::tmux::Tmux;
use bivouac_core::checkpoint::{Checkpoint, Trigger};
use bivouac_core::environment::Environment;
use bivouac_core::event::{Event, Level, Noted};
use bivouac_core::git::GitFacts;
use bivouac_core::id::ObjectId;
use bivouac_core::session::Session;
use bivouac_core::terminal::Terminal;
use bivouac_core::text::Note;
use bivouac_snapshot::diff::Trees;

use crate::Engine;
use crate::environment::{Effort, EnvironmentReader};
use crate::git::GitReader;

/// Looks that are under way.
pub(crate) struct Looking<'h> {
    git: Option<GitReader<'h>>,
    environment: Part<EnvironmentReader>,
    terminal: Part<JoinHandle<bivouac_capture::Result<Terminal>>>,
}

pub(crate) struct Surroundings {
    pub(crate) git: Option<GitFacts>,
    pub(crate) environment: Part<Environment>,
    pub(crate) terminal: Part<Terminal>,
    /// A program has still to be asked for its version.
    pub(crate) lacks_versions: bool,
    /// What went wrong, for the session's log.
    pub(crate) notes: Vec<Event>,
}

/// Something that is looked at now, or is as it was at the checkpoint before.
pub(crate) enum Part<T> {
    Now(T),
    AsBefore(Option<ObjectId>),
}

impl Engine {
    pub(crate) fn look_around(
        &self,
        session: &Session,
        trigger: Trigger,
        parent: Option<&Checkpoint>,
    ) -> Looking<'_> {
        // Who saves what an agent left behind stands somewhere else, in a terminal of his own.
        let is_left = trigger == Trigger::Detach;
        let environment = match parent.and_then(|it| it.environment).filter(|_| is_left) {
            Some(before) => Part::AsBefore(Some(before)),
            None => Part::Now(self.read_environment(session, Effort::of(trigger), [])),
        };
        let here = Tmux::here().filter(|(_, place)| !is_left || is_session(place));
        let terminal = match here {
            Some((tmux, place)) => Part::Now(thread::spawn(move || tmux.read(&place))),
            None => Part::AsBefore(parent.and_then(|it| it.terminal).filter(|_| is_left)),
        };
        Looking { git: GitReader::start(&self.home), environment, terminal }
    }
}

/// tmux itself started us: nobody stands in a pane.
fn is_session(place: &str) -> bool {
    place.starts_with('$')
}

impl Looking<'_> {
    /// What belongs to a tree.
    pub(crate) fn finish(self, trees: &Trees<'_>, tree: &ObjectId) -> Surroundings {
        let git = self.git.map(|reader| reader.finish(trees, tree));
        let (environment, lacks_versions) = match self.environment {
            Part::Now(reader) => {
                let (environment, lacks) = reader.finish();
                (Part::Now(environment), lacks)
            }
            Part::AsBefore(before) => (Part::AsBefore(before), false),
        };
        let mut notes = Vec::new();
        let terminal = match self.terminal {
            Part::AsBefore(before) => Part::AsBefore(before),
            Part::Now(thread) => match thread.join() {
                Ok(Ok(terminal)) => Part::Now(terminal),
                Ok(Err(error)) => {
                    let message = Note::cut(&format!("the terminal was not captured: {error}"));
                    notes.push(Event::Noted(Noted { level: Level::Warning, message }));
                    Part::AsBefore(None)
                }
                Err(_) => Part::AsBefore(None),
            },
        };
        Surroundings { git, environment, terminal, lacks_versions, notes }
    }
}
