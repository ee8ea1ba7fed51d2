//! Secrets in XML and its relatives: `<password>…</password>`, `<add key="ApiKey" value="…"/>`,
//! `<key>apiToken</key><string>…</string>`.

use std::ops::Range;

use super::LONG;
use super::assigned::quote_at;

/// Where the text of an element starts that a name belongs to: as its tag, as an attribute of it, or as the
/// text of the `key` element before it. `after` is where the name ends, with its quote.
pub(super) fn content(text: &str, name: &Range<usize>, after: usize) -> Option<usize> {
    let rest = &text[after..];
    let rest = &rest[..rest.floor_char_boundary(LONG)];
    if let Some(next) = rest.strip_prefix("</key>") {
        let next = next.trim_start().strip_prefix("<string>")?;
        return Some(after + rest.len() - next.len());
    }
    let is_attribute = after > name.end && is_in_tag(text, name.start);
    if !is_attribute && !is_tag(text, name.start) {
        return None;
    }
    let end = rest.find(['<', '>'])?;
    let is_open = rest[end..].starts_with('>') && !rest[..end].ends_with('/');
    let is_name = rest[..end].is_empty() || rest.starts_with([' ', '\t', '\n', '\r']);
    (is_open && is_name).then(|| after + end + 1)
}

/// Where the value starts in `key="ApiKey" value="…"`.
pub(super) fn attribute(text: &str, at: usize, quote: &str) -> Option<usize> {
    let rest = text[at..].trim_start_matches([' ', '\t', '\n', '\r']);
    let start = text.len() - rest.len();
    if quote.is_empty() || start == at || start - at > LONG {
        return None;
    }
    let value = rest.strip_prefix("value")?.trim_start_matches(' ').strip_prefix('=')?;
    let value = text.len() - value.trim_start_matches(' ').len();
    (!quote_at(text, value).is_empty()).then_some(value)
}

/// `<password` or `<ns:password`.
fn is_tag(text: &str, start: usize) -> bool {
    let before = &text[text.floor_char_boundary(start.saturating_sub(LONG))..start];
    let before = match before.strip_suffix(':') {
        Some(space) => space.trim_end_matches(|it: char| it.is_ascii_alphanumeric() || it == '-'),
        None => before,
    };
    before.ends_with('<')
}

/// Whether a tag is open at this place, and an attribute begins its value here.
fn is_in_tag(text: &str, start: usize) -> bool {
    let before = &text[text.floor_char_boundary(start.saturating_sub(LONG))..start];
    let before = before.trim_end_matches(['"', '\'', '\\']);
    let is_value = ["key=", "name=", "id="].iter().any(|attribute| before.ends_with(attribute));
    is_value && before.rfind(['<', '>']).is_some_and(|at| before[at..].starts_with('<'))
}
