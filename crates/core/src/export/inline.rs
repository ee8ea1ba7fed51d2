//! Text within one line of Markdown: escaped so that it cannot be anything but text, and read back as it was.
//! A backslash before punctuation, `<br>` for a new line and numbered entities are all there is to it, and
//! all of it means the same to anybody's Markdown.

use crate::redact::Redactor;
use crate::text::{Note, printable};

/// Words in brackets that say more about a line: their opening bracket is escaped wherever text has it.
pub(super) const ASIDES: [&str; 2] = ["rejected:", "ref:"];

/// The letters of UTF-8 that were once taken for Mac Roman, and what they had been.
const BROKEN: [(&str, &str); 20] = [
    ("‚úÖ", "✅"),
    ("‚ùå", "❌"),
    ("\u{f8ff}üîÑ", "🔄"),
    ("üîÑ", "🔄"),
    ("‚Üí", "→"),
    ("‚Äî", "—"),
    ("‚Äì", "–"),
    ("‚Ä¶", "…"),
    ("‚Äô", "’"),
    ("‚Äò", "‘"),
    ("‚Äú", "“"),
    ("‚Äù", "”"),
    ("‚è≥", "⏳"),
    ("‚õî", "⛔"),
    ("\u{f8ff}üö´", "🚫"),
    ("üö´", "🚫"),
    ("‚ö†Ô∏è", "⚠"),
    ("‚ö†", "⚠"),
    ("‚úì", "✓"),
    ("‚úó", "✗"),
];

/// The same text with signs for signs that were broken on the way.
pub(super) fn mended(text: &str) -> String {
    let start = |(broken, _): &(&'static str, &str)| broken.chars().next();
    if !text.contains(|letter| BROKEN.iter().any(|it| start(it) == Some(letter))) {
        return text.to_owned();
    }
    BROKEN.iter().fold(text.to_owned(), |text, (broken, whole)| text.replace(broken, whole))
}

/// What is left of a text when it leaves: no secrets, no blank too many, nothing that commands a terminal.
/// Its lines are kept, unless they are empty. What was cleaned stays as it is when it is cleaned again.
pub(super) fn clean(redactor: &Redactor, text: &str) -> String {
    let mut now = settled(&redactor.redact(text));
    // What is tidied up may look like a secret only then.
    for _ in 0..4 {
        let next = settled(&redactor.redact(&now));
        if next == now {
            break;
        }
        now = next;
    }
    now
}

fn settled(text: &str) -> String {
    let lines = text.split(['\n', '\r']).map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        printable(&words.join(" "))
    });
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    Note::cut(&lines.join("\n")).as_str().to_owned()
}

/// Clean text as it stands in a line. `marks` are what separates it from what comes next: a colon counts
/// before a blank, any other mark everywhere.
pub(super) fn escape(text: &str, marks: &[char]) -> String {
    if matches!(text, "—" | "–") {
        return entity(text.chars().next().unwrap_or('—'));
    }
    let mut safe = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for (place, letter) in text.char_indices() {
        let rest = &text[place..];
        let next = rest.chars().nth(1);
        if letter == '\n' {
            safe.push_str("<br>");
        } else if BROKEN.iter().any(|(broken, _)| rest.starts_with(broken)) {
            safe.push_str(&entity(letter));
        } else {
            let is_special = match letter {
                '\\' => next.is_none_or(|next| is_written_with_punctuation(next, &rest[1..])),
                '|' => true,
                '<' => next.is_some_and(|it| it.is_ascii_alphabetic() || "/!?".contains(it)),
                '&' => entity_at(rest).is_some() || looks_like_entity(rest),
                '[' => before == '!',
                '(' => opens_aside(rest),
                ':' => marks.contains(&':') && next.is_none_or(|next| next == ' '),
                _ => false,
            };
            if is_special || letter != ':' && marks.contains(&letter) {
                safe.push('\\');
            }
            safe.push(letter);
        }
        before = letter;
    }
    safe
}

/// Would a backslash before this letter be taken for one that escapes it?
fn is_written_with_punctuation(letter: char, rest: &str) -> bool {
    let is_entity = BROKEN.iter().any(|(broken, _)| rest.starts_with(broken));
    letter.is_ascii_punctuation() || letter == '\n' || is_entity
}

