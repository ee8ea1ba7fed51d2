//! What the shell offers when someone presses Tab: ids that are really there.

use bivouac_core::progress::Silent;
use bivouac_engine::Engine;
use bivouac_engine::home::Wishes;
use bivouac_engine::open::Need;
use clap::builder::StyledStr;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

pub fn checkpoints() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &std::ffi::OsStr| {
        offer(typed, |engine| engine.checkpoint_words())
    })
}

pub fn sessions() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &std::ffi::OsStr| offer(typed, |engine| engine.session_words()))
}

type Words = Vec<(String, Option<String>)>;

fn offer(
    typed: &std::ffi::OsStr,
    words: impl Fn(&Engine) -> bivouac_engine::Result<Words>,
) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let engine = Engine::open(&Wishes::default(), Need::Read, Box::new(Silent));
    let found = engine.and_then(|engine| words(&engine)).unwrap_or_default();
    let fitting = found.into_iter().filter(|(word, _)| word.starts_with(typed.as_ref()));
    fitting
        .map(|(word, about)| CompletionCandidate::new(word).help(about.map(StyledStr::from)))
        .collect()
}
