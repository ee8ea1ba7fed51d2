//! Codex's conversations. A fork or a rewind is a new file that begins with `history_base`: which other
//! file it continues, and up to which record. A checkpoint holds the whole chain.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use bivouac_core::conversation::Tokens;
use serde_json::Value;

use super::folder;
use crate::agents::Input;
use crate::agents::reading::{Conversation, OpenCall, Part, Reading, Source, open};
use crate::agents::restore::{Kept, Launch, Order, Rewrite, create, finish, headless};
use crate::{Error, Result};

/// A chain is not longer than this, and does not go in circles.
const MAX_CHAIN: usize = 64;

/// The newest file, those it continues (`base-1` is the one right before it), and the sub-agents'.
pub(super) fn parts(conversation: &Conversation) -> Result<Vec<Part>> {
    let Some(main) = &conversation.transcript else {
        return Ok(Vec::new());
    };
    let file = |name: String, path: &Path| Part { name, source: Source::File(path.to_owned()) };
    let sessions = sessions_folder(main, &conversation.home);
    let mut parts = vec![file("main.jsonl".to_owned(), main)];
    let mut current = main.clone();
    while let Some(base) = read_meta(&current)?.and_then(|meta| base_of(&meta)) {
        let found = find_rollout(&sessions, &base.thread, &current, base.end_byte);
        let Some(path) = found.filter(|_| parts.len() < MAX_CHAIN) else {
            break;
        };
        parts.push(file(format!("base-{}.jsonl", parts.len()), &path));
        current = path;
    }
    for path in rollouts(&sessions) {
        let is_child = |meta: Value| {
            let payload = Input::new(&meta).at("payload");
            payload.str("parent_thread_id") == Some(conversation.id.as_str())
        };
        if path != *main && read_meta(&path).ok().flatten().is_some_and(is_child) {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            parts.push(file(format!("subagents/{}", name.unwrap_or_default()), &path));
        }
    }
    Ok(parts)
}

struct Base {
    thread: String,
    end_byte: Option<u64>,
}

fn base_of(meta: &Value) -> Option<Base> {
    let base = Input::new(meta).at("payload").at("history_base");
    Some(Base { thread: base.text("thread_id")?, end_byte: base.number("end_byte_offset") })
}

/// The first record of a file, which says what the file is.
fn read_meta(path: &Path) -> Result<Option<Value>> {
    let mut line = Vec::new();
    let limit = crate::agents::offset::MAX_LINE as u64;
    let file = open(path)?;
    BufReader::new(std::io::Read::take(file, limit))
        .read_until(b'\n', &mut line)
        .map_err(Error::io(path))?;
    Ok(serde_json::from_slice(&line).ok())
}

fn sessions_folder(transcript: &Path, home: &Path) -> PathBuf {
    let above = transcript.ancestors().find(|folder| folder.ends_with("sessions"));
    above.map_or_else(|| folder(home).join("sessions"), Path::to_owned)
}

/// The file that holds a thread's records up to the byte a continuation names.
fn find_rollout(sessions: &Path, thread: &str, not: &Path, end: Option<u64>) -> Option<PathBuf> {
    let is_long_enough = |path: &PathBuf| {
        let length = fs::metadata(path).map_or(0, |meta| meta.len());
        end.is_none_or(|end| length >= end)
    };
    let mut found: Vec<PathBuf> = rollouts(sessions)
        .into_iter()
        .filter(|path| path != not && path.to_string_lossy().contains(thread))
        .filter(is_long_enough)
        .collect();
    found.sort();
    found.into_iter().next_back()
}

