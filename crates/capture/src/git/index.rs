//! The index file: which paths git tracks. Read directly, in every version git writes; where it uses
//! an extension that hides entries, git is asked instead.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::Repository;
use crate::Result;
use crate::process::Program;

/// A path in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tracked {
    pub(super) path: Box<[u8]>,
    pub(super) is_submodule: bool,
}

const SUBMODULE_MODE: u32 = 0o160_000;
const FOLDER_MODE: u32 = 0o040_000;

/// Everything the index tracks, in its order, which is that of the bytes.
pub(super) fn tracked(repository: &Repository) -> Result<Vec<Tracked>> {
    let bytes = match std::fs::read(repository.git_dir.join("index")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes.unwrap_or_default(),
    };
    let hash_len = if uses_sha256(repository) { 32 } else { 20 };
    parse(&bytes, hash_len).map_or_else(|| ask(repository), Ok)
}

/// The checksum at the end of the file.
pub(super) fn trailer(path: &Path) -> std::io::Result<[u8; 20]> {
    let mut file = File::open(path)?;
    let mut trailer = [0; 20];
    file.seek(SeekFrom::End(-20))?;
    file.read_exact(&mut trailer)?;
    Ok(trailer)
}

fn uses_sha256(repository: &Repository) -> bool {
    let config = std::fs::read_to_string(repository.common_dir.join("config")).unwrap_or_default();
    config
        .to_ascii_lowercase()
        .lines()
        .any(|line| line.trim().starts_with("objectformat") && line.contains("sha256"))
}

/// `None` when the file is not of a form that can be read on its own.
fn parse(bytes: &[u8], hash_len: usize) -> Option<Vec<Tracked>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = number(4)?;
    if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let count = number(8)? as usize;
    let mut entries: Vec<Tracked> = Vec::with_capacity(count.min(bytes.len() / 62));
    let mut at = 12;
    let mut previous: Vec<u8> = Vec::new();
    for _ in 0..count {
        let mode = number(at + 24)?;
        let flags =
            u16::from_be_bytes(bytes.get(at + 40 + hash_len..at + 42 + hash_len)?.try_into().ok()?);
        let is_extended = version >= 3 && flags & 0x4000 != 0;
        let name_at = at + 42 + hash_len + if is_extended { 2 } else { 0 };
        let (name, next) = if version == 4 {
            read_prefixed(bytes, name_at, &previous)?
        } else {
            let length = bytes.get(name_at..)?.iter().position(|byte| *byte == 0)?;
            // Entries are padded to eight bytes, with at least one zero.
            let padded = (name_at + length - at + 8) & !7;
            (bytes[name_at..name_at + length].to_vec(), at + padded)
        };
        if mode & 0o170_000 == FOLDER_MODE {
            return None; // a sparse index: whole folders stand for their files
        }
        let is_submodule = mode & 0o170_000 == SUBMODULE_MODE;
        previous.clone_from(&name);
        entries.push(Tracked { path: name.into(), is_submodule });
        at = next;
    }
    let is_split = bytes.get(at..at + 4)? == b"link";
    entries.dedup_by(|one, other| one.path == other.path); // a conflict has up to three entries
    (!is_split).then_some(entries)
}

/// Version 4 says how many bytes to cut off the name before, and what to append.
fn read_prefixed(bytes: &[u8], at: usize, previous: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut cut = 0usize;
    let mut place = at;
    loop {
        let byte = *bytes.get(place)?;
        cut = (cut << 7) | usize::from(byte & 0x7f);
        place += 1;
        if byte & 0x80 == 0 {
            break;
        }
        cut += 1;
    }
    let length = bytes.get(place..)?.iter().position(|byte| *byte == 0)?;
    let mut name = previous.get(..previous.len().checked_sub(cut)?)?.to_vec();
    name.extend_from_slice(&bytes[place..place + length]);
    Some((name, place + length + 1))
}

fn ask(repository: &Repository) -> Result<Vec<Tracked>> {
    let output = Program::git(&repository.top).args(["ls-files", "-z", "--stage"]).output()?;
    let mut entries: Vec<Tracked> = output
        .split(|byte| *byte == 0)
        .filter_map(|line| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            Some(Tracked {
                path: line[tab + 1..].into(),
                is_submodule: line.starts_with(b"160000"),
            })
        })
        .collect();
    entries.dedup_by(|one, other| one.path == other.path);
    Ok(entries)
}
