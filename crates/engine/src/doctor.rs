//! Is the chain whole, from an agent to us and back? Every link is tried the way the agent uses it: its hooks are
//! called as it calls them, its server is started as it starts it. The store they get is thrown away afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bivouac_capture::agents::install::{Folders, Trust, command};
use bivouac_capture::agents::{self, Agent};
use bivouac_capture::mcp::Server;
use bivouac_capture::process::Program;
use bivouac_capture::search_path::find_program;
use bivouac_core::agent::AgentKind;
use bivouac_core::id::SessionId;
use bivouac_core::progress::Silent;
use bivouac_core::text::count;
use bivouac_core::time::in_words;

use crate::clock::Clock;
use crate::config::Config;
use crate::error::in_one_line;
use crate::home::{Home, Wishes};
use crate::open::Need;
use crate::resume::version_of;
use crate::session::SessionDraft;
use crate::setup::{self, Part, Scope, State};
use crate::{Engine, Error, Result};

/// One link, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub name: &'static str,
    pub health: Health,
    pub fact: String,
    pub remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Good,
    Bad,
    /// It cannot be told, or is not needed.
    Unknown,
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// No agent is started, and no model is asked.
    Links,
    /// The agent itself is started once, and its model is asked one question.
    Live,
}

/// Agents are slow to start, and their models to answer.
const PATIENCE: Duration = Duration::from_secs(180);
const SOON: Duration = Duration::from_secs(20);
const SETUP: &str = "run `biv setup`";
const MISSING: &str = "not installed";

impl Link {
    fn good(name: &'static str, fact: impl Into<String>) -> Self {
        Self { name, health: Health::Good, fact: fact.into(), remedy: None }
    }

    fn bad(name: &'static str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, health: Health::Bad, fact: fact.into(), remedy: Some(remedy.into()) }
    }

    fn unknown(name: &'static str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, health: Health::Unknown, fact: fact.into(), remedy: Some(remedy.into()) }
    }

    /// The same, if what is missing may have come another way.
    fn or_in_a_package(self) -> Self {
        if self.fact != MISSING {
            return self;
        }
        let remedy = "if not, run `biv setup`";
        Self::unknown(
            self.name,
            "not in its settings; a package of ours may have brought it",
            remedy,
        )
    }

    fn failed(name: &'static str, error: &Error, otherwise: &str) -> Self {
        Self::bad(name, in_one_line(error), error.hint().unwrap_or_else(|| otherwise.to_owned()))
    }
}

/// What all agents need: a store that takes something in.
pub fn check_store(wishes: &Wishes) -> Link {
    let opened = Engine::open(wishes, Need::Read, Box::new(Silent));
    let tried = opened.and_then(|engine| {
        let place = engine.home.store.display().to_string();
        if !engine.home.journal().exists() {
            return Ok(Link::good("store", format!("{place} (made with the first checkpoint)")));
        }
        engine.check_floor()?;
        match (engine.is_writable(), &engine.home.unused_store) {
            (true, None) => Ok(Link::good("store", place)),
            (true, Some(unused)) => Ok(Link::unknown(
                "store",
                format!(
                    "{place}; the one in `{}` is not used: {}",
                    unused.store.display(),
                    unused.why
                ),
                unused.why.remedy(),
            )),
            (false, _) => Ok(Link::bad(
                "store",
                format!("{place} cannot be written"),
                "check who owns it, or upgrade `biv` if a newer one made it",
            )),
        }
    });
    tried.unwrap_or_else(|error| Link::failed("store", &error, "run `biv verify`"))
}

/// Settings of the workspace's file that are ignored, if there are any.
pub fn check_settings(home: &Home) -> Option<Link> {
    let config = match Config::load_for_command(home).ok()? {
        (config, None) => config,
        (_, Some(error)) => {
            let hint = error.hint().unwrap_or_default();
            return Some(Link::unknown("settings", error.notice(), hint));
        }
    };
    let keys: Vec<&str> = config.ignored().iter().map(|claim| claim.key.as_str()).collect();
    let file = config.workspace_file.as_ref().filter(|_| !keys.is_empty())?;
    let fact = format!("ignored in `{}`: {}", file.path.display(), keys.join(", "));
    Some(Link::unknown(
        "settings",
        fact,
        "`biv config trust` shows what they would do, and allows it",
    ))
}

