//! Unpacking what someone else packed, within limits: no few bytes become a full disk.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use super::BadBundle;

/// All files together.
pub(super) const MAX_BYTES: u64 = 20_000_000_000;
/// The same with names and what is between them.
const MAX_STREAM: u64 = MAX_BYTES + MAX_BYTES / 4;
const MAX_ENTRIES: u64 = 2_000_000;
/// What compresses better than this is no work of people.
const MAX_RATIO: u64 = 200;
/// Up to here it may.
const FREE_BYTES: u64 = 100_000_000;
/// No name is longer on any system.
const MAX_NAME: u64 = 4096;
/// What may follow the end of an archive.
const MAX_PADDING: u64 = 1 << 20;

/// One thing in an archive.
pub(super) struct Found<'f> {
    /// As it is written there.
    pub(super) path: Vec<u8>,
    pub(super) mode: u16,
    pub(super) what: What<'f>,
}

pub(super) enum What<'f> {
    Folder,
    Link(Vec<u8>),
    File { size: u64, bytes: &'f mut dyn Read },
}

type Taker<'t> = dyn FnMut(Found<'_>) -> crate::Result<()> + 't;

/// Hands out everything in a `.tar.gz`. Whatever is no file, folder or symbolic link ends it.
pub(super) fn each_entry(file: &str, packed: impl Read, take: &mut Taker<'_>) -> crate::Result<()> {
    let excess = Rc::new(Cell::new(None));
    let bad = |error: io::Error| match excess.get() {
        Some(what) => BadBundle::TooLarge { file: file.to_owned(), what },
        None => BadBundle::malformed(file, &error),
    };
    let mut archive = Archive::new(Inflate::new(packed, Rc::clone(&excess)));
    let (mut n_entries, mut n_bytes) = (0, 0u64);
    let (mut long_name, mut long_link) = (None, None);
    // Raw: extensions are read here, as far as we write them, so that none can outgrow the limits.
    for entry in archive.entries().map_err(bad)?.raw(true) {
        let mut entry = entry.map_err(bad)?;
        n_entries += 1;
        if n_entries > MAX_ENTRIES {
            excess.set(Some("it has more than 2,000,000 entries"));
            return Err(bad(io::ErrorKind::Other.into()).into());
        }
        let header = entry.header().clone();
        let (kind, size) = (header.entry_type(), header.entry_size().map_err(bad)?);
        match kind {
            EntryType::GNULongName => {
                long_name = Some(read_name(&mut entry).map_err(bad)?);
                continue;
            }
            EntryType::GNULongLink => {
                long_link = Some(read_name(&mut entry).map_err(bad)?);
                continue;
            }
            _ => {}
        }
        n_bytes = n_bytes.saturating_add(size);
        if n_bytes > MAX_BYTES {
            excess.set(Some("its files have more than 20 GB"));
            return Err(bad(io::ErrorKind::Other.into()).into());
        }
        let path = long_name.take().unwrap_or_else(|| header.path_bytes().into_owned());
        let target = long_link.take().or_else(|| Some(header.link_name_bytes()?.into_owned()));
        let what = match kind {
            EntryType::Directory => What::Folder,
            EntryType::Symlink => What::Link(target.unwrap_or_default()),
            EntryType::Regular => What::File { size, bytes: &mut entry },
            other => return Err(refused(&path, other).into()),
        };
        // Who may do what with a file goes along; whose rights it runs with does not.
        let mode = (header.mode().map_err(bad)? & 0o1777) as u16;
        take(Found { path, mode, what })?;
    }
    let mut rest = archive.into_inner().take(MAX_PADDING + 1);
    let n_rest = io::copy(&mut rest, &mut io::sink()).map_err(bad)?;
    if n_rest > MAX_PADDING {
        return Err(BadBundle::malformed(file, &"it goes on behind its end").into());
    }
    Ok(())
}

fn read_name(entry: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut name = Vec::new();
    entry.take(MAX_NAME + 1).read_to_end(&mut name)?;
    if name.last() == Some(&0) {
        name.pop();
    }
    match name.len() as u64 >= MAX_NAME {
        true => Err(io::Error::other("it has a name of more than 4,096 bytes")),
        false => Ok(name),
    }
}

