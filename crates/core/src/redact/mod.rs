//! Secrets, blotted out of whatever is shown, briefed or sent. The store itself keeps raw bytes.
//!
//! In this order: values that are known to be secret (`known`), private keys (`keys`), tokens with a
//! provider's own shape (`shapes`), passwords in URLs (`urls`), what only the form around it gives away
//! (`forms`: command lines, calls, files of other programs), and whatever is assigned to a name that says what it is
//! (`assigned`, `markup`, `names`). Each is one pass, so the time is linear. What was JSON stays JSON, and redacting
//! twice is redacting once. `file` tells which files hold secrets.

mod assigned;
mod calls;
mod commands;
pub mod file;
mod forms;
mod keys;
mod known;
mod markup;
mod names;
mod records;
mod search;
mod shapes;
mod urls;

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use serde::de::IgnoredAny;
use serde_json::Value;

use self::known::Known;
pub use self::names::is_telling;

pub(crate) const BLOT: &str = "[redacted]";
/// What is looked at again and again is at most so long.
const LONG: usize = 128;

type Find = fn(&str) -> Vec<Spot<'_>>;

const FINDERS: [Find; 5] =
    [keys::spots, shapes::tokens, urls::spots, forms::spots, assigned::spots];

/// The same text without secrets, as far as shapes and names give them away.
pub fn redact(text: &str) -> String {
    static PLAIN: LazyLock<Redactor> = LazyLock::new(Redactor::default);
    PLAIN.redact(text)
}

/// Takes secrets out of texts.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Option<Known>,
}

impl Redactor {
    /// One that also finds these values, however they are written. Values that are too short or too
    /// plain are passed over: they would blot ordinary text.
    pub fn knowing(values: impl IntoIterator<Item = String>) -> Self {
        Self::knowing_surely(values, [])
    }

    /// The same, with values that are called a secret: these may be plain.
    pub fn knowing_surely(
        values: impl IntoIterator<Item = String>,
        secrets: impl IntoIterator<Item = String>,
    ) -> Self {
        Self { known: Known::of(values, secrets) }
    }

    /// The same text without secrets.
    pub fn redact(&self, text: &str) -> String {
        // What is left around a blot can look different from before, so look again until nothing is found.
        const MOST_PASSES: usize = 4;
        let Some(mut safe) = self.pass(text) else {
            return text.to_owned();
        };
        for _ in 1..MOST_PASSES {
            match self.pass(&safe) {
                Some(again) if again != safe => safe = again,
                Some(_) | None => break,
            }
        }
        if is_json(text) && !is_json(&safe) {
            return self.rewritten(text);
        }
        safe
    }

    /// Takes the secrets out of every string of a value. What stands under a telling key goes as a whole.
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(fields) => {
                // Environments are often lists of `{"name": "API_KEY", "value": "…"}`.
                let is_named = ["name", "key"]
                    .iter()
                    .filter_map(|key| fields.get(*key)?.as_str())
                    .any(is_telling);
                let is_kubernetes = fields.get("kind").is_some_and(|kind| kind == "Secret");
                for (key, field) in fields.iter_mut() {
                    if is_kubernetes && matches!(key.as_str(), "data" | "stringData") {
                        field
                            .as_object_mut()
                            .into_iter()
                            .flatten()
                            .for_each(|(_, it)| blot_field(it));
                    }
                    if is_telling(key) || is_named && key == "value" {
                        blot_field(field);
                    }
                    self.redact_json(field);
                }
                // A key that is a secret itself is rare, and as bad.
                if fields.keys().any(|key| self.redact(key) != *key) {
                    let own = std::mem::take(fields);
                    fields.extend(own.into_iter().map(|(key, field)| (self.redact(&key), field)));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The text after every finder looked at it once; `None` if none of them found anything.
    fn pass(&self, text: &str) -> Option<String> {
        let known = self.known.as_ref().map(|known| known.spots(text)).unwrap_or_default();
        let mut safe = (!known.is_empty()).then(|| blotted(text, &known));
        for find in FINDERS {
            let text = safe.as_deref().unwrap_or(text);
            let spots = find(text);
            if !spots.is_empty() {
                safe = Some(blotted(text, &spots));
            }
        }
        safe
    }

    /// JSON with a known value across its quotes or brackets: read, redacted and written anew.
    fn rewritten(&self, text: &str) -> String {
        let Ok(mut value) = serde_json::from_str::<Value>(text) else {
            return BLOT.to_owned();
        };
        self.redact_json(&mut value);
        value.to_string()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not derived: that would print the values.
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// A place in a text that must go. A number in JSON is replaced by a string, which needs quotes.
#[derive(Debug, PartialEq, Eq)]
struct Spot<'a> {
    range: Range<usize>,
    quote: &'a str,
}

impl Spot<'_> {
    fn at(range: Range<usize>) -> Self {
        Self { range, quote: "" }
    }
}

/// The text with its spots, which come in order, blotted out.
fn blotted(text: &str, spots: &[Spot<'_>]) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut from = 0;
    for Spot { range, quote } in spots {
        safe.push_str(&text[from..range.start]);
        safe.push_str(quote);
        safe.push_str(BLOT);
        safe.push_str(quote);
        from = range.end;
    }
    safe.push_str(&text[from..]);
    safe
}

fn blot_field(field: &mut Value) {
    match field {
        Value::String(text) if assigned::is_placeholder(text) => {}
        Value::String(text) => {
            let start = assigned::scheme_length(text);
            text.replace_range(start.., BLOT);
        }
        Value::Number(number) if number.to_string().len() >= assigned::LEAST_BARE => {
            *field = BLOT.into();
        }
        Value::Array(items) => items.iter_mut().for_each(blot_field),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[', '"'])
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
