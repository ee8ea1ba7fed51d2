//! What agents tell their hooks: understood, put on record, answered, and saved where that is due. Nothing
//! in here may break or hold up the agent.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bivouac_capture::agents::{self, Hears, Input};
use bivouac_capture::process::Program;
use bivouac_capture::running;
use bivouac_core::agent::{AgentKind, ConversationStarted, ProcessId, Source};
use bivouac_core::briefing;
use bivouac_core::checkpoint::Trigger;
use bivouac_core::event::{Event, Level, Noted};
use bivouac_core::id::SessionId;
use bivouac_core::observation::{self, Happening, Observation, Response, Tell, is_own_command};
use bivouac_core::progress::Silent;
use bivouac_core::session::{Session, Status};
use bivouac_core::text::Note;
use bivouac_core::work::{Noun, given_up, is_list};
use bivouac_snapshot::private;
use uuid::Uuid;

use crate::config::Config;
use crate::converse::Awaited;
use crate::home::{Home, Wishes};
use crate::look::Thoroughness;
use crate::open::Need;
use crate::save::SaveRequest;
use crate::session::SessionDraft;
use crate::{Engine, Error, Result};

pub use bivouac_capture::process::{HOOK_PART, WITHIN};
pub use uuid::Uuid as HookId;

/// One call of a hook.
#[derive(Clone, Debug)]
pub struct Hook {
    /// What it tells is recorded under ids that follow from this one: once, on whichever way it comes.
    pub id: Uuid,
    pub agent: AgentKind,
    pub event: String,
    pub input: String,
}

/// The names of so many changed files are kept with a tool's use.
const MANY_FILES: usize = 50;
/// So many saves in a row that fail are told to the person, and to the model.
pub const MANY_FAILURES: u64 = 5;
/// A scan that remembers more than this is too long for a hook; a process of its own does it.
const LONG_SCAN_BYTES: u64 = 6 << 20;

impl Hook {
    pub fn new(agent: AgentKind, event: String, input: String) -> Self {
        Self { id: Uuid::now_v7(), agent, event, input }
    }

    pub fn observation(&self) -> Option<Observation> {
        let input = agents::parse(self.input.as_bytes()).ok()?;
        agents::of(self.agent).observe(&self.event, Input::new(&input))
    }

    /// Where it happened. What an agent says is text: a folder whose name is not UTF-8 comes with marks in place of
    /// its bytes, which name nothing. Agents call their hooks in that folder.
    pub(crate) fn wishes(&self, wishes: &Wishes, observation: &Observation) -> Wishes {
        let said =
            observation.cwd.as_ref().filter(|cwd| !cwd.contains(char::REPLACEMENT_CHARACTER));
        let folder = said.map(PathBuf::from);
        Wishes { folder: folder.or_else(|| wishes.folder.clone()), ..wishes.clone() }
    }
}

/// Does all that follows from a hook's call. Answers what the hook has to print. `on_record` is called as
/// soon as nothing can be lost any more.
pub fn run(hook: &Hook, wishes: &Wishes, on_record: &dyn Fn()) -> Result<String> {
    let Some(observation) = hook.observation() else {
        return Ok(String::new());
    };
    let wishes = hook.wishes(wishes, &observation);
    let home = Home::find(&wishes)?;
    home.check_workspace()?;
    let (config, _told_by_the_engine) = Config::load_or_fall_back(&home);
    let response = observation::respond(&observation, &config.risks);
    let is_start = matches!(observation.happening, Happening::Started(_));
    if response.events.is_empty() && response.save.is_none() && !is_start {
        return Ok(String::new());
    }
    let mut engine = Engine::open(&wishes, Need::Record, Box::new(Silent))?;
    let words = engine.observe(hook.id, &observation, response, on_record)?;
    Ok(words.map(|words| agents::of(hook.agent).answer(&hook.event, &words)).unwrap_or_default())
}

/// What stands in the way of a note may be gone in a moment.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(200)];

/// How far a hook came before its time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    Nothing,
    /// All it was told is on record; what was to be saved is not.
    Record,
    /// The process that took it in ended while it did.
    Unknown,
}

/// A hook that another process of ours takes in.
#[derive(Clone, Copy, Debug)]
pub struct Apart<'a> {
    pub agent: &'a str,
    pub event: &'a str,
    /// What it is told to do, in [`HOOK_PART`].
    pub part: &'a str,
    pub within: Duration,
}

