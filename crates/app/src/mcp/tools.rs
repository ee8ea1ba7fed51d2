//! The tools: what they are called, what they take, and which command does the work. A tool is a command of the
//! command line under another name, so it has the same words and gives the same documents. What a model says
//! becomes values of options, never options.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::answer::quoted;
use super::record;

pub(super) struct Spec {
    pub(super) name: &'static str,
    about: &'static str,
    fields: &'static [Field],
    changes: Changes,
    /// The command that does it.
    typed: fn(&Asked<'_>) -> Result<Typed, Refused>,
}

/// What a call leaves behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Changes {
    Nothing,
    /// Something more is on record.
    Adds,
    Files,
}

struct Field {
    name: &'static str,
    kind: Kind,
    about: &'static str,
    is_needed: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    /// What names a thing: short, and no option.
    Id,
    Text,
    Number,
    Flag,
    Object,
    OneOf(&'static [&'static str]),
}

const fn may(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, about, is_needed: false }
}

const fn must(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, about, is_needed: true }
}

/// Longer texts are no titles, reasons or questions.
pub(super) const MAX_TEXT: usize = 16 << 10;
const MAX_ID: usize = 256;

const SESSION: Field = may("session", Kind::Id, "");

pub(super) const TOOLS: [Spec; 12] = [
    Spec {
        name: "session_create",
        about: "Open a session: a new piece of work here",
        fields: &[may("task", Kind::Text, "what is to be done"), may("name", Kind::Id, "")],
        changes: Changes::Adds,
        typed: |asked| {
            Ok(Typed::new("session new")
                .set("task", asked.get("task"))
                .set("name", asked.get("name")))
        },
    },
    Spec {
        name: "session_list",
        about: "Sessions here; with `session`, that one in full",
        fields: &[
            SESSION,
            may(
                "status",
                Kind::OneOf(&["active", "paused", "interrupted", "completed", "failed"]),
                "",
            ),
        ],
        changes: Changes::Nothing,
        typed: |asked| {
            Ok(match asked.get("session") {
                Some(session) => Typed::new("session show").with(session),
                None => Typed::new("session list").set("status", asked.get("status")),
            })
        },
    },
    Spec {
        name: "session_resume",
        about: "How the person goes on with a session: command, drift, price. Changes nothing",
        fields: &[SESSION, may("checkpoint", Kind::Id, "")],
        changes: Changes::Nothing,
        typed: |asked| {
            let typed =
                Typed::new("resume --dry-run").set("checkpoint-id", asked.get("checkpoint"));
            Ok(typed.followed_by(asked.get("session")))
        },
    },
    Spec {
        name: "checkpoint_save",
        about: "Save a checkpoint, only when the person asks: turns are saved anyway",
        fields: &[may("label", Kind::Id, "kebab-case"), may("message", Kind::Text, "why"), SESSION],
        changes: Changes::Adds,
        typed: |asked| {
            let typed = Typed::new("checkpoint save").set("message", asked.get("message"));
            Ok(typed.set("session", asked.get("session")).followed_by(asked.get("label")))
        },
    },
    Spec {
        name: "checkpoint_list",
        about: "Checkpoints here; with `checkpoint`, that one in full",
        fields: &[may("checkpoint", Kind::Id, "handle, name or `latest`"), SESSION],
        changes: Changes::Nothing,
        typed: |asked| {
            let verb = if asked.get("checkpoint").is_some() { "show" } else { "list" };
            let typed = Typed::new(&format!("checkpoint {verb}"));
            Ok(typed.set("session", asked.get("session")).followed_by(asked.get("checkpoint")))
        },
    },
    Spec {
        name: "checkpoint_diff",
        about: "What changed between two checkpoints, or since one",
        fields: &[
            must("from", Kind::Id, ""),
            may("to", Kind::Id, "default: the files now"),
            may("patch", Kind::Flag, "with the changed lines"),
        ],
        changes: Changes::Nothing,
        typed: |asked| {
            let typed = asked.flagged("patch", Typed::new("checkpoint diff"));
            Ok(typed.followed_by(asked.get("from")).followed_by(asked.get("to")))
        },
    },
    Spec {
        name: "checkpoint_rollback",
        about: "Make the files what they were at a checkpoint. Shows the plan; the person confirms, or gives you a code",
        fields: &[
            must("checkpoint", Kind::Id, ""),
            may("code", Kind::Id, "from the person's `biv confirm`"),
        ],
        changes: Changes::Files,
        typed: |asked| {
            let typed = Typed::new("checkpoint rollback --dry-run");
            Ok(typed.followed_by(asked.get("checkpoint")))
        },
    },
    Spec {
        name: "progress",
        about: "Record what the next agent must know, when it happens",
        fields: &[
            must("kind", Kind::OneOf(&record::KINDS), ""),
            may(
                "action",
                Kind::Text,
                "task: add start done fail block drop update; step: start finish fail; gate: pass fail; blocker: add resolve; delegation: start finish",
            ),
            may("text", Kind::Text, "title, or id of the thing"),
            may(
                "details",
                Kind::Object,
                "options of `biv KIND ACTION`: why, rejected, needs, how, reason, note, issue, objective, output, error, next …",
            ),
            SESSION,
        ],
        changes: Changes::Adds,
        typed: |asked| record::typed(asked.0),
    },
    Spec {
        name: "rehydrate",
        about: "All you need to go on after a loss of context",
        fields: &[SESSION, may("budget", Kind::Number, "tokens")],
        changes: Changes::Nothing,
        typed: |asked| {
            let typed = Typed::new("rehydrate").set("budget", asked.get("budget"));
            Ok(typed.followed_by(asked.get("session")).in_words())
        },
    },
    Spec {
        name: "search",
        about: "Find prompts, answers, decisions and files of all sessions here",
        fields: &[must("query", Kind::Text, ""), SESSION, may("most", Kind::Number, "")],
        changes: Changes::Nothing,
        typed: |asked| {
            let typed = Typed::new("search --here").set("session", asked.get("session"));
            Ok(typed.set("most", asked.get("most")).followed_by(asked.get("query")).best_first())
        },
    },
    Spec {
        name: "fork",
        about: "A second session from a checkpoint, in a new folder beside this one",
        fields: &[must("checkpoint", Kind::Id, ""), may("name", Kind::Id, "")],
        changes: Changes::Adds,
        typed: |asked| {
            let typed = Typed::new("fork").set("name", asked.get("name"));
            Ok(typed.followed_by(asked.get("checkpoint")))
        },
    },
    Spec {
        name: "replay",
        about: "The prompt that tries the failed step again, with what the steps before it produced",
        fields: &[SESSION, may("from", Kind::Id, "a step")],
        changes: Changes::Nothing,
        typed: |asked| {
            let typed = Typed::new("replay --print").set("from", asked.get("from"));
            Ok(typed.followed_by(asked.get("session")))
        },
    },
];

