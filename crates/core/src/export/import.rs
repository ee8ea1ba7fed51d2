//! What a file says that was not known. A file is read again and again, so what it repeats is nothing new.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Parsed;
use super::inline::clean;
use super::words::{rounded_seconds, rounded_tokens, write_moment};
use crate::event::Event;
use crate::redact::Redactor;
use crate::session::Session;
use crate::text::Note;
use crate::time::Timestamp;
use crate::work::{Approval, Author, Blocker, Item, Noun, Outline, Thing, Work, key_of};

/// What a document of a session says that was not known.
pub fn news_of(known: &Work, session: &Session, mut found: Vec<Item>) -> Vec<Event> {
    forget_title(&mut found, session);
    changes(known, found)
}

/// The events that make the work say what was found. Things without a key are known by their titles, tasks
/// also by their issues; one that is new keeps its empty key, for the journal to fill.
pub fn changes(known: &Work, found: Vec<Item>) -> Vec<Event> {
    // There always is an outline, even if nobody said anything about it yet.
    let outline = known.outline.is_empty().then(|| Item::Outline(Box::default()));
    let items = known.items().into_iter().chain(outline);
    let known: Vec<Known> = items.map(|item| Known::new(&item, known)).collect();
    let keyed = found.iter().filter(|item| !item.key().is_empty());
    let mut taken: HashSet<(Noun, String)> =
        keyed.map(|item| (item.noun(), item.key().to_owned())).collect();
    let mut events = Vec::new();
    for item in found {
        let said = said(&item);
        let is_single = matches!(item.noun(), Noun::Outline | Noun::Phase);
        let same = match item.key().is_empty() && !is_single {
            true => same_thing(&known, &item, &said, &taken),
            false => known.iter().find(|it| it.noun == item.noun() && it.key == item.key()),
        };
        if let Some(same) = same {
            taken.insert((same.noun, same.key.clone()));
        }
        events.extend(change(item, &said, same));
    }
    events
}

/// A document is headed by what a session is called where nobody named a feature. Read back, that is no news.
fn forget_title(found: &mut Vec<Item>, session: &Session) {
    let task = session.task_description.as_ref().map(|it| text(it.as_str()));
    let names = [session.title(), task, Some(session.handle.to_string())];
    for item in found.iter_mut() {
        if let Item::Outline(outline) = item
            && names
                .iter()
                .flatten()
                .any(|name| outline.feature.as_ref().is_some_and(|it| it.as_str() == name))
        {
            outline.feature = None;
        }
    }
    found.retain(|item| !matches!(item, Item::Outline(it) if **it == Outline { by: it.by, ..Outline::default() }));
}

/// What was in a file when it was written and has been taken out of it since: a question whose row is gone was
/// answered, and a blocker whose line is gone is out of the way. Only a file of ours can tell.
pub fn removed(known: &Work, parsed: &Parsed, until: Timestamp) -> Vec<Item> {
    let is_in_file =
        |noun, key: &str| parsed.items.iter().any(|it| it.noun() == noun && it.key() == key);
    let is_ours = known.tasks.iter().any(|it| is_in_file(Noun::Task, it.key()))
        || known.decisions.iter().any(|it| is_in_file(Noun::Decision, it.key()));
    if !is_ours {
        return Vec::new();
    }
    let why = || Some(Note::cut("it was taken out of the file"));
    let by = Some(Author::Import);
    let questions = known.pending_approvals().filter(|it| it.created_at <= until);
    let questions = questions.filter(|it| !is_in_file(Noun::Approval, it.key()));
    let answered = questions.map(|it| {
        let approval = it.approval.clone();
        Item::Approval(Box::new(Approval { approval, answer: why(), by, ..Approval::default() }))
    });
    let blockers = known.open_blockers().filter(|it| it.created_at <= until);
    let blockers = blockers.filter(|it| !is_in_file(Noun::Blocker, it.key()));
    let resolved = blockers.map(|it| {
        let blocker = it.blocker.clone();
        Item::Blocker(Box::new(Blocker { blocker, resolution: why(), by, ..Blocker::default() }))
    });
    answered.chain(resolved).collect()
}

