//! Claude Code's conversations: JSON lines, only ever appended to. Records form a tree; a rewind is a
//! prompt that hangs on an older record than the last.

use std::fs;
use std::path::Path;

use bivouac_core::conversation::Tokens;

use crate::agents::Input;
use crate::agents::reading::{Conversation, OpenCall, Part, Reading, Source};
use crate::agents::restore::{Kept, Launch, Order, Rewrite, copy_lines};
use crate::{Error, Result};

/// The main file, and those of the sub-agents in the folder named like it.
pub(super) fn parts(conversation: &Conversation) -> Vec<Part> {
    let Some(main) = &conversation.transcript else {
        return Vec::new();
    };
    let file = |name: String, path: &Path| Part { name, source: Source::File(path.to_owned()) };
    let mut parts = vec![file("main.jsonl".to_owned(), main)];
    let folder = main.with_extension("").join("subagents");
    let mut children: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
    children.sort_by_key(fs::DirEntry::file_name);
    for child in children {
        let name = child.file_name().to_string_lossy().into_owned();
        if name.ends_with(".jsonl") || name.ends_with(".meta.json") {
            parts.push(file(format!("subagents/{name}"), &child.path()));
        }
    }
    parts
}

pub(super) fn read(record: Input<'_>, reading: &mut Reading) {
    if let Some(version) = record.str("version") {
        reading.version = Some(version.to_owned());
    }
    match record.str("type") {
        Some("assistant") => read_answer(record.at("message"), reading),
        Some("user") => read_words(record, reading),
        _ => {}
    }
    if let Some(id) = record.str("uuid") {
        reading.hang(id);
    }
}

/// One record per block of an answer, each with the usage of the whole answer.
fn read_answer(message: Input<'_>, reading: &mut Reading) {
    let usage = message.at("usage");
    let model = message.str("model").unwrap_or("unknown");
    // An answer the program made up itself, such as a report of an error, costs nothing.
    let is_real = !model.starts_with('<');
    if is_real && message.str("id").is_some_and(|id| reading.is_new(id)) {
        let number = |key| usage.number(key).unwrap_or(0);
        reading.model = Some(model.to_owned());
        reading.count(
            model,
            Tokens {
                input: number("input_tokens"),
                output: number("output_tokens"),
                cache_read: number("cache_read_input_tokens"),
                cache_write: number("cache_creation_input_tokens"),
            },
        );
    }
    for block in message.list("content") {
        match block.str("type") {
            Some("text") => reading.last_message = block.text("text"),
            Some("tool_use") => reading.open(OpenCall {
                id: block.text("id").unwrap_or_default(),
                tool: block.text("name").unwrap_or_default(),
                command: block.at("input").text("command"),
            }),
            _ => {}
        }
    }
}

fn read_words(record: Input<'_>, reading: &mut Reading) {
    let message = record.at("message");
    let mut is_answer = false;
    for block in message.list("content") {
        if let Some(call) = block.str("tool_use_id") {
            reading.close(call);
            is_answer = true;
        }
    }
    let is_flag =
        |key: &str| record.at(key).value().is_some_and(|value| value.as_bool() == Some(true));
    // The program's own words, which no person typed for the model.
    const OWN: [&str; 4] = [
        "<task-notification>",
        "<local-command-",
        "<command-name>/compact",
        "<command-name>/clear",
    ];
    let is_own =
        message.str("content").is_some_and(|text| OWN.iter().any(|it| text.starts_with(it)));
    let is_aside = ["isMeta", "isCompactSummary", "isSidechain"].iter().any(|key| is_flag(key));
    if is_answer || is_own || is_aside {
        return;
    }
    // A prompt hangs on the last record of the turn before it. On an older one, the person went back.
    if let Some(parent) = record.str("parentUuid") {
        let turn = reading.newest.iter().find(|(id, _)| id == parent).map(|(_, turn)| *turn);
        if let Some(turn) = turn.filter(|turn| *turn < reading.usage.n_turns) {
            reading.rewound_to = Some(turn);
            reading.usage.n_turns = turn;
        }
    }
    reading.open_calls.clear();
    reading.usage.n_turns += 1;
}

/// A copy in a folder of ours, from which the program forks a conversation of its own.
pub(super) fn restore(kept: &Kept, order: &Order) -> Result<Launch> {
    let rewrite = Rewrite::new(kept, order);
    let copy = order.scratch.join(format!("{}.jsonl", kept.id));
    copy_lines(&kept.main(), &copy, |line| Some(rewrite.apply(&line)))?;
    for name in kept.parts.iter().skip(1) {
        let from = kept.folder.join(name);
        let to = order.scratch.join(kept.id.as_str()).join(name);
        copy_lines(&from, &to, |line| Some(rewrite.apply(&line)))?;
    }
    let copy = copy.to_str().ok_or(Error::NotText)?;
    let command = ["claude", "--resume", copy, "--fork-session"].map(str::to_owned);
    Ok(Launch::new(command.into_iter().chain(order.extra.iter().cloned())))
}