pub(super) fn all() -> Vec<Tool> {
    TOOLS.iter().map(Spec::tool).collect()
}

pub(super) fn named(name: &str) -> Option<&'static Spec> {
    TOOLS.iter().find(|it| it.name == name)
}

impl Spec {
    fn tool(&self) -> Tool {
        let properties: Map<String, Value> =
            self.fields.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
        let needed: Vec<&str> =
            self.fields.iter().filter(|it| it.is_needed).map(|it| it.name).collect();
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !needed.is_empty() {
            schema.insert("required".to_owned(), json!(needed));
        }
        let hints = match self.changes {
            Changes::Nothing => ToolAnnotations::new().read_only(true),
            Changes::Adds => ToolAnnotations::new().destructive(false),
            Changes::Files => ToolAnnotations::new().destructive(true),
        };
        Tool::new(self.name, self.about, Arc::new(schema)).with_annotations(hints)
    }

    /// The command that a call asks for.
    pub(super) fn command(&self, arguments: &JsonObject) -> Result<Typed, Refused> {
        self.check(arguments)?;
        (self.typed)(&Asked(arguments))
    }

    fn check(&self, arguments: &JsonObject) -> Result<(), Refused> {
        for (name, value) in arguments {
            let field = self.fields.iter().find(|it| it.name == name);
            let Some(field) = field else {
                return Err(self.refuse(format!("`{}` takes no {}", self.name, quoted(name))));
            };
            if let Err(why) = field.check(value) {
                return Err(self.refuse(format!("`{name}` {why}")));
            }
        }
        let is_missing = |it: &&Field| it.is_needed && !arguments.contains_key(it.name);
        match self.fields.iter().find(is_missing) {
            Some(field) => Err(self.refuse(format!("`{}` needs `{}`", self.name, field.name))),
            None => Ok(()),
        }
    }