/// A thing that is known, in the form it would have in a file.
struct Known {
    noun: Noun,
    key: String,
    title: Option<String>,
    issue: Option<String>,
    said: Map<String, Value>,
}

impl Known {
    fn new(item: &Item, work: &Work) -> Self {
        let mut said = said(item);
        let usual = match item.noun() {
            Noun::Task | Noun::Step => Some("pending"),
            Noun::Delegation => Some("in_progress"),
            _ => None,
        };
        if let Some(usual) = usual {
            said.entry("status").or_insert_with(|| usual.into());
        }
        if item.noun() == Noun::Outline {
            complete_outline(&mut said, work);
        }
        let issue = said.get("issue").and_then(Value::as_str).map(str::to_owned);
        Self { noun: item.noun(), key: item.key().to_owned(), title: title(item), issue, said }
    }
}

/// What a file says of the outline and was concluded from other things.
fn complete_outline(said: &mut Map<String, Value>, work: &Work) {
    let mut issues: Vec<Value> = Vec::new();
    for issue in work.issues() {
        let issue = Value::from(text(&issue));
        if issue != "" && !issues.contains(&issue) {
            issues.push(issue);
        }
    }
    said.insert("issues".to_owned(), issues.into());
    let first = said.get("instructions").and_then(|it| it.get(0)).cloned();
    if let Some(first) = first {
        said.entry("next").or_insert(first);
    }
}

fn text(text: &str) -> String {
    clean(&Redactor::default(), text)
}

fn title(item: &Item) -> Option<String> {
    item.title().map(|title| text(&title)).filter(|title| !title.is_empty())
}

/// What is said about a thing, but for its key and who says it.
fn said(item: &Item) -> Map<String, Value> {
    let event = item.clone().into_event();
    let mut said: Map<String, Value> = serde_json::from_str(&event.data()).unwrap_or_default();
    said.remove("by");
    said.remove(key_field(item.noun()));
    let said = said.into_iter().map(|(name, value)| (name.clone(), as_written(&name, value)));
    said.filter(|(_, value)| *value != Value::Null).collect()
}

const fn key_field(noun: Noun) -> &'static str {
    match noun {
        Noun::Outline | Noun::Phase => "key",
        Noun::Artifact => "place",
        Noun::Task => "task",
        Noun::Decision => "decision",
        Noun::Blocker => "blocker",
        Noun::Approval => "approval",
        Noun::Gate => "gate",
        Noun::Step => "step",
        Noun::Delegation => "delegation",
        Noun::ForkPoint => "fork_point",
        Noun::Partition => "agent",
        Noun::Worktree => "branch",
        Noun::Remark => "note",
        Noun::Commit => "sha",
        Noun::TestRun => "command",
    }
}

/// A value as it comes back from a file: texts clean, numbers round, nothing for what is empty.
fn as_written(name: &str, value: Value) -> Value {
    match value {
        Value::String(words) if name == "posted_at" => {
            words.parse::<Timestamp>().map_or(Value::Null, |moment| write_moment(moment).into())
        }
        Value::String(words) => Some(text(&words)).filter(|it| !it.is_empty()).into(),
        Value::Number(number) => match (name, number.as_u64()) {
            ("seconds", Some(seconds)) => rounded_seconds(seconds).into(),
            ("tokens", Some(tokens)) => rounded_tokens(tokens).into(),
            _ => number.into(),
        },
        Value::Array(list) => {
            let list = list.into_iter().map(|value| as_written("", value));
            let list: Vec<Value> = list.filter(|value| *value != Value::Null).collect();
            Some(list).filter(|list| !list.is_empty()).into()
        }
        Value::Object(map) => {
            // An output without a path and a check without a name are not written.
            let needed = ["path", "verdict"].into_iter().find(|name| map.contains_key(*name));
            let map = map.into_iter().map(|(name, value)| (name.clone(), as_written(&name, value)));
            let map: Map<String, Value> = map.filter(|(_, value)| *value != Value::Null).collect();
            let is_there = match needed {
                Some("verdict") => map.contains_key("name"),
                Some(name) => map.contains_key(name),
                None => true,
            };
            if is_there { map.into() } else { Value::Null }
        }
        other => other,
    }
}