/// Runs such a process to its end, and answers what it prints.
pub fn run_apart(apart: &Apart<'_>, input: &[u8], wishes: &Wishes) -> Result<Vec<u8>> {
    let mut words: Vec<OsString> = vec!["hook".into(), apart.agent.into(), apart.event.into()];
    let places =
        [("-C", &wishes.folder), ("--root", &wishes.workspace), ("--store", &wishes.store)];
    for (option, place) in places {
        words.extend(place.iter().flat_map(|place| [option.into(), place.clone().into()]));
    }
    let program = Program::ours()?.args(words).env(HOOK_PART, apart.part);
    Ok(program.within(apart.within).output_alone(input)?)
}

/// Leaves a note without words, for the next command to tell of. The least that can be done.
pub fn leave_torn_note(id: Uuid, wishes: &Wishes) {
    if let Ok(home) = Home::find(wishes) {
        crate::spool::leave_torn(&home, id);
    }
}

/// Keeps a hook's input for the next command. Where there is no workspace, there is nothing to keep.
pub fn put_aside(hook: &Hook, reached: Reached, wishes: &Wishes) -> Result<()> {
    let Some(observation) = hook.observation() else {
        return Ok(());
    };
    let Ok(home) = Home::find(&hook.wishes(wishes, &observation)) else {
        return Ok(());
    };
    if home.check_workspace().is_err() {
        return Ok(());
    }
    // The note says that nothing was saved, so the mark of our own save must not say it again.
    crate::saving::give_up(&home);
    // Under one name, however often: what came through without a word must not be there twice.
    let put_aside = || crate::spool::put_aside(&home, hook, reached);
    let again = |pause: Duration| {
        std::thread::sleep(pause);
        put_aside()
    };
    put_aside().or_else(|_| again(PAUSES[0])).or_else(|_| again(PAUSES[1]))
}

impl Engine {
    fn observe(
        &mut self,
        id: Uuid,
        observation: &Observation,
        mut response: Response,
        on_record: &dyn Fn(),
    ) -> Result<Option<String>> {
        let Some(session) = self.session_of(observation)? else {
            // A conversation without a word yet is no work to remember.
            on_record();
            let hears = agents::of(observation.agent).hears_at() == Hears::AtStart;
            let says = response.tell != Tell::Nothing && hears;
            return if says { self.notice(None) } else { Ok(None) };
        };
        let words = self.words(observation, &session, response.tell);
        let warning = match observation.happening {
            Happening::Prompted { .. } => self.warning(session.id),
            _ => Ok(None),
        };
        let asked = match observation.happening {
            Happening::Started(_) => self.check_approvals_soon(&session),
            _ => Ok(()),
        };
        let looked = if response.look { self.look_for_changes(&session) } else { Ok(Vec::new()) };
        if let (Some(Event::ToolUsed(used)), Ok(changed)) = (response.events.first_mut(), &looked) {
            used.n_more_files = changed.len().saturating_sub(MANY_FILES) as u64;
            used.files.extend(changed.iter().take(MANY_FILES).cloned());
        }
        let process = running::agent_process();
        let beginning = self.beginning(observation, session.id, process)?;
        if is_list(&response.events) {
            let known = self.journal.things(session.id, Noun::Task)?;
            response.events.extend(given_up(&known, &response.events));
        }
        self.record_told(session.id, beginning, response.events, id)?;
        on_record();
        self.note_bad_config(session.id)?;
        if let Some(trigger) = response.save {
            // What goes wrong with it is on record.
            let _its_own_event = self.save_for(&session, trigger, observation);
        }
        let failures = [("look", looked.err()), ("ask for replies", asked.err())];
        for (what, error) in failures.into_iter().filter_map(|(what, it)| Some((what, it?))) {
            self.note_failure(session.id, what, &error)?;
        }
        let words = words.or_else(|error| {
            self.note_failure(session.id, "brief the model", &error).map(|()| None)
        })?;
        let said: Vec<String> = words.into_iter().chain(warning?).collect();
        Ok((!said.is_empty()).then(|| said.join("\n\n")))
    }

    /// What the model hears when one save after the other failed, once for each time it got worse.
    fn warning(&self, session: SessionId) -> Result<Option<String>> {
        let failures = self.journal.failures(session)?;
        let Some(error) = failures.last_error.filter(|_| failures.number >= MANY_FAILURES) else {
            return Ok(None);
        };
        let last_prompt = self.journal.last_prompt(session)?.unwrap_or(0);
        let is_news = failures.session_sequence > last_prompt;
        Ok(is_news.then(|| briefing::warning(failures.number, &error, self.redactor())))
    }

