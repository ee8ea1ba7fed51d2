//! Events in few words: for the log, for a briefing, and for finding them again.

use std::time::Duration;

use serde::Serialize;

use super::nouns::{Gate, Phase, Step, Task};
use super::status::TaskStatus;
use super::{Entry, Item, Thing, Work};
use crate::event::Event;
use crate::text::{Note, count, printable};
use crate::time::in_words;

/// `2 tasks completed, 1 in-progress, 3 pending`, and what else there is.
pub fn progress(tasks: &[Entry<Task>]) -> String {
    let number = |status| tasks.iter().filter(|task| task.status() == status).count() as u64;
    let always = format!(
        "{} completed, {} in-progress, {} pending",
        count(number(TaskStatus::Completed), "task"),
        number(TaskStatus::InProgress),
        number(TaskStatus::Pending)
    );
    let also = [TaskStatus::Blocked, TaskStatus::Failed].into_iter();
    let also = also.map(|status| (number(status), status)).filter(|(number, _)| *number > 0);
    let also = also.map(|(number, status)| format!(", {number} {status}"));
    always + &also.collect::<String>()
}

/// What an event said about a thing, as one line: `task.completed (001-email-sender)`. It says what it said
/// then, whatever came later; only a title it did not tell is the one the thing has.
pub fn told(said: &Item, title: Option<String>) -> String {
    let is_named = said.title().is_some();
    let title = said.title().or(title);
    let name = match (said.key(), &title) {
        ("", Some(title)) => title.clone(),
        (key, Some(title)) => format!("{key}-{title}"),
        (key, None) => key.to_owned(),
    };
    let line = match said {
        Item::Outline(_) => "session.described".to_owned(),
        Item::Phase(phase) => format!("phase.changed ({})", phase_name(phase)),
        Item::Artifact(artifact) => {
            let word = if artifact.is_over() { "removed" } else { "changed" };
            let kind = title.as_deref().unwrap_or("document");
            format!("artifact.{word} ({kind}: {})", artifact.place)
        }
        Item::Task(it) => format!("task.{} ({name})", happened(it.status, is_named)),
        Item::Decision(_) => format!("decision.made ({name})"),
        Item::Blocker(it) => {
            format!("blocker.{} ({name})", if it.is_over() { "resolved" } else { "added" })
        }
        Item::Approval(it) => {
            format!("approval.{} ({name})", if it.is_over() { "answered" } else { "requested" })
        }
        Item::Gate(gate) => format!("gate.executed ({}: {})", gate.name(), verdict(gate)),
        Item::Step(it) => match (it.status, it.attempt) {
            (Some(TaskStatus::Failed), Some(attempt)) => {
                format!("step.failed, attempt {attempt} ({name})")
            }
            (status, _) => format!("step.{} ({name})", happened(status, is_named)),
        },
        Item::Delegation(it) => format!("delegation.{} ({name})", happened(it.status, is_named)),
        Item::ForkPoint(fork) => match &fork.chosen {
            Some(chosen) => format!("fork_point.decided ({name}: {chosen})"),
            None => format!("fork_point.opened ({name})"),
        },
        Item::Partition(partition) => format!("partition.changed ({})", partition.agent),
        Item::Worktree(worktree) => {
            let status = worktree.status.map_or("seen", |status| status.as_str());
            format!("worktree.{status} ({})", worktree.branch)
        }
        Item::Remark(_) => format!("note.added ({name})"),
        Item::Commit(commit) => {
            let subject = commit.subject.as_ref().map(Note::headline).unwrap_or_default();
            format!("commit.seen ({} {subject})", short(&commit.sha))
        }
        Item::TestRun(run) => {
            let verdict = run.verdict.map_or("ran", |verdict| verdict.as_str());
            format!("tests.run ({}: {verdict})", run.command)
        }
    };
    printable(&line)
}

fn phase_name(phase: &Phase) -> String {
    let about = phase.about.as_ref().map(Note::headline).filter(|it| !it.is_empty());
    let number = phase.number.map(|number| number.to_string());
    phase.name.clone().or(about).or(number).unwrap_or_default()
}

