//! A command run for a client: its answer as the command line gives it, never longer than a model can use.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::Arc;

use bivouac_core::progress::Progress;
use bivouac_core::redact::redact;
use bivouac_core::text::printable;
use bivouac_engine::home::Wishes;
use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use serde_json::{Value, json};

use super::tools::{Refused, Typed};
use crate::cli::Cli;
use crate::report;
use crate::ui::{Answer, Form, Ui};

/// A document of about five thousand tokens; a text may have twice that, because its reader chose its size.
const MAX_DOCUMENT: usize = 20_000;
const MAX_TEXT: usize = 40_000;
/// Texts in a document that are longer are cut first.
const LONG: usize = 4_000;

/// Which end of a list stays when it is too long.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

/// What a client is told.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) text: String,
    /// The document itself, for those of us who go on from it.
    pub(super) document: Value,
    pub(super) notes: Vec<String>,
    pub(super) is_error: bool,
}

impl Told {
    pub(super) fn refused(refused: &Refused) -> Self {
        Self::error(&refused.message, &refused.hint)
    }

    pub(super) fn error(message: &str, hint: &str) -> Self {
        let (message, hint) = (redact(message), redact(hint));
        let document = json!({ "error": { "message": message, "causes": [], "hint": hint } });
        Self { is_error: true, ..Self::document(document, Vec::new()) }
    }

    /// What is said, block by block. Gemini CLI takes a first block that is JSON for the structured content of the
    /// protocol, which cannot be a list, so a list does not come first.
    pub(super) fn blocks(self) -> Vec<String> {
        let heading = self.document.as_array().map(|list| match list.len() {
            0 => "there are none".to_owned(),
            n_all => format!("there are {n_all}:"),
        });
        let notes = self.notes.into_iter().map(|note| format!("note: {note}"));
        heading.into_iter().chain([self.text]).chain(notes).collect()
    }

    /// What went wrong on our way to a command.
    pub(super) fn failed(error: bivouac_engine::Error) -> Self {
        let document = report::document(&error.into());
        Self { is_error: true, ..Self::document(document, Vec::new()) }
    }

    /// Nobody will see it.
    fn called_off() -> Self {
        Self::error("it was called off, and nothing was changed", "call again if it is wanted")
    }

    pub(super) fn document(document: Value, notes: Vec<String>) -> Self {
        Self::cut_to(End::Last, document, notes)
    }

    fn cut_to(end: End, document: Value, notes: Vec<String>) -> Self {
        let mut told = Self { text: String::new(), document, notes, is_error: false };
        let mut shown = told.document.clone();
        told.notes.extend(shorten(&mut shown, end));
        told.text = shown.to_string();
        told
    }
}

/// Runs a command as if it were typed where the client works.
pub(super) fn run(
    command: &Typed,
    place: &Wishes,
    progress: Arc<dyn Progress + Send + Sync>,
) -> Told {
    if progress.is_cancelled() {
        return Told::called_off();
    }
    let form = if command.is_in_words { Form::Text } else { Form::Json };
    let mut ui = Ui::keeping(form, progress);
    let words = std::iter::once("biv".to_owned()).chain(command.words());
    let is_error = match Cli::try_parse_from(words) {
        Ok(cli) => match cli.at(place).run(&mut ui) {
            Ok(_) => false,
            Err(error) => {
                ui.as_json();
                report::error(&error, &mut ui);
                true
            }
        },
        Err(error) => return misused(&error),
    };
    let Answer { text, document, notes } = ui.into_answer();
    match (is_error, document) {
        (false, None) => {
            Told { text: cut(text.trim_end(), MAX_TEXT), document: Value::Null, notes, is_error }
        }
        (_, document) => {
            let end = if command.is_best_first { End::First } else { End::Last };
            Told { is_error, ..Told::cut_to(end, document.unwrap_or_default(), notes) }
        }
    }
}

/// A value that the command does not take, or one that is missing.
fn misused(error: &clap::Error) -> Told {
    let about = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    // `--tokens <TOKENS>` is `tokens`, and `<TITLE>` is `title`.
    let argument = about(ContextKind::InvalidArg).unwrap_or_default();
    let name = argument.split(' ').next().unwrap_or_default().trim_start_matches("--");
    let name = name.trim_matches(['<', '>', '[', ']', '.']).to_lowercase();
    let known = about(ContextKind::ValidValue).filter(|known| !known.is_empty());
    let known = known.map(|known| format!("it can be {known}"));
    let why = error.source().map(ToString::to_string).or(known).unwrap_or_default();
    match about(ContextKind::InvalidValue).filter(|value| !value.is_empty()) {
        Some(value) => Told::error(&format!("`{name}` cannot be {}", quoted(&value)), &why),
        None => Told::error(&format!("the {name} is missing"), "say it, in a word or more"),
    }
}

