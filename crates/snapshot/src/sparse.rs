//! Writing a file so that long runs of zeros become holes: they take no room on the disk, and a sparse
//! file comes back sparse. Readers cannot tell a hole from zeros.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Zeros are skipped in pieces of at most this size that begin at multiples of it. File systems allocate
/// in blocks of 4 to 64 KiB, so smaller runs would save nothing and cost a system call each.
const PIECE: u64 = 64 << 10;

/// Fills a new, empty file from its beginning to its end.
pub(crate) struct SparseWriter<'f> {
    file: &'f File,
    /// Where the next byte goes.
    at: u64,
    /// Up to here the file has bytes.
    end: u64,
}

impl<'f> SparseWriter<'f> {
    pub(crate) const fn new(file: &'f File) -> Self {
        Self { file, at: 0, end: 0 }
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let zeros = self.run(bytes, Fill::Zeros);
            self.at += zeros as u64;
            let data = self.run(&bytes[zeros..], Fill::Data);
            if data > 0 {
                self.file.write_all_at(&bytes[zeros..zeros + data], self.at)?;
                self.at += data as u64;
                self.end = self.at;
            }
            bytes = &bytes[zeros + data..];
        }
        Ok(())
    }

    /// A hole at the end of a file exists only in its length.
    pub(crate) fn finish(self) -> io::Result<()> {
        if self.end < self.at { self.file.set_len(self.at) } else { Ok(()) }
    }

    /// How many of the bytes, in whole pieces, are of this kind.
    fn run(&self, bytes: &[u8], fill: Fill) -> usize {
        let mut length = 0;
        while length < bytes.len() {
            let to_border = PIECE - (self.at + length as u64) % PIECE;
            let piece = (bytes.len() - length).min(to_border as usize);
            let is_zero = bytes[length..length + piece].iter().all(|byte| *byte == 0);
            if is_zero != (fill == Fill::Zeros) {
                break;
            }
            length += piece;
        }
        length
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Zeros,
    Data,
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// Writes in parts of these lengths and answers the bytes and how many are allocated.
    fn written(bytes: &[u8], parts: &[usize]) -> (Vec<u8>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let file = File::create(&path).unwrap();
        let mut writer = SparseWriter::new(&file);
        let mut rest = bytes;
        for length in parts {
            let (part, behind) = rest.split_at((*length).min(rest.len()));
            writer.write(part).unwrap();
            rest = behind;
        }
        writer.write(rest).unwrap();
        writer.finish().unwrap();
        file.sync_all().unwrap();
        (std::fs::read(&path).unwrap(), file.metadata().unwrap().blocks() * 512)
    }

    #[test]
    fn every_byte_is_written_wherever_the_parts_end() {
        let piece = PIECE as usize;
        let mut bytes = vec![0; 6 * piece + 77];
        let length = bytes.len();
        for at in [0, piece - 1, 3 * piece, 4 * piece + 9, length - 1] {
            bytes[at] = 1;
        }
        for parts in [vec![], vec![1, 2, 3], vec![piece; 6], vec![piece + 1; 5], vec![4096; 97]] {
            assert!(written(&bytes, &parts).0 == bytes, "{parts:?}");
        }
        for length in [0, 1, 4096, piece, piece + 1, 3 * piece] {
            let zeros = vec![0; length];
            assert_eq!(written(&zeros, &[100]).0, zeros);
            let data = vec![7; length];
            assert_eq!(written(&data, &[100]).0, data);
        }
    }

    #[test]
    fn zeros_take_no_room_although_the_parts_end_inside_a_piece() {
        let piece = PIECE as usize;
        let mut bytes = vec![0; 64 * piece];
        bytes[20 * piece + 5] = 1;
        let (_, allocated) = written(&bytes, &[3 * piece + 1, 7 * piece + 5, 11]);
        assert!(allocated <= 2 * PIECE, "{allocated}");
    }
}
