//! What agents get from us: put in beside what is others', and taken out without a trace. Everything is planned
//! before the first file changes.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bivouac_capture::agents::install::{BadSettings, Content, Folders, MOST_BYTES, Place};
pub use bivouac_capture::agents::install::{Part, Scope};
pub use bivouac_capture::agents::package::files as packages;
use bivouac_capture::{agents, bounded};
use bivouac_core::agent::AgentKind;
use bivouac_core::id::ObjectId;
use bivouac_core::path::PathBytes;
use bivouac_core::redact::Redactor;
use bivouac_snapshot::private;
use serde::{Deserialize, Serialize};

use crate::home::{Home, home_folder};
use crate::{Error, Result, papers};

/// A change to one file of an agent, not made yet.
#[derive(Debug)]
pub struct Change {
    pub agent: AgentKind,
    pub path: PathBuf,
    pub before: Option<String>,
    /// `None` removes the file.
    pub after: Option<String>,
    /// Is it a file that others write to as well?
    pub is_shared: bool,
    /// The file without anything of ours, as long as there is something of ours in it.
    origin: Option<Option<String>>,
}

impl Change {
    pub fn is_needed(&self) -> bool {
        self.before != self.after
    }

    /// Is something of someone else where ours would be?
    pub fn is_left_alone(&self) -> bool {
        self.origin.is_none() && !self.is_needed()
    }

    /// What changes, line by line. Others may keep secrets in the lines around it.
    pub fn diff(&self) -> String {
        let text = |side: &Option<String>| side.clone().unwrap_or_default();
        let name = |side: &Option<String>| match side {
            Some(_) => self.path.display().to_string(),
            None => "/dev/null".to_owned(),
        };
        let (before, after) = (text(&self.before), text(&self.after));
        let diff = similar::TextDiff::from_lines(&before, &after);
        let mut unified = diff.unified_diff();
        let told = unified.context_radius(3).header(&name(&self.before), &name(&self.after));
        Redactor::default().redact(&told.to_string())
    }
}

/// How a part of ours is in an agent's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Installed,
    /// There is something of ours that is not what this version would write.
    Outdated,
    Missing,
}

/// What the file was before we changed it.
#[derive(Debug, Serialize, Deserialize)]
struct Memory {
    path: PathBytes,
    before: Option<String>,
    /// The hash of what we wrote.
    after: ObjectId,
    /// Folders that were not there before.
    #[serde(default)]
    made: Vec<PathBytes>,
}

/// A change for every file these parts go to, needed or not; none where the agent knows nothing of this scope.
/// A file of someone else where ours would be stays.
pub fn plan_install(
    home: &Home,
    agent: AgentKind,
    scope: Scope,
    parts: &[Part],
) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for place in places(home, agent, scope, parts)? {
        let before = read(&place.path)?;
        let text = before.as_deref().unwrap_or_default();
        let is_taken = before.is_some() && place.is_taken(text);
        let (after, origin) = match is_taken {
            true => (before.clone(), None),
            false => {
                let after = place.with(text, parts).map_err(bad(&place.path))?;
                (Some(after), Some(origin(home, &place, before.as_deref())?))
            }
        };
        changes.push(change(agent, place, before, after, origin));
    }
    Ok(changes)
}

/// Takes these parts out. If nobody changed a file since, it is again what it was, to the byte.
pub fn plan_remove(
    home: &Home,
    agent: AgentKind,
    scope: Scope,
    parts: &[Part],
) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for place in places(home, agent, scope, parts)? {
        let Some(text) = read(&place.path)? else {
            continue;
        };
        let found = place.found(&text).map_err(bad(&place.path))?;
        if !found.iter().any(|part| parts.contains(part)) {
            continue;
        }
        let origin = origin(home, &place, Some(&text))?;
        let (after, origin) = match found.iter().all(|part| parts.contains(part)) {
            true => (origin, None),
            false => (place.without(&text, parts).map_err(bad(&place.path))?, Some(origin)),
        };
        changes.push(change(agent, place, Some(text), after, origin));
    }
    Ok(changes)
}

