//! The index file: which paths git tracks. Read directly, in every version git writes; where it is split, git is
//! asked instead.

use std::ffi::OsStr;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::config::Config;
use super::view::View;
use super::{MOST_INDEX_BYTES, Repository};
use crate::{Error, Result, bounded};

/// A path in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tracked {
    pub(super) path: Box<[u8]>,
    pub(super) is_submodule: bool,
}

impl Tracked {
    /// As a line that begins with the mode tells it.
    fn new(line: &[u8], path: impl Into<Box<[u8]>>) -> Self {
        Self { path: path.into(), is_submodule: line.starts_with(b"160000") }
    }
}

const SUBMODULE_MODE: u32 = 0o160_000;
const FOLDER_MODE: u32 = 0o040_000;
const KIND: u32 = 0o170_000;

/// What is in the file.
struct Index {
    entries: Vec<Tracked>,
    /// Folders of a sparse index, each of which stands for all files below it.
    folders: Vec<Folder>,
}

/// A folder that is not checked out.
struct Folder {
    path: PathBuf,
    /// The hash of its tree.
    tree: String,
}

/// Everything the index tracks, in its order, which is that of the bytes.
pub(super) fn tracked(repository: &Repository) -> Result<Vec<Tracked>> {
    let path = repository.git_dir.join("index");
    let Some(bytes) = read(&path)? else {
        return Ok(Vec::new());
    };
    let index = match parse(&bytes, hash_len(repository)) {
        Parsed::Whole(index) => index,
        Parsed::Malformed => return Err(malformed(&path)),
        Parsed::Split => return ask(repository).map_err(|error| unanswered(error, path)),
    };
    let mut entries = index.entries;
    for folder in outside(repository, index.folders) {
        let found = below(repository, &folder).map_err(|error| unanswered(error, path.clone()))?;
        entries.extend(found);
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

/// What has to be known about an index before git is shown it.
#[derive(Default)]
pub(super) struct Survey {
    /// It stands for whole folders that are not checked out.
    pub(super) is_sparse: bool,
    /// It tracks files that give attributes to others.
    pub(super) has_attributes: bool,
}

pub(super) fn survey(repository: &Repository) -> Result<Survey> {
    let path = repository.git_dir.join("index");
    let Some(bytes) = read(&path)? else {
        return Ok(Survey::default());
    };
    let mut survey = Survey::default();
    let mut name: Vec<u8> = Vec::new();
    let end = walk(&bytes, hash_len(repository), |entry| {
        name.truncate(entry.n_kept);
        name.extend_from_slice(entry.rest);
        survey.is_sparse |= entry.mode & KIND == FOLDER_MODE;
        survey.has_attributes |= name.ends_with(b".gitattributes");
    });
    let end = end.ok_or_else(|| malformed(&path))?;
    survey.is_sparse |= has_extension(&bytes[end..], *b"sdir");
    Ok(survey)
}

/// A folder that a sparse index leaves out and that is there all the same.
pub(super) fn first_outside(repository: &Repository) -> Result<Option<PathBuf>> {
    let path = repository.git_dir.join("index");
    let bytes = read(&path)?.unwrap_or_default();
    let folders = match parse(&bytes, hash_len(repository)) {
        Parsed::Whole(index) => index.folders,
        Parsed::Malformed | Parsed::Split => Vec::new(),
    };
    let found = outside(repository, folders).next();
    Ok(found.map(|folder| folder.path))
}

fn outside(repository: &Repository, folders: Vec<Folder>) -> impl Iterator<Item = Folder> {
    let is_there = |it: &Folder| repository.top.join(&it.path).symlink_metadata().is_ok();
    folders.into_iter().filter(is_there)
}

/// The files below a folder, as its tree has them.
fn below(repository: &Repository, folder: &Folder) -> Result<Vec<Tracked>> {
    let view = View::open(repository)?;
    let args = ["ls-tree", "-r", "-z", "--full-tree", &folder.tree];
    let output = view.git(&repository.top).args(args).output()?;
    let prefix = folder.path.as_os_str().as_bytes();
    Ok(listed(&output).map(|(line, path)| Tracked::new(line, [prefix, path].concat())).collect())
}

/// The file in full. `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let failed = |error: io::Error| match error.kind() {
        // A FIFO or a device, or more than any index has: no index, as opposed to a disk that fails.
        io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => {
            Error::BadIndex { path: path.to_owned(), why: error.to_string() }
        }
        _ => Error::io(path)(error),
    };
    let mut start = Vec::new();
    let file = match bounded::open(path) {
        Err(error) if bounded::is_absent(&error) => return Ok(None),
        file => file.map_err(failed)?,
    };
    // A large file that is something else is not read to its end.
    file.take(4).read_to_end(&mut start).map_err(failed)?;
    match start == *b"DIRC" {
        true => bounded::read(path, MOST_INDEX_BYTES).map(Some).map_err(failed),
        false => Err(malformed(path)),
    }
}

/// Where git cannot tell what is tracked, the rest of the index is missing or wrong.
fn unanswered(error: Error, path: PathBuf) -> Error {
    match error {
        Error::Failed { .. } | Error::TooSlow { .. } | Error::Unexpected { .. } => {
            Error::BadIndex { path, why: error.to_string() }
        }
        other => other,
    }
}

fn malformed(path: &Path) -> Error {
    Error::BadIndex {
        path: path.to_owned(),
        why: "it has another form than git gives it".to_owned(),
    }
}