    /// Writes into the session's log that the configuration could not be used, once until something else goes
    /// wrong.
    pub(crate) fn note_bad_config(&mut self, session: SessionId) -> Result<()> {
        let Some(error) = &self.bad_config else {
            return Ok(());
        };
        let why = crate::error::in_one_line(error);
        let line = Note::cut(&format!("the configuration was not used: {why}"));
        let last = self.journal.troubles(&self.home.workspace_path(), 1)?.pop();
        if last.is_some_and(|last| last.message == line.as_str()) {
            return Ok(());
        }
        self.record(session, vec![Event::Noted(Noted { level: Level::Error, message: line })])?;
        Ok(())
    }

    fn note_failure(&mut self, session: SessionId, what: &str, error: &Error) -> Result<()> {
        let why = crate::error::in_one_line(error);
        self.note(session, Level::Error, &format!("a hook could not {what}: {why}"))
    }

    /// The session an observation belongs to; a new one for work that has just begun.
    pub(crate) fn session_of(&mut self, observation: &Observation) -> Result<Option<Session>> {
        let from_env = std::env::var("BIV_SESSION").ok().filter(|word| !word.is_empty());
        if let Some(word) = from_env
            && let Ok(session) = self.session(Some(&word))
        {
            return self.reopened(session, observation).map(Some);
        }
        if let Some(known) =
            self.journal.conversation(observation.agent, &observation.conversation)?
            && let Some(session) = self.journal.session(known.session_id)?
        {
            return self.reopened(session, observation).map(Some);
        }
        // The same process goes on with the same work, in a conversation of another name.
        let is_continued = matches!(
            observation.happening,
            Happening::Started(Source::Clear | Source::Compact | Source::Fork | Source::Resume)
        );
        if is_continued
            && let Some(process) = running::agent_process()
            && let Some(before) = self.journal.conversations_of(&process)?.into_iter().next()
            && before.started.agent == observation.agent
            && let Some(session) = self.journal.session(before.session_id)?
        {
            return self.reopened(session, observation).map(Some);
        }
        if is_continued || !is_work(&observation.happening) {
            return Ok(None);
        }
        let waiting =
            self.journal.session_in_waiting(&self.home.workspace_path(), observation.agent)?;
        if let Some(session) = waiting {
            return Ok(self.journal.session(session)?);
        }
        let task = match &observation.happening {
            // What is asked of us says nothing about the work.
            Happening::Prompted { prompt } if !is_own_command(prompt) => Some(Note::cut(prompt)),
            _ => None,
        };
        let agent_type = Some(observation.agent.to_string());
        let draft = SessionDraft { agent_type, task_description: task, ..SessionDraft::default() };
        let moved_from = self.moved_from();
        let session = self.new_session(draft)?;
        if let Some(from) = moved_from {
            self.note_move(session.id, &from)?;
        }
        Ok(Some(session))
    }

    /// Work that goes on is active again.
    fn reopened(&mut self, session: Session, observation: &Observation) -> Result<Session> {
        match session.status != Status::Active && is_work(&observation.happening) {
            true => self.change_status(&session, Status::Active, None),
            false => Ok(session),
        }
    }

    /// The fact that a conversation began, or goes on in another way, where this is news. `process` is the
    /// agent's, where it is known.
    pub(crate) fn beginning(
        &self,
        observation: &Observation,
        session: SessionId,
        process: Option<ProcessId>,
    ) -> Result<Vec<Event>> {
        let known = self.journal.conversation(observation.agent, &observation.conversation)?;
        let known = known.filter(|it| it.session_id == session);
        let source = match (&observation.happening, &known) {
            (Happening::Started(source), _) => *source,
            (_, None) => Source::Seen,
            (_, Some(known)) => {
                return Ok(moved(observation, &known.started, process).into_iter().collect());
            }
        };
        let before = known.map(|it| it.started);
        let started = ConversationStarted {
            agent: observation.agent,
            conversation: observation.conversation.clone(),
            source,
            // On resume, an agent may first name a file that it does not write to.
            transcript: observation
                .transcript
                .clone()
                .or_else(|| before.as_ref().and_then(|it| it.transcript.clone())),
            model: observation.model.clone().or_else(|| before.and_then(|it| it.model)),
            cwd: observation.cwd.clone().unwrap_or_default(),
            process,
        };
        Ok(vec![Event::ConversationStarted(Box::new(started))])
    }

