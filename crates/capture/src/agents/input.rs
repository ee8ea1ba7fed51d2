//! JSON of someone else's: every field may be missing or of another type, and nothing is refused for it.

use bivouac_core::text::Note;
use bivouac_core::work::{Task, TaskStatus};
use serde_json::Value;

/// A part of a document, or nothing.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(Option<&'a Value>);

impl<'a> Input<'a> {
    pub fn new(value: &'a Value) -> Self {
        Self(Some(value))
    }

    /// What is under a key.
    pub fn at(self, key: &str) -> Self {
        Self(self.0.and_then(|value| value.get(key)))
    }

    pub fn value(self) -> Option<&'a Value> {
        self.0
    }

    pub fn str(self, key: &str) -> Option<&'a str> {
        self.at(key).0.and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    pub fn text(self, key: &str) -> Option<String> {
        self.str(key).map(str::to_owned)
    }

    pub fn number(self, key: &str) -> Option<u64> {
        self.at(key).0.and_then(Value::as_u64)
    }

    pub fn list(self, key: &str) -> impl Iterator<Item = Input<'a>> {
        let items = self.at(key).0.and_then(Value::as_array);
        items.into_iter().flatten().map(Input::new)
    }

    /// The first of several keys that has a text.
    pub fn first(self, keys: &[&str]) -> Option<&'a str> {
        keys.iter().find_map(|key| self.str(key))
    }
}

/// Reads a document. Agents written in JavaScript cut texts within a character, and then write half of it; that
/// becomes U+FFFD, and the rest is as it was.
pub fn parse(document: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(document).or_else(|error| match without_halves(document) {
        Some(whole) => serde_json::from_slice(&whole),
        None => Err(error),
    })
}

/// `None` if there are no halves.
fn without_halves(document: &[u8]) -> Option<Vec<u8>> {
    const LEN: usize = "\\ud83d".len();
    let mut whole = document.to_vec();
    let (mut at, mut n_found) = (0, 0);
    while let Some(found) = document.get(at..)?.iter().position(|byte| *byte == b'\\') {
        at += found;
        at += match escaped(document, at) {
            Some(0xd800..=0xdbff)
                if matches!(escaped(document, at + LEN), Some(0xdc00..=0xdfff)) =>
            {
                2 * LEN
            }
            Some(0xd800..=0xdfff) => {
                whole[at..at + LEN].copy_from_slice(b"\\ufffd");
                n_found += 1;
                LEN
            }
            Some(_) => LEN,
            None => 2,
        };
    }
    (n_found > 0).then_some(whole)
}

/// The number that is written here as `\uXXXX`.
fn escaped(document: &[u8], at: usize) -> Option<u16> {
    let digits = document.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// A list of to-dos. Those without ids are known by what they say.
pub(super) fn tasks<'a>(todos: impl Iterator<Item = Input<'a>>, subject: &[&str]) -> Vec<Task> {
    let task = |todo: Input<'a>| Task {
        task: todo.text("id").unwrap_or_default(),
        listed: Some(true),
        subject: todo.first(subject).map(Note::cut),
        status: todo.str("status").and_then(TaskStatus::from_word),
        ..Task::default()
    };
    todos.map(task).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn half_a_character_costs_nothing_else() {
        let check = |document: &str, expected: Value| {
            assert_eq!(parse(document.as_bytes()).unwrap(), expected, "{document}");
        };
        check(r#"{"a":"cut \ud83d","b":1}"#, json!({ "a": "cut \u{fffd}", "b": 1 }));
        check(r#"["\udd16 on"]"#, json!(["\u{fffd} on"]));
        check(r#"["\ud83d\ud83e\udd16"]"#, json!(["\u{fffd}\u{1f916}"]));
        check(r#"["\ud83e\udd16"]"#, json!(["\u{1f916}"]));
        check(r#"["\\ud83d \ud83d"]"#, json!(["\\ud83d \u{fffd}"]));
    }

    #[test]
    fn what_is_no_document_stays_none() {
        for text in ["", "\\", "{\"a\":\"\\ud83d", "\\ud83d", "[\"\\ud8\"]", "[\"\\"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
