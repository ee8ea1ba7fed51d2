//! What puts text on a sheet: every word passes here, is cleaned, cut if it has to be, and escaped.

use super::inline::{clean, escape, escape_key, guarded};
use crate::redact::Redactor;
use crate::text::Note;

#[derive(Clone, Copy, Debug)]
pub(super) struct Pen<'a> {
    redactor: &'a Redactor,
    /// The most letters a text may have, where there is little room.
    most: Option<usize>,
}

impl<'a> Pen<'a> {
    pub(super) const fn new(redactor: &'a Redactor) -> Self {
        Self { redactor, most: None }
    }

    pub(super) const fn with_most(self, most: usize) -> Self {
        Self { most: Some(most), ..self }
    }

    /// Clean, and no longer than it may be. Not escaped yet.
    pub(super) fn clean(&self, text: &str) -> String {
        let text = clean(self.redactor, text);
        match self.most {
            Some(most) => cut(&text, most),
            None => text,
        }
    }

    pub(super) fn text(&self, text: &str) -> String {
        escape(&self.clean(text), &[])
    }

    /// Text before one of these marks.
    pub(super) fn before(&self, text: &str, marks: &[char]) -> String {
        escape(&self.clean(text), marks)
    }

    pub(super) fn word(&self, word: Option<&String>) -> String {
        word.map(|word| self.text(word)).unwrap_or_default()
    }

    /// A word in a cell of its own, where a dash would stand for nothing.
    pub(super) fn cell(&self, word: Option<&String>) -> String {
        guarded(self.word(word))
    }

    pub(super) fn note(&self, note: Option<&Note>) -> String {
        note.map(|note| self.text(note.as_str())).unwrap_or_default()
    }

    /// `a, b`, with the texts that say nothing left out.
    pub(super) fn list<T: AsRef<str>>(&self, texts: &[T], mark: char) -> String {
        let texts = texts.iter().map(|text| self.before(text.as_ref(), &[mark]));
        let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
        texts.join(&format!("{mark} "))
    }

    /// The comment by which a thing is found again, with the blank before it.
    pub(super) fn key(&self, key: &str) -> String {
        let key = escape_key(self.redactor, key);
        // A key that is longer than a text may be is not worth its room.
        match key.is_empty() || self.most.is_some_and(|most| key.len() > most) {
            true => String::new(),
            false => format!(" <!-- {key} -->"),
        }
    }

    /// A key that is shown, as it is.
    pub(super) fn bare_key(&self, key: &str) -> String {
        escape_key(self.redactor, key)
    }
}

/// The first letters of a text, and a sign where there were more.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most.saturating_sub(1)) {
        Some((end, letter)) if end + letter.len_utf8() < text.len() => {
            format!("{}…", text[..end].trim_end())
        }
        _ => text.to_owned(),
    }
}