    /// What the model is to hear now. Some agents only listen when they are asked something.
    fn words(
        &self,
        observation: &Observation,
        session: &Session,
        tell: Tell,
    ) -> Result<Option<String>> {
        let agent = agents::of(observation.agent);
        let tell = match (agent.hears_at(), &observation.happening) {
            (Hears::AtPrompt, Happening::Prompted { .. }) => {
                let known =
                    self.journal.conversation(observation.agent, &observation.conversation)?;
                match known {
                    Some(known) => known.untold.map_or(Tell::Nothing, observation::tell),
                    None => Tell::Notice,
                }
            }
            (Hears::AtPrompt, _) => Tell::Nothing,
            (Hears::AtStart, _) => tell,
        };
        // A new conversation that someone started for this session begins where the last one was.
        let is_joined = std::env::var_os("BIV_SESSION").is_some_and(|word| !word.is_empty());
        match tell {
            Tell::Nothing => Ok(None),
            Tell::Notice if is_joined => self.briefing(session).map(Some),
            Tell::Notice => self.notice(Some(session.id)),
            Tell::Briefing => self.briefing(session).map(Some),
        }
    }

    /// Files that are not as in the last checkpoint.
    fn look_for_changes(&self, session: &Session) -> Result<Vec<String>> {
        if self.is_long_scan(Thoroughness::AsWatched) {
            return Ok(Vec::new());
        }
        let Some(last) = self.journal.last_checkpoint(session.id)? else {
            return Ok(Vec::new());
        };
        self.quickly_changed_since(&last.taken.checkpoint.tree)
    }

    /// Would an agent have to wait long for a scan?
    fn is_long_scan(&self, thoroughness: Thoroughness) -> bool {
        let cache = private::facts(&self.home.stat_cache());
        let is_helped =
            || thoroughness == Thoroughness::AsWatched && crate::watch::is_watched(&self.home);
        cache.map_or(true, |it| it.size_bytes > LONG_SCAN_BYTES) && !is_helped()
    }

    /// Saves now, or has it done by a process of its own where that would hold the agent up. Before a risk
    /// the agent has to wait.
    fn save_for(
        &mut self,
        session: &Session,
        trigger: Trigger,
        observation: &Observation,
    ) -> Result<()> {
        let must_wait = trigger == Trigger::Risk;
        let is_long = self.is_long_scan(Thoroughness::of(trigger));
        if is_long && !must_wait && std::env::var_os("BIV_HOOK_WAITS").is_none() {
            let started = self.save_detached(session, trigger);
            if let Err(error) = &started {
                self.record_failure(session.id, trigger, error);
            }
            return started;
        }
        let mut request = SaveRequest::new(trigger);
        request.awaited = match &observation.happening {
            Happening::TurnEnded { message: Some(words) } => Awaited::Words(words.clone()),
            Happening::TurnEnded { message: None } | Happening::Ended { .. } => Awaited::TurnEnd,
            _ => Awaited::Nothing,
        };
        self.save(Some(&session.id.to_string()), request)?;
        Ok(())
    }

    fn save_detached(&self, session: &Session, trigger: Trigger) -> Result<()> {
        self.start_own([
            "checkpoint".into(),
            "create".into(),
            session.id.to_string().into(),
            "--trigger".into(),
            trigger.as_str().to_lowercase().into(),
        ])
    }

    /// Starts a command of ours for this workspace and store, and lets it go.
    pub(crate) fn start_own(&self, words: impl IntoIterator<Item = OsString>) -> Result<()> {
        Ok(self.home.own_command(words)?.start_detached()?)
    }
}

/// An agent may go on in another file or as another process, or only now say where its file is.
fn moved(
    observation: &Observation,
    before: &ConversationStarted,
    process: Option<ProcessId>,
) -> Option<Event> {
    let path = observation.transcript.as_ref().filter(|_| observation.subagent.is_none());
    let transcript = path.or(before.transcript.as_ref()).cloned();
    // One that ran before the old one cannot have taken its place: it takes in the children of the dead.
    let is_later =
        |new: &ProcessId, old: &ProcessId| new.boot != old.boot || new.started >= old.started;
    let process =
        process.filter(|new| before.process.as_ref().is_none_or(|old| is_later(new, old)));
    let process = process.or_else(|| before.process.clone());
    if transcript == before.transcript && process == before.process {
        return None;
    }
    let started =
        ConversationStarted { transcript, process, source: Source::Seen, ..before.clone() };
    Some(Event::ConversationStarted(Box::new(started)))
}

/// Is something being done that is worth a session?
fn is_work(happening: &Happening) -> bool {
    matches!(
        happening,
        Happening::Prompted { .. }
            | Happening::ToolStarting(_)
            | Happening::ToolDone { .. }
            | Happening::TurnEnded { .. }
            | Happening::TurnFailed { .. }
            | Happening::TaskChanged(_)
    )
}
