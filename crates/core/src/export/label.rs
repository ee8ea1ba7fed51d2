//! What a checkpoint is called when nobody named it, and how a name becomes part of a file's.

use crate::redact::Redactor;
use crate::session::Session;
use crate::text::Note;
use crate::work::{TaskStatus, Work};

const OTHERWISE: &str = "checkpoint";
/// A label of so many letters is long enough, and one of so many bytes fits every file system.
const MAX_CHARS: usize = 60;
const MAX_BYTES: usize = 180;

/// Words that say nothing about the work.
const STOP_WORDS: [&str; 34] = [
    "a", "an", "the", "and", "or", "of", "to", "in", "on", "for", "with", "at", "by", "from", "is",
    "are", "be", "it", "its", "this", "that", "as", "into", "we", "i", "you", "please", "can",
    "should", "so", "our", "my", "do", "me",
];

/// Names Windows keeps for devices.
const RESERVED: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Two or three words for what is being worked on.
pub fn label(session: &Session, work: &Work) -> String {
    let task = work.tasks.iter().find(|task| task.status() == TaskStatus::InProgress);
    let sources = [
        task.and_then(|task| task.subject.as_ref()).map(Note::as_str),
        session.name.as_ref().map(|name| name.as_str()),
        session.task_description.as_ref().map(Note::as_str),
        work.phase().and_then(|phase| phase.name.as_deref()),
    ];
    let labels = sources.into_iter().flatten().map(|text| {
        let text = words(&Redactor::default().redact(text));
        let telling = text.split('-').filter(|word| !STOP_WORDS.contains(word));
        telling.filter(|word| !word.is_empty()).take(3).collect::<Vec<_>>().join("-")
    });
    labels
        .map(|label| fitting(&label))
        .find(|label| !label.is_empty())
        .unwrap_or_else(|| OTHERWISE.to_owned())
}

/// A name that people gave, as a part of a file's name.
pub fn kebab(text: &str) -> String {
    let name = fitting(&words(text));
    let is_device = RESERVED.contains(&name.as_str())
        || ["com", "lpt"].iter().any(|it| {
            name.strip_prefix(it).is_some_and(|rest| rest.len() == 1 && rest.parse::<u8>().is_ok())
        });
    match name.is_empty() || is_device {
        true => format!("{OTHERWISE}-{name}").trim_end_matches('-').to_owned(),
        false => name,
    }
}

/// Letters and digits, with a dash for whatever is between them.
fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

fn fitting(name: &str) -> String {
    let cut: String = name.chars().take(MAX_CHARS).collect();
    let end = cut.floor_char_boundary(MAX_BYTES);
    cut[..end].trim_matches('-').to_owned()
}