    fn refuse(&self, message: String) -> Refused {
        let fields: Vec<String> = self.fields.iter().map(Field::in_words).collect();
        Refused { message, hint: format!("it takes {}", fields.join(", ")) }
    }
}

impl Field {
    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Id | Kind::Text => json!({ "type": "string" }),
            Kind::Number => json!({ "type": "integer" }),
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Object => json!({ "type": "object" }),
            Kind::OneOf(words) => json!({ "enum": words }),
        };
        if !self.about.is_empty() {
            schema["description"] = json!(self.about);
        }
        schema
    }

    fn in_words(&self) -> String {
        let needed = if self.is_needed { ", needed" } else { "" };
        format!("`{}` ({}{needed})", self.name, self.kind.in_words())
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        match (self.kind, value) {
            (Kind::Id, Value::String(text)) if text.len() > MAX_ID => {
                Err(format!("is longer than {MAX_ID} bytes"))
            }
            (Kind::Id, Value::String(text)) if text.is_empty() || text.starts_with('-') => {
                Err("names nothing".to_owned())
            }
            (Kind::Text, Value::String(text)) if text.len() > MAX_TEXT => {
                Err(format!("is longer than {} KiB", MAX_TEXT >> 10))
            }
            (Kind::Id | Kind::Text, Value::String(text)) if text.contains('\0') => {
                Err("has a zero byte in it".to_owned())
            }
            (Kind::OneOf(words), Value::String(text)) if !words.contains(&text.as_str()) => {
                Err(format!("is none of {}", words.join(", ")))
            }
            (Kind::Id | Kind::Text | Kind::OneOf(_), Value::String(_))
            | (Kind::Flag, Value::Bool(_))
            | (Kind::Object, Value::Object(_)) => Ok(()),
            (Kind::Number, Value::Number(number)) if number.is_u64() => Ok(()),
            _ => Err(format!("has to be {}", self.kind.in_words())),
        }
    }
}

impl Kind {
    fn in_words(self) -> String {
        match self {
            Self::Id => "a short text".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Number => "a whole number".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Object => "an object".to_owned(),
            Self::OneOf(words) => words.join("|"),
        }
    }
}

/// What a call says, as it says it.
struct Asked<'a>(&'a JsonObject);

impl Asked<'_> {
    fn get(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// The same with an option, if it is asked for.
    fn flagged(&self, name: &str, typed: Typed) -> Typed {
        if self.0.get(name) == Some(&Value::Bool(true)) { typed.flag(name) } else { typed }
    }
}

/// A call that makes no sense, and what would.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) message: String,
    pub(super) hint: String,
}

/// What is typed after `biv`.
#[derive(Clone, Debug, Default)]
pub(super) struct Typed {
    verbs: Vec<String>,
    options: Vec<String>,
    behind: Vec<String>,
    /// Is the answer for people the one that a model can read best?
    pub(super) is_in_words: bool,
    /// Does its list begin with what matters most? Others end with it, the newest.
    pub(super) is_best_first: bool,
}

impl Typed {
    pub(super) fn new(verbs: &str) -> Self {
        Self { verbs: verbs.split(' ').map(str::to_owned).collect(), ..Self::default() }
    }

