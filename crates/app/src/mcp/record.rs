//! What a model records about the work: one tool for every kind of thing. The details are the options of the
//! command line, so there is one list of them, and it is there.

use clap::{Arg, CommandFactory};
use rmcp::model::JsonObject;
use serde_json::Value;

use super::answer::quoted;
use super::tools::{MAX_TEXT, Refused, Typed};
use crate::cli::Cli;

/// Every kind; `session` says more about the session itself.
pub(super) const KINDS: [&str; 14] = [
    "task",
    "phase",
    "gate",
    "decision",
    "blocker",
    "artifact",
    "approval",
    "step",
    "delegation",
    "fork-point",
    "partition",
    "worktree",
    "note",
    "session",
];

/// In the details of one call.
const MOST_VALUES: usize = 100;

/// What is done with a kind where a model does not say it.
fn usual(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "task" | "decision" | "blocker" | "artifact" => "add",
        "step" | "delegation" => "start",
        "phase" | "partition" | "worktree" => "set",
        "approval" => "request",
        "fork-point" => "open",
        "session" => "describe",
        _ => return None,
    })
}

/// Only what puts something on record. A person answers what was asked of a person.
fn is_allowed(kind: &str, action: &str) -> bool {
    match kind {
        "session" => action == "describe",
        "approval" => action == "request",
        _ => action != "list",
    }
}

pub(super) fn typed(arguments: &JsonObject) -> Result<Typed, Refused> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let kind = text("kind").unwrap_or_default();
    let root = Cli::command();
    let noun = root.find_subcommand(kind).expect("every kind is a command");
    let (verbs, target) = match noun.has_subcommands() {
        false if text("action").is_some_and(|it| it != "add") => {
            return Err(no_action(noun, text("action").unwrap_or_default()));
        }
        false => (kind.to_owned(), noun),
        true => {
            let action = text("action").or_else(|| usual(kind)).unwrap_or_default();
            let verb = noun.find_subcommand(action).filter(|_| is_allowed(kind, action));
            let verb = verb.ok_or_else(|| no_action(noun, action))?;
            (format!("{kind} {action}"), verb)
        }
    };
    let mut command = Typed::new(&verbs).set("session", text("session").map(str::to_owned));
    let empty = JsonObject::new();
    check_size(arguments.get("details").unwrap_or(&Value::Null))?;
    let details = arguments.get("details").and_then(Value::as_object).unwrap_or(&empty);
    for (name, value) in details {
        let is_positional = positions(target).any(|it| it.get_id() == name.as_str());
        if !is_positional {
            command = put(command, (target, &verbs), name, value)?;
        }
    }
    // What stands without a name: a detail of that name, else the text.
    let mut left = text("text");
    for position in positions(target) {
        let values = match details.get(position.get_id().as_str()) {
            Some(value) => texts(value, position.get_id().as_str())?,
            None => left.take().map(str::to_owned).into_iter().collect(),
        };
        command = values.into_iter().fold(command, Typed::with);
    }
    match left.filter(|text| !text.is_empty()) {
        Some(_) => Err(Refused {
            message: format!("`{verbs}` has everything it needs without `text`"),
            hint: "say it in `text` or in `details`, not in both".to_owned(),
        }),
        None => Ok(command),
    }
}

/// An object in a list is a group of options, in its order: a way forward, and what speaks for it.
fn put(
    command: Typed,
    target: (&clap::Command, &str),
    name: &str,
    value: &Value,
) -> Result<Typed, Refused> {
    let option = options(target.0).find(|it| it.get_long() == Some(name));
    let option = option.ok_or_else(|| no_detail(target.0, target.1, name))?;
    if !option.get_action().takes_values() {
        return match value {
            Value::Bool(true) => Ok(command.flag(name)),
            Value::Bool(false) => Ok(command),
            _ => Err(not_a_value(name, "true or false")),
        };
    }
    let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    items.iter().try_fold(command, |command, item| match item {
        Value::Object(group) => group
            .iter()
            .try_fold(command, |command, (name, value)| put(command, target, name, value)),
        item => {
            Ok(texts(item, name)?.into_iter().fold(command, |it, text| it.set(name, Some(text))))
        }
    })
}

fn texts(value: &Value, name: &str) -> Result<Vec<String>, Refused> {
    match value {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Number(number) => Ok(vec![number.to_string()]),
        Value::Array(values) => {
            let all: Result<Vec<Vec<String>>, Refused> =
                values.iter().map(|value| texts(value, name)).collect();
            Ok(all?.concat())
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => {
            Err(not_a_value(name, "a text or a number; several are a list"))
        }
    }
}

fn not_a_value(name: &str, what: &str) -> Refused {
    let message = format!("{} in the details is not what it has to be", quoted(name));
    Refused { message, hint: format!("it is {what}") }
}

/// What is told in every briefing has to be short.
fn check_size(details: &Value) -> Result<(), Refused> {
    let mut sizes = Vec::new();
    sizes_in(details, &mut sizes);
    let is_small = sizes.iter().sum::<usize>() <= MAX_TEXT && sizes.len() <= MOST_VALUES;
    if is_small {
        return Ok(());
    }
    let message = "the details are too much to be told again".to_owned();
    let hint = format!("at most {MOST_VALUES} values, and {} KiB in all", MAX_TEXT >> 10);
    Err(Refused { message, hint })
}

fn sizes_in(value: &Value, sizes: &mut Vec<usize>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| sizes_in(item, sizes)),
        Value::Object(fields) => {
            sizes.extend(fields.keys().map(String::len));
            fields.values().for_each(|item| sizes_in(item, sizes));
        }
        Value::String(text) => sizes.push(text.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => sizes.push(1),
    }
}

/// Those of the command itself; where things are is no model's business.
fn options(command: &clap::Command) -> impl Iterator<Item = &Arg> {
    let is_ours = |it: &&Arg| !matches!(it.get_long(), None | Some("session" | "help"));
    command.get_arguments().filter(is_ours)
}

fn positions(command: &clap::Command) -> impl Iterator<Item = &Arg> {
    command.get_positionals()
}

fn no_action(noun: &clap::Command, action: &str) -> Refused {
    let kind = noun.get_name();
    let all = noun.get_subcommands().map(clap::Command::get_name);
    let actions: Vec<&str> = all.filter(|it| is_allowed(kind, it)).collect();
    let message = match action.is_empty() {
        true => format!("`{kind}` needs an `action`"),
        false => format!("a model cannot do {} with `{kind}`", quoted(action)),
    };
    let hint = match actions.is_empty() {
        true => "leave `action` out".to_owned(),
        false => format!("the actions are {}", actions.join(", ")),
    };
    Refused { message, hint }
}

fn no_detail(command: &clap::Command, verbs: &str, name: &str) -> Refused {
    let known = options(command).filter_map(Arg::get_long).map(str::to_owned);
    let all: Vec<String> =
        positions(command).map(|it| it.get_id().to_string()).chain(known).collect();
    let hint = format!("the details are {}; `text` is the first that is not named", all.join(", "));
    Refused { message: format!("`{verbs}` takes no {}", quoted(name)), hint }
}