/// The known thing an item without a key speaks of.
fn same_thing<'a>(
    known: &'a [Known],
    item: &Item,
    said: &Map<String, Value>,
    taken: &HashSet<(Noun, String)>,
) -> Option<&'a Known> {
    let mut free = known
        .iter()
        .filter(|it| it.noun == item.noun() && !taken.contains(&(it.noun, it.key.clone())));
    let issue = said.get("issue").and_then(Value::as_str).filter(|_| item.noun() == Noun::Task);
    let title = title(item);
    let mut named = free.clone().filter(|it| title.is_some() && it.title == title);
    // Several tasks may have one title; the issue tells them apart.
    let both = named.clone().find(|it| issue.is_some() && it.issue.as_deref() == issue);
    let of_issue = || {
        let mut all =
            known.iter().filter(|it| it.noun == Noun::Task && it.issue.as_deref() == issue);
        let only = all.next().filter(|_| issue.is_some() && all.next().is_none());
        only.filter(|it| free.clone().any(|other| other.key == it.key))
    };
    let found = both.or_else(|| named.next()).or_else(of_issue);
    found.or_else(|| free.find(|it| news(said, &it.said).next().is_none()))
}

/// The names of what is said and was not known.
fn news<'a>(
    said: &'a Map<String, Value>,
    known: &'a Map<String, Value>,
) -> impl Iterator<Item = &'a String> {
    let is_new = |(name, value): &(&String, &Value)| {
        known.get(*name).is_none_or(|known| !is_same(known, value))
    };
    said.iter().filter(is_new).map(|(name, _)| name)
}

/// A text that was cut says nothing new.
fn is_same(known: &Value, found: &Value) -> bool {
    match (known, found) {
        (Value::String(known), Value::String(found)) => {
            let cut = found.strip_suffix('…').map(str::trim_end);
            known == found || cut.is_some_and(|start| !start.is_empty() && known.starts_with(start))
        }
        (Value::Array(known), Value::Array(found)) => {
            known.len() == found.len() && known.iter().zip(found).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(known), Value::Object(found)) => {
            let is_in = |(name, value): (&String, &Value)| {
                known.get(name).is_some_and(|known| is_same(known, value))
            };
            known.len() == found.len() && found.iter().all(is_in)
        }
        _ => known == found,
    }
}

/// The event that says what is new about a thing, if anything is.
fn change(item: Item, said: &Map<String, Value>, same: Option<&Known>) -> Option<Event> {
    let new: Vec<String> = match same {
        Some(same) => news(said, &same.said).cloned().collect(),
        None => said.keys().cloned().collect(),
    };
    if new.is_empty() && (same.is_some() || item.key().is_empty()) {
        return None;
    }
    let key = same.map_or_else(|| item.key().to_owned(), |same| same.key.clone());
    let event = item.into_event();
    let all: Map<String, Value> = serde_json::from_str(&event.data()).unwrap_or_default();
    let mut told: Map<String, Value> =
        all.into_iter().filter(|(name, _)| new.contains(name)).collect();
    told.insert("by".to_owned(), "import".into());
    let mut event = Event::parse(event.kind(), &Value::Object(told).to_string()).ok()?;
    if let Some((_, set_key)) = key_of(&mut event) {
        set_key(key);
    }
    Some(event)
}