/// The rollout files below `YEAR/MONTH/DAY`.
fn rollouts(sessions: &Path) -> Vec<PathBuf> {
    let children = |folder: &PathBuf| -> Vec<PathBuf> {
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let mut level = vec![sessions.to_owned()];
    for _ in 0..4 {
        level = level.iter().flat_map(children).collect();
    }
    level.retain(|path| path.extension().is_some_and(|it| it == "jsonl"));
    level.sort();
    level
}

pub(super) fn read(record: Input<'_>, reading: &mut Reading) {
    let payload = record.at("payload");
    match record.str("type") {
        Some("session_meta") => reading.version = payload.text("cli_version"),
        Some("turn_context") => reading.model = payload.text("model"),
        Some("token_usage_record") => {
            let usage = payload.at("usage");
            let number = |key| usage.number(key).unwrap_or(0);
            let (cache_read, cache_write) =
                (number("cached_input_tokens"), number("cache_write_input_tokens"));
            if payload.str("response_id").is_none_or(|id| reading.is_new(id)) {
                let model = reading.model.clone().unwrap_or_else(|| "unknown".to_owned());
                // Codex counts what came from a cache as input, too.
                let input = number("input_tokens").saturating_sub(cache_read + cache_write);
                let tokens =
                    Tokens { input, output: number("output_tokens"), cache_read, cache_write };
                reading.count(&model, tokens);
            }
        }
        Some("event_msg") if payload.str("type") == Some("task_started") => {
            reading.usage.n_turns += 1;
            reading.open_calls.clear();
        }
        Some("response_item") => read_item(payload, reading),
        _ => {}
    }
}

fn read_item(item: Input<'_>, reading: &mut Reading) {
    match item.str("type") {
        Some("message") if item.str("role") == Some("assistant") => {
            let words = item.list("content").filter_map(|block| block.str("text"));
            reading.last_message = words.last().map(str::to_owned);
        }
        Some("function_call" | "custom_tool_call") => {
            let arguments: Option<Value> =
                item.str("arguments").and_then(|text| serde_json::from_str(text).ok());
            let command = arguments
                .as_ref()
                .and_then(|it| Input::new(it).first(&["cmd", "command"]).map(str::to_owned));
            reading.open(OpenCall {
                id: item.text("call_id").unwrap_or_default(),
                tool: item.text("name").unwrap_or_default(),
                command,
            });
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            if let Some(id) = item.str("call_id") {
                reading.close(id);
            }
        }
        _ => {}
    }
}

/// One flat file under a new id, in the folder that Codex looks through.
pub(super) fn restore(kept: &Kept, order: &Order) -> Result<Launch> {
    let day: Vec<&str> = order.now.split('T').next().unwrap_or_default().split('-').collect();
    let name = format!("rollout-{}-{}.jsonl", order.now, order.new_id);
    let path = folder(&order.home).join("sessions").join(day.join("/")).join(name);
    // What it continues may be of another conversation; all of it is part of the new one.
    let mut rewrite = Rewrite::new(kept, order).id(kept.id.as_str(), &order.new_id);
    for name in chain(kept) {
        let meta = read_meta(&kept.folder.join(name))?;
        let id = meta.as_ref().and_then(|meta| Input::new(meta).at("payload").text("id"));
        rewrite = id.iter().fold(rewrite, |rewrite, id| rewrite.id(id, &order.new_id));
    }
    write_flat(kept, &path, &rewrite)?;
    let id = order.new_id.clone();
    Ok(match headless(&order.extra) {
        Some((prompt, rest)) => {
            let start = ["codex", "exec"].map(str::to_owned).into_iter().chain(rest);
            Launch::new(start.chain(["resume".to_owned(), id, prompt.to_owned()]))
        }
        None => Launch::new(
            ["codex".to_owned(), "resume".to_owned(), id]
                .into_iter()
                .chain(order.extra.iter().cloned()),
        ),
    })
}

/// The newest file and those it continues.
fn chain(kept: &Kept) -> impl Iterator<Item = &String> {
    kept.parts.iter().filter(|name| *name == "main.jsonl" || name.starts_with("base-"))
}

/// Writes a chain as one file: the oldest records first, each file up to where the next one goes on,
/// with the first file's head and records numbered anew.
fn write_flat(kept: &Kept, path: &Path, rewrite: &Rewrite) -> Result<()> {
    let chain: Vec<&String> = chain(kept).collect();
    let ends: Vec<Option<u64>> =
        chain.iter().map(|name| end_of_base(&kept.folder.join(name))).collect();
    let mut writer = create(path)?;
    let mut number = 0u64;
    for (place, name) in chain.iter().enumerate().rev() {
        // The file that continues this one says where this one ends.
        let end = place.checked_sub(1).and_then(|next| ends[next]);
        let source = kept.folder.join(name);
        let file = fs::File::open(&source).map_err(Error::io(&source))?;
        for line in BufReader::new(file).lines().map_while(std::result::Result::ok) {
            let Ok(mut record) = serde_json::from_str::<Value>(&rewrite.apply(&line)) else {
                continue;
            };
            let ordinal = Input::new(&record).number("ordinal");
            if ordinal.zip(end).is_some_and(|(ordinal, end)| ordinal >= end) {
                break;
            }
            let is_head = Input::new(&record).str("type") == Some("session_meta");
            if is_head && number > 0 {
                continue;
            }
            if let Some(fields) = record.as_object_mut().filter(|_| ordinal.is_some()) {
                fields.insert("ordinal".to_owned(), number.into());
            }
            writeln!(writer, "{record}").map_err(Error::io(path))?;
            number += 1;
        }
    }
    finish(writer, path)
}

/// Up to which record the file before this one counts.
fn end_of_base(path: &Path) -> Option<u64> {
    let meta = read_meta(path).ok().flatten()?;
    Input::new(&meta).at("payload").at("history_base").number("end_ordinal_exclusive")
}
