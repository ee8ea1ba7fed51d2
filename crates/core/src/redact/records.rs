//! Files of other programs that hold secrets by their form: `.netrc`, `.pgpass`, Kubernetes secrets.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::LONG;
use super::assigned::{is_placeholder, is_wordy, quote_at, quoted_end};

/// How a line of a `.pgpass` looks around its port. In the file itself any port can stand; in other
/// texts only the usual ones tell it from the output of a compiler.
pub(super) const PORTS: [&str; 8] =
    [":5432:", ":5433:", ":5434:", ":5439:", ":6432:", ":15432:", ":26257:", ":*:"];

/// What says that a document is a Kubernetes secret.
pub(super) const KINDS: [&str; 7] = [
    "kind: Secret",
    "kind: \"Secret\"",
    "kind: 'Secret'",
    "\"kind\": \"Secret\"",
    "\"kind\":\"Secret\"",
    "\\\"kind\\\": \\\"Secret\\\"",
    "\\\"kind\\\":\\\"Secret\\\"",
];

/// The password after `machine host login user`, in whatever order they stand.
pub(super) fn netrc(text: &str, machine: Range<usize>) -> Option<Range<usize>> {
    let begins_line = text[..machine.start].trim_end_matches([' ', '\t']);
    let begins_line = begins_line.is_empty() || begins_line.ends_with(['\n', '\\']);
    let mut words = words_after(text, machine.end);
    let host = { &mut words }.next()?;
    let host = &text[host];
    let is_host = host.contains('.') || host == "localhost";
    // Each word is a key and the next one its value, up to the next machine.
    for _ in 0..4 {
        let key = { &mut words }.next()?;
        let value = { &mut words }.next()?;
        match &text[key] {
            "login" | "account" | "port" => {}
            "password" => {
                let secret = &text[value.clone()];
                let is_sure = is_host || begins_line && !is_wordy(secret);
                return (is_sure && !is_placeholder(secret)).then_some(value);
            }
            _ => return None,
        }
    }
    None
}

/// Words between blanks and line ends, also escaped ones.
fn words_after(text: &str, at: usize) -> impl Iterator<Item = Range<usize>> {
    let limit = text.floor_char_boundary(at + 4 * LONG);
    let mut at = at;
    std::iter::from_fn(move || {
        let rest = &text[at..limit];
        let mut start = at + rest.len() - rest.trim_start().len();
        while text[start..limit].starts_with("\\n") || text[start..limit].starts_with("\\t") {
            start += 2;
            start += text[start..limit].len() - text[start..limit].trim_start().len();
        }
        let rest = &text[start..limit];
        let is_end = |letter: char| letter.is_whitespace() || "\\\"'`".contains(letter);
        let length = rest.find(is_end).unwrap_or(rest.len());
        at = start + length;
        (length > 0).then_some(start..at)
    })
}

/// The password at the end of `host:port:database:user:password`.
pub(super) fn pgpass(text: &str, port: Range<usize>) -> Option<Range<usize>> {
    let is_end = |letter: char| letter.is_whitespace() || "\\\"'`".contains(letter);
    let before = &text[text.floor_char_boundary(port.start.saturating_sub(LONG))..port.start];
    let host = &before[before.rfind(is_end).map_or(0, |at| at + 1)..];
    let is_host =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'/');
    let is_host =
        host == "*" || !host.is_empty() && host.bytes().all(is_host) && !host.contains("//");
    let rest = &text[port.end..text.floor_char_boundary(port.end + 2 * LONG)];
    let line = &rest[..rest.find(is_end).unwrap_or(rest.len())];
    let mut fields = line.splitn(3, ':');
    let (database, user) = (fields.next()?, fields.next()?);
    let password = fields.next()?;
    let is_whole = [database, user, password].iter().all(|field| !field.is_empty());
    let end = port.end + line.len();
    (is_host && is_whole && !is_placeholder(password)).then(|| end - password.len()..end)
}

/// The values of a Kubernetes secret, given where its kind is said, and where its document ends. What was
/// looked at before `from` is not looked at again.
pub(super) fn kubernetes(
    text: &str,
    kind: Range<usize>,
    from: usize,
) -> (Vec<Range<usize>>, usize) {
    let is_longer = text[kind.end..].starts_with(|it: char| it.is_alphanumeric() || it == '-');
    if is_longer {
        return (Vec::new(), kind.end);
    }
    match text[kind.clone()].contains('"') && !text[kind.clone()].starts_with("kind") {
        true => in_json(text, kind, from),
        false => in_yaml(text, kind, from),
    }
}

