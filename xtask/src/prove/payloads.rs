//! Hostile words, told to the hooks of the released binary as an agent would: whatever they are, the agent sees exit 0,
//! and an answer it understands or none.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::crew;
use super::dice::Dice;
use super::fuzz::list;
use super::stage::Stage;
use super::table::Row;
use super::{Proof, Result};
use crate::tools::root;

const PART: &str = "payloads";
const AGENTS: [&str; 5] = ["claude-code", "codex", "copilot", "gemini", "opencode"];
/// Where the samples are from.
const WORKSPACES: [&str; 2] = ["/workspace/demo", "/code/app"];
/// Much longer than it takes, and shorter than any agent waits.
const DEADLINE: Duration = Duration::from_secs(10);
/// After so many, everything else is looked at.
const ROUND: u64 = 500;
/// The clock of a stage begins again after so many.
const MINUTES: u64 = 500;

/// What an agent once said: who, at which event, and its words.
struct Sample {
    agent: &'static str,
    event: String,
    words: Vec<u8>,
}

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    let samples = samples()?;
    let numbers: Vec<u64> =
        (0..proof.size(10_000, 50_000)).filter(|it| proof.wants(&name(*it))).collect();
    let found = crew::each(
        &numbers,
        || Stage::new(&proof.binary),
        |stage, number| {
            // It goes on with every command, and must not come to the end of the month.
            stage.env.set_minute((number % MINUTES) as u32);
            let mut dice = Dice::new(proof.seed, *number);
            let (sample, other) = (dice.one(&samples), dice.one(&samples));
            let words = twisted(&here(stage, sample), &here(stage, other), &mut dice);
            told(stage, sample, &words)?;
            if number % ROUND == ROUND - 1 { sound(stage) } else { Ok(()) }
        },
    );
    let broken = found.into_iter().map(|(at, what)| proof.finding(PART, &name(numbers[at]), &what));
    Ok(vec![Row {
        what: "payloads for `biv hook`, of all agents".to_owned(),
        n_tried: numbers.len() as u64,
        broken: broken.collect(),
        figures: format!("made of {} samples", samples.len()),
    }])
}

fn name(number: u64) -> String {
    format!("payload-{number}")
}

/// What the fuzzer keeps of all hooks, in the same order on every machine.
fn samples() -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for agent in AGENTS {
        let folder = root().join(format!("fuzz/corpus/hook_{}", agent.replace('-', "_")));
        let mut paths = list(&folder)?;
        paths.sort_unstable();
        for path in paths {
            let bytes = fs::read(path)?;
            let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
            let event = String::from_utf8_lossy(&bytes[..end]).into_owned();
            // Our own settings name the event; only what follows is the agent's.
            if !event.is_empty() && event.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                let words = bytes[end..].trim_ascii_start().to_vec();
                samples.push(Sample { agent, event, words });
            }
        }
    }
    Ok(samples)
}

/// The words as they would be said in the workspace of a stage.
fn here(stage: &Stage, sample: &Sample) -> Vec<u8> {
    let (work, words) = (stage.env.work(), String::from_utf8_lossy(&sample.words));
    WORKSPACES
        .iter()
        .fold(words.into_owned(), |it, from| it.replace(from, &work.to_string_lossy()))
        .into_bytes()
}

/// The words as nobody would say them: cut, mixed, repeated, buried, no text at all.
fn twisted(sample: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut words = sample.to_vec();
    for _ in 0..=dice.below(4) {
        let (at, more) = (dice.below(words.len() + 1), dice.below(40));
        match dice.below(9) {
            0 => words.truncate(at),
            1 => drop(words.splice(at..at, dice.bytes(more))),
            2 => drop(words.splice(at.., other.iter().copied())),
            3 => words.extend_from_within(..at),
            4 => words.insert(at, *dice.one(b"\0\x1b\x80\xff\"\\{}[]:,\n")),
            5 => words = [b"{\"a\":".repeat(dice.below(3_000)), words].concat(),
            6 => words.resize(words.len() + dice.below(70_000), b'a'),
            7 => {
                let number = ["-1", "1e999", "18446744073709551616", "null", "[]", "\"\\ud800\""];
                words.splice(at..at, dice.one(&number).bytes());
            }
            _ => words.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << dice.below(8)),
        }
    }
    words
}

fn told(stage: &Stage, sample: &Sample, words: &[u8]) -> std::result::Result<(), String> {
    let started = Instant::now();
    let run = stage.env.hook(sample.agent, &sample.event, words);
    let time = started.elapsed();
    if run.code != 0 || time > DEADLINE || run.stderr.contains("panicked") {
        return Err(format!("I8: {time:?}: {}", run.text()));
    }
    let answer = run.stdout.trim_end();
    // The plugin in opencode hands the words on as they are.
    let is_understood = answer.is_empty()
        || sample.agent == "opencode"
        || !answer.contains('\n') && serde_json::from_str::<Value>(answer).is_ok();
    if is_understood { Ok(()) } else { Err(format!("I8: no agent understands {answer}")) }
}

/// Nothing of it did any harm.
fn sound(stage: &Stage) -> std::result::Result<(), String> {
    let verify = stage.env.biv(&["verify"]);
    match (verify.code, fs::read_to_string(stage.outside().join("mine"))) {
        (0, Ok(mine)) if mine == "not yours" => Ok(()),
        (0, outside) => Err(format!("I5: outside is {outside:?}")),
        _ => Err(format!("I3: verify says {}", verify.text())),
    }
}
