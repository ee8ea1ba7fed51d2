//! Gemini CLI's conversations: a head, then messages, each of which replaces an earlier one with the
//! same id, and patches.

use bivouac_core::conversation::Tokens;

use crate::agents::Input;
use crate::agents::reading::{OpenCall, Reading};
use crate::agents::restore::{Kept, Launch, Order, Rewrite, copy_lines};
use crate::{Error, Result};

pub(super) fn read(record: Input<'_>, reading: &mut Reading) {
    if record.at("$rewindTo").value().is_some() {
        let target = record.str("$rewindTo");
        let turn = reading
            .newest
            .iter()
            .find(|(id, _)| Some(id.as_str()) == target)
            .map(|(_, turn)| *turn);
        // It names the first message that goes.
        let left =
            turn.map_or(reading.usage.n_turns.saturating_sub(1), |turn| turn.saturating_sub(1));
        reading.rewound_to = Some(left);
        reading.usage.n_turns = left;
        return;
    }
    let Some(id) = record.str("id") else {
        return;
    };
    let is_first = reading.is_new(id);
    match record.str("type") {
        Some("user") => read_words(record, is_first, reading),
        Some("gemini") => read_answer(record, is_first, reading),
        _ => {}
    }
    reading.hang(id);
}

fn read_words(record: Input<'_>, is_first: bool, reading: &mut Reading) {
    let mut is_prompt = is_first;
    for part in record.list("content") {
        let answer = part.at("functionResponse");
        if answer.value().is_some() {
            is_prompt = false;
            reading.close(answer.str("id").unwrap_or_default());
        }
        if part.str("text").is_some_and(|text| text.starts_with("<session_context>")) {
            is_prompt = false;
        }
    }
    if is_prompt {
        reading.usage.n_turns += 1;
    }
}

fn read_answer(record: Input<'_>, is_first: bool, reading: &mut Reading) {
    if is_first {
        let tokens = record.at("tokens");
        let number = |key| tokens.number(key).unwrap_or(0);
        let model = record.str("model").unwrap_or("unknown").to_owned();
        let cache_read = number("cached");
        // Gemini counts what came from a cache as input, too, and thoughts apart from the answer.
        let counted = Tokens {
            input: number("input").saturating_sub(cache_read).saturating_add(number("tool")),
            output: number("output").saturating_add(number("thoughts")),
            cache_read,
            cache_write: 0,
        };
        reading.count(&model, counted);
        reading.model = Some(model);
    }
    if let Some(words) = record.str("content") {
        reading.last_message = Some(words.to_owned());
    }
    for call in record.list("toolCalls") {
        let id = call.text("id").unwrap_or_default();
        reading.close(&id);
        if call.at("result").value().is_none() {
            let command = call.at("args").text("command");
            reading.open(OpenCall { id, tool: call.text("name").unwrap_or_default(), command });
        }
    }
}

/// A copy that the program takes in as a conversation of its own.
pub(super) fn restore(kept: &Kept, order: &Order) -> Result<Launch> {
    let rewrite = Rewrite::new(kept, order);
    let copy = order.scratch.join("session.jsonl");
    copy_lines(&kept.main(), &copy, |line| Some(rewrite.apply(&line)))?;
    let copy = copy.to_str().ok_or(Error::NotText)?;
    let command = ["gemini", "--session-file", copy].map(str::to_owned);
    Ok(Launch::new(command.into_iter().chain(order.extra.iter().cloned())))
}