/// Does a bracket begin what our lines put in brackets?
fn opens_aside(rest: &str) -> bool {
    let words = rest[1..].chars().take(16).collect::<String>().to_lowercase();
    ASIDES.iter().any(|word| words.starts_with(word))
        || super::entry::status_aside(&words).is_some()
}

fn entity(letter: char) -> String {
    format!("&#x{:x};", u32::from(letter))
}

fn looks_like_entity(rest: &str) -> bool {
    let name = rest[1..].split(';').next().unwrap_or_default();
    let is_name = !name.is_empty() && name.len() <= 32;
    is_name
        && rest[1 + name.len()..].starts_with(';')
        && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '#')
}

/// The letter an entity stands for, and how long it is.
fn entity_at(rest: &str) -> Option<(char, usize)> {
    let name = rest.strip_prefix('&')?;
    let length = name.bytes().take(11).position(|it| it == b';')?;
    let name = &name[..length];
    let letter = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "nbsp" => ' ',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some((letter, length + 2))
}

/// The text that stands in a line, or the key that stands in a comment.
pub(super) fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let next = rest.chars().nth(1);
        let escaped = next.filter(|next| letter == '\\' && next.is_ascii_punctuation());
        if let Some(escaped) = escaped {
            plain.push(escaped);
            rest = &rest[2..];
        } else if let Some(length) = break_at(rest) {
            plain.push('\n');
            rest = &rest[length..];
        } else if let Some((letter, length)) = entity_at(rest) {
            plain.push(letter);
            rest = &rest[length..];
        } else {
            plain.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    plain
}

/// How long the new line is that stands here.
fn break_at(rest: &str) -> Option<usize> {
    ["<br>", "<br/>", "<br />"].iter().map(|it| it.len()).find(|length| {
        rest.get(..*length).is_some_and(|it| {
            matches!(it.to_ascii_lowercase().as_str(), "<br>" | "<br/>" | "<br />")
        })
    })
}

/// The places of a line that are not escaped, each with what stands from there on.
fn places(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let letter = rest.chars().next()?;
            let next = rest.chars().nth(1);
            if letter == '\\' && next.is_some_and(|next| next.is_ascii_punctuation()) {
                at += 2;
                continue;
            }
            let place = at;
            // The semicolon of an entity separates nothing.
            at += entity_at(rest).map_or(letter.len_utf8(), |(_, length)| length);
            return Some((place, rest));
        }
    })
}

/// The first place that is not escaped and begins as asked for.
pub(super) fn find(text: &str, begins: impl Fn(&str) -> bool) -> Option<usize> {
    places(text).find(|(_, rest)| begins(rest)).map(|(place, _)| place)
}

/// The last such place.
pub(super) fn find_last(text: &str, begins: impl Fn(&str) -> bool) -> Option<usize> {
    places(text).filter(|(_, rest)| begins(rest)).last().map(|(place, _)| place)
}

/// What stands between marks that are not escaped, still as it is written.
pub(super) fn split(text: &str, mark: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (place, _) in places(text).filter(|(_, rest)| rest.starts_with(mark)) {
        parts.push(&text[start..place]);
        start = place + mark.len_utf8();
    }
    parts.push(&text[start..]);
    parts
}

/// The texts of a list within a line.
pub(super) fn list(text: &str, mark: char) -> Vec<String> {
    let texts = split(text, mark).into_iter().map(|part| unescape(part.trim()));
    texts.filter(|text| !text.is_empty()).collect()
}

/// A key as it stands in a comment: without a blank, and with nothing that could end it.
pub(super) fn escape_key(redactor: &Redactor, key: &str) -> String {
    let key = redactor.redact(key);
    let mut safe = String::with_capacity(key.len());
    let mut before = ' ';
    for (place, letter) in key.char_indices() {
        let is_odd = letter.is_whitespace()
            || "<>|\\&`".contains(letter)
            || (letter == '-' && before == '-')
            || printable(letter.encode_utf8(&mut [0; 4])).starts_with('\\')
            || BROKEN.iter().any(|(broken, _)| key[place..].starts_with(broken));
        match is_odd {
            true => safe.push_str(&entity(letter)),
            false => safe.push(letter),
        }
        before = letter;
    }
    safe
}