/// Every link between an agent and us, in the order in which they have to hold.
pub fn check_agent(home: &Home, kind: AgentKind, depth: Depth) -> Result<Vec<Link>> {
    let agent = agents::of(kind);
    let folders = setup::folders(home, Scope::User)?;
    let mut links = vec![program(agent)];
    let heard = heard(home, agent);
    let installed = |part, name| {
        let found = installed(home, kind, part, name);
        let link = found.unwrap_or_else(|error| Link::failed(name, &error, SETUP));
        // What tells us something has hooks, and where they are not ours a package brought them.
        if heard.health == Health::Good { link.or_in_a_package() } else { link }
    };
    let hooks = installed(Part::Hooks, "hooks");
    let has_hooks = hooks.health == Health::Good;
    links.push(hooks);
    links.extend(trusted(agent, &folders).filter(|_| has_hooks));
    if has_hooks {
        links.extend(rehearse(agent, &folders));
    }
    let server = installed(Part::Server, "server");
    let has_server = server.health == Health::Good;
    links.push(if has_server { answering(&folders) } else { server });
    links.push(installed(Part::Words, "commands"));
    links.push(match depth {
        Depth::Links => heard,
        Depth::Live => live(agent),
    });
    Ok(links)
}

fn program(agent: &dyn Agent) -> Link {
    let words = |version: [u32; 3]| version.map(|number| number.to_string()).join(".");
    let name = agent.program();
    match version_of(name) {
        Err(_) if find_program(name).is_none() => {
            Link::bad("program", format!("`{name}` is not on the `PATH`"), "install it")
        }
        Err(error) => Link::failed("program", &error, "install it again"),
        Ok(None) => Link::unknown("program", "it does not say its version", "upgrade it"),
        Ok(Some(version)) if version < agent.oldest() => {
            let fact = format!("{} is older than what is known to work", words(version));
            Link::bad("program", fact, format!("upgrade it to {}", words(agent.oldest())))
        }
        Ok(Some(version)) => Link::good("program", format!("{name} {}", words(version))),
    }
}

/// Is a part of ours where the agent looks, for the user or for this project?
fn installed(home: &Home, kind: AgentKind, part: Part, name: &'static str) -> Result<Link> {
    let for_user = setup::state(home, kind, Scope::User, part)?;
    let for_project = setup::state(home, kind, Scope::Project, part)?;
    let found = [for_user, for_project].into_iter().flatten();
    let mut found: Vec<(PathBuf, State)> = found.collect();
    found.sort_by_key(|(_, state)| *state != State::Installed);
    Ok(match found.first() {
        Some((path, State::Installed)) => Link::good(name, path.display().to_string()),
        Some((path, State::Outdated)) => {
            Link::bad(name, format!("{} is not what this `biv` writes", path.display()), SETUP)
        }
        Some((_, State::Missing)) | None => Link::bad(name, MISSING, SETUP),
    })
}

/// Some agents call only what their person agreed to.
fn trusted(agent: &dyn Agent, folders: &Folders) -> Option<Link> {
    let program = agent.program();
    Some(match agent.trust(folders) {
        Trust::NotAsked => return None,
        Trust::Given => Link::good("trust", "you agreed to these hooks"),
        Trust::Off { setting } => Link::bad(
            "trust",
            format!("`{setting}` switches hooks off"),
            "take it out of the settings",
        ),
        Trust::Missing { n_missing, n_all } => Link::bad(
            "trust",
            format!("{program} passes over {n_missing} of {n_all} hooks until you agree to them"),
            format!(
                "start `{program}` once and choose `Trust all and continue`; it asks again whenever they change"
            ),
        ),
        Trust::Unknown => Link::unknown(
            "trust",
            "it cannot be told whether you agreed to these hooks",
            format!("start `{program}`: it asks if you did not; or run `biv doctor --live`"),
        ),
    })
}

/// A small world that is thrown away: a workspace, a store, and a session in it that has something to tell.
struct Stage {
    folder: PathBuf,
    session: SessionId,
    code: String,
}

