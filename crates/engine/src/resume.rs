//! Going on with a session in its agent: which checkpoint, what drifted, what it costs, and the command.

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use bivouac_capture::agents::restore::Launch;
use bivouac_capture::agents::restore::{Kept, Order};
use bivouac_capture::agents::{self, Agent};
pub use bivouac_capture::process::Says;
use bivouac_capture::process::{self, Program};
use bivouac_capture::running;
use bivouac_core::agent::AgentKind;
use bivouac_core::budget;
use bivouac_core::checkpoint::Checkpoint;
use bivouac_core::conversation::ConversationSummary;
use bivouac_core::environment::Difference;
use bivouac_core::event::Level;
use bivouac_core::id::{CheckpointHandle, SessionId};
use bivouac_core::session::Session;
use bivouac_journal::query::{CheckpointFilter, KeptCheckpoint};
use bivouac_snapshot::private;

use crate::converse::{About, of_checkpoint};
use crate::home::home_folder;
use crate::{Engine, Error, Result};

/// How a session is gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The conversation itself, under a new id.
    Native,
    /// A new conversation that starts from the briefing.
    Brief,
}

/// What there is to know before an agent is started.
#[derive(Debug)]
pub struct ResumePlan {
    pub session: Session,
    pub agent: AgentKind,
    pub checkpoint: Option<KeptCheckpoint>,
    pub mode: Mode,
    pub drift: Drift,
    /// Tokens the model reads first, where it is known.
    pub native_tokens: Option<u64>,
    pub brief_tokens: u64,
    /// What the agent's file lost at its torn end, in words.
    pub loss: Option<String>,
    /// Commands the agent was running when it went, and the processes that still run them.
    pub orphans: Vec<(String, Vec<u32>)>,
    /// A newer checkpoint, whose conversation cannot be read.
    pub damaged: Option<CheckpointHandle>,
    conversation: Option<(ConversationSummary, About)>,
}

/// The checkpoint a session is gone on from.
#[derive(Debug)]
pub struct Resumable {
    pub checkpoint: Option<KeptCheckpoint>,
    /// A newer one, whose conversation cannot be read.
    pub damaged: Option<CheckpointHandle>,
}

/// What is not as it was at the checkpoint.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Drift {
    pub branch: Option<(String, String)>,
    pub head: Option<(String, String)>,
    pub n_commits_since: Option<u64>,
    pub changed: Vec<String>,
    /// Tools, variables and the folder.
    pub environment: Vec<Difference>,
}

impl Engine {
    /// Plans to go on with a session, from a checkpoint of it or from the newest that holds a conversation.
    pub fn plan_resume(
        &self,
        session: &Session,
        from: Option<KeptCheckpoint>,
        mode: Option<Mode>,
    ) -> Result<ResumePlan> {
        let Resumable { checkpoint, damaged } = match from {
            Some(kept) => Resumable { checkpoint: Some(kept), damaged: None },
            None => self.last_resumable(session)?,
        };
        let summary = checkpoint.as_ref().map(|it| of_checkpoint(&it.taken.checkpoint)).transpose();
        let summary = match (summary, mode) {
            (Ok(summary), _) => summary.cloned(),
            (Err(error), Some(Mode::Native)) => return Err(error),
            (Err(_), _) => None,
        };
        let about = summary.as_ref().map(|it| self.conversation_about(it)).transpose()?;
        let agent = summary.as_ref().map_or_else(|| agent_of(session), |it| it.agent);
        let default = if summary.is_some() { Mode::Native } else { Mode::Brief };
        let main = about.as_ref().map(About::main);
        let open_calls = main.as_ref().map(|it| it.open_calls.clone()).unwrap_or_default();
        let commands = open_calls.into_iter().filter_map(|call| call.command);
        let workspace = self.home.workspace.clone();
        Ok(ResumePlan {
            session: session.clone(),
            agent,
            mode: mode.unwrap_or(default),
            drift: checkpoint.as_ref().map(|it| self.drift(it)).transpose()?.unwrap_or_default(),
            native_tokens: main.as_ref().map(|it| it.context_tokens),
            brief_tokens: budget::tokens(&self.briefing(session)?) as u64,
            loss: about.as_ref().and_then(loss),
            orphans: commands
                .map(|it| {
                    let running = running::running(&it, &workspace);
                    (it, running)
                })
                .collect(),
            conversation: summary.zip(about),
            checkpoint,
            damaged,
        })
    }

