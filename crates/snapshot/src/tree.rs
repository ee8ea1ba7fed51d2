//! One folder as a stored object: every name in it with what it is, sorted. A folder that did not
//! change has the same object as before, so it costs nothing.
//!
//! What was left out stands in the tree as well, as a gap with its reason. A name that is not there
//! was not in the folder at all; only that may be called "born later" by a rollback.

use bivouac_core::checkpoint::Gap;
use bivouac_core::id::ObjectId;
use bivouac_core::path::is_name;

use crate::bytes::{Reader, put_varint};
use crate::{Error, Result};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Sorted by name, each name once.
    entries: Vec<(Box<[u8]>, Entry)>,
}

/// What stands under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    File(FileEntry),
    /// A symbolic link; the object is the path it holds.
    Link(ObjectId),
    Folder {
        mode: u16,
        tree: ObjectId,
    },
    /// Something that is there and was not captured.
    Gap {
        why: Gap,
        is_folder: bool,
    },
}

impl Entry {
    /// The bytes it needs, beside its own line.
    pub const fn content(&self) -> Option<Content> {
        match self {
            Self::File(file) => Some(file.content),
            Self::Link(target) => Some(Content::Whole(*target)),
            Self::Folder { .. } | Self::Gap { .. } => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileEntry {
    pub mode: u16,
    pub size: u64,
    pub content: Content,
}

/// Where a file's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// One object holds them all.
    Whole(ObjectId),
    /// The object is a list of chunks.
    Chunked(ObjectId),
}

impl Content {
    pub const fn id(&self) -> &ObjectId {
        match self {
            Self::Whole(id) | Self::Chunked(id) => id,
        }
    }
}

const VERSION: u8 = 1;
const WHOLE: u8 = 0;
const CHUNKED: u8 = 1;
const LINK: u8 = 2;
const FOLDER: u8 = 3;
const GAP: u8 = 4;

impl Tree {
    /// Takes entries that are already sorted by name.
    pub fn from_sorted(entries: Vec<(Box<[u8]>, Entry)>) -> Self {
        debug_assert!(
            entries.is_sorted_by(|one, other| one.0 < other.0),
            "names are sorted and unique"
        );
        Self { entries }
    }

    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&[u8], &Entry)> {
        self.entries.iter().map(|(name, entry)| (name.as_ref(), entry))
    }

    /// The entry with this number, in order of the names.
    pub(crate) fn at(&self, number: usize) -> Option<(&[u8], &Entry)> {
        self.entries.get(number).map(|(name, entry)| (name.as_ref(), entry))
    }

    pub fn get(&self, name: &[u8]) -> Option<&Entry> {
        let place = self.entries.binary_search_by(|(own, _)| own.as_ref().cmp(name)).ok()?;
        Some(&self.entries[place].1)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.entries.len() * 64);
        out.push(VERSION);
        put_varint(&mut out, self.entries.len() as u64);
        for (name, entry) in &self.entries {
            put_varint(&mut out, name.len() as u64);
            out.extend_from_slice(name);
            encode_entry(&mut out, entry);
        }
        out
    }

    /// Reads a stored tree, trusting nothing: names that could lead elsewhere are refused.
    pub fn decode(id: &ObjectId, bytes: &[u8]) -> Result<Self> {
        decode(bytes).ok_or(Error::Malformed { id: *id, what: "tree" })
    }
}

/// One entry without its name. Also used by restore plans.
pub(crate) fn encode_entry(out: &mut Vec<u8>, entry: &Entry) {
    match entry {
        Entry::File(file) => {
            out.push(if matches!(file.content, Content::Whole(_)) { WHOLE } else { CHUNKED });
            out.extend_from_slice(&file.mode.to_le_bytes());
            put_varint(out, file.size);
            out.extend_from_slice(file.content.id().as_bytes());
        }
        Entry::Link(target) => {
            out.push(LINK);
            out.extend_from_slice(target.as_bytes());
        }
        Entry::Folder { mode, tree } => {
            out.push(FOLDER);
            out.extend_from_slice(&mode.to_le_bytes());
            out.extend_from_slice(tree.as_bytes());
        }
        Entry::Gap { why, is_folder } => {
            out.extend_from_slice(&[GAP, gap_code(*why), u8::from(*is_folder)]);
        }
    }
}