impl Stage {
    fn new() -> Result<Self> {
        let id = Clock::from_env()?.new_id().simple().to_string();
        let name = format!("biv-doctor-{}-{id}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let work = folder.join("work");
        fs::create_dir_all(&work).map_err(Error::io(&work))?;
        let folder = folder.canonicalize().map_err(Error::io(&folder))?;
        // Some agents work in repositories only.
        let _there_may_be_no_git =
            Program::new("git").args(["init", "-q"]).in_folder(&folder.join("work")).output();
        let wishes = Self::wishes_of(&folder);
        let mut engine = Engine::open(&wishes, Need::Write, Box::new(Silent))?;
        // The end of an id is chance.
        let code = format!("word-{}", &id[26..]);
        let task = format!("The code word is {code}").parse()?;
        let draft = SessionDraft { task_description: Some(task), ..SessionDraft::default() };
        let session = engine.new_session(draft)?.id;
        Ok(Self { folder, session, code })
    }

    fn wishes_of(folder: &Path) -> Wishes {
        let work = folder.join("work");
        Wishes {
            folder: Some(work.clone()),
            workspace: Some(work),
            store: Some(folder.join("store")),
        }
    }

    /// A program as an agent starts it, with this store and this session.
    fn program(&self, name: &str) -> Program {
        Program::new(name)
            .as_by_agent()
            .env("BIV_STORE", self.folder.join("store"))
            .env("BIV_SESSION", self.session.to_string())
            .in_folder(&self.folder.join("work"))
    }

    /// Did a conversation reach the store?
    fn was_heard(&self) -> Result<bool> {
        let engine = Engine::open(&Self::wishes_of(&self.folder), Need::Write, Box::new(Silent))?;
        Ok(!engine.journal.conversations(self.session)?.is_empty())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _the_system_clears_it = fs::remove_dir_all(&self.folder);
    }
}

/// Calls the hooks as the agent calls them when a conversation goes on, and looks at what comes of it.
fn rehearse(agent: &dyn Agent, folders: &Folders) -> Vec<Link> {
    let tried = Stage::new().and_then(|stage| {
        let (mut slowest, mut answer) = (Duration::ZERO, Vec::new());
        for (event, input) in agent.greeting(&stage.folder.join("work")) {
            let call = ["-c", &command(folders, agent.kind(), event)];
            let begun = Instant::now();
            let hook =
                stage.program("sh").args(call).within(SOON).with_input(input.to_string().into());
            answer = hook.output()?;
            slowest = slowest.max(begun.elapsed());
        }
        Ok((stage.was_heard()?, slowest, String::from_utf8_lossy(&answer).contains(&stage.code)))
    });
    let again = "run `biv setup` again";
    match tried {
        Err(error) => vec![Link::failed("hook", &error, again)],
        Ok((false, ..)) => vec![Link::bad("hook", "it was called, and nothing came of it", again)],
        Ok((true, slowest, is_told)) => {
            let fact =
                format!("it takes in what the agent tells, within {} ms", slowest.as_millis());
            let context = match is_told {
                true => Link::good("context", "its answer tells the model where the work stands"),
                false => Link::bad("context", "its answer has no word for the model", again),
            };
            vec![Link::good("hook", fact), context]
        }
    }
}

/// Starts the server as the agent does, and asks it what it can do.
fn answering(folders: &Folders) -> Link {
    let tried = Stage::new().and_then(|stage| {
        let begun = Instant::now();
        let program = stage.program(&folders.program).args(["mcp"]);
        let tools = Server::open(program, SOON)?.tools()?;
        Ok((tools.len() as u64, begun.elapsed().as_millis()))
    });
    match tried {
        Err(error) => Link::failed("server", &error, SETUP),
        Ok((0, _)) => Link::bad("server", "it offers no tools", SETUP),
        Ok((n_tools, took)) => {
            let tools = count(n_tools, "tool");
            Link::good("server", format!("it offers {tools}, within {took} ms"))
        }
    }
}

/// When the agent was last heard of in the store itself.
fn heard(home: &Home, agent: &dyn Agent) -> Link {
    let start =
        format!("start `{}` in a project and say something; then look again", agent.program());
    let wishes = Wishes {
        store: Some(home.store.clone()),
        folder: Some(home.folder.clone()),
        ..Wishes::default()
    };
    let last = Engine::open(&wishes, Need::Read, Box::new(Silent)).and_then(|engine| {
        let last = engine.journal.last_conversation_of(agent.kind())?;
        Ok(last.map(|at| engine.clock.now().since(at)))
    });
    match last {
        Err(error) => Link::failed("heard", &error, "run `biv verify`"),
        Ok(Some(ago)) => {
            Link::good("heard", format!("its last conversation began {} ago", in_words(ago)))
        }
        Ok(None) => Link::unknown("heard", "it has not told anything yet", start),
    }
}

/// The whole chain at once: the agent is started with a question that only our words can answer.
fn live(agent: &dyn Agent) -> Link {
    const QUESTION: &str = "What is the code word that you were told with this conversation? Answer with that word alone.";
    let launch = agent.start(&["-p".to_owned(), QUESTION.to_owned()]);
    let Some((name, args)) = launch.command.split_first() else {
        return Link::unknown("live", "it cannot be started without a person", "start it yourself");
    };
    let tried = Stage::new().and_then(|stage| {
        let said = stage.program(name).args(args).within(PATIENCE).output();
        let is_heard = stage.was_heard()?;
        Ok((said.map(|it| String::from_utf8_lossy(&it).contains(&stage.code)), is_heard))
    });
    let remedy = format!("start `{}` yourself, and see what it says of hooks", agent.program());
    match tried {
        Err(error) => Link::failed("live", &error, &remedy),
        Ok((Ok(true), true)) => Link::good("live", "the model was told, and said so"),
        Ok((Ok(true), false)) => {
            Link::bad("live", "the model was told, but no hook was called", remedy)
        }
        Ok((Ok(false), true)) => Link::unknown(
            "live",
            "its hooks were called; the model did not repeat what it was told",
            remedy,
        ),
        Ok((Err(error), true)) => Link::unknown(
            "live",
            format!("its hooks were called; it ended with an error: {error}"),
            "see that it can reach its model",
        ),
        Ok((Ok(false), false)) => Link::bad("live", "it ran, and no hook was called", remedy),
        Ok((Err(error), false)) => Link::bad("live", error.to_string(), remedy),
    }
}
