//! Our hooks in the settings of agents: put in beside those of others, and taken out without a trace.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bivouac_capture::agents;
pub use bivouac_capture::agents::install::Scope;
use bivouac_capture::agents::install::{self, Folders, Place};
use bivouac_core::agent::AgentKind;
use bivouac_core::id::ObjectId;
use serde::{Deserialize, Serialize};

use crate::home::{Home, home_folder};
use crate::{Error, Result};

/// A change to one agent's settings, not made yet.
#[derive(Debug)]
pub struct Change {
    pub agent: AgentKind,
    pub scope: Scope,
    pub path: PathBuf,
    pub before: Option<String>,
    /// `None` removes the file.
    pub after: Option<String>,
    pub is_removal: bool,
}

impl Change {
    pub fn is_needed(&self) -> bool {
        self.before != self.after
    }
}

/// How an agent's hooks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Installed,
    /// There are hooks of ours that are not what this version would write.
    Outdated,
    Missing,
}

/// What the file was before we changed it.
#[derive(Debug, Serialize, Deserialize)]
struct Memory {
    path: PathBuf,
    before: Option<String>,
    /// The hash of what we wrote.
    after: ObjectId,
}

/// Agents whose program or folder is on this machine.
pub fn present() -> Vec<AgentKind> {
    let home = home_folder().unwrap_or_default();
    let folders = |agent: AgentKind| match agent {
        AgentKind::ClaudeCode => home.join(".claude"),
        AgentKind::Codex => home.join(".codex"),
        AgentKind::Gemini => home.join(".gemini"),
        AgentKind::Opencode => home.join(".config/opencode"),
        AgentKind::Copilot => home.join(".copilot"),
    };
    let is_on_path = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| {
            fs::metadata(folder.join(program))
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
    };
    let is_there =
        |agent: &AgentKind| folders(*agent).is_dir() || is_on_path(agents::of(*agent).program());
    AgentKind::ALL.into_iter().filter(is_there).collect()
}

/// `None` where the agent knows no hooks of this scope.
pub fn plan_install(home: &Home, agent: AgentKind, scope: Scope) -> Result<Option<Change>> {
    let place = agents::of(agent).place(scope, &folders(home, scope)?);
    let (path, after) = match &place {
        Place::Nowhere => return Ok(None),
        Place::Own { path, text } => (path, text.clone()),
        Place::Settings { path, hooks } => {
            let text = read(path)?.unwrap_or_default();
            let after = install::add(&text, hooks, agent).map_err(bad(path))?;
            (path, after)
        }
    };
    let before = read(path)?;
    let path = path.clone();
    Ok(Some(Change { agent, scope, path, before, after: Some(after), is_removal: false }))
}

/// Takes ours out. If nobody changed the file since, it is again what it was, to the byte.
pub fn plan_remove(home: &Home, agent: AgentKind, scope: Scope) -> Result<Option<Change>> {
    let place = agents::of(agent).place(scope, &folders(home, scope)?);
    let Some(path) = place.path().cloned() else {
        return Ok(None);
    };
    let Some(text) = read(&path)? else {
        return Ok(None);
    };
    let memory = recall(home, &path).filter(|memory| memory.after == ObjectId::of(text.as_bytes()));
    let after = match (memory, &place) {
        (Some(memory), _) => memory.before,
        (None, Place::Own { .. }) => None,
        (None, _) => match install::remove(&text, agent).map_err(bad(&path))? {
            Some(without) => Some(without),
            None => return Ok(None),
        },
    };
    Ok(Some(Change { agent, scope, path, before: Some(text), after, is_removal: true }))
}

pub fn state(home: &Home, agent: AgentKind, scope: Scope) -> Result<Option<(PathBuf, State)>> {
    let place = agents::of(agent).place(scope, &folders(home, scope)?);
    let Some(path) = place.path().cloned() else {
        return Ok(None);
    };
    let text = read(&path)?.unwrap_or_default();
    let has_ours = match &place {
        Place::Settings { .. } => !install::events(&text, agent).map_err(bad(&path))?.is_empty(),
        Place::Own { .. } | Place::Nowhere => !text.is_empty(),
    };
    let is_current = plan_install(home, agent, scope)?.is_some_and(|change| !change.is_needed());
    let state = match (has_ours, is_current) {
        (_, true) => State::Installed,
        (true, false) => State::Outdated,
        (false, false) => State::Missing,
    };
    Ok(Some((path, state)))
}

/// Carries a change out. What was there before the first of ours is remembered, until they are removed.
pub fn apply(home: &Home, change: &Change) -> Result<()> {
    if let (Some(after), false) = (&change.after, change.is_removal) {
        let is_ours = |memory: &Memory| {
            change.before.as_ref().is_some_and(|it| memory.after == ObjectId::of(it.as_bytes()))
        };
        let earlier = recall(home, &change.path).filter(is_ours);
        let before = earlier.map_or_else(|| change.before.clone(), |memory| memory.before);
        let after = ObjectId::of(after.as_bytes());
        remember(home, &Memory { path: change.path.clone(), before, after })?;
    }
    match &change.after {
        Some(after) => write(&change.path, after)?,
        None => fs::remove_file(&change.path).map_err(Error::io(&change.path))?,
    }
    if change.is_removal {
        let _never_written = fs::remove_file(memory_path(home, &change.path));
    }
    Ok(())
}

fn folders(home: &Home, scope: Scope) -> Result<Folders> {
    let own = std::env::current_exe().map_err(Error::io("biv"))?;
    let quoted = format!("'{}'", own.to_string_lossy().replace('\'', "'\\''"));
    // What a project shares must work on other machines, too.
    let binary = if scope == Scope::Project { "biv".to_owned() } else { quoted };
    Ok(Folders {
        home: home_folder().ok_or(Error::NoHome)?,
        workspace: home.workspace.clone(),
        binary,
    })
}

fn bad(path: &Path) -> impl FnOnce(install::BadSettings) -> Error {
    let path = path.to_owned();
    move |source| Error::Settings { path, source }
}

fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path)(error)),
    }
}

/// Through a new file beside it, with the permissions of the old one. A link stays a link.
fn write(path: &Path, text: &str) -> Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
    }
    let part = target.with_extension("biv-part");
    let mode = fs::metadata(&target).map_or(0o644, |meta| meta.permissions().mode());
    let written = fs::write(&part, text)
        .and_then(|()| fs::set_permissions(&part, fs::Permissions::from_mode(mode)))
        .and_then(|()| fs::File::open(&part)?.sync_all())
        .and_then(|()| fs::rename(&part, &target));
    written.map_err(Error::io(path))
}

fn memory_path(home: &Home, path: &Path) -> PathBuf {
    let key: String =
        ObjectId::of(path.as_os_str().as_encoded_bytes()).to_string().chars().take(16).collect();
    home.hooks().join(format!("{key}.json"))
}

fn recall(home: &Home, path: &Path) -> Option<Memory> {
    serde_json::from_slice(&fs::read(memory_path(home, path)).ok()?).ok()
}

fn remember(home: &Home, memory: &Memory) -> Result<()> {
    let folder = home.hooks();
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(Error::io(&folder))?;
    let path = memory_path(home, &memory.path);
    fs::write(&path, crate::save::to_json(memory)).map_err(Error::io(&path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(Error::io(path))
}