/// The files with the rest of an index that is split.
pub(super) fn shared_files(repository: &Repository) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(&repository.git_dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let shared: Vec<String> = names.filter(|name| name.starts_with("sharedindex.")).collect();
    if shared.is_empty() {
        return Ok(Vec::new());
    }
    let path = repository.git_dir.join("index");
    let bytes = read(&path)?.unwrap_or_default();
    // The extension holds the hash that is in the file's name.
    let is_named = |name: &&String| {
        let hash = from_hex(name.trim_start_matches("sharedindex."));
        hash.is_some_and(|hash| bytes.windows(hash.len()).any(|part| part == hash))
    };
    Ok(shared.iter().filter(is_named).map(|name| repository.git_dir.join(name)).collect())
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    let bytes: Option<Vec<u8>> = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
    bytes.filter(|bytes| matches!(bytes.len(), 20 | 32))
}

/// The checksum at the end of the file.
pub(super) fn trailer(path: &Path) -> io::Result<[u8; 20]> {
    let mut file = bounded::open(path)?;
    let mut trailer = [0; 20];
    file.seek(SeekFrom::End(-20))?;
    file.read_exact(&mut trailer)?;
    Ok(trailer)
}

/// How long hashes are in this repository.
fn hash_len(repository: &Repository) -> usize {
    let config = Config::of_repository(repository);
    match config.is_ok_and(|it| it.text("extensions.objectformat") == Some("sha256")) {
        true => 32,
        false => 20,
    }
}

/// What an index file is to us.
enum Parsed {
    Whole(Index),
    Malformed,
    /// Its other part is in a second file: git is asked.
    Split,
}

fn parse(bytes: &[u8], hash_len: usize) -> Parsed {
    let mut index = Index { entries: Vec::new(), folders: Vec::new() };
    let mut name: Vec<u8> = Vec::new();
    let end = walk(bytes, hash_len, |entry| {
        name.truncate(entry.n_kept);
        name.extend_from_slice(entry.rest);
        if entry.mode & KIND == FOLDER_MODE {
            let tree = entry.hash.iter().map(|byte| format!("{byte:02x}")).collect();
            index.folders.push(Folder { path: OsStr::from_bytes(&name).into(), tree });
        } else {
            let is_submodule = entry.mode & KIND == SUBMODULE_MODE;
            index.entries.push(Tracked { path: name.as_slice().into(), is_submodule });
        }
    });
    // A conflict has up to three entries.
    index.entries.dedup_by(|one, other| one.path == other.path);
    match end {
        Some(end) if has_extension(&bytes[end..], *b"link") => Parsed::Split,
        Some(_) => Parsed::Whole(index),
        None => Parsed::Malformed,
    }
}

/// One entry as it lies in the file.
struct Entry<'b> {
    mode: u32,
    hash: &'b [u8],
    /// How many bytes of the name before are kept, and what follows them.
    n_kept: usize,
    rest: &'b [u8],
}

/// No path is longer on any system, and no repository has more of them. Names are stored as differences, so that a small
/// file could stand for gigabytes.
const MOST_NAME_BYTES: usize = 4_096;
const MOST_NAMES_BYTES: usize = 1 << 30;

/// Goes through all entries. Answers where they end, or nothing if they are malformed.
fn walk(bytes: &[u8], hash_len: usize, mut each: impl FnMut(Entry<'_>)) -> Option<usize> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = number(4)?;
    if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    let mut name_len: usize = 0;
    let mut names_len: usize = 0;
    for _ in 0..number(8)? {
        let flags_at = at + 40 + hash_len;
        let flags = u16::from_be_bytes(bytes.get(flags_at..flags_at + 2)?.try_into().ok()?);
        let is_extended = version >= 3 && flags & 0x4000 != 0;
        let mut rest_at = flags_at + if is_extended { 4 } else { 2 };
        // Version 4 says how many bytes to cut off the name before.
        let mut n_kept = 0;
        if version == 4 {
            let (n_cut, next) = read_number(bytes, rest_at)?;
            (n_kept, rest_at) = (name_len.checked_sub(n_cut)?, next);
        }
        let length = bytes.get(rest_at..)?.iter().position(|byte| *byte == 0)?;
        let rest = &bytes[rest_at..rest_at + length];
        name_len = n_kept + length;
        names_len += name_len;
        if name_len > MOST_NAME_BYTES || names_len > MOST_NAMES_BYTES {
            return None;
        }
        each(Entry { mode: number(at + 24)?, hash: &bytes[at + 40..flags_at], n_kept, rest });
        at = match version {
            4 => rest_at + length + 1,
            // Entries are padded to eight bytes, with at least one zero.
            _ => at + ((rest_at + length - at + 8) & !7),
        };
    }
    (at <= bytes.len()).then_some(at)
}

/// A number in groups of seven bits, and where it ends.
fn read_number(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut number = 0usize;
    for place in at..at + 8 {
        let byte = *bytes.get(place)?;
        number = (number << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, place + 1));
        }
        number += 1;
    }
    None
}

/// Is there such an extension in what follows the entries?
fn has_extension(mut rest: &[u8], name: [u8; 4]) -> bool {
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        if head[..4] == name {
            return true;
        }
        let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
        match after.get(length..) {
            Some(next) => rest = next,
            None => return false,
        }
    }
    false
}

fn ask(repository: &Repository) -> Result<Vec<Tracked>> {
    let view = View::for_status(repository)?;
    let output = view.git(&repository.top).args(["ls-files", "-z", "--stage"]).output()?;
    let mut entries: Vec<Tracked> =
        listed(&output).map(|(line, path)| Tracked::new(line, path)).collect();
    entries.dedup_by(|one, other| one.path == other.path);
    Ok(entries)
}

/// The lines of a listing, and the path at the end of each, after a tab.
fn listed(output: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    output.split(|byte| *byte == 0).filter_map(|line| {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        Some((line, &line[tab + 1..]))
    })
}
