//! Our estimate of tokens beside two real tokenizers: never below either, and not far above.
//!
//! The corpus is this repository, which changes, and samples of what else a model is given to read.

use std::path::{Path, PathBuf};

use bivouac_core::briefing::{NOTICE_TOKENS, notice};
use bivouac_core::budget::{cut, tokens};
use bivouac_core::event::Event;
use bivouac_core::id::SessionHandle;
use bivouac_core::path::WorkspacePath;
use bivouac_core::redact::Redactor;
use bivouac_core::session::{Session, Status};
use bivouac_core::text::Note;
use bivouac_core::time::Timestamp;
use bivouac_core::work::{Approval, Phase, Task, TaskStatus, Work};
use proptest::prelude::*;
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

const SIZES: [usize; 3] = [200, 2_000, 20_000];

fn collect(folder: &Path, ends: &[&str], found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("and can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            collect(&path, ends, found);
        } else if ends.iter().any(|end| name.ends_with(end)) {
            let text = std::fs::read_to_string(&path).expect("our files are text");
            found.push((path.display().to_string(), text));
        }
    }
}

fn files(folder: &str, ends: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder), ends, &mut found);
    found.sort();
    assert!(!found.is_empty());
    found
}

/// A text in pieces of about so many bytes. Single words are no measure.
fn cut_up(text: &str, size: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(size));
        pieces.push(piece);
        rest = after;
    }
    pieces.retain(|piece| piece.len() > 40 || piece.len() == text.len());
    pieces
}

fn exactly(tokenizer: &CoreBPE, text: &str) -> usize {
    tokenizer.encode_ordinary(text).len()
}

/// What is fixed is also looked at in short pieces. This repository changes, and a list of odd names as short
/// as that may one day stray too far.
const OWN_SIZES: [usize; 2] = [2_000, 20_000];

/// Every piece of a text is estimated high enough; how much too high, against `o200k_base`.
fn surplus(name: &str, text: &str, size: usize) -> Vec<f64> {
    let check = |piece: &&str| {
        let (new, old) =
            (exactly(o200k_base_singleton(), piece), exactly(cl100k_base_singleton(), piece));
        let estimate = tokens(piece);
        assert!(estimate >= new.max(old), "{name}: {estimate} < {new} or {old}: {piece:?}");
        estimate as f64 / new as f64 - 1.0
    };
    cut_up(text, size).iter().map(check).collect()
}

#[expect(clippy::print_stdout, reason = "the figures are quoted in the module's description")]
fn tell(what: &str, surplus: &[f64]) -> f64 {
    let mean = surplus.iter().sum::<f64>() / surplus.len() as f64;
    let least = surplus.iter().copied().fold(f64::INFINITY, f64::min);
    let most = surplus.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let percent = |share: f64| format!("{:+.0} %", share * 100.0);
    println!(
        "{what}: {} pieces, mean {}, min {}, max {}",
        surplus.len(),
        percent(mean),
        percent(least),
        percent(most)
    );
    mean
}

#[test]
fn our_own_texts_are_never_counted_too_low() {
    let texts = files("../..", &[".rs", ".md"]);
    let mut all = Vec::new();
    for (size, bound) in OWN_SIZES.into_iter().zip([0.30, 0.30]) {
        let found: Vec<f64> =
            texts.iter().flat_map(|(name, text)| surplus(name, text, size)).collect();
        let mean = tell(&format!("repository, {size} bytes"), &found);
        assert!(mean > 0.05 && mean < bound, "{size}: {mean}");
        all.extend(found);
    }
    tell("repository", &all);
}

#[test]
fn nothing_else_is_counted_too_low() {
    for (name, text) in files("tests/tokens", &[".txt"]) {
        let name = Path::new(&name).file_name().unwrap().display().to_string();
        let found: Vec<f64> =
            SIZES.into_iter().flat_map(|size| surplus(&name, &text, size)).collect();
        let mean = tell(&name, &found);
        assert!(mean < 1.3, "{name}: {mean}");
    }
}

/// The notice's own count is a little above its limit; what models really read is not.
#[test]
fn a_notice_never_costs_more_than_sixty_tokens() {
    let id = "01990000-0000-7000-8000-000000000001".parse().unwrap();
    let at: Timestamp = "2026-01-21T14:30:00Z".parse().unwrap();
    let session = |name: &str| Session {
        id,
        handle: SessionHandle::of(id),
        name: None,
        agent_type: "claude-code".to_owned(),
        task_description: Some(Note::cut(name)),
        workspace: WorkspacePath::new(b"/code/app".as_slice()),
        metadata: None,
        status: Status::Active,
        status_at: "2026-01-21T14:30:00Z".parse().unwrap(),
        until: None,
        reason: None,
        created_at: at,
        updated_at: at,
    };
    let mut work = Work::default();
    let phase = Phase { name: Some("implementation and review".to_owned()), ..Phase::default() };
    work.apply(&Event::PhaseChanged(Box::new(phase)), at);
    let approval = Approval { approval: "a1".to_owned(), ..Approval::default() };
    work.apply(&Event::ApprovalChanged(Box::new(approval)), at);
    for (number, status) in TaskStatus::ALL.into_iter().cycle().take(6_000).enumerate() {
        let task = Task { task: number.to_string(), status: Some(status), ..Task::default() };
        work.apply(&Event::TaskChanged(Box::new(task)), at);
    }
    for (name, text) in files("tests/tokens", &[".txt"]) {
        let words = notice(&session(&text), &work, &Redactor::default());
        for tokenizer in [o200k_base_singleton(), cl100k_base_singleton()] {
            let cost = exactly(tokenizer, &words);
            assert!(cost <= NOTICE_TOKENS, "{name}: {cost}: {words}");
        }
    }
}

#[test]
fn a_large_text_is_cut_at_once() {
    for text in ["word ".repeat(200_000), "x".repeat(1_000_000), "é".repeat(500_000)] {
        // Ten thousand of these would take hours if each looked at the whole text.
        for _ in 0..10_000 {
            assert!(tokens(&cut(&text, 20)) <= 20);
        }
    }
    assert_eq!(tokens(""), 0);
}

fn texts() -> impl Strategy<Value = String> {
    let words = ["word", " ", "  ", "\n", ".", "::", "é", "界", "🦀", "42", "Xq", "--", "(", "…"];
    let mixed = proptest::collection::vec(proptest::sample::select(words.to_vec()), 0..60);
    prop_oneof![any::<String>(), mixed.prop_map(|words| words.concat())]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_cut_fits(text in texts(), most in 2_usize..80) {
        let short = cut(&text, most);
        prop_assert!(tokens(&short) <= most, "{short:?}");
        prop_assert_eq!(short == text, tokens(&text) <= most);
    }
}