/// Where a part of ours is or would be, and how it is.
pub fn state(
    home: &Home,
    agent: AgentKind,
    scope: Scope,
    part: Part,
) -> Result<Option<(PathBuf, State)>> {
    let places = places(home, agent, scope, &[part])?;
    let mut is_found = false;
    for place in &places {
        let text = read(&place.path)?;
        let found = text.map(|text| place.found(&text)).transpose().map_err(bad(&place.path))?;
        is_found |= found.is_some_and(|found| found.contains(&part));
    }
    let changes = plan_install(home, agent, scope, &[part])?;
    let state = match (is_found, changes.iter().any(Change::is_needed)) {
        (_, false) => State::Installed,
        (true, true) => State::Outdated,
        (false, true) => State::Missing,
    };
    Ok(places.into_iter().next().map(|place| (place.path, state)))
}

/// Makes all changes, or none. What was there before the first of ours is remembered, until they are removed.
/// Answers where changes of the person's own to files of ours were kept.
pub fn apply(home: &Home, changes: &[Change]) -> Result<Vec<PathBuf>> {
    for change in changes {
        check_writable(&change.path)?;
    }
    let memories: Vec<_> = changes.iter().map(|change| recall(home, &change.path)).collect();
    let missing: Vec<PathBuf> = changes.iter().flat_map(|it| missing_above(&it.path)).collect();
    let mut kept = Vec::new();
    for (change, memory) in changes.iter().zip(&memories) {
        kept.extend(keep_edited(change, memory.as_ref())?);
    }
    for (n_done, change) in changes.iter().enumerate() {
        if let Err(error) = make(home, change, memories[n_done].as_ref()) {
            for (done, memory) in changes.iter().zip(&memories).take(n_done) {
                let _as_far_as_it_can_be = put(&done.path, done.before.as_deref());
                let _as_well = keep(home, &done.path, memory.as_ref());
            }
            let _as_well = keep(home, &change.path, memories[n_done].as_ref());
            remove_empty(missing);
            return Err(error);
        }
    }
    let gone = changes.iter().zip(memories).filter(|(change, _)| change.origin.is_none());
    let made = gone.filter_map(|(_, memory)| memory).flat_map(|memory| memory.made);
    remove_empty(made.map(|it| OsStr::from_bytes(it.as_bytes()).into()).collect());
    Ok(kept)
}

/// What nobody may write is not to be changed, even where its folder would let us.
fn check_writable(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(meta) if meta.permissions().mode() & 0o222 == 0 => {
            Err(Error::io(path)(io::ErrorKind::PermissionDenied.into()))
        }
        _ => Ok(()),
    }
}

/// A file of ours that somebody changed is kept beside before it changes or goes.
fn keep_edited(change: &Change, memory: Option<&Memory>) -> Result<Option<PathBuf>> {
    let (Some(before), Some(memory)) = (&change.before, memory) else {
        return Ok(None);
    };
    if change.is_shared || memory.after == ObjectId::of(before.as_bytes()) {
        return Ok(None);
    }
    let name = change.path.file_name().unwrap_or_default().to_string_lossy();
    let beside = papers::free(&change.path.with_file_name(format!("{name}.kept")));
    write(&beside, before)?;
    Ok(Some(beside))
}

fn make(home: &Home, change: &Change, earlier: Option<&Memory>) -> Result<()> {
    if read(&change.path)? != change.before {
        return Err(Error::SettingsMoved { path: change.path.clone() });
    }
    let (Some(origin), Some(after)) = (&change.origin, &change.after) else {
        put(&change.path, change.after.as_deref())?;
        return keep(home, &change.path, None);
    };
    let mut made = earlier.map(|memory| memory.made.clone()).unwrap_or_default();
    made.extend(missing_above(&change.path).iter().map(path_bytes));
    let (path, after_id) = (path_bytes(&change.path), ObjectId::of(after.as_bytes()));
    let memory = Memory { path, before: origin.clone(), after: after_id, made };
    keep(home, &change.path, Some(&memory))?;
    put(&change.path, Some(after))
}

fn path_bytes(path: impl AsRef<Path>) -> PathBytes {
    PathBytes::new(path.as_ref().as_os_str().as_bytes())
}