pub(crate) fn decode_entry(reader: &mut Reader<'_>) -> Option<Entry> {
    let entry = match reader.byte()? {
        tag @ (WHOLE | CHUNKED) => {
            let mode = mode(reader)?;
            let size = reader.varint()?;
            let id = reader.object_id()?;
            let content = if tag == WHOLE { Content::Whole(id) } else { Content::Chunked(id) };
            Entry::File(FileEntry { mode, size, content })
        }
        LINK => Entry::Link(reader.object_id()?),
        FOLDER => Entry::Folder { mode: mode(reader)?, tree: reader.object_id()? },
        GAP => Entry::Gap { why: gap_from_code(reader.byte()?)?, is_folder: reader.bool()? },
        _ => return None,
    };
    Some(entry)
}

fn mode(reader: &mut Reader<'_>) -> Option<u16> {
    let mode = reader.u16()?;
    (mode <= 0o7777).then_some(mode)
}

fn decode(bytes: &[u8]) -> Option<Tree> {
    let mut reader = Reader::new(bytes);
    if reader.byte()? != VERSION {
        return None;
    }
    let count = reader.varint()?;
    // An entry has at least four bytes: nothing is allocated for what cannot be there.
    let capacity = usize::try_from(count).ok()?.min(bytes.len() / 4);
    let mut entries: Vec<(Box<[u8]>, Entry)> = Vec::with_capacity(capacity);
    for _ in 0..count {
        let length = usize::try_from(reader.varint()?).ok()?;
        let name = reader.take(length)?;
        let is_sorted = entries.last().is_none_or(|(last, _)| last.as_ref() < name);
        if !is_name(name) || name == b".git" || !is_sorted {
            return None;
        }
        entries.push((name.into(), decode_entry(&mut reader)?));
    }
    reader.is_empty().then_some(Tree { entries })
}

/// Stored for ever: a new gap gets a new number.
pub(crate) fn gap_code(gap: Gap) -> u8 {
    match gap {
        Gap::Ignored => 1,
        Gap::Excluded => 2,
        Gap::TooLarge => 3,
        Gap::Unreadable => 4,
        Gap::Special => 5,
        Gap::ChangedWhileRead => 6,
        Gap::OwnState => 7,
    }
}

pub(crate) fn gap_from_code(code: u8) -> Option<Gap> {
    Gap::ALL.into_iter().find(|gap| gap_code(*gap) == code)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_id() -> impl Strategy<Value = ObjectId> {
        any::<[u8; 32]>().prop_map(ObjectId::from_bytes)
    }

    fn any_entry() -> impl Strategy<Value = Entry> {
        let content =
            prop_oneof![any_id().prop_map(Content::Whole), any_id().prop_map(Content::Chunked)];
        let file = (0u16..=0o7777, any::<u64>(), content)
            .prop_map(|(mode, size, content)| Entry::File(FileEntry { mode, size, content }));
        let folder =
            (0u16..=0o7777, any_id()).prop_map(|(mode, tree)| Entry::Folder { mode, tree });
        let gap = (prop::sample::select(&Gap::ALL[..]), any::<bool>())
            .prop_map(|(why, is_folder)| Entry::Gap { why, is_folder });
        prop_oneof![file, folder, gap, any_id().prop_map(Entry::Link)]
    }

    proptest! {
        #[test]
        fn a_tree_survives_being_stored(
            entries in prop::collection::btree_map("[a-zé]{1,12}", any_entry(), 0..20),
        ) {
            let sorted = entries.into_iter().map(|(name, entry)| (name.into_bytes().into(), entry));
            let tree = Tree::from_sorted(sorted.collect());
            let bytes = tree.encode();
            prop_assert_eq!(Tree::decode(&ObjectId::of(&bytes), &bytes).unwrap(), tree);
        }

        #[test]
        fn no_bytes_make_the_decoder_fall(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _result = Tree::decode(&ObjectId::of(&bytes), &bytes);
        }
    }

    #[test]
    fn a_tree_has_one_form() {
        let entry = Entry::Gap { why: Gap::Ignored, is_folder: false };
        let mut bytes = Tree { entries: vec![(b"a"[..].into(), entry)] }.encode();
        assert!(Tree::decode(&ObjectId::of(&bytes), &bytes).is_ok());
        *bytes.last_mut().unwrap() = 2;
        assert!(Tree::decode(&ObjectId::of(&bytes), &bytes).is_err());
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let check = |name: &[u8]| {
            let entry = Entry::Gap { why: Gap::Ignored, is_folder: false };
            let bytes = Tree { entries: vec![(name.into(), entry)] }.encode();
            assert!(
                Tree::decode(&ObjectId::of(&bytes), &bytes).is_err(),
                "{}",
                name.escape_ascii()
            );
        };
        check(b"..");
        check(b".");
        check(b"");
        check(b"a/b");
        check(b"a\0b");
        check(b".git");
    }
}