/// A line, and what its comments say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Marked {
    /// Still as it is written.
    pub text: String,
    /// A comment of one word is the key of the thing.
    pub key: String,
    /// A comment of several words says how to read the line.
    pub remark: Option<String>,
}

/// Takes the comments out of a line.
pub(super) fn marked(line: &str) -> Marked {
    let mut found = Marked::default();
    let mut rest = line;
    while let Some(start) = find(rest, |it| it.starts_with("<!--")) {
        let Some(length) = rest[start..].find("-->") else {
            break;
        };
        let words = rest[start + 4..start + length.max(4)].trim();
        match words.contains(char::is_whitespace) {
            true => found.remark = Some(words.to_owned()),
            false => found.key = unescape(words),
        }
        found.text.push_str(&rest[..start]);
        rest = &rest[start + length + 3..];
    }
    found.text.push_str(rest);
    found.text = found.text.trim().to_owned();
    found
}

/// A line that cannot be taken for a heading, a list, a quote, a rule or a fence.
pub(super) fn guarded(line: String) -> String {
    let Some(first) = line.chars().next() else {
        return line;
    };
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    let hashes = line.trim_start_matches('#');
    let numberless = line.trim_start_matches(|it: char| it.is_ascii_digit());
    if numberless.len() < line.len() && numberless.starts_with(['.', ')']) && ends(&numberless[1..])
    {
        let n_digits = line.len() - numberless.len();
        return format!("{}\\{numberless}", &line[..n_digits]);
    }
    let is_block = hashes.len() < line.len() && ends(hashes)
        || matches!(first, '>' | '[')
        || matches!(first, '-' | '+' | '*') && ends(&line[1..])
        || line.chars().all(|it| "-_*= ".contains(it))
        || line.starts_with("```")
        || line.starts_with("~~~");
    if is_block { format!("\\{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_back_as_it_was() {
        for text in [
            "plain",
            "a | b",
            "back\\slash \\| \\",
            "C:\\dir\\",
            "line one\nline two",
            "literal <br> and <b>",
            "back\\\nslash \\‚úÖ",
            "a < b && c > d <",
            "<!-- a --> and -->",
            "&lt; &#x41; R&D &x",
            "‚úÖ broken ‚so‘ üîÑ",
            "—",
            "-",
            "1. first",
            "## Heading",
            "![image](http://x)",
            "why (rejected: a; b)",
            "done (failed: x)",
            "a: b, c; d:",
        ] {
            for marks in [&[][..], &[':'], &[',', ';', '`']] {
                let line = guarded(escape(text, marks));
                assert_eq!(unescape(&line), text, "{line}");
                assert_eq!(mended(&line), line);
                assert!(!line.contains('\n') && find(&line, |it| it.starts_with('|')).is_none());
            }
        }
    }

    #[test]
    fn a_key_survives_whatever_it_is() {
        let redactor = Redactor::default();
        for key in
            ["001", " a  b ", "-->", "--", "x|y", "<!--", "a\nb", "&#x41;", "é\u{202e}", "\\"]
        {
            let line = format!("text <!-- {} -->", escape_key(&redactor, key));
            let found = marked(&line);
            assert_eq!((found.text.as_str(), found.key.as_str()), ("text", key), "{line}");
        }
    }

    #[test]
    fn a_comment_of_several_words_is_no_key() {
        let found = marked("Review <!-- panel review --> <!-- 3 -->");
        assert_eq!((found.text.as_str(), found.key.as_str()), ("Review", "3"));
        assert_eq!(found.remark.as_deref(), Some("panel review"));
        assert_eq!(marked("a \\<!-- b -->").text, "a \\<!-- b -->");
    }

    #[test]
    fn what_is_clean_stays_clean() {
        let redactor = Redactor::default();
        let check = |text: &str, expected: &str| {
            assert_eq!(clean(&redactor, text), expected);
            assert_eq!(clean(&redactor, expected), expected);
        };
        check("  a \t b \r\n\n c ", "a b\nc");
        check("\u{1b}[2J\u{202e}x", "\\u{1b}[2J\\u{202e}x");
        check("API_KEY=abcdef123456", "API_KEY=[redacted]");
        let long = clean(&redactor, &"\u{1b}".repeat(Note::MAX_BYTES));
        assert!(long.len() <= Note::MAX_BYTES);
        assert_eq!(clean(&redactor, &long), long);
    }
}