/// The folders that have to be made for it.
fn missing_above(path: &Path) -> Vec<PathBuf> {
    path.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Path::to_owned).collect()
}

/// The deepest first. What others put something into stays.
fn remove_empty(mut folders: Vec<PathBuf>) {
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
    for folder in folders {
        let _is_in_use = fs::remove_dir(folder);
    }
}

fn places(home: &Home, agent: AgentKind, scope: Scope, parts: &[Part]) -> Result<Vec<Place>> {
    let places = agents::of(agent).places(scope, &folders(home, scope)?).into_iter();
    let places: Vec<Place> = places.filter(|place| place.has(parts)).collect();
    // The user's own settings may be links. Those of a project came with it, and may lead anywhere.
    let is_link = |place: &&Place| {
        let inside = place.path.ancestors().take_while(|it| *it != home.workspace);
        scope == Scope::Project && inside.into_iter().any(Path::is_symlink)
    };
    match places.iter().find(is_link) {
        Some(place) => Err(Error::ProjectLink { path: place.path.clone() }),
        None => Ok(places),
    }
}

/// Where things are, and how agents are told to call us.
pub(crate) fn folders(home: &Home, scope: Scope) -> Result<Folders> {
    let own = std::env::current_exe().map_err(Error::io("biv"))?;
    // What a project shares must work on other machines, too.
    let program = match scope {
        Scope::Project => "biv".to_owned(),
        // Settings are text. A path that is none is found by its name.
        Scope::User => own.to_str().unwrap_or("biv").to_owned(),
    };
    let user = home_folder().ok_or(Error::NoHome)?;
    Ok(Folders { home: user, workspace: home.workspace.clone(), program })
}

fn change(
    agent: AgentKind,
    place: Place,
    before: Option<String>,
    after: Option<String>,
    origin: Option<Option<String>>,
) -> Change {
    let is_shared = !matches!(place.content, Content::Own { .. });
    Change { agent, path: place.path, before, after, is_shared, origin }
}

/// The file without anything of ours: as it was, if nobody changed it since.
fn origin(home: &Home, place: &Place, text: Option<&str>) -> Result<Option<String>> {
    let Some(text) = text else {
        return Ok(None);
    };
    match recall(home, &place.path) {
        Some(memory) if memory.after == ObjectId::of(text.as_bytes()) => Ok(memory.before),
        _ => place.without(text, &Part::ALL).map_err(bad(&place.path)),
    }
}

fn bad(path: &Path) -> impl FnOnce(BadSettings) -> Error {
    let path = path.to_owned();
    move |source| Error::Settings { path, source }
}

fn read(path: &Path) -> Result<Option<String>> {
    match bounded::read_text(path, MOST_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path)(error)),
    }
}

fn put(path: &Path, text: Option<&str>) -> Result<()> {
    match text {
        Some(text) => write(path, text),
        None => match fs::remove_file(behind_links(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(path)(error)),
            _ => Ok(()),
        },
    }
}

/// A link stays a link.
fn write(path: &Path, text: &str) -> Result<()> {
    papers::Place::at(&behind_links(path))?.write(text.as_bytes())
}

/// Where a link leads, also where nothing is there yet.
fn behind_links(path: &Path) -> PathBuf {
    const MOST: usize = 16;
    let mut path = path.to_owned();
    for _ in 0..MOST {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => break,
        }
    }
    path
}

fn memory_path(home: &Home, path: &Path) -> PathBuf {
    let key: String =
        ObjectId::of(path.as_os_str().as_encoded_bytes()).to_string().chars().take(16).collect();
    home.hooks().join(format!("{key}.json"))
}

fn recall(home: &Home, path: &Path) -> Option<Memory> {
    serde_json::from_slice(&private::read(&memory_path(home, path)).ok()?).ok()
}

/// Remembers this of a file, or that there is nothing to remember.
fn keep(home: &Home, file: &Path, memory: Option<&Memory>) -> Result<()> {
    let (folder, path) = (home.hooks(), memory_path(home, file));
    let Some(memory) = memory else {
        return match private::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(&path)(error)),
            _ => Ok(()),
        };
    };
    home.make_folder(&folder)?;
    papers::write_private(&path, &crate::save::to_json(memory))
}
