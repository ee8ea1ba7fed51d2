//! From a checkpoint to a bundle. It is made beside its place and moved there when it is whole.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bivouac_core::checkpoint::Checkpoint;
use bivouac_core::environment::Environment;
use bivouac_core::path::RelPath;
use bivouac_core::redact::Redactor;
use bivouac_core::redact::file::Kind;
use bivouac_core::terminal::Terminal;
use bivouac_journal::query::KeptCheckpoint;
use bivouac_snapshot::beneath::Root;
use bivouac_snapshot::tree::Entry;
use flate2::Compression;
use serde::Serialize;

use super::safe::Blotter;
use super::tarball::Tarball;
use super::withhold::{Judged, Reasons, judge};
use super::{
    Body, CONVERSATION, Care, Conversation, ENVIRONMENT, FORMAT, LeftOut, MANIFEST, Manifest,
    Moment, PARTS, PRIVATE, PROGRESS, Part, Reason, Seal, TERMINAL, VERSION, WORKSPACE, Withheld,
    base64,
};
use crate::home::sync_folder;
use crate::{Engine, Error, Result};

/// Where a bundle goes.
pub enum Target<'t> {
    /// A new folder.
    Directory(&'t Path),
    /// A new `.tar.gz`.
    File(&'t Path),
    /// The same, on its way to someone else.
    Stream(&'t mut dyn Write),
}

/// What went out.
#[derive(Debug)]
pub struct ExportReport {
    pub n_files: u64,
    pub size_bytes: u64,
    pub has_conversation: bool,
    /// The files that stay behind because they hold secrets.
    pub withheld: Vec<Withheld>,
}

const NO_TERMINAL: &str = "# no terminal was captured\n";

impl Engine {
    /// Writes a checkpoint as a bundle, where nothing may be yet.
    pub fn export_bundle(
        &self,
        kept: &KeptCheckpoint,
        care: Care,
        target: Target<'_>,
    ) -> Result<ExportReport> {
        let place = match &target {
            Target::Directory(path) | Target::File(path) => {
                self.check_place(path)?;
                if path.symlink_metadata().is_ok() {
                    return Err(Error::InTheWay { path: path.to_path_buf() });
                }
                folder_of(path)
            }
            Target::Stream(_) => std::env::temp_dir(),
        };
        let name = format!(".biv-staging-export-{}", self.clock.new_id());
        let staging = Staging::create(&place, &name)?;
        let report = self.write_parts(kept, care, &staging)?;
        match target {
            Target::Directory(path) => publish(&place, &name, path)?,
            Target::File(path) => {
                let whole = staging.0.join("bundle");
                pack(&staging, create(&whole)?)?.sync_all().map_err(Error::io(&whole))?;
                publish(&place, &format!("{name}/bundle"), path)?;
            }
            Target::Stream(stream) => {
                pack(&staging, stream)?.flush().map_err(Error::io("the stream"))?;
            }
        }
        Ok(report)
    }

    /// Writes everything into the staging folder, the manifest last.
    fn write_parts(
        &self,
        kept: &KeptCheckpoint,
        care: Care,
        staging: &Staging,
    ) -> Result<ExportReport> {
        let checkpoint = &kept.taken.checkpoint;
        let entries = self.files_of(kept)?;
        let mut withheld = self.withheld_by_name(&entries, care);
        let blotter = match care {
            Care::Redacted => {
                let settings = self.settings_in(&entries, &withheld)?;
                Some(Blotter::new(self.redactor_knowing(&settings)))
            }
            Care::Raw => None,
        };
        let redactor = blotter.as_ref().map(Blotter::redactor);
        let mut files = BTreeMap::new();
        let seal = self.write_workspace(&entries, redactor, &mut withheld, staging)?;
        files.insert(WORKSPACE.to_owned(), seal);
        let left_out = left_out(&entries, &withheld);
        let mut write = |name: &str, bytes: &[u8]| -> Result<()> {
            staging.write(name, bytes)?;
            files.insert(name.to_owned(), Seal::of(bytes));
            Ok(())
        };
        let conversation = self.conversation_of(kept, blotter.as_ref())?;
        write(CONVERSATION, &document(&conversation, None)?)?;
        write(PROGRESS, &document(&self.work_of(checkpoint)?, blotter.as_ref())?)?;
        let session = self.identity(checkpoint.session_id)?;
        let cwd = String::from_utf8_lossy(session.workspace.as_bytes()).into_owned();
        let environment = self.environment_of(checkpoint)?;
        let environment = environment.unwrap_or(Environment { cwd, ..Environment::default() });
        write(ENVIRONMENT, &document(&environment, blotter.as_ref())?)?;
        write(TERMINAL, self.terminal_text(checkpoint, blotter.as_ref())?.as_bytes())?;
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            tool: format!("biv {}", env!("CARGO_PKG_VERSION")),
            care,
            session,
            checkpoint: self.moment(kept)?,
            left_out,
            files,
        };
        staging.write(MANIFEST, &document(&manifest, blotter.as_ref())?)?;
        staging.sync()?;
        let kept_files = entries.iter().filter_map(|(path, entry)| match entry {
            _ if withheld.contains_key(path) => None,
            Entry::File(file) => Some(file.size),
            Entry::Link(_) => Some(0),
            Entry::Folder { .. } | Entry::Gap { .. } => None,
        });
        let (n_files, size_bytes) = kept_files.fold((0, 0), |(n, sum), size| (n + 1, sum + size));
        let has_conversation = conversation.is_some();
        let withheld = withheld.into_iter();
        let withheld = withheld.map(|(path, reason)| Withheld { path, reason: Some(reason) });
        Ok(ExportReport { n_files, size_bytes, has_conversation, withheld: withheld.collect() })
    }

    /// What the terminal looked like, a line to a pane.
    fn terminal_text(&self, checkpoint: &Checkpoint, blotter: Option<&Blotter>) -> Result<String> {
        let Some(terminal) = self.terminal_of(checkpoint)? else {
            return Ok(NO_TERMINAL.to_owned());
        };
        let safe: Terminal = serde_json::from_slice(&document(&terminal, blotter)?)
            .map_err(|error| Error::io(TERMINAL)(error.into()))?;
        Ok(safe.to_string())
    }

    /// Writes the files that may go. Those in which the redactor finds a secret join the ones that stay.
    fn write_workspace(
        &self,
        entries: &[(RelPath, Entry)],
        redactor: Option<&Redactor>,
        withheld: &mut Reasons,
        staging: &Staging,
    ) -> Result<Seal> {
        let _store_lock = self.use_store()?;
        let index = self.index();
        let objects = self.objects(&index);
        let path = staging.0.join(WORKSPACE);
        let failed = |error: io::Error| match error.downcast::<bivouac_snapshot::Error>() {
            Ok(error) => error.into(),
            Err(source) => Error::Io { path: path.clone(), source },
        };
        let mut tarball = Tarball::new(BufWriter::new(create(&path)?), Compression::new(4));
        self.progress.begin("Writing files", entries.len() as u64);
        for (path, entry) in entries {
            self.progress.add(1);
            let name = path.as_bytes();
            match entry {
                _ if withheld.contains_key(path) => {}
                Entry::Folder { mode, .. } => tarball.folder(name, *mode).map_err(failed)?,
                Entry::Link(target) => {
                    let target = objects.get(target)?;
                    match redactor.is_some_and(|it| it.finds_in(&target, Kind::Ordinary)) {
                        true => drop(withheld.insert(path.clone(), Reason::Contents)),
                        false => tarball.link(name, &target).map_err(failed)?,
                    }
                }
                Entry::File(file) => match judge(&objects, path, file, redactor)? {
                    Judged::Withheld => drop(withheld.insert(path.clone(), Reason::Contents)),
                    mut bytes => {
                        tarball.file(name, file.mode, (file.size, &mut bytes)).map_err(failed)?;
                    }
                },
                Entry::Gap { .. } => {}
            }
        }
        self.progress.end();
        let (to, seal) = tarball.finish().map_err(failed)?;
        let file = to.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        Ok(seal)
    }

    /// The conversation as it goes out: a file of it is redacted as what it is, not as a piece of JSON.
    fn conversation_of(
        &self,
        kept: &KeptCheckpoint,
        blotter: Option<&Blotter>,
    ) -> Result<Option<Conversation>> {
        let Some(summary) = &kept.taken.checkpoint.conversation else {
            return Ok(None);
        };
        let (about, files) = self.conversation_files(summary)?;
        let part = |(name, bytes): (String, Vec<u8>)| {
            let body = match (String::from_utf8(bytes), blotter) {
                (Ok(text), None) => Body::Text(text),
                (Ok(text), Some(blotter)) => Body::Text(blotter.text(&text)),
                (Err(error), None) => Body::Base64(base64::encode(error.as_bytes())),
                (Err(_), Some(_)) => Body::Withheld("not text, so it may hold secrets".to_owned()),
            };
            Part { name, body }
        };
        let plain = |text: String| blotter.map_or(text.clone(), |blotter| blotter.line(&text));
        Ok(Some(Conversation {
            version: VERSION,
            agent: about.agent,
            id: about.id,
            workspace: plain(about.workspace),
            usage: summary.usage.clone(),
            cost_usd: summary.cost_usd,
            unwritten: about.unwritten.map(plain),
            parts: files.into_iter().map(part).collect(),
        }))
    }

    fn moment(&self, kept: &KeptCheckpoint) -> Result<Moment> {
        let it = &kept.taken.checkpoint;
        Ok(Moment {
            id: it.id,
            handle: it.handle.clone(),
            trigger: it.trigger,
            name: it.name.clone(),
            message: it.message.clone(),
            taken_at: it.taken_at,
            by: it.by.clone(),
            git: self.git_facts(kept)?,
            coverage: it.coverage.clone(),
            usage: it.conversation.as_ref().map(|it| it.usage.clone()),
            cost_usd: it.conversation.as_ref().and_then(|it| it.cost_usd),
            state: it.state.clone(),
        })
    }
}

/// What never was in the checkpoint, and what is withheld.
fn left_out(entries: &[(RelPath, Entry)], withheld: &Reasons) -> Vec<LeftOut> {
    let gaps = entries.iter().filter_map(|(path, entry)| {
        let (why, is_folder) = match entry {
            Entry::Gap { why, is_folder } => (why.as_str(), *is_folder),
            _ if withheld.contains_key(path) => (PRIVATE, false),
            Entry::File(_) | Entry::Link(_) | Entry::Folder { .. } => return None,
        };
        let reason = withheld.get(path).copied();
        Some(LeftOut { path: path.clone(), why: why.to_owned(), is_folder, reason })
    });
    gaps.collect()
}

/// A document as it is written, without its secrets if there is someone to take them out.
fn document(it: &impl Serialize, blotter: Option<&Blotter>) -> Result<Vec<u8>> {
    let failed = |error: serde_json::Error| Error::io("a bundle")(error.into());
    let mut bytes = match blotter {
        None => serde_json::to_vec_pretty(it).map_err(failed)?,
        Some(blotter) => {
            let mut value = serde_json::to_value(it).map_err(failed)?;
            blotter.value(&mut value);
            serde_json::to_vec_pretty(&value).map_err(failed)?
        }
    };
    bytes.push(b'\n');
    Ok(bytes)
}

/// All parts in one: the manifest first, so that whoever looks sees what it is.
fn pack<W: Write>(staging: &Staging, to: W) -> Result<W> {
    let failed = |error| Error::io("a bundle")(error);
    let mut tarball = Tarball::new(to, Compression::fast());
    for name in [MANIFEST].into_iter().chain(PARTS) {
        let path = staging.0.join(name);
        let mut file = File::open(&path).map_err(Error::io(&path))?;
        let size = file.metadata().map_err(Error::io(&path))?.len();
        tarball.file(name.as_bytes(), 0o644, (size, &mut file)).map_err(failed)?;
    }
    tarball.finish().map(|(to, _)| to).map_err(failed)
}

/// A folder of ours beside the target. Checkpoints pass over it, and it goes with us.
struct Staging(PathBuf);

impl Staging {
    fn create(place: &Path, name: &str) -> Result<Self> {
        let folder = place.join(name);
        fs::DirBuilder::new().mode(0o700).create(&folder).map_err(Error::io(place))?;
        Ok(Self(folder))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.0.join(name);
        let mut file = create(&path)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(Error::io(&path))
    }

    fn sync(&self) -> Result<()> {
        sync_folder(&self.0)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _moved_away_or_left = fs::remove_dir_all(&self.0);
    }
}

fn create(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path).map_err(Error::io(path))
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Gives it its name, unless someone else has it by now.
fn publish(folder: &Path, from: &str, target: &Path) -> Result<()> {
    let root = Root::open(folder).map_err(Error::io(folder))?;
    let name = target.file_name().unwrap_or_default().as_bytes();
    root.move_to_free(from.as_bytes(), name).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::InTheWay { path: target.to_owned() },
        _ => Error::io(target)(error),
    })?;
    sync_folder(folder)
}
