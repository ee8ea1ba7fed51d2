//! The files that exports go to: read and replaced whole, never through a link, and never over what somebody
//! else wrote there since.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bivouac_capture::folder;

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
        let known = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { file, known: known.unwrap_or_default() }
    }

    /// Is a file as it was left, or not there?
    pub(crate) fn is_untouched(&self, path: &Path, now: Option<&[u8]>) -> bool {
        let known = self.known.get(&*path.to_string_lossy());
        now.map(fingerprint).is_none_or(|found| known == Some(&found))
    }

    pub(crate) fn remember(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.known.insert(path.to_string_lossy().into_owned(), fingerprint(bytes));
        if let Some(folder) = self.file.parent() {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(Error::io(folder))?;
        }
        write_private(&self.file, &to_json(&self.known))
    }
}

/// The first name like this that nobody has: `a.md`, `a-2.md`, `a-3.md`.
pub(crate) fn free(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let end = path.extension().map(|end| format!(".{}", end.to_string_lossy())).unwrap_or_default();
    let others = (2..10_000).map(|number| path.with_file_name(format!("{stem}-{number}{end}")));
    let mut all = std::iter::once(path.to_owned()).chain(others);
    all.find(|it| it.symlink_metadata().is_err()).unwrap_or_else(|| path.to_owned())
}

/// Keeps a file beside its place, which becomes free.
pub(crate) fn keep(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    put_away(path, &free(&path.with_file_name(format!("{name}.kept"))))
}

/// Moves a file to where nothing is. Linking fails where something is, and renaming would not.
pub(crate) fn put_away(path: &Path, target: &Path) -> Result<PathBuf> {
    fs::hard_link(path, target).map_err(Error::io(target))?;
    fs::remove_file(path).map_err(Error::io(path))?;
    Ok(target.to_owned())
}

/// Does the way to a place in a folder lead through a link?
pub(crate) fn is_behind_link(folder: &Path, path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(folder) else {
        return false;
    };
    let steps = inside.ancestors().skip(1).filter(|step| !step.as_os_str().is_empty());
    steps.map(|step| folder.join(step)).any(|it| it.is_symlink())
}

/// The contents of a file; none if there is none. A link is refused: what is behind it is not ours to write.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path)(error)),
        Ok(meta) if !meta.is_file() || meta.len() > MAX_BYTES => {
            Err(Error::NoDocument { path: path.to_owned() })
        }
        Ok(_) => fs::read(path).map(Some).map_err(Error::io(path)),
    }
}

/// Replaces a file: a new one beside it, made durable, takes its place with its permissions.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_as(path, bytes, path.symlink_metadata().map_or(0o644, |meta| meta.mode() & 0o777))
}

/// The same for a file in the store.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    write_as(path, bytes, 0o600)
}

fn write_as(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Threads of one process can write the same file.
    let number = N_WRITTEN.fetch_add(1, Ordering::Relaxed);
    let beside = folder.join(format!(".{name}.{}-{number}.biv", std::process::id()));
    let mut file = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&beside)
        .map_err(Error::io(path))?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, path))
        .and_then(|()| folder::sync(folder));
    if written.is_err() {
        let _nothing_to_lose = fs::remove_file(&beside);
    }
    written.map_err(Error::io(path))
}