/// A thing that came, went or changed between two moments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub noun: &'static str,
    pub key: String,
    pub title: Option<String>,
    /// How it stood before; none when it was not there.
    pub from: Option<String>,
    pub to: Option<String>,
}

/// What is different about the work between two moments.
pub fn differences(before: &Work, after: &Work) -> Vec<Difference> {
    let (before, after) = (before.items(), after.items());
    let same = |one: &Item, other: &Item| one.noun() == other.noun() && one.key() == other.key();
    let difference = |item: &Item, from: Option<&Item>, to: Option<&Item>| Difference {
        noun: item.noun().as_str(),
        key: item.key().to_owned(),
        title: item.title(),
        from: from.map(standing),
        to: to.map(standing),
    };
    let mut found = Vec::new();
    for item in &after {
        let known = before.iter().find(|it| same(it, item));
        if known != Some(item) {
            found.push(difference(item, known, Some(item)));
        }
    }
    let gone = before.iter().filter(|item| !after.iter().any(|it| same(it, item)));
    found.extend(gone.map(|item| difference(item, Some(item), None)));
    found
}

/// How a thing stands, in a word.
pub fn standing(item: &Item) -> String {
    let over = |is_over: bool, yes: &str, no: &str| if is_over { yes } else { no }.to_owned();
    match item {
        Item::Task(it) => it.status().to_string(),
        Item::Step(it) => step_standing(it),
        Item::Delegation(it) => it.status().to_string(),
        Item::Blocker(it) => over(it.is_over(), "resolved", "open"),
        Item::Approval(it) => over(it.is_over(), "answered", "pending"),
        Item::Gate(it) => verdict(it).to_owned(),
        Item::TestRun(it) => it.verdict.map_or("?", |verdict| verdict.as_str()).to_owned(),
        Item::ForkPoint(it) => match &it.chosen {
            Some(chosen) => format!("decided: {chosen}"),
            None => "open".to_owned(),
        },
        Item::Worktree(it) => it.status.map_or("active", |status| status.as_str()).to_owned(),
        Item::Artifact(it) => over(it.is_over(), "gone", ""),
        Item::Phase(it) => it.name.clone().unwrap_or_default(),
        Item::Outline(_)
        | Item::Decision(_)
        | Item::Partition(_)
        | Item::Remark(_)
        | Item::Commit(_) => String::new(),
    }
}

/// What else there is to say about a thing, in a line.
pub fn details(item: &Item) -> String {
    let note = |title: &str, note: &Option<Note>| {
        note.as_ref().map(|it| format!("{title}{}", it.headline()))
    };
    let word = |word: &Option<String>| word.clone();
    let list = |title: &str, list: &Option<Vec<String>>| {
        list.as_ref().filter(|it| !it.is_empty()).map(|it| format!("{title}{}", it.join(", ")))
    };
    let notes = |title: &str, notes: &Option<Vec<Note>>| {
        let lines: Vec<String> = notes.iter().flatten().map(Note::headline).collect();
        (!lines.is_empty()).then(|| format!("{title}{}", lines.join("; ")))
    };
    let words = match item {
        Item::Task(it) => vec![
            word(&it.issue),
            word(&it.agent),
            note("", &it.failure),
            note("", &it.note),
            list("after ", &it.depends_on),
            list("", &it.files),
        ],
        Item::Step(it) => {
            let error = it.error().map(|error| format!("error: {}", error.headline()));
            vec![word(&it.issue), word(&it.agent), error, note("", &it.cached)]
        }
        Item::Delegation(it) => {
            let tokens = it.tokens.map(|tokens| format!("~{}K tokens", tokens.div_ceil(1_000)));
            let took = it.seconds.map(|seconds| in_words(Duration::from_secs(seconds)));
            vec![word(&it.issue), word(&it.tier), tokens, took, note("", &it.note)]
        }
        Item::Decision(it) => vec![note("", &it.why), notes("rejected: ", &it.rejected)],
        Item::Blocker(it) => {
            let how = it.resolution.as_ref().map(Note::headline).filter(|how| how != "resolved");
            vec![note("needs: ", &it.needs), word(&it.reference), how]
        }
        Item::Approval(it) => {
            vec![
                word(&it.provider),
                word(&it.channel),
                word(&it.thread),
                note("answer: ", &it.answer),
            ]
        }
        Item::Gate(it) => vec![word(&it.task), notes("", &it.findings)],
        Item::ForkPoint(it) => {
            let options =
                it.options.iter().flatten().map(|it| format!("{}: {}", it.letter, it.title));
            vec![Some(options.collect::<Vec<_>>().join("; ")), note("", &it.why)]
        }
        Item::Partition(it) => vec![list("", &it.paths)],
        Item::Worktree(it) => vec![word(&it.path)],
        Item::Commit(it) => vec![note("", &it.subject)],
        Item::Outline(_)
        | Item::Phase(_)
        | Item::Artifact(_)
        | Item::Remark(_)
        | Item::TestRun(_) => Vec::new(),
    };
    words.into_iter().flatten().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn step_standing(step: &Step) -> String {
    match step.attempt {
        Some(attempt) if attempt > 1 => format!("{} (attempt {attempt})", step.status()),
        _ => step.status().to_string(),
    }
}

/// What a status means for something that is named, and so may be new.
fn happened(status: Option<TaskStatus>, is_named: bool) -> &'static str {
    match status {
        None => "changed",
        Some(TaskStatus::Pending) if is_named => "added",
        Some(TaskStatus::InProgress) => "started",
        Some(other) => other.as_str(),
    }
}

