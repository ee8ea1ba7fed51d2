//! Writing a `.tar.gz` whose bytes follow from its contents alone: no times, no owners, names as they are.

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use bivouac_core::id::ObjectId;
use bivouac_snapshot::objects::Objects;
use bivouac_snapshot::tree::Content;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::Seal;

/// What fits into a header; longer names stand before it.
const SHORT_NAME: usize = 100;

pub(super) struct Tarball<W: Write> {
    builder: Builder<GzEncoder<Sealed<W>>>,
}

impl<W: Write> Tarball<W> {
    pub(super) fn new(to: W, level: Compression) -> Self {
        let to = GzBuilder::new().mtime(0).write(Sealed::new(to), level);
        Self { builder: Builder::new(to) }
    }

    pub(super) fn folder(&mut self, path: &[u8], mode: u16) -> io::Result<()> {
        self.entry(path, EntryType::Directory, mode, (0, &mut io::empty()))
    }

    pub(super) fn link(&mut self, path: &[u8], target: &[u8]) -> io::Result<()> {
        if target.len() > SHORT_NAME {
            self.long(EntryType::GNULongLink, target)?;
        }
        let mut header = self.header(path, EntryType::Symlink)?;
        header.set_link_name_literal(&target[..target.len().min(SHORT_NAME)])?;
        header.set_mode(0o777);
        header.set_size(0);
        header.set_cksum();
        self.builder.append(&header, io::empty())
    }

    /// The bytes have to be as many as is said.
    pub(super) fn file(
        &mut self,
        path: &[u8],
        mode: u16,
        bytes: (u64, &mut dyn Read),
    ) -> io::Result<()> {
        self.entry(path, EntryType::Regular, mode, bytes)
    }

    pub(super) fn finish(self) -> io::Result<(W, Seal)> {
        self.builder.into_inner()?.finish().map(Sealed::finish)
    }

    fn entry(
        &mut self,
        path: &[u8],
        kind: EntryType,
        mode: u16,
        (size, bytes): (u64, &mut dyn Read),
    ) -> io::Result<()> {
        let mut header = self.header(path, kind)?;
        header.set_mode(u32::from(mode));
        header.set_size(size);
        header.set_cksum();
        let mut counted = Counted { inner: bytes.take(size), n_read: 0 };
        self.builder.append(&header, &mut counted)?;
        match counted.n_read == size {
            true => Ok(()),
            false => Err(io::Error::other("a stored file is shorter than its entry says")),
        }
    }

    /// A header with its name. The `tar` crate tidies names; ours are kept to the byte.
    fn header(&mut self, path: &[u8], kind: EntryType) -> io::Result<Header> {
        if path.len() > SHORT_NAME {
            self.long(EntryType::GNULongName, path)?;
        }
        let mut header = Header::new_gnu();
        if let Some(gnu) = header.as_gnu_mut() {
            let length = path.len().min(SHORT_NAME);
            gnu.name[..length].copy_from_slice(&path[..length]);
        }
        header.set_entry_type(kind);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        Ok(header)
    }

    fn long(&mut self, kind: EntryType, name: &[u8]) -> io::Result<()> {
        let mut header = self.header(b"././@LongLink", kind)?;
        header.set_mode(0o644);
        header.set_size(name.len() as u64 + 1);
        header.set_cksum();
        self.builder.append(&header, name.chain(&b"\0"[..]))
    }
}

struct Counted<R> {
    inner: R,
    n_read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(into)?;
        self.n_read += length as u64;
        Ok(length)
    }
}

/// Takes the hash of what goes through.
struct Sealed<W> {
    inner: W,
    hasher: blake3::Hasher,
    size_bytes: u64,
}

impl<W> Sealed<W> {
    fn new(inner: W) -> Self {
        Self { inner, hasher: blake3::Hasher::new(), size_bytes: 0 }
    }

    fn finish(self) -> (W, Seal) {
        let blake3 = self.hasher.finalize().to_hex().to_string();
        (self.inner, Seal { blake3, size_bytes: self.size_bytes })
    }
}

impl<W: Write> Write for Sealed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..length]);
        self.size_bytes += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A stored file, one object at a time.
pub(super) struct Stored<'o> {
    objects: &'o Objects<'o>,
    left: VecDeque<ObjectId>,
    piece: io::Cursor<Vec<u8>>,
}

impl<'o> Stored<'o> {
    pub(super) fn open(
        objects: &'o Objects<'o>,
        content: &Content,
    ) -> bivouac_snapshot::Result<Self> {
        let left = match content {
            Content::Whole(id) => VecDeque::from([*id]),
            Content::Chunked(id) => {
                objects.chunk_list(id)?.chunks.into_iter().map(|(id, _)| id).collect()
            }
        };
        Ok(Self { objects, left, piece: io::Cursor::default() })
    }
}

impl Read for Stored<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.piece.read(into)?;
            if length > 0 || into.is_empty() {
                return Ok(length);
            }
            let Some(next) = self.left.pop_front() else {
                return Ok(0);
            };
            self.piece = io::Cursor::new(self.objects.get(&next).map_err(io::Error::other)?);
        }
    }
}