    /// The newest checkpoint whose conversation can be read, else the newest.
    pub fn last_resumable(&self, session: &Session) -> Result<Resumable> {
        let newest = self.journal.last_checkpoint(session.id)?;
        let Some(spoken) = self.journal.last_conversation(session.id)? else {
            return Ok(Resumable { checkpoint: newest, damaged: None });
        };
        let is_readable = |kept: &KeptCheckpoint| match &kept.taken.checkpoint.conversation {
            Some(summary) => self.is_tree_whole(&summary.tree),
            None => Ok(false),
        };
        if is_readable(&spoken)? {
            return Ok(Resumable { checkpoint: Some(spoken), damaged: None });
        }
        let damaged = Some(spoken.taken.checkpoint.handle);
        let filter = CheckpointFilter { session: Some(session.id), ..CheckpointFilter::default() };
        for kept in self.journal.checkpoints(&filter)?.into_iter().rev() {
            if is_readable(&kept)? {
                return Ok(Resumable { checkpoint: Some(kept), damaged });
            }
        }
        // Without any conversation, the work is told from what is known.
        let silent = |kept: &KeptCheckpoint| kept.taken.checkpoint.conversation.is_none();
        Ok(Resumable { checkpoint: newest.filter(silent), damaged })
    }

    /// What is not as it was at a checkpoint.
    pub fn drift(&self, kept: &KeptCheckpoint) -> Result<Drift> {
        let (then, now) =
            (self.git_facts(kept)?.unwrap_or_default(), self.git_now().unwrap_or_default());
        let word = |it: &Option<String>| it.clone().unwrap_or_else(|| "none".to_owned());
        let short = |it: &Option<String>| word(it).chars().take(8).collect::<String>();
        let heads = then.head.as_deref().zip(now.head.as_deref()).filter(|(then, now)| then != now);
        Ok(Drift {
            branch: (then.branch != now.branch).then(|| (word(&then.branch), word(&now.branch))),
            head: (then.head != now.head).then(|| (short(&then.head), short(&now.head))),
            n_commits_since: heads
                .and_then(|(then, now)| self.commits_since(then, now))
                .map(|commits| commits.len() as u64),
            changed: self.changed_since(&kept.taken.checkpoint.tree)?,
            environment: self.environment_drift(
                kept.taken.checkpoint.session_id,
                self.environment_of(&kept.taken.checkpoint)?.as_ref(),
            )?,
        })
    }

    /// The agent of a session that still runs.
    pub(crate) fn twin(&self, session: &Session) -> Result<Option<(AgentKind, u32)>> {
        let conversations = self.journal.conversations(session.id)?;
        let live = conversations.iter().filter(|it| !it.has_ended).find_map(|it| {
            let process =
                it.started.process.as_ref().filter(|process| running::is_running(process))?;
            Some((it.started.agent, process.pid))
        });
        Ok(live)
    }

    /// Refuses while the session's agent runs, or a command of it under supervision.
    pub fn check_alone(&self, session: &Session) -> Result<()> {
        self.check_unsupervised(session)?;
        match self.twin(session)? {
            Some((agent, pid)) => {
                Err(Error::Twin { agent: agent.title(), handle: session.handle.clone(), pid })
            }
            None => Ok(()),
        }
    }

    /// Prepares what the agent needs, and answers how to start it in `folder`.
    pub fn prepare_resume(
        &mut self,
        plan: &ResumePlan,
        folder: &Path,
        extra: &[String],
    ) -> Result<Launch> {
        let agent = agents::of(plan.agent);
        let launch = match (&plan.conversation, plan.mode) {
            (Some((summary, about)), Mode::Native) => {
                self.give_back(agent, summary, about, (folder, extra))?
            }
            _ => agent.start(extra),
        };
        let from =
            plan.checkpoint.as_ref().map(|it| format!(" from {}", it.taken.checkpoint.handle));
        let line = format!("resumed in {}{}", plan.agent.title(), from.unwrap_or_default());
        self.note(plan.session.id, Level::Info, &line)?;
        Ok(launch)
    }

    fn give_back(
        &self,
        agent: &dyn Agent,
        summary: &ConversationSummary,
        about: &About,
        (folder, extra): (&Path, &[String]),
    ) -> Result<Launch> {
        let place = self.home.restored().join(self.clock.new_id().to_string());
        self.home.make_folder(&place)?;
        let laid_out = place.join("kept");
        self.lay_out(summary, &laid_out)?;
        let kept = Kept {
            id: about.id.clone(),
            folder: laid_out.clone(),
            parts: about.parts.clone(),
            workspace: about.workspace.clone(),
        };
        let now = self.clock.now();
        let order = Order {
            home: home_folder().unwrap_or_default(),
            workspace: folder.to_string_lossy().into_owned(),
            new_id: self.clock.new_id().to_string(),
            now: now.jiff().strftime("%Y-%m-%dT%H-%M-%S").to_string(),
            scratch: place,
            extra: extra.to_vec(),
        };
        let launch = agent.restore(&kept, &order)?;
        private::remove_folder(&laid_out).map_err(Error::io(&laid_out))?;
        Ok(launch)
    }
}

