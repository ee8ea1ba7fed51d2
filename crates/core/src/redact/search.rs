//! Finding any of many fixed texts. Two machines do the same: one is built quickly, which counts for a command
//! that prints three lines; the other takes a millisecond to build and is twice as fast, which counts for files.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Match, MatchKind};

/// From so many bytes on, building the fast one is worth it.
const MANY_BYTES: usize = 256 << 10;

pub(super) struct Search {
    quick_to_build: LazyLock<AhoCorasick>,
    fast: LazyLock<AhoCorasick>,
    n_seen: AtomicUsize,
}

impl Search {
    /// Of two that start at the same place, the longer one is found.
    pub(super) const fn new(quick: fn() -> AhoCorasick, fast: fn() -> AhoCorasick) -> Self {
        Self {
            quick_to_build: LazyLock::new(quick),
            fast: LazyLock::new(fast),
            n_seen: AtomicUsize::new(0),
        }
    }

    pub(super) fn each<'t>(&self, text: &'t str) -> impl Iterator<Item = Match> + use<'_, 't> {
        // Whichever is asked finds the same, so the count need not be exact.
        let n_seen = self.n_seen.load(Ordering::Relaxed).saturating_add(text.len());
        self.n_seen.store(n_seen, Ordering::Relaxed);
        let machine = if n_seen < MANY_BYTES { &self.quick_to_build } else { &self.fast };
        machine.find_iter(text)
    }
}

pub(super) fn quick(texts: impl IntoIterator<Item = &'static str>) -> AhoCorasick {
    build(texts, AhoCorasickKind::NoncontiguousNFA)
}

pub(super) fn fast(texts: impl IntoIterator<Item = &'static str>) -> AhoCorasick {
    build(texts, AhoCorasickKind::DFA)
}

fn build(texts: impl IntoIterator<Item = &'static str>, kind: AhoCorasickKind) -> AhoCorasick {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(kind))
        .prefilter(kind == AhoCorasickKind::DFA)
        .build(texts)
        .expect("a fixed and short list")
}