fn verdict(gate: &Gate) -> &'static str {
    gate.verdict.map_or("?", |verdict| verdict.as_str())
}

fn short(sha: &str) -> &str {
    sha.get(..8).unwrap_or(sha)
}

/// The words an event is found by.
pub fn searchable(event: &Event) -> Option<String> {
    let note = |note: &Option<Note>| note.as_ref().map(|it| it.as_str().to_owned());
    let words: Vec<Option<String>> = match event {
        Event::SessionCreated(session) => vec![
            session.name.as_ref().map(|name| name.as_str().to_owned()),
            note(&session.task_description),
        ],
        Event::SessionRenamed(renamed) => vec![Some(renamed.name.as_str().to_owned())],
        Event::CheckpointTaken(taken) => vec![
            taken.checkpoint.name.as_ref().map(|name| name.as_str().to_owned()),
            note(&taken.checkpoint.message),
        ],
        Event::Noted(noted) => vec![Some(noted.message.as_str().to_owned())],
        Event::PromptGiven(given) => vec![Some(given.prompt.as_str().to_owned())],
        Event::TurnEnded(turn) => vec![note(&turn.message), note(&turn.error)],
        Event::ToolUsed(used) => vec![note(&used.command), Some(used.files.join(" "))],
        Event::SubagentStopped(stopped) => vec![note(&stopped.message)],
        Event::ApprovalAsked(asked) => vec![note(&asked.what)],
        _ => {
            let items = Item::all_of(event);
            items.iter().map(|item| Some(strings_of(item))).collect()
        }
    };
    let words: Vec<String> =
        words.into_iter().flatten().filter(|it| !it.trim().is_empty()).collect();
    (!words.is_empty()).then(|| words.join("\n"))
}

/// Every text a thing holds.
fn strings_of(item: &Item) -> String {
    let data = item.clone().into_event().data();
    let value: serde_json::Value = serde_json::from_str(&data).unwrap_or_default();
    let mut found = Vec::new();
    collect(&value, &mut found);
    found.join("\n")
}

fn collect(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => found.push(text.clone()),
        serde_json::Value::Array(list) => list.iter().for_each(|it| collect(it, found)),
        serde_json::Value::Object(map) => {
            // Who, when, and where in git: nobody looks for those words.
            const SILENT: [&str; 6] = ["by", "posted_at", "base", "head", "status", "verdict"];
            let told = map.iter().filter(|(key, _)| !SILENT.contains(&key.as_str()));
            told.for_each(|(_, it)| collect(it, found));
        }
        _ => {}
    }
}
