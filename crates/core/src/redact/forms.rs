//! Secrets that only the form around them gives away: command lines (`commands`), calls (`calls`), and the
//! files of other programs (`records`). One search finds where each of them may begin.

use std::ops::Range;

use super::Spot;
use super::calls::{self, CALLS};
use super::commands::{self, PROGRAMS};
use super::records::{self, KINDS, PORTS};
use super::search::{self, Search};

const MACHINE: &str = "machine ";

static MARKS: Search = Search::new(|| search::quick(marks()), || search::fast(marks()));

fn marks() -> impl Iterator<Item = &'static str> {
    let calls = CALLS.iter().map(|(call, _)| *call);
    [MACHINE].into_iter().chain(PORTS).chain(KINDS).chain(calls).chain(PROGRAMS)
}

/// Up to where each form was read. A line that was read as a command may still hold a call.
#[derive(Default)]
struct ReadTo {
    command: usize,
    kubernetes: usize,
}

pub(super) fn spots(text: &str) -> Vec<Spot<'_>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut read_to = ReadTo::default();
    for mark in MARKS.each(text) {
        let range = mark.range();
        let mut number = mark.pattern().as_usize();
        if number == 0 {
            found.extend(records::netrc(text, range));
            continue;
        }
        number -= 1;
        if number < PORTS.len() {
            found.extend(records::pgpass(text, range));
            continue;
        }
        number -= PORTS.len();
        if number < KINDS.len() {
            if range.start >= read_to.kubernetes {
                let (secrets, end) = records::kubernetes(text, range, read_to.kubernetes);
                found.extend(secrets);
                read_to.kubernetes = end;
            }
            continue;
        }
        number -= KINDS.len();
        if let Some((_, n_before)) = CALLS.get(number) {
            found.extend(calls::password(text, range.end, *n_before));
        } else if range.start >= read_to.command {
            let (secrets, end) = commands::in_line(text, range.start, read_to.command);
            found.extend(secrets);
            read_to.command = end;
        }
    }
    found.retain(|range| !range.is_empty());
    found.sort_by_key(|range| (range.start, range.end));
    found.dedup_by(|next, before| next.start < before.end);
    found.into_iter().map(Spot::at).collect()
}
