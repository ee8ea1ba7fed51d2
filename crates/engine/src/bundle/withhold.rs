//! Which files stay behind when a bundle is shared: those whose names say that they hold secrets, those in which
//! the redactor finds one, and those that `workspace.include` captures although git ignores them.
//!
//! A file is withheld as a whole. Blotting a secret out of it would change the file without a word, and whoever
//! imports the bundle would run something that was never written.

use std::collections::BTreeMap;
use std::io::{self, Read};

use bivouac_core::path::RelPath;
use bivouac_core::redact::Redactor;
use bivouac_core::redact::file::{Kind, kind_of};
use bivouac_snapshot::objects::Objects;
use bivouac_snapshot::rules::{Rules, Verdict};
use bivouac_snapshot::tree::{Entry, FileEntry};

use super::tarball::Stored;
use super::{Care, Reason};
use crate::{Engine, Result};

/// Settings larger than this are something else.
const MAX_SETTINGS: u64 = 1 << 20;
/// Files up to this size are read once, and written from memory.
const MAX_IN_MEMORY: u64 = 4 << 20;
/// Larger ones are looked at in windows, which overlap so that no secret is cut in two.
const WINDOW: usize = 4 << 20;
const OVERLAP: usize = 16 << 10;

/// What is known about the files that stay behind.
pub(super) type Reasons = BTreeMap<RelPath, Reason>;

impl Engine {
    /// The files whose names tell.
    pub(super) fn withheld_by_name(&self, entries: &[(RelPath, Entry)], care: Care) -> Reasons {
        if care == Care::Raw {
            return Reasons::new();
        }
        let include = Rules::from_lines(self.config.include.iter().map(String::as_str));
        let is_included = |path: &RelPath| {
            let folders = std::iter::successors(path.parent(), RelPath::parent);
            let mut judged = folders.map(|it| include.judge(it.as_bytes(), true));
            include.judge(path.as_bytes(), false) == Some(Verdict::Ignore)
                || judged.any(|it| it == Some(Verdict::Ignore))
        };
        let reason_of = |path: &RelPath| match kind_of(path.as_bytes()) {
            Kind::Secret => Some(Reason::Name),
            // A template is there to be shared, however it was captured.
            Kind::Example => None,
            Kind::Ordinary => is_included(path).then_some(Reason::Include),
        };
        let files = entries.iter().filter(|(_, it)| matches!(it, Entry::File(_) | Entry::Link(_)));
        files.filter_map(|(path, _)| Some((path.clone(), reason_of(path)?))).collect()
    }

    /// What is written in the files that stay behind: their values are secrets elsewhere, too.
    pub(super) fn settings_in(
        &self,
        entries: &[(RelPath, Entry)],
        withheld: &Reasons,
    ) -> Result<Vec<String>> {
        let _store_lock = self.use_store()?;
        let index = self.index();
        let objects = self.objects(&index);
        let mut texts = Vec::new();
        for (_, entry) in entries.iter().filter(|(path, _)| withheld.contains_key(path)) {
            if let Entry::File(file) = entry
                && file.size <= MAX_SETTINGS
            {
                let bytes = whole(&objects, file)?;
                texts.push(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        Ok(texts)
    }
}

/// What becomes of a file.
pub(super) enum Judged<'o> {
    Withheld,
    Small(io::Cursor<Vec<u8>>),
    Large(Box<Stored<'o>>),
}

/// Looks for secrets in a file. Without a redactor, all of them may go.
pub(super) fn judge<'o>(
    objects: &'o Objects<'o>,
    path: &RelPath,
    file: &FileEntry,
    redactor: Option<&Redactor>,
) -> Result<Judged<'o>> {
    let kind = kind_of(path.as_bytes());
    let finds = |bytes: &[u8]| redactor.is_some_and(|redactor| redactor.finds_in(bytes, kind));
    if finds(path.as_bytes()) {
        return Ok(Judged::Withheld);
    }
    if file.size <= MAX_IN_MEMORY {
        let bytes = whole(objects, file)?;
        return Ok(if finds(&bytes) {
            Judged::Withheld
        } else {
            Judged::Small(io::Cursor::new(bytes))
        });
    }
    let mut window = Vec::new();
    let mut is_found = false;
    if redactor.is_some() {
        objects.each_part(&file.content, &mut |part| {
            window.extend_from_slice(part);
            if !is_found && window.len() >= WINDOW {
                is_found = finds(&window);
                window.drain(..window.len() - OVERLAP);
            }
            Ok(())
        })?;
    }
    match is_found || finds(&window) {
        true => Ok(Judged::Withheld),
        false => Ok(Judged::Large(Box::new(Stored::open(objects, &file.content)?))),
    }
}

fn whole(objects: &Objects<'_>, file: &FileEntry) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    objects.each_part(&file.content, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })?;
    Ok(bytes)
}

impl Read for Judged<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Withheld => Ok(0),
            Self::Small(bytes) => bytes.read(into),
            Self::Large(stored) => stored.read(into),
        }
    }
}
