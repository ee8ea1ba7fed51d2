//! Reading on in a file of JSON lines: from where we were, up to the last whole line. What is torn,
//! padded or no JSON is counted and passed over, whatever its length.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use serde_json::Value;

/// No line of an agent's is longer. A longer one is passed over without being held in memory.
pub const MAX_LINE: usize = 64 << 20;

/// How far reading came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Just past the last whole line.
    pub offset: u64,
    pub n_lines: u64,
    /// Lines that are no JSON.
    pub n_bad: u64,
}

/// Hands every whole record from `offset` on to `take`, with the offset just past it.
pub fn read_records(
    file: &File,
    offset: u64,
    mut take: impl FnMut(&Value, u64),
) -> io::Result<Progress> {
    let mut reader = BufReader::with_capacity(256 << 10, file);
    reader.seek(SeekFrom::Start(offset))?;
    let mut progress = Progress { offset, ..Progress::default() };
    let mut line = Vec::new();
    while let Some(length) = next_line(&mut reader, &mut line)? {
        progress.offset += length;
        progress.n_lines += 1;
        match parse(&line) {
            Line::Record(record) => take(&record, progress.offset),
            Line::Blank => {}
            Line::Bad => progress.n_bad += 1,
        }
    }
    Ok(progress)
}

enum Line {
    Record(Value),
    Blank,
    Bad,
}

fn parse(line: &[u8]) -> Line {
    // A crash can leave zeros where the file system had room for a line.
    let start = line.iter().position(|byte| *byte != 0).unwrap_or(line.len());
    let text = line[start..].trim_ascii();
    match text.is_empty() {
        true => Line::Blank,
        false => super::parse(text).map_or(Line::Bad, Line::Record),
    }
}

/// The length of the next line with its end, or nothing when the rest has no end yet.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<u64>> {
    line.clear();
    let mut length = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(None);
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |end| end + 1);
        if line.len() + used <= MAX_LINE {
            line.extend_from_slice(&buffer[..used]);
        } else {
            line.clear();
            line.push(b'!'); // no JSON, so it counts as bad
        }
        reader.consume(used);
        length += used as u64;
        if end.is_some() {
            return Ok(Some(length));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(bytes: &[u8], offset: u64) -> (Vec<String>, Progress) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let mut seen = Vec::new();
        let progress =
            read_records(&file, offset, |record, _| seen.push(record.to_string())).unwrap();
        (seen, progress)
    }

    #[test]
    fn whole_lines_are_read_and_a_torn_end_waits() {
        let (seen, progress) = read(b"{\"a\":1}\n{\"b\":2}\n{\"c\":", 0);
        assert_eq!(seen, [r#"{"a":1}"#, r#"{"b":2}"#]);
        assert_eq!(progress, Progress { offset: 16, n_lines: 2, n_bad: 0 });
        let (seen, _) = read(b"{\"a\":1}\n{\"b\":2}\n", 8);
        assert_eq!(seen, [r#"{"b":2}"#]);
    }

    #[test]
    fn a_line_with_half_a_character_is_read() {
        let (seen, progress) = read(b"{\"a\":\"cut \\ud83d\"}\n", 0);
        assert_eq!(seen, ["{\"a\":\"cut \u{fffd}\"}"]);
        assert_eq!(progress.n_bad, 0);
    }

    #[test]
    fn padding_and_rubbish_are_passed_over() {
        let (seen, progress) = read(b"\0\0\0\0{\"a\":1}\n\0\0\n\nnot json\n{\"b\":2}\n", 0);
        assert_eq!(seen, [r#"{"a":1}"#, r#"{"b":2}"#]);
        assert_eq!(progress.n_bad, 1);
    }
}
