//! Where the agent works, for a checkpoint. Versions are asked while the files are scanned when a person waits,
//! and by a process of its own when an agent does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bivouac_capture::agents;
use bivouac_capture::environment::variables;
use bivouac_capture::tools::{Known, Question, Tool, used_in};
use bivouac_core::checkpoint::{Checkpoint, Trigger};
use bivouac_core::environment::{Difference, Environment, differences};
use bivouac_core::id::{ObjectId, SessionId};
use bivouac_core::session::Session;
use bivouac_snapshot::private;

use crate::save::to_json;
use crate::{Engine, Result};

/// How much a version may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// What was asked before is enough.
    Nothing,
    /// A person waits for it, and not for long.
    Brief,
    /// Nobody waits.
    Patient,
}

impl Effort {
    pub(crate) fn of(trigger: Trigger) -> Self {
        if trigger == Trigger::Manual { Self::Brief } else { Self::Nothing }
    }

    const fn patience(self) -> Duration {
        match self {
            Self::Nothing => Duration::ZERO,
            Self::Brief => Duration::from_secs(2),
            Self::Patient => Duration::from_secs(30),
        }
    }
}

/// A look that is under way.
pub(crate) struct EnvironmentReader {
    cwd: String,
    allowed: Vec<String>,
    tools: JoinHandle<Tools>,
}

#[derive(Default)]
struct Tools {
    versions: BTreeMap<String, Option<String>>,
    /// Programs that have not been asked yet.
    unknown: Vec<String>,
}

impl EnvironmentReader {
    /// The environment, and whether a version in it has still to be asked.
    pub(crate) fn finish(self) -> (Environment, bool) {
        let tools = self.tools.join().unwrap_or_default();
        let variables = variables(&self.allowed);
        let environment = Environment {
            cwd: self.cwd,
            variables: variables.values,
            other_names: variables.other_names,
            tools: tools.versions,
        };
        (environment, !tools.unknown.is_empty())
    }
}

impl Engine {
    /// Looks at the variables, and at what the project uses; `also` are programs it used before.
    pub(crate) fn read_environment<'p>(
        &self,
        session: &Session,
        effort: Effort,
        also: impl IntoIterator<Item = &'p String>,
    ) -> EnvironmentReader {
        let agent = session.agent_type.parse().ok().map(|kind| agents::of(kind).program());
        let (workspace, cache) = (self.home.workspace.clone(), self.home.tool_cache());
        let also: Vec<String> = also.into_iter().cloned().collect();
        let tools = thread::spawn(move || {
            let used = used_in(&workspace).into_iter().chain(agent).map(str::to_owned);
            ask(used.chain(also).collect(), &workspace, &cache, effort)
        });
        EnvironmentReader {
            cwd: in_words(&self.home.folder),
            allowed: self.config.environment_allow.clone(),
            tools,
        }
    }

    /// Asks for all versions that are not known yet, however long that takes.
    pub fn learn_tools(&self, session: &Session) -> Environment {
        self.read_environment(session, Effort::Patient, []).finish().0
    }

    /// The same, by a process nobody waits for. A checkpoint does not depend on it.
    pub(crate) fn learn_tools_later(&self, session: &Session) {
        if std::env::var_os("BIV_HOOK_WAITS").is_some() {
            self.learn_tools(session);
            return;
        }
        let _next_time = self.start_own(["environment".into(), session.id.to_string().into()]);
    }

    /// Where the agent worked at a checkpoint.
    pub fn environment_of(&self, checkpoint: &Checkpoint) -> Result<Option<Environment>> {
        let _store_lock = self.use_store()?;
        self.stored_environment(checkpoint)
    }

    /// The same, for whoever holds the store already.
    pub(crate) fn stored_environment(
        &self,
        checkpoint: &Checkpoint,
    ) -> Result<Option<Environment>> {
        checkpoint.environment.map(|id| self.stored_facts(id, "environment")).transpose()
    }

    /// What is different here and now from where a session was.
    pub(crate) fn environment_drift(
        &self,
        session: SessionId,
        then: Option<&Environment>,
    ) -> Result<Vec<Difference>> {
        let (Some(then), Some(session)) = (then, self.journal.session(session)?) else {
            return Ok(Vec::new());
        };
        let reader = self.read_environment(&session, Effort::Brief, then.tools.keys());
        Ok(differences(then, &reader.finish().0))
    }

    /// Facts that are stored as JSON, for whoever holds the store already.
    pub(crate) fn stored_facts<T: serde::de::DeserializeOwned>(
        &self,
        id: ObjectId,
        what: &'static str,
    ) -> Result<T> {
        let index = self.index();
        let bytes = self.objects(&index).get(&id)?;
        let malformed = bivouac_snapshot::Error::Malformed { id, what };
        serde_json::from_slice(&bytes).map_err(|_| malformed.into())
    }
}

/// A path as text. Where it is none, its bytes are written out, so that two folders never look like one.
fn in_words(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    path.to_str().map_or_else(|| bytes.escape_ascii().to_string(), str::to_owned)
}

/// The versions of programs, as far as they are known or may be asked for.
fn ask(programs: BTreeSet<String>, workspace: &Path, cache: &Path, effort: Effort) -> Tools {
    let cached = private::read(cache).ok();
    let mut known: Known =
        cached.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let mut tools = Tools::default();
    let mut questions = Vec::new();
    for program in programs {
        match known.look(&program, workspace) {
            Tool::Missing => {
                tools.versions.insert(program, None);
            }
            Tool::Known(Some(version)) => {
                tools.versions.insert(program, Some(version));
            }
            Tool::Known(None) => {}
            Tool::Unknown(question) => questions.push(question),
        }
    }
    if effort == Effort::Nothing || questions.is_empty() {
        tools.unknown = questions.iter().map(|it| it.program().to_owned()).collect();
        return tools;
    }
    let answers: Vec<_> = thread::scope(|scope| {
        let ask = |question| scope.spawn(move || Question::ask(question, effort.patience()));
        let asked: Vec<_> = questions.iter().map(ask).collect();
        asked.into_iter().map(|thread| thread.join().ok()).collect()
    });
    for (question, answer) in questions.iter().zip(answers) {
        match (answer, effort) {
            (Some(Ok(version)), _) => {
                known.remember(question, version.clone());
                if let Some(version) = version {
                    tools.versions.insert(question.program().to_owned(), Some(version));
                }
            }
            // One that never answers would be asked again with every checkpoint.
            (_, Effort::Patient) => known.remember(question, None),
            (_, _) => tools.unknown.push(question.program().to_owned()),
        }
    }
    let _disposable = private::write_disposable(cache, &to_json(&known));
    tools
}
