//! Copilot CLI's conversations: events, written as a whole at the end of a turn.

use bivouac_core::conversation::Tokens;

use super::folder;
use crate::Result;
use crate::agents::Input;
use crate::agents::reading::{Conversation, OpenCall, Part, Reading, Source};
use crate::agents::restore::{Kept, Launch, Order, Rewrite, copy_lines};

/// Most hooks do not say where the file is, but its place follows from the id.
pub(super) fn parts(conversation: &Conversation) -> Vec<Part> {
    let default = || {
        folder(&conversation.home)
            .join("session-state")
            .join(conversation.id.as_str())
            .join("events.jsonl")
    };
    let path = conversation.transcript.clone().unwrap_or_else(default);
    vec![Part { name: "main.jsonl".to_owned(), source: Source::File(path) }]
}

pub(super) fn read(record: Input<'_>, reading: &mut Reading) {
    let data = record.at("data");
    match record.str("type") {
        Some("assistant.turn_end") => reading.is_complete = true,
        Some("user.message" | "assistant.turn_start") => reading.is_complete = false,
        _ => {}
    }
    match record.str("type") {
        Some("session.start") => reading.version = data.text("copilotVersion"),
        Some("user.message") => {
            reading.usage.n_turns += 1;
            reading.open_calls.clear();
        }
        Some("session.usage_record") => {
            let usage = data.at("usage");
            let is_new = usage.str("apiCallId").is_none_or(|id| reading.is_new(id));
            if is_new {
                let number = |key| usage.number(key).unwrap_or(0);
                let model = usage.str("model").unwrap_or("unknown").to_owned();
                let (cache_read, cache_write) =
                    (number("cacheReadTokens"), number("cacheWriteTokens"));
                let input = number("inputTokens").saturating_sub(cache_read + cache_write);
                reading.count(
                    &model,
                    Tokens { input, output: number("outputTokens"), cache_read, cache_write },
                );
                reading.model = Some(model);
            }
        }
        Some("assistant.message") => {
            if let Some(words) = data.str("content") {
                reading.last_message = Some(words.to_owned());
            }
        }
        Some("tool.execution_start") => reading.open(OpenCall {
            id: data.text("toolCallId").unwrap_or_default(),
            tool: data.text("toolName").unwrap_or_default(),
            command: data.at("arguments").text("command"),
        }),
        Some("tool.execution_complete") => {
            reading.close(data.str("toolCallId").unwrap_or_default());
        }
        _ => {}
    }
}

/// A copy under a new id, where the program looks for conversations.
pub(super) fn restore(kept: &Kept, order: &Order) -> Result<Launch> {
    let path = folder(&order.home).join("session-state").join(&order.new_id).join("events.jsonl");
    let rewrite = Rewrite::new(kept, order).id(kept.id.as_str(), &order.new_id);
    copy_lines(&kept.main(), &path, |line| Some(rewrite.apply(&line)))?;
    let command = ["copilot".to_owned(), format!("--resume={}", order.new_id)];
    Ok(Launch::new(command.into_iter().chain(order.extra.iter().cloned())))
}