/// Runs what has to come before an agent.
pub fn run_before(launch: &Launch, folder: &Path) -> Result<()> {
    Ok(process::run_before(launch, folder)?)
}

/// Becomes the agent, as part of a session. Comes back only if that fails.
pub fn start(launch: &Launch, folder: &Path, session: SessionId, says: Says) -> Error {
    let environment = [("BIV_SESSION", session.to_string())];
    match process::become_program(launch, folder, &environment, says) {
        Err(error) => error.into(),
        Ok(never) => match never {},
    }
}

/// The agent a session is gone on with when it never had one of those we know: the one most people have.
pub fn agent_of(session: &Session) -> AgentKind {
    session.agent_type.parse().unwrap_or(AgentKind::ClaudeCode)
}

/// The command by which an agent works off a prompt by itself.
pub fn headless(kind: AgentKind, prompt: &str, extra: &[String]) -> Vec<String> {
    let words = ["-p".to_owned(), prompt.to_owned()];
    let words: Vec<String> = words.into_iter().chain(extra.iter().cloned()).collect();
    agents::of(kind).start(&words).command
}

/// Is the agent there, and new enough for a conversation to come back?
pub fn check_agent(kind: AgentKind, mode: Mode) -> Result<()> {
    let agent = agents::of(kind);
    let program = agent.program();
    let Some(found) = found_version(program, version_of(program))? else {
        return Ok(());
    };
    let oldest = agent.oldest();
    if mode == Mode::Native && found < oldest {
        let words = |version: [u32; 3]| version.map(|number| number.to_string()).join(".");
        return Err(Error::OldAgent { program, found: words(found), oldest: words(oldest) });
    }
    Ok(())
}

/// The version of an agent, as far as it is known. One that is there and slow to say it can still be started.
fn found_version(
    program: &'static str,
    said: Result<Option<[u32; 3]>>,
) -> Result<Option<[u32; 3]>> {
    said.or_else(|error| match error {
        Error::Capture(bivouac_capture::Error::TooSlow { .. }) => Ok(None),
        _ => Err(Error::NoAgent { program }),
    })
}

/// What a program says its version is, if it says one.
pub(crate) fn version_of(program: &str) -> Result<Option<[u32; 3]>> {
    let asked = Program::new(program).args(["--version"]).within(Duration::from_secs(20));
    Ok(version_in(&String::from_utf8_lossy(&asked.output()?)))
}

fn version_in(text: &str) -> Option<[u32; 3]> {
    let words = text.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    words
        .filter_map(|word| {
            let mut numbers = word.split('.').map(str::parse);
            let (one, two, three) =
                (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
            Some([one, two, three])
        })
        .next()
}

/// What is missing at the end of the agent's file.
fn loss(about: &About) -> Option<String> {
    let main = about.main();
    let unwritten = about
        .unwritten
        .as_ref()
        .map(|_| "the agent's last message had not reached its file".to_owned());
    let torn = (main.torn_bytes > 0)
        .then(|| format!("its last record was torn: {} bytes were left out", main.torn_bytes));
    let bad = (main.n_bad > 0).then(|| format!("{} of its records could not be read", main.n_bad));
    torn.or(unwritten).or(bad)
}

/// Where a session's files go when it is gone on with elsewhere.
pub fn workspace_of(plan: &ResumePlan, fallback: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let own = PathBuf::from(std::ffi::OsStr::from_bytes(plan.session.workspace.as_bytes()));
    if own.is_dir() { own } else { fallback.to_owned() }
}

/// The checkpoint a plan starts from.
pub fn checkpoint_of(plan: &ResumePlan) -> Option<&Checkpoint> {
    plan.checkpoint.as_ref().map(|kept| &kept.taken.checkpoint)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use bivouac_capture::Error::{NotStarted, TooSlow};

    use super::{found_version, version_in};
    use crate::Error;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        assert_eq!(version_in("2.1.325 (Claude Code)"), Some([2, 1, 325]));
        assert_eq!(version_in("codex-cli 0.166.0\n"), Some([0, 166, 0]));
        assert_eq!(version_in("no version"), None);
    }

    #[test]
    fn only_what_is_not_there_is_said_to_be_missing() {
        let program = || "codex".to_owned();
        let slow = TooSlow { program: program(), within: Duration::from_secs(20) };
        assert_eq!(found_version("codex", Err(slow.into())).unwrap(), None);
        let source = io::Error::from(io::ErrorKind::NotFound);
        let missing = NotStarted { program: program(), source };
        let told = found_version("codex", Err(missing.into()));
        assert!(matches!(told, Err(Error::NoAgent { program: "codex" })), "{told:?}");
    }
}
