//! `checkpoints/{YYYY-MM-DD-HHmm}-{label}.md`: one file per checkpoint, with what a session needs to go on.

use super::body::{Body, Room, push};
use super::pen::Pen;
use super::{BadMarkdown, Parsed, Sheet, body_parse};

pub use super::label::{kebab, label};

/// What the file is called.
pub fn file_name(sheet: &Sheet) -> String {
    let label = kebab(&sheet.redactor.redact(&sheet.label));
    format!("{}-{label}.md", kebab(&sheet.stamp))
}

/// The whole file.
pub fn write(sheet: &Sheet) -> String {
    let pen = Pen::new(&sheet.redactor);
    let none = || "none".to_owned();
    let word = |word: Option<&String>| Some(pen.word(word)).filter(|it| !it.is_empty());
    let mut text = String::new();
    push(&mut text, format_args!("# Checkpoint: {}", pen.text(&sheet.label)));
    push(&mut text, format_args!("Created: {}", sheet.created_at));
    push(&mut text, format_args!("Git SHA: {}", word(sheet.sha.as_ref()).unwrap_or_else(none)));
    push(&mut text, format_args!("Branch: {}", word(sheet.branch.as_ref()).unwrap_or_else(none)));
    Body::new(sheet, "##", Room::ALL).write(&mut text);
    text
}

/// Reads such a file, whoever wrote it.
pub fn parse(file: &str) -> Result<Parsed, BadMarkdown> {
    body_parse::parse(file, 1, &["checkpoint"])
}
