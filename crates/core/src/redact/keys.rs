//! Private keys: in armour (`-----BEGIN … PRIVATE KEY-----`), and as PuTTY writes them.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::Spot;
use super::shapes::is_value;

/// Private keys, each as a whole, also with their line ends escaped. One that breaks off goes as far as
/// it looks like one.
pub(super) fn spots(text: &str) -> Vec<Spot<'_>> {
    const MARKS: [&str; 2] = ["-----BEGIN ", "Private-Lines: "];
    static KEYS: LazyLock<AhoCorasick> =
        LazyLock::new(|| AhoCorasick::new(MARKS).expect("a fixed and short list"));
    let mut spots = Vec::new();
    let mut from = 0;
    for mark in KEYS.find_iter(text) {
        if mark.start() < from {
            continue;
        }
        let found = match mark.pattern().as_usize() {
            0 => armoured_key(text, mark.range()),
            _ => putty_key(text, mark.end()),
        };
        if let Some(range) = found {
            from = range.end;
            spots.push(Spot::at(range));
        }
    }
    spots
}

fn armoured_key(text: &str, begin: Range<usize>) -> Option<Range<usize>> {
    const DASHES: &str = "-----";
    /// As in `OPENSSH PRIVATE KEY`.
    const LONGEST_KIND: usize = 60;
    let kind = &text[begin.end..];
    let kind = &kind[..kind.floor_char_boundary(LONGEST_KIND)];
    let is_private = |kind: &str| kind.contains("PRIVATE KEY") || kind.contains("Static key");
    let length = kind.find(DASHES).filter(|end| is_private(&kind[..*end]))?;
    Some(begin.start..end_of_key(text, begin.end + length + DASHES.len()))
}

/// The lines of a PuTTY key that are private. Its comment and its public half stay.
fn putty_key(text: &str, number: usize) -> Option<Range<usize>> {
    const END: &str = "Private-MAC";
    /// No key is longer.
    const LONGEST: usize = 16_384;
    let bytes = text.as_bytes();
    let digits = bytes[number..].iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &text[number + digits..];
    // A note keeps its text on one line.
    let is_folded = rest.starts_with(' ');
    let body = rest.trim_start_matches("\\r").trim_start_matches("\\n");
    let body = body.trim_start_matches(['\r', '\n', ' ']);
    let start = text.len() - body.len();
    let body = &body[..body.floor_char_boundary(LONGEST)];
    let is_in = |byte: u8| {
        is_value(byte) || matches!(byte, b'\n' | b'\r' | b'\\') || is_folded && byte == b' '
    };
    let run = &body[..body.bytes().position(|byte| !is_in(byte)).unwrap_or(body.len())];
    let key = match run.find(END) {
        Some(end) => &run[..end],
        None if is_folded => run.split(' ').next().unwrap_or(run),
        None => run,
    };
    let key = key.trim_end_matches(['\r', '\n', ' ']);
    let key = key.trim_end_matches("\\n").trim_end_matches("\\r");
    (digits > 0 && key.len() > 20).then(|| start..start + key.len())
}

fn end_of_key(text: &str, body: usize) -> usize {
    const END: &str = "-----END ";
    let rest = &text[body..];
    let dashes = rest.find("-----").unwrap_or(rest.len());
    let quote = rest[..dashes].find(['"', '\'', '`']);
    if quote.is_none() && rest[dashes..].starts_with(END) {
        let kind = &rest[dashes + END.len()..];
        let kind = &kind[..kind.floor_char_boundary(60)];
        let closing = kind.find("-----").map_or(0, |closing| closing + 5);
        return body + dashes + END.len() + closing;
    }
    let mut before = b'\n';
    let length = rest.bytes().take(quote.unwrap_or(dashes)).take_while(|byte| {
        let is_indent = *byte == b' ' && matches!(before, b'\n' | b' ' | b':');
        before = *byte;
        is_indent || is_value(*byte) || matches!(byte, b'\n' | b'\r' | b'\t' | b'\\' | b':' | b',')
    });
    // A backslash before the quote belongs to the quote.
    let length = rest[..length.count()].trim_end_matches('\\').trim_end().len();
    body + length
}