fn refused(path: &[u8], kind: EntryType) -> BadBundle {
    let path = bivouac_core::text::printable_bytes(path);
    let what = match kind {
        EntryType::Link => "which is a hard link",
        EntryType::Char | EntryType::Block | EntryType::Fifo => "which is a device",
        _ => "which is neither a file, a folder nor a link",
    };
    BadBundle::Refused { path, what }
}

/// Unpacks, and stops where there is too much of it.
struct Inflate<R> {
    inner: GzDecoder<Counted<R>>,
    n_in: Rc<Cell<u64>>,
    n_out: u64,
    excess: Rc<Cell<Option<&'static str>>>,
}

impl<R: Read> Inflate<R> {
    fn new(packed: R, excess: Rc<Cell<Option<&'static str>>>) -> Self {
        let n_in = Rc::new(Cell::new(0));
        let counted = Counted { inner: packed, n_read: Rc::clone(&n_in) };
        Self { inner: GzDecoder::new(counted), n_in, n_out: 0, excess }
    }
}

impl<R: Read> Read for Inflate<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(into)?;
        self.n_out += length as u64;
        let is_bomb = self.n_out > FREE_BYTES && self.n_out / MAX_RATIO > self.n_in.get();
        let excess = match (is_bomb, self.n_out > MAX_STREAM) {
            (true, _) => "it unpacks to more than 200 times its size",
            (_, true) => "it has more than 20 GB",
            (false, false) => return Ok(length),
        };
        self.excess.set(Some(excess));
        Err(io::Error::other(excess))
    }
}

struct Counted<R> {
    inner: R,
    n_read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(into)?;
        self.n_read.set(self.n_read.get() + length as u64);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, Header};

    use super::*;

    fn read(packed: &[u8]) -> Result<u64, String> {
        let mut n_files = 0;
        let result = each_entry("x", packed, &mut |_| {
            n_files += 1;
            Ok(())
        });
        result.map(|()| n_files).map_err(|error| error.to_string())
    }

    /// An archive whose one file says it has `size` bytes and brings `zeros`.
    fn archive(size: u64, zeros: u64) -> Vec<u8> {
        let mut header = Header::new_gnu();
        header.set_path("a").unwrap();
        header.set_size(size);
        header.set_mode(0o644);
        header.set_cksum();
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(header.as_bytes()).unwrap();
        io::copy(&mut io::repeat(0).take(zeros), &mut packed).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        let told = read(&archive(2_000_000_000, 150_000_000)).unwrap_err();
        assert_eq!(
            told,
            "`x` in the bundle is too large: it unpacks to more than 200 times its size"
        );
        let told = read(&archive(u64::from(u32::MAX) * 1000, 0)).unwrap_err();
        assert_eq!(told, "`x` in the bundle is too large: its files have more than 20 GB");
        assert_eq!(read(&archive(50_000_000, 50_001_920)), Ok(1));
    }

    #[test]
    fn what_is_cut_off_is_told() {
        let whole = archive(1000, 1024 + 1024);
        assert_eq!(read(&whole), Ok(1));
        for length in [0, 5, whole.len() / 2, whole.len() - 1] {
            let told = read(&whole[..length]).unwrap_err();
            assert!(told.starts_with("`x` in the bundle cannot be used: "), "{length}: {told}");
        }
    }

    #[test]
    fn names_without_end_are_refused() {
        let mut header = Header::new_gnu();
        header.set_path("././@LongLink").unwrap();
        header.set_entry_type(EntryType::GNULongName);
        header.set_size(10_000_000);
        header.set_cksum();
        let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        builder.append(&header, io::repeat(b'a').take(10_000_000)).unwrap();
        let packed = builder.into_inner().unwrap().finish().unwrap();
        let told = read(&packed).unwrap_err();
        assert!(told.ends_with("it has a name of more than 4,096 bytes"), "{told}");
    }
}
