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
