//! Progress as files that people and other tools keep, and those files taken in again.

use std::path::{Path, PathBuf};

use bivouac_capture::agents::claude_code::memory;
use bivouac_capture::pipeline;
use bivouac_core::context::{context, without_issue};
use bivouac_core::event::Level;
use bivouac_core::export::{
    KeyFile, Parsed, Sheet, checkpoint_md, handoff, import, session_checkpoint,
};
use bivouac_core::id::ObjectId;
use bivouac_core::session::Session;
use bivouac_core::text::{Name, count};
use bivouac_core::time::Timestamp;
use bivouac_core::work::{Item, Work};

use crate::home::home_folder;
use crate::papers::{self, Papers, Place};
use crate::progress::{Said, Saying};
use crate::{Engine, Error, Result};

/// A document that progress is written into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// A part of `HANDOFF.md`.
    Handoff,
    /// `docs/SESSION-CHECKPOINT.md`.
    SessionCheckpoint,
    /// A part of Claude Code's `MEMORY.md`.
    Memory,
    /// A file of its own for one moment.
    CheckpointMd,
}

impl Document {
    pub const ALL: [Self; 4] =
        [Self::Handoff, Self::SessionCheckpoint, Self::Memory, Self::CheckpointMd];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Handoff => "handoff",
            Self::SessionCheckpoint => "session-checkpoint",
            Self::Memory => "memory",
            Self::CheckpointMd => "checkpoint-md",
        }
    }

    /// Is it written into the workspace, and so part of the next checkpoint?
    pub const fn is_in_workspace(self) -> bool {
        matches!(self, Self::Handoff | Self::SessionCheckpoint)
    }
}

/// What to write, and where.
#[derive(Clone, Debug, Default)]
pub struct ExportRequest {
    pub label: Option<String>,
    /// Somewhere else than usual.
    pub file: Option<PathBuf>,
    /// Even over what somebody else wrote there since.
    pub force: bool,
}

/// Where it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    pub path: PathBuf,
    /// Was it any different before?
    pub is_changed: bool,
    /// Where what somebody else had written there is now.
    pub kept: Option<PathBuf>,
}

impl Engine {
    /// A document as it would be written.
    pub fn document(
        &self,
        session: &Session,
        kind: Document,
        label: Option<&str>,
    ) -> Result<String> {
        Ok(write(kind, &self.sheet(session, label)?))
    }

    /// Writes a document where it belongs. Bytes of others stay, and what others wrote since is not lost.
    pub fn export(
        &self,
        session: &Session,
        kind: Document,
        request: &ExportRequest,
    ) -> Result<Exported> {
        self.export_sheet(&self.sheet(session, request.label.as_deref())?, kind, request)
    }

    fn export_sheet(
        &self,
        sheet: &Sheet,
        kind: Document,
        request: &ExportRequest,
    ) -> Result<Exported> {
        let text = write(kind, sheet);
        let path = match &request.file {
            Some(path) => self.home.folder.join(path),
            None => self.usual_place(sheet, kind)?,
        };
        let place = Place::open(&self.home.workspace, &path)?;
        let before = place.read()?;
        let bad = |line, reason: String| Error::ForeignFile { path: path.clone(), line, reason };
        let existing = before.as_deref().unwrap_or_default();
        let bytes = match kind {
            Document::Handoff => {
                handoff::merge(existing, &text).map_err(|it| bad(it.line, it.reason))?
            }
            Document::Memory => bivouac_core::export::memory::merge(existing, &text)
                .map_err(|it| bad(it.line, it.reason))?,
            Document::SessionCheckpoint | Document::CheckpointMd => text.into_bytes(),
        };
        if before.as_ref() == Some(&bytes) {
            return Ok(Exported { path, is_changed: false, kept: None });
        }
        let mut known = Papers::open(&self.home);
        let is_whole = matches!(kind, Document::SessionCheckpoint | Document::CheckpointMd);
        let is_others = is_whole && !known.is_untouched(&path, before.as_deref());
        if is_others && !request.force && !self.says_nothing_new(sheet, kind, existing) {
            return Err(Error::ChangedByOthers { path });
        }
        // What somebody else wrote is never gone, whatever it says.
        let kept = if is_others { Some(place.keep()?) } else { None };
        place.write(&bytes)?;
        known.remember(&path, &bytes)?;
        Ok(Exported { path, is_changed: true, kept })
    }

    /// Is everything that a document says on record?
    fn says_nothing_new(&self, sheet: &Sheet, kind: Document, bytes: &[u8]) -> bool {
        let parsed = parse(kind, Path::new(""), bytes);
        parsed.is_ok_and(|it| {
            let known = self.as_shown(&sheet.work);
            kind == Document::SessionCheckpoint
                && import::news_of(&known, &sheet.session, it.items).is_empty()
        })
    }