fn in_yaml(text: &str, kind: Range<usize>, from: usize) -> (Vec<Range<usize>>, usize) {
    // A document ends where the next one starts, or the block of Markdown that quotes it.
    const BOUNDS: [&str; 4] = ["\n---", "\n```", "\nkind:", "- apiVersion"];
    static BOUND: LazyLock<AhoCorasick> =
        LazyLock::new(|| AhoCorasick::new(BOUNDS).expect("a fixed and short list"));
    let before = &text[from..kind.start];
    let start = BOUNDS.iter().filter_map(|bound| before.rfind(bound)).max();
    let start = start.map_or(from, |at| from + at + 1);
    let end = BOUND.find(&text[kind.end..]).map_or(text.len(), |found| kind.end + found.start());
    let mut found = Vec::new();
    // The indent of `data:`, while its entries are read; that of an entry whose value is a block.
    let (mut section, mut block): (Option<usize>, Option<usize>) = (None, None);
    let mut at = start;
    for line in text[start..end].split_inclusive('\n') {
        let (line_start, body) = (at, line.trim_end());
        at += line.len();
        let trimmed = body.trim_start_matches([' ', '-']);
        let indent = body.len() - trimmed.len();
        let value_start = line_start + indent;
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if block.is_some_and(|block| indent > block) {
            found.push(value_start..value_start + trimmed.len());
            continue;
        }
        block = None;
        if section.is_some_and(|section| indent <= section) {
            section = None;
        }
        if matches!(trimmed, "data:" | "stringData:") {
            section = Some(indent);
            continue;
        }
        let Some((key, value)) = trimmed.split_once(':').filter(|_| section.is_some()) else {
            continue;
        };
        let value = value.trim_start();
        if value.starts_with(['|', '>']) {
            block = Some(indent);
            continue;
        }
        let start = value_start + trimmed.len() - value.len();
        let quote = quote_at(text, start);
        let range = match quote {
            "" => start..start + value.len(),
            quote => start + quote.len()..quoted_end(text, start + quote.len(), quote),
        };
        let is_entry = !key.is_empty() && !range.is_empty();
        if is_entry && !is_placeholder(&text[range.clone()]) {
            found.push(range);
        }
    }
    (found, end)
}

/// The entries of the `data` object nearest to the kind, in the same document.
fn in_json(text: &str, kind: Range<usize>, from: usize) -> (Vec<Range<usize>>, usize) {
    const FAR: usize = 64 << 10;
    let first = text.ceil_char_boundary(from.max(kind.start.saturating_sub(FAR)));
    let last = text.floor_char_boundary(kind.end + FAR);
    let next_kind = text[kind.end..last].find("kind").map_or(last, |at| kind.end + at);
    let is_key = |at: usize| {
        let word = ["stringData", "data"].into_iter().find(|word| text[at..].starts_with(word));
        let word = word.filter(|_| text[..at].ends_with('"'))?;
        let at = at + word.len();
        let at = at + quote_at(text, at).len();
        let is_between = |byte: &&u8| b" \t\n\r:".contains(*byte);
        let object = at + text.as_bytes()[at..].iter().take(LONG).take_while(is_between).count();
        text[object..].starts_with('{').then_some(object + 1)
    };
    let mut objects: Vec<usize> = Vec::new();
    for range in [first..kind.start, kind.end..next_kind] {
        let places = text[range.clone()]
            .match_indices("data")
            .chain(text[range.clone()].match_indices("stringData"));
        objects.extend(places.filter_map(|(at, _)| is_key(range.start + at)));
    }
    objects.sort_unstable();
    let mut found = Vec::new();
    let mut end = kind.end;
    for object in objects {
        end = end.max(entries_of(text, object, &mut found));
    }
    (found, end)
}

/// The quoted values of a flat object; where it ends.
fn entries_of(text: &str, start: usize, found: &mut Vec<Range<usize>>) -> usize {
    let mut at = start;
    let mut is_value = false;
    while let Some(byte) = text.as_bytes().get(at) {
        let quote = quote_at(text, at);
        if !quote.is_empty() {
            let range = at + quote.len()..quoted_end(text, at + quote.len(), quote);
            at = range.end + quote_at(text, range.end).len();
            if is_value && !range.is_empty() && !is_placeholder(&text[range.clone()]) {
                found.push(range);
            }
            continue;
        }
        match byte {
            b':' => is_value = true,
            b',' => is_value = false,
            b'}' | b'{' => return at,
            _ => {}
        }
        at += 1;
    }
    at
}