    /// In one word with its value, whatever the value looks like.
    pub(super) fn set(mut self, option: &str, value: Option<String>) -> Self {
        self.options.extend(value.map(|value| format!("--{option}={value}")));
        self
    }

    pub(super) fn flag(mut self, option: &str) -> Self {
        self.options.push(format!("--{option}"));
        self
    }

    pub(super) fn with(self, value: String) -> Self {
        self.followed_by(Some(value))
    }

    pub(super) fn followed_by(mut self, value: Option<String>) -> Self {
        self.behind.extend(value);
        self
    }

    pub(super) fn in_words(mut self) -> Self {
        self.is_in_words = true;
        self
    }

    fn best_first(mut self) -> Self {
        self.is_best_first = true;
        self
    }

    /// No value can be taken for an option: those that may begin with `-` stand behind `--`. What names a thing
    /// never does, and stands before it, because behind it some commands take the words of an agent.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = [self.verbs.clone(), self.options.clone()].concat();
        if self.behind.iter().any(|it| it.starts_with('-')) {
            words.push("--".to_owned());
        }
        words.extend_from_slice(&self.behind);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(tool: &str, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        match named(tool).unwrap().command(&arguments) {
            Ok(command) => command.words().join(" · "),
            Err(refused) => format!("{} ({})", refused.message, refused.hint),
        }
    }

    #[test]
    fn what_a_model_says_is_never_an_option() {
        let said = [
            words("search", json!({ "query": "--json -C /" })),
            words("session_resume", json!({ "session": "--into=/tmp/x" })),
            words("checkpoint_diff", json!({ "from": "cp-001", "patch": true })),
            words("progress", json!({ "kind": "note", "text": "-x" })),
            words(
                "progress",
                json!({ "kind": "decision", "text": "a", "details": { "why": "--yes", "rejected": ["b", "c"] } }),
            ),
            words(
                "progress",
                json!({ "kind": "decision", "text": "a", "details": { "root": "/" } }),
            ),
            words("progress", json!({ "kind": "approval", "action": "resolve", "text": "a1" })),
            words(
                "progress",
                json!({ "kind": "artifact", "text": "docs/a.md", "details": { "kind": "design" } }),
            ),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        search · --here · -- · --json -C /
        `session` names nothing (it takes `session` (a short text), `checkpoint` (a short text))
        checkpoint · diff · --patch · cp-001
        note · -- · -x
        decision · add · --why=--yes · --rejected=b · --rejected=c · a
        `decision add` takes no `root` (the details are title, id, why, rejected, idempotency-key, expected-sequence; `text` is the first that is not named)
        a model cannot do `resolve` with `approval` (the actions are request)
        artifact · add · design · docs/a.md
        ");
    }

    #[test]
    fn a_call_that_makes_no_sense_is_told_what_would() {
        let said = [
            words("checkpoint_diff", json!({})),
            words("checkpoint_diff", json!({ "from": 7 })),
            words("rehydrate", json!({ "budget": "many" })),
            words("session_list", json!({ "status": "gone" })),
            words("search", json!({ "query": "a", "path": "/etc" })),
            words("search", json!({ "query": "x".repeat(MAX_TEXT + 1) })),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        `checkpoint_diff` needs `from` (it takes `from` (a short text, needed), `to` (a short text), `patch` (true or false))
        `from` has to be a short text (it takes `from` (a short text, needed), `to` (a short text), `patch` (true or false))
        `budget` has to be a whole number (it takes `session` (a short text), `budget` (a whole number))
        `status` is none of active, paused, interrupted, completed, failed (it takes `session` (a short text), `status` (active|paused|interrupted|completed|failed))
        `search` takes no `path` (it takes `query` (a text, needed), `session` (a short text), `most` (a whole number))
        `query` is longer than 16 KiB (it takes `query` (a text, needed), `session` (a short text), `most` (a whole number))
        ");
    }
}
