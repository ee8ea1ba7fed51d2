//! The files that exports go to: read and replaced whole, never through a link, and never over what somebody
//! else wrote there since.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bivouac_snapshot::beneath::{Root, is_gone};
use bivouac_snapshot::private::{self, Open};

use crate::export::fingerprint;
use crate::home::Home;
use crate::save::to_json;
use crate::{Error, Result};

static N_WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Larger files are not what they are said to be.
const MAX_BYTES: u64 = 4 << 20;

/// What was written where, so that a change by somebody else is noticed. Losing it only makes us ask.
pub(crate) struct Papers {
    file: PathBuf,
    known: BTreeMap<String, String>,
}

impl Papers {
    pub(crate) fn open(home: &Home) -> Self {
        let file = home.papers();
        let known = private::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { file, known: known.unwrap_or_default() }
    }

    /// Is a file as it was left, or not there?
    pub(crate) fn is_untouched(&self, path: &Path, now: Option<&[u8]>) -> bool {
        let known = self.known.get(&key(path));
        now.map(fingerprint).is_none_or(|found| known == Some(&found))
    }

    pub(crate) fn remember(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.known.insert(key(path), fingerprint(bytes));
        write_private(&self.file, &to_json(&self.known))
    }
}

/// A path as a key in JSON: itself, or where it is not UTF-8, with the other bytes written out behind a NUL, which
/// no path has.
fn key(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("\0{}", path.as_os_str().as_encoded_bytes().escape_ascii()),
    }
}

/// The first name like this that nobody has: `a.md`, `a-2.md`, `a-3.md`.
pub(crate) fn free(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default();
    let end = path.extension().map(|end| joined(".", end)).unwrap_or_default();
    let others = (2..10_000).map(|number| {
        let mut name = stem.to_owned();
        name.push(format!("-{number}"));
        name.push(&end);
        path.with_file_name(name)
    });
    let mut all = std::iter::once(path.to_owned()).chain(others);
    all.find(|it| it.symlink_metadata().is_err()).unwrap_or_else(|| path.to_owned())
}

fn joined(first: impl AsRef<OsStr>, second: impl AsRef<OsStr>) -> OsString {
    let mut both = first.as_ref().to_owned();
    both.push(second);
    both
}

/// The place of a document: a folder that is held open, and a path in it. In a workspace no link on the way is
/// followed, and what was looked at is what is written, whatever another user does with the names meanwhile.
pub(crate) struct Place {
    top: PathBuf,
    root: Root,
    inside: PathBuf,
}

impl Place {
    /// A place in the workspace is reached from its top. Any other was named by the person, with the links on the way.
    pub(crate) fn open(workspace: &Path, path: &Path) -> Result<Self> {
        let leads_up = path.components().any(|part| part == Component::ParentDir);
        match path.strip_prefix(workspace) {
            Ok(inside) if !leads_up => Self::below(workspace, inside),
            _ => Self::at(path),
        }
    }

    /// A place that the person named. Its folder is made if it is not there.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        Self::below(folder, Path::new(path.file_name().unwrap_or_default()))
    }

    fn below(top: &Path, inside: &Path) -> Result<Self> {
        let root = Root::open(top).map_err(Error::io(top))?;
        Ok(Self { top: top.to_owned(), root, inside: inside.to_owned() })
    }

    fn path(&self) -> PathBuf {
        self.top.join(&self.inside)
    }

    /// The contents of the file; none if there is none. A link is refused: what is behind it is not ours to write.
    pub(crate) fn read(&self) -> Result<Option<Vec<u8>>> {
        let refused = || Error::NoDocument { path: self.path() };
        match self.root.stat_beneath(bytes_of(&self.inside)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if is_gone(&error) => Err(refused()),
            Err(error) => Err(Error::io(self.path())(error)),
            Ok(_) => {
                let bytes = self.root.read_small(bytes_of(&self.inside), MAX_BYTES);
                bytes.ok_or_else(refused).map(Some)
            }
        }
    }

    /// Replaces the file: a new one beside it, made durable, takes its place with its permissions.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<()> {
        let place = bytes_of(&self.inside);
        let beside = beside(&self.inside);
        let beside = bytes_of(&beside);
        let write = || {
            make_folders(&self.root, &self.inside)?;
            let mode = self.root.stat_beneath(place).map_or(0o644, |stat| stat.mode & 0o777);
            let mut file = self.root.create_file_as(beside, mode)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            self.root.replace(beside, place)?;
            self.root.sync(bytes_of(self.inside.parent().unwrap_or(Path::new(""))))
        };
        let written = write();
        if written.is_err() {
            let _nothing_to_lose = self.root.remove_file(beside);
        }
        written.map_err(Error::io(self.path()))
    }

    /// Keeps the file beside its place, which becomes free. Answers where.
    pub(crate) fn keep(&self) -> Result<PathBuf> {
        let name = self.inside.file_name().unwrap_or_default();
        self.put_away(&self.inside.with_file_name(joined(name, ".kept")))
    }

    /// Moves the file to the first free name like this one. Answers where.
    pub(crate) fn put_away(&self, like: &Path) -> Result<PathBuf> {
        let target = free(&self.top.join(like));
        let inside = target.strip_prefix(&self.top).unwrap_or(like);
        let moved = make_folders(&self.root, inside)
            .and_then(|()| self.root.move_to_free(bytes_of(&self.inside), bytes_of(inside)));
        moved.map_err(Error::io(&target))?;
        Ok(target)
    }
}

fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Makes the folders that a file is to be in.
fn make_folders(root: &Root, file: &Path) -> io::Result<()> {
    let mut folders: Vec<&Path> = file.ancestors().skip(1).collect();
    folders.retain(|it| !it.as_os_str().is_empty());
    for folder in folders.into_iter().rev() {
        match root.create_folder(bytes_of(folder), 0o755) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    Ok(())
}

/// Replaces a file in the store: a new one beside it, made durable, takes its place.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let (folder, beside) = (path.parent().unwrap_or(Path::new(".")), beside(path));
    let write = || {
        let mut file = private::open(&beside, Open::CreateNew)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        private::rename(&beside, path)?;
        private::sync_folder(folder)
    };
    let written = write();
    if written.is_err() {
        let _nothing_to_lose = private::remove_file(&beside);
    }
    written.map_err(Error::io(path))
}

/// Where new contents of a file wait. Threads of one process can write the same file.
fn beside(path: &Path) -> PathBuf {
    let name = joined(".", path.file_name().unwrap_or_default());
    let number = N_WRITTEN.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(joined(name, format!(".{}-{number}.biv", std::process::id())))
}
