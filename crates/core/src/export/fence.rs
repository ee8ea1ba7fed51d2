//! Lines of a file that may be anybody's, as bytes, and which of them are inside a code fence.

/// A line with its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteLine<'a> {
    pub number: usize,
    pub start: usize,
    pub bytes: &'a [u8],
    pub is_fenced: bool,
}

impl<'a> ByteLine<'a> {
    pub(super) const fn end(&self) -> usize {
        self.start + self.bytes.len()
    }

    /// Without its ending and the blanks before it.
    pub(super) fn trimmed(&self) -> &'a [u8] {
        self.bytes.trim_ascii_end()
    }
}

/// Every line of a file, and the number of the line that opened a fence nobody closed.
pub(super) fn lines(file: &[u8]) -> (Vec<ByteLine<'_>>, Option<usize>) {
    let mut found = Vec::new();
    let mut open: Option<(Fence, usize)> = None;
    let mut start = 0;
    for (place, bytes) in file.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let number = place + 1;
        let line = bytes.trim_ascii_end();
        let is_fenced = match open {
            Some((fence, _)) => {
                if fence.is_closed_by(line) {
                    open = None;
                }
                true
            }
            None => {
                open = Fence::opened_by(line).map(|fence| (fence, number));
                open.is_some()
            }
        };
        found.push(ByteLine { number, start, bytes, is_fenced });
        start += bytes.len();
    }
    (found, open.map(|(_, number)| number))
}

/// The sign a fence is made of, and how many of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    sign: u8,
    length: usize,
}

impl Fence {
    pub(super) fn opened_by(line: &[u8]) -> Option<Self> {
        let (sign, length, rest) = Self::run(line)?;
        // A line with backticks behind the fence is code within a line.
        let is_code = sign == b'`' && rest.contains(&b'`');
        (!is_code).then_some(Self { sign, length })
    }

    pub(super) fn is_closed_by(self, line: &[u8]) -> bool {
        Self::run(line).is_some_and(|(sign, length, rest)| {
            sign == self.sign && length >= self.length && rest.trim_ascii().is_empty()
        })
    }

    fn run(line: &[u8]) -> Option<(u8, usize, &[u8])> {
        let indent = line.iter().take_while(|byte| **byte == b' ').count();
        let line = &line[indent..];
        let sign = *line.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let length = line.iter().take_while(|byte| **byte == sign).count();
        (indent <= 3 && length >= 3).then(|| (sign, length, &line[length..]))
    }
}

/// How the lines of a file end: as its first one does.
pub(super) fn ending(file: &[u8]) -> &'static str {
    let first = file.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if first.ends_with(b"\r") { "\r\n" } else { "\n" }
}

/// The level and the words of a line that is a heading.
pub(super) fn heading(line: &[u8]) -> Option<(usize, &[u8])> {
    let indent = line.iter().take_while(|byte| **byte == b' ').count();
    let line = &line[indent..];
    let level = line.iter().take_while(|byte| **byte == b'#').count();
    let rest = &line[level..];
    let is_heading = indent <= 3 && (1..=6).contains(&level);
    let is_apart = rest.first().is_none_or(u8::is_ascii_whitespace);
    (is_heading && is_apart).then(|| (level, rest.trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_closed_by_its_own_kind_only() {
        let file = b"a\n````md\n```\n~~~\n````\nb\n```x`\n    ```\n~~~\n";
        let (lines, open) = lines(file);
        let fenced: Vec<usize> =
            lines.iter().filter(|it| it.is_fenced).map(|it| it.number).collect();
        assert_eq!((fenced, open), (vec![2, 3, 4, 5, 9], Some(9)));
    }

    #[test]
    fn headings_are_known() {
        assert_eq!(heading(b"## Working State  "), Some((2, &b"Working State"[..])));
        assert_eq!(heading(b"#hash"), None);
        assert_eq!(heading(b"    # code"), None);
        assert_eq!(heading(b"#"), Some((1, &b""[..])));
    }
}
