//! Words of people and programs: bounded when they come in, made harmless when they go to a screen.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A name someone gave to a session or a checkpoint: one short line.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    #[error("a name cannot be empty")]
    Empty,
    #[error("a name has at most {} characters", Name::MAX_CHARS)]
    TooLong,
    #[error("a name is one line without control characters")]
    Control,
    #[error("`{0}` looks like an id, so it cannot be a name")]
    LooksLikeId(String),
}

impl Name {
    pub const MAX_CHARS: usize = 120;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BadName::Empty);
        }
        if text.chars().count() > Self::MAX_CHARS {
            return Err(BadName::TooLong);
        }
        if text.chars().any(is_unsafe) {
            return Err(BadName::Control);
        }
        // A name shares its place on the command line with ids and handles.
        let is_id = text == "latest" || text.starts_with("cp-") || text.starts_with("task-");
        if is_id || uuid::Uuid::parse_str(text).is_ok() {
            return Err(BadName::LooksLikeId(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&printable(&self.0))
    }
}

/// What a person or an agent says about something: a message, a task, a reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Note(String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text has {0} bytes; at most {max} are kept", max = Note::MAX_BYTES)]
pub struct BadNote(usize);

impl Note {
    pub const MAX_BYTES: usize = 65_536;

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What fits of a text of any length.
    pub fn cut(text: &str) -> Self {
        const MARK: &str = "…";
        if text.len() <= Self::MAX_BYTES {
            return Self(text.to_owned());
        }
        let end = text.floor_char_boundary(Self::MAX_BYTES - MARK.len());
        Self(format!("{}{MARK}", &text[..end]))
    }

    /// The first line, for tables.
    pub fn headline(&self) -> String {
        printable(self.0.lines().next().unwrap_or_default())
    }
}

impl FromStr for Note {
    type Err = BadNote;

    fn from_str(text: &str) -> Result<Self, BadNote> {
        if text.len() > Self::MAX_BYTES {
            return Err(BadNote(text.len()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, line) in self.0.lines().enumerate() {
            let separator = if n == 0 { "" } else { "\n" };
            write!(f, "{separator}{}", printable(line))?;
        }
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadWords {
    #[error("some words are needed")]
    Blank,
    #[error(transparent)]
    TooLong(#[from] BadNote),
}

/// Words that say something.
pub fn words_in(text: &str) -> Result<Note, BadWords> {
    match text.trim() {
        "" => Err(BadWords::Blank),
        words => Ok(words.parse()?),
    }
}

/// `1 file`, `2 files`.
pub fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The one sanitiser. Escape sequences, direction overrides and invisible characters become
/// visible, so that a file name cannot move the cursor or hide its ending.
pub fn printable(text: &str) -> String {
    if !text.chars().any(is_unsafe) {
        return text.to_owned();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match is_unsafe(letter) {
            true => safe.extend(letter.escape_default()),
            false => safe.push(letter),
        }
    }
    safe
}

/// [`printable`], for bytes that may not be text: those that are not are written as `\xNN`.
pub fn printable_bytes(bytes: &[u8]) -> String {
    let mut safe = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        safe.push_str(&printable(chunk.valid()));
        safe.push_str(&chunk.invalid().escape_ascii().to_string());
    }
    safe
}

fn is_unsafe(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{061c}' | '\u{180e}' | '\u{feff}'   // Arabic letter mark, Mongolian separator, byte order mark
            | '\u{200b}'..='\u{200f}'              // zero-width and direction marks
            | '\u{2028}'..='\u{202e}'              // line separators, direction overrides
            | '\u{2060}'..='\u{206f}'              // invisible operators, direction isolates
            | '\u{fff9}'..='\u{fffb}'              // interlinear annotation
            | '\u{e0000}'..='\u{e007f}') // tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_mistaken_are_refused() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let name = text.parse::<Name>();
            let found = name.as_ref().map(Name::as_str).map_err(ToString::to_string);
            assert_eq!(found, expected.map_err(str::to_owned), "{text:?}");
        };
        check(" before refactoring ", Ok("before refactoring"));
        check("", Err("a name cannot be empty"));
        check("a\nb", Err("a name is one line without control characters"));
        check("latest", Err("`latest` looks like an id, so it cannot be a name"));
        check("cp-001", Err("`cp-001` looks like an id, so it cannot be a name"));
        check("task-abc", Err("`task-abc` looks like an id, so it cannot be a name"));
        check(&"x".repeat(121), Err("a name has at most 120 characters"));
    }

    #[test]
    fn a_text_of_any_length_can_be_cut_to_fit() {
        assert_eq!(Note::cut("short").as_str(), "short");
        let cut = Note::cut(&"ä".repeat(Note::MAX_BYTES));
        assert!(cut.as_str().len() <= Note::MAX_BYTES && cut.as_str().ends_with("ä…"));
    }

    #[test]
    fn nothing_shown_can_command_the_terminal() {
        let check = |text: &[u8], shown: &str| assert_eq!(printable_bytes(text), shown);
        check(b"plain.txt", "plain.txt");
        check("grün ✓".as_bytes(), "grün ✓");
        check(b"a\x1b[2Jb", "a\\u{1b}[2Jb");
        check("gpj\u{202e}exe".as_bytes(), "gpj\\u{202e}exe");
        check("zero\u{200b}width".as_bytes(), "zero\\u{200b}width");
        check(b"tab\tnew\nline", "tab\\tnew\\nline");
        check(b"caf\xe9.txt", "caf\\xe9.txt");
    }
}