/// What someone said, short enough to be said back.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", cut(&printable(text), 80))
}

/// Cuts long texts, then lists, the largest first, until the document is short enough. Says what was left out.
fn shorten(document: &mut Value, end: End) -> Vec<String> {
    if document.to_string().len() <= MAX_DOCUMENT {
        return Vec::new();
    }
    shorten_texts(document);
    let mut gone: BTreeMap<String, usize> = BTreeMap::new();
    while document.to_string().len() > MAX_DOCUMENT
        && let Some((path, _)) = largest_list(document, "")
    {
        let list = document.pointer_mut(&path).and_then(Value::as_array_mut);
        let list = list.expect("it was just found there");
        let n_gone = list.len().div_ceil(2);
        // Only of the answer itself, where it is a list, the last may matter most.
        match path.is_empty() && end == End::Last {
            true => drop(list.drain(..n_gone)),
            false => list.truncate(list.len() - n_gone),
        }
        *gone.entry(path).or_default() += n_gone;
    }
    let told = |(path, n_gone): (&String, &usize)| match path.is_empty() {
        true => {
            let which = if end == End::Last { "first" } else { "last" };
            format!("the {which} {n_gone} were left out; `biv` on the command line shows all")
        }
        false => format!("{n_gone} were left out of `{path}`; `biv` on the command line shows all"),
    };
    gone.iter().map(told).collect()
}

fn shorten_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = cut(text, LONG),
        Value::Array(items) => items.iter_mut().for_each(shorten_texts),
        Value::Object(fields) => fields.values_mut().for_each(shorten_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Where the list is that takes most room, and how much.
fn largest_list(value: &Value, path: &str) -> Option<(String, usize)> {
    let within = match value {
        // The bytes of a path that is not UTF-8 are one value, and half of them mean nothing.
        Value::Array(items) if items.iter().all(Value::is_number) => return None,
        Value::Array(items) => {
            let all = items.iter().enumerate();
            all.filter_map(|(at, item)| largest_list(item, &format!("{path}/{at}")))
                .max_by_key(size)
        }
        Value::Object(fields) => {
            let name = |name: &str| name.replace('~', "~0").replace('/', "~1");
            let all = fields.iter();
            all.filter_map(|(key, item)| largest_list(item, &format!("{path}/{}", name(key))))
                .max_by_key(size)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    let own = match value {
        Value::Array(items) if !items.is_empty() => {
            Some((path.to_owned(), value.to_string().len() / 2))
        }
        _ => None,
    };
    // A list of few large things is shorter with smaller things than with fewer of them.
    [own, within].into_iter().flatten().max_by_key(size)
}

fn size(found: &(String, usize)) -> usize {
    found.1
}

/// The same text, with what is behind its first so many bytes counted instead.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(most)];
    format!("{kept}… ({} more bytes)", text.len() - kept.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(document: Value) -> (usize, Value, Vec<String>) {
        let told = Told::document(document, Vec::new());
        (told.text.len(), serde_json::from_str(&told.text).unwrap(), told.notes)
    }

    #[test]
    fn short_documents_are_as_they_are() {
        let document = json!({ "files": [{ "path": "a" }] });
        let (_, shown, notes) = told(document.clone());
        assert_eq!(shown, document);
        assert!(notes.is_empty());
    }

    #[test]
    fn of_long_lists_the_newest_stay_and_of_long_parts_the_first() {
        let (length, shown, notes) = told((0..5_000).map(|n| json!({ "id": n })).collect());
        assert!(length <= MAX_DOCUMENT);
        assert_eq!(shown.as_array().unwrap().last().unwrap()["id"], 4_999);
        let n_left = 5_000 - shown.as_array().unwrap().len();
        assert_eq!(
            notes,
            [format!("the first {n_left} were left out; `biv` on the command line shows all")]
        );
        let hits = (0..5_000).map(|n| json!({ "hit": n })).collect();
        let found = Told::cut_to(End::First, hits, Vec::new());
        assert!(found.text.starts_with(r#"[{"hit":0}"#), "the best hit comes first");

        let files: Vec<String> = (0..5_000).map(|n| format!("file-{n}")).collect();
        let (length, shown, notes) = told(json!({ "from": "cp-001", "files": files }));
        assert!(length <= MAX_DOCUMENT);
        assert_eq!((&shown["from"], &shown["files"][0]), (&json!("cp-001"), &json!("file-0")));
        assert!(notes[0].contains("were left out of `/files`"), "{notes:?}");
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        let (length, shown, _) = told(json!({ "patch": "ä".repeat(20_000) }));
        assert!(length <= MAX_DOCUMENT);
        assert!(shown["patch"].as_str().unwrap().ends_with("… (36000 more bytes)"));
    }
}