    /// Writes the documents that are to be kept up to date with every checkpoint. The checkpoint does not
    /// depend on it.
    pub(crate) fn export_due(
        &mut self,
        session: &Session,
        label: Option<&str>,
        is_due: impl Fn(Document) -> bool,
    ) {
        let wanted = self.config.exports.clone();
        let is_wanted = |kind: &Document| wanted.iter().any(|name| name == kind.as_str());
        let kinds = Document::ALL.into_iter().filter(is_wanted).filter(|kind| is_due(*kind));
        let kinds: Vec<Document> = kinds.collect();
        if kinds.is_empty() {
            return;
        }
        if self.check_may_restore().is_err() {
            let line = "no documents are written, because other users can change this workspace";
            self.notices.push(line.to_owned());
            return;
        }
        let sheet = self.sheet(session, label);
        for kind in kinds {
            let request = ExportRequest::default();
            let failure = match &sheet {
                Ok(sheet) => {
                    let written = self.export_sheet(sheet, kind, &request);
                    written.err().map(|error| crate::error::in_one_line(&error))
                }
                Err(error) => Some(crate::error::in_one_line(error)),
            };
            if let Some(why) = failure {
                let line = format!("{} was not written: {why}", kind.as_str());
                let _the_checkpoint_counts = self.note(session.id, Level::Warning, &line);
                self.notices.push(line);
            }
        }
    }

    /// Puts the finished feature's file away: out of sight, and still there.
    pub fn archive_session_checkpoint(&self, session: &Session) -> Result<Option<PathBuf>> {
        let workspace = &self.home.workspace;
        let place = Place::open(workspace, &workspace.join(SESSION_CHECKPOINT))?;
        if place.read()?.is_none() {
            return Ok(None);
        }
        let sheet = self.sheet(session, None)?;
        let name = format!("SESSION-CHECKPOINT-{}-{}.md", sheet.date, sheet.label);
        place.put_away(&Path::new("docs/archive").join(name)).map(Some)
    }

    /// Where a document goes when nobody says otherwise.
    fn usual_place(&self, sheet: &Sheet, kind: Document) -> Result<PathBuf> {
        let workspace = &self.home.workspace;
        Ok(match kind {
            Document::SessionCheckpoint => workspace.join(SESSION_CHECKPOINT),
            Document::Handoff => {
                let own = workspace.join(".agents/HANDOFF.md");
                if own.exists() { own } else { workspace.join("HANDOFF.md") }
            }
            Document::Memory => self.memory_folder()?.join("MEMORY.md"),
            Document::CheckpointMd => {
                let folder = match self.memory_folder() {
                    Ok(folder) if self.has_memory() => folder,
                    _ => workspace.clone(),
                };
                papers::free(&folder.join("checkpoints").join(checkpoint_md::file_name(sheet)))
            }
        })
    }

    /// Has Claude Code been at work here?
    pub fn has_memory(&self) -> bool {
        let home = home_folder().unwrap_or_default();
        memory::project_folder(&home, &self.home.workspace).is_dir() && self.memory_folder().is_ok()
    }

    /// The folder of this project's memory, and of no other's.
    fn memory_folder(&self) -> Result<PathBuf> {
        let home = home_folder().ok_or(Error::NoHome)?;
        let folder = memory::project_folder(&home, &self.home.workspace);
        match memory::owner(&folder) {
            Some(owner) if !owner.starts_with(&self.home.workspace) => {
                Err(Error::OthersMemory { folder, owner })
            }
            _ => Ok(folder.join("memory")),
        }
    }

    fn sheet(&self, session: &Session, label: Option<&str>) -> Result<Sheet> {
        let work = self.journal.whole_work(session.id)?;
        let git = self.git_now();
        let branch = git.as_ref().and_then(|git| git.branch.clone());
        let now = self.clock.now();
        let local = |moment| self.clock.local(moment);
        let updated = work.changed_at().unwrap_or(session.created_at);
        let label = match label {
            Some(label) => checkpoint_md::kebab(label),
            None => checkpoint_md::label(session, &work),
        };
        let project = self.project_folder(branch.as_deref());
        Ok(Sheet {
            session: session.clone(),
            key_files: self.key_files(session, git.as_ref())?,
            sha: git.and_then(|git| git.head).map(|head| head.chars().take(8).collect()),
            branch,
            label,
            created_at: now,
            updated: local(updated).strftime("%Y-%m-%d %H:%M").to_string(),
            date: local(now).strftime("%Y-%m-%d").to_string(),
            stamp: local(now).strftime("%Y-%m-%d-%H%M").to_string(),
            pipeline: pipeline::state(&project),
            spine: pipeline::spine(&project),
            redactor: self.redactor().clone(),
            work,
        })
    }

