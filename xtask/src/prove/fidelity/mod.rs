//! How much of the work comes back after an agent died: the released agents on a scripted model, killed at drawn
//! moments of a job of three prompts. What is scored is what reached the model, by Bivouac and beside it by the
//! agent's own resume. Figures are printed as they come; only what Bivouac promises can be broken.

mod score;
mod trial;

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use bivouac::contract::thousands;
use bivouac_core::agent::AgentKind;
use bivouac_testkit::agents::{AGENTS, Installed};

use super::dice::Dice;
use super::table::Row;
use super::{Proof, crew};
use crate::{Result, check};
use score::Score;
use trial::{Kill, N_ANSWERS, Outcome, Way};

/// One thing to try.
struct Point {
    agent: &'static str,
    way: Way,
    number: u64,
    kill: Kill,
}

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    let Some(folder) = check::agents()? else {
        return Ok(Vec::new());
    };
    let points = points(proof, &folder);
    let outcomes: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::new());
    let repeated: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let numbered: Vec<(usize, &Point)> = points.iter().enumerate().collect();
    let failures = crew::each(
        &numbered,
        || (),
        |(), (at, point)| {
            let attempt = || {
                let agent = Installed::find(&folder, point.agent, &proof.binary);
                trial::run(agent.ok_or("it is not there")?, point.way, point.kill)
            };
            // An agent that did not get as far as its kill, or not to its end, is started again, which is told.
            let again = |_| {
                repeated.lock().expect("nobody panics with it").push(*at);
                attempt()
            };
            let outcome = attempt().or_else(again).or_else(again)?;
            outcomes.lock().expect("nobody panics with it").push((*at, outcome));
            Ok(())
        },
    );
    let outcomes = outcomes.into_inner().expect("nobody panics with it");
    let repeated = repeated.into_inner().expect("nobody panics with it");
    let mut rows = Vec::new();
    for agent in &AGENTS {
        for way in [Way::Bivouac, Way::Own] {
            let is_own = |at: usize| points[at].agent == agent.name && points[at].way == way;
            let own: Vec<(&Point, &Outcome)> = outcomes
                .iter()
                .filter(|(at, _)| is_own(*at))
                .map(|(at, outcome)| (&points[*at], outcome))
                .collect();
            let failed = failures.iter().filter(|(at, _)| is_own(*at));
            let failed: Vec<String> =
                failed.map(|(at, why)| finding(proof, &points[*at], why)).collect();
            if own.len() + failed.len() > 0 {
                let mut row = row(proof, (agent.name, way), &own, failed);
                match repeated.iter().filter(|at| is_own(**at)).count() {
                    0 => {}
                    n => row.figures = format!("{}; {n} started again", row.figures),
                }
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// The same kills for both ways. Drawn for all agents, so that one alone sees the same.
fn points(proof: &Proof, folder: &Path) -> Vec<Point> {
    let mut points = Vec::new();
    for (place, agent) in AGENTS.iter().enumerate() {
        if Installed::find(folder, agent.name, &proof.binary).is_none() {
            println!("   left out: {}, which is not installed", agent.name);
            continue;
        }
        for number in 1..=proof.size(1, 6) {
            // Every start of an agent takes seconds; the last prompt is for those who have more of them.
            let n_answers = proof.size(8, N_ANSWERS as usize);
            let dice = Dice::new(proof.seed, (place as u64) << 32 | number);
            let kill = drawn(dice, n_answers);
            let both = [Way::Bivouac, Way::Own];
            let named = both.map(|way| Point { agent: agent.name, way, number, kill });
            points.extend(named.into_iter().filter(|it| proof.wants(&it.name())));
        }
    }
    // Those that take longest to start come first, so that nobody waits for them alone.
    points.reverse();
    points
}

/// A moment of the job: up to 1.2 seconds after the model was asked for one of its answers, so that it falls into
/// thinking, speaking, the run of a tool, and the time between two turns.
fn drawn(mut dice: Dice, n_answers: usize) -> Kill {
    let answer = 1 + dice.below(n_answers) as u64;
    Kill { answer, wait: Duration::from_millis(dice.below(1_200) as u64) }
}

impl Point {
    fn name(&self) -> String {
        let way = match self.way {
            Way::Bivouac => "bivouac",
            Way::Own => "own",
        };
        format!("{} {way} {}", self.agent, self.number)
    }
}

fn row(
    proof: &Proof,
    (agent, way): (&'static str, Way),
    own: &[(&Point, &Outcome)],
    failed: Vec<String>,
) -> Row {
    let n_tried = (own.len() + failed.len()) as u64;
    let here: Vec<&Score> = own.iter().map(|(_, it)| &it.here).collect();
    let elsewhere: Vec<&Score> = own.iter().map(|(_, it)| &it.elsewhere).collect();
    let mut figures = format!(
        "{}; on another machine: {}",
        figures(&here, way, "files as at the kill"),
        figures(&elsewhere, way, "files as at the checkpoint"),
    );
    let title = agent.parse::<AgentKind>().map_or(agent, AgentKind::title);
    let mut broken = failed;
    let what = match way {
        Way::Bivouac => {
            broken.extend(own.iter().flat_map(|(point, it)| shortfalls(proof, point, it)));
            format!("{title} killed anywhere, resumed by Bivouac")
        }
        Way::Own => {
            // Nothing was promised for it.
            if !broken.is_empty() {
                figures = format!("{figures}; {} could not be tried", broken.len());
                broken.clear();
            }
            format!("{title} killed anywhere, resumed by itself")
        }
    };
    Row { what, n_tried, broken, figures }
}

/// What Bivouac promised and did not keep.
fn shortfalls(proof: &Proof, point: &Point, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    for (place, score) in [("here", &outcome.here), ("elsewhere", &outcome.elsewhere)] {
        if score.cost.is_none() {
            found.push(format!("{place}: nothing reached the model: {}", score.why_not));
        } else if !score.lost.is_empty() {
            found.push(format!("{place}: the checkpoint held more: {:#?}", score.lost));
        }
        if score.cost.is_some() && score.facts < 1.0 {
            found.push(format!("{place}: the model was not told all that is open"));
        }
        if score.has_files == Some(false) {
            found.push(format!("{place}: the files are others"));
        }
    }
    found.iter().map(|what| finding(proof, point, what)).collect()
}

fn finding(proof: &Proof, point: &Point, what: &str) -> String {
    let Kill { answer, wait } = point.kill;
    let when = format!("killed {} ms after answer {answer} was asked for", wait.as_millis());
    proof.finding("fidelity", &point.name(), &format!("{} ({when}): {what}", point.name()))
}

fn figures(scores: &[&Score], way: Way, files: &str) -> String {
    if scores.is_empty() {
        return "not tried".to_owned();
    }
    let n = scores.len();
    let mean = |of: fn(&Score) -> f64| {
        let percent = 100.0 * scores.iter().map(|it| of(it)).sum::<f64>() / n as f64;
        // Only what is whole is called whole.
        format!("{} %", if percent < 100.0 { percent.floor() } else { percent })
    };
    let n_files = scores.iter().filter(|it| it.has_files == Some(true)).count();
    let n_unsaved = scores.iter().filter(|it| it.has_files.is_none()).count();
    let unsaved = match n_unsaved {
        0 => String::new(),
        n => format!(" ({n} killed before the first)"),
    };
    let facts = match way {
        Way::Bivouac => format!("tasks, decisions, blockers, next action {}", mean(|it| it.facts)),
        Way::Own => "no place for tasks, decisions, blockers, next action".to_owned(),
    };
    let cost = match cost(scores) {
        Some((tokens, seconds)) => format!("~{} tokens, {seconds:.1} s", thousands(tokens as u64)),
        None => "nothing reached the model".to_owned(),
    };
    let conversation = mean(|it| it.conversation);
    format!("conversation {conversation}, {files} {n_files} of {n}{unsaved}, {facts}, {cost}")
}

/// What it cost in the middle.
fn cost(scores: &[&Score]) -> Option<(usize, f64)> {
    let mut tokens: Vec<usize> = scores.iter().filter_map(|it| Some(it.cost?.0)).collect();
    let mut seconds: Vec<f64> = scores.iter().filter_map(|it| Some(it.cost?.1)).collect();
    tokens.sort_unstable();
    seconds.sort_by(f64::total_cmp);
    Some((*tokens.get(tokens.len() / 2)?, *seconds.get(seconds.len() / 2)?))
}