    /// Where the project keeps what belongs to this branch.
    fn project_folder(&self, branch: Option<&str>) -> PathBuf {
        let found = branch.map(|branch| context(branch).unwrap_or_else(|| without_issue(branch)));
        self.home.workspace.join(found.map(|it| it.project_dir).unwrap_or_default())
    }

    /// Files that were worked on, the newest first.
    fn key_files(
        &self,
        session: &Session,
        git: Option<&bivouac_core::git::GitFacts>,
    ) -> Result<Vec<KeyFile>> {
        const MOST: usize = 20;
        let mut files: Vec<KeyFile> = Vec::new();
        for (path, times) in self.journal.touched_files(session.id, MOST as u32)? {
            let path = Path::new(&path);
            let path = path.strip_prefix(&self.home.workspace).unwrap_or(path);
            let about = format!("changed {}", count(times, "time"));
            files.push(KeyFile { path: path.to_string_lossy().into_owned(), about });
        }
        let changes = git.into_iter().flat_map(|git| git.staged.iter().chain(&git.unstaged));
        let changed = changes.map(|change| (change.path.to_string(), "not yet committed"));
        let untracked = git.into_iter().flat_map(|git| &git.untracked);
        let new = untracked.map(|path| (path.to_string(), "new"));
        // What we write ourselves tells nobody anything about the work.
        let is_own = |path: &str| path.ends_with("HANDOFF.md") || path == SESSION_CHECKPOINT;
        for (path, about) in changed.chain(new).filter(|(path, _)| !is_own(path)) {
            if files.len() < MOST && !files.iter().any(|it| it.path == path) {
                files.push(KeyFile { path, about: about.to_owned() });
            }
        }
        Ok(files)
    }

    /// Takes in what a document says, all of it or nothing.
    pub fn import(&mut self, session: &Session, kind: Document, parsed: &Parsed) -> Result<Said> {
        let known = self.as_shown(&self.journal.whole_work(session.id)?);
        let events = import::news_of(&known, session, parsed.items.clone());
        let mut items: Vec<Item> = events.iter().flat_map(Item::all_of).collect();
        let written = parsed.updated.as_deref().and_then(|text| self.clock.read(text));
        if let Some(written) = written {
            // To the minute is all that it says.
            let until = Timestamp::new(written.jiff() + MINUTE);
            if kind == Document::SessionCheckpoint {
                items.extend(import::removed(&known, parsed, until));
            }
            let is_older = known.changed_at().is_some_and(|last| last.since(written) >= MINUTE);
            if is_older && !items.is_empty() {
                self.notices.push("the file is older than what was on record".to_owned());
            }
        }
        self.say(session, items, &Saying::default())
    }

    /// What a checkpoint is to be called: what was asked for, in kebab-case, else what the work suggests.
    pub fn label(&self, session: &Session, wish: Option<&str>) -> Result<Name> {
        let label = match wish {
            Some(wish) => return Ok(checkpoint_md::kebab(wish).parse()?),
            None => checkpoint_md::label(session, &self.journal.work(session.id)?),
        };
        let is_free = |name: &str| self.journal.is_name_taken(session.id, name).map(|taken| !taken);
        let mut name = label.clone();
        let mut number = 1;
        while !is_free(&name)? {
            number += 1;
            name = format!("{label}-{number}");
        }
        Ok(name.parse()?)
    }

    /// The work as others see it, so that a blotted word is no news when it comes back.
    fn as_shown(&self, work: &Work) -> Work {
        let mut document = serde_json::to_value(work).unwrap_or_default();
        self.redactor().redact_json(&mut document);
        serde_json::from_value(document).unwrap_or_else(|_| work.clone())
    }
}

fn write(kind: Document, sheet: &Sheet) -> String {
    match kind {
        Document::Handoff => handoff::write(sheet),
        Document::SessionCheckpoint => session_checkpoint::write(sheet),
        Document::Memory => bivouac_core::export::memory::section(sheet),
        Document::CheckpointMd => checkpoint_md::write(sheet),
    }
}

/// Reads a document that progress was written into.
pub fn parse(kind: Document, path: &Path, bytes: &[u8]) -> Result<Parsed> {
    let bad = |line, reason: String| Error::ForeignFile { path: path.to_owned(), line, reason };
    let text = || {
        std::str::from_utf8(bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            bad(line, "it is not UTF-8".to_owned())
        })
    };
    let parsed = match kind {
        Document::SessionCheckpoint => session_checkpoint::parse(text()?),
        Document::CheckpointMd => checkpoint_md::parse(text()?),
        Document::Handoff | Document::Memory => handoff::parse(bytes),
    };
    parsed.map_err(|it| bad(it.line, it.reason))
}

/// What two exports of the same name are told apart by.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    ObjectId::of(bytes).to_string()
}

const MINUTE: std::time::Duration = std::time::Duration::from_secs(60);
const SESSION_CHECKPOINT: &str = "docs/SESSION-CHECKPOINT.md";
