//! One kill: a released agent works off a job, dies at a moment that was drawn beforehand, and is resumed: where
//! it died, and on a machine that has nothing but our store and a fresh clone.

use std::fs;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use bivouac_core::budget;
use bivouac_core::time::Timestamp;
use bivouac_testkit::agents::{Installed, Lab, Request, Script};
use bivouac_testkit::{Tree, read_tree, try_read_tree};
use serde_json::Value;

use super::super::stage::copy;
use super::score::{Known, Score};

const PROMPTS: [&str; 3] =
    ["JOB one: write the parser", "JOB two: report what it reads", "JOB three: try it all"];
const GO_ON: &str = "GOON with it";
/// How many answers the job takes.
pub(super) const N_ANSWERS: u64 = 11;
/// Longer than any prompt takes, even where many others want the machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// What someone wrote down before the job, and wants the model to know after it died.
const FACTS: [&str; 5] = [
    "Cover the parser with tests",
    "Measure how long a run takes",
    "Keep all rules in one file",
    "The licence of input two is unknown",
    "Ask who owns input two",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Bivouac,
    /// What the agent has itself, without anything of ours on the machine.
    Own,
}

/// When it dies: so long after the model was asked for this answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kill {
    pub(super) answer: u64,
    pub(super) wait: Duration,
}

/// What came back of one kill.
pub(super) struct Outcome {
    /// In the same place.
    pub(super) here: Score,
    /// With an empty home and nothing but a fresh clone.
    pub(super) elsewhere: Score,
}

/// What is known from outside at the kill.
struct Wreck {
    film: Vec<Picture>,
    log: Vec<Value>,
}

/// What the workspace was like, and when that was seen first and last, in milliseconds.
struct Picture {
    first: i64,
    last: i64,
    tree: Tree,
}

pub(super) fn run(agent: Installed, way: Way, kill: Kill) -> Result<Outcome, String> {
    let name = agent.agent.name;
    let lab = Lab::playing(agent, Script::Job);
    if way == Way::Bivouac {
        lab.install_hooks();
        write_down(&lab, name);
    }
    let wreck = work_until(&lab, kill)?;
    let tree = lab.tree();
    let saved = match way {
        Way::Bivouac => Saved::of(&lab),
        Way::Own => Saved::default(),
    };
    let known = Known::new(&wreck.log, saved.turn_at);
    let kept = tempfile::tempdir().map_err(|error| error.to_string())?;
    let store = lab.root().join("store");
    if store.exists() {
        copy(&store, kept.path()).map_err(|error| error.to_string())?;
    }
    let mut here = go_on(&lab, way, &[], &known)?;
    here.has_files = Some(read_tree(&lab.work()) == tree);
    // The machine is another one: what was in the home, in the workspace and in the store since is not there.
    lab.kill_all();
    let another = become_another(&lab, way, kept.path()).map_err(|error| error.to_string())?;
    let with_files: &[&str] = if saved.files_at.is_some() { &["--workspace"] } else { &[] };
    let mut elsewhere = go_on(&another, way, with_files, &known)?;
    let files = read_tree(&another.work());
    elsewhere.has_files = match (way, saved.files_at) {
        (Way::Bivouac, Some(at)) => Some(wreck.was(at, &files)),
        // Nothing was saved yet: nothing is promised, and nothing came back either.
        (Way::Bivouac, None) => None,
        (Way::Own, _) => Some(files == tree),
    };
    another.kill_all();
    Ok(Outcome { here, elsewhere })
}

fn write_down(lab: &Lab, agent: &str) {
    let [first, second, decision, blocker, next] = FACTS;
    lab.biv(&["session", "new", "--agent", agent, "--task", "Read the inputs"]);
    lab.biv(&["task", "add", first]);
    lab.biv(&["task", "start", "1"]);
    lab.biv(&["task", "add", second]);
    lab.biv(&["decision", "add", decision]);
    lab.biv(&["blocker", "add", blocker]);
    lab.biv(&["session", "describe", "--next", next]);
}

/// Works off the job, and ends the agent with all it started at the moment that was drawn.
fn work_until(lab: &Lab, kill: Kill) -> Result<Wreck, String> {
    let mut film = Vec::new();
    for (n, prompt) in PROMPTS.iter().enumerate() {
        let mut agent = if n == 0 { lab.start(prompt) } else { lab.start_continued(prompt) };
        let (started, mut asked_at) = (Instant::now(), None);
        loop {
            watch(lab, &mut film);
            if asked_at.is_none() && lab.n_asked("job-") >= kill.answer {
                asked_at = Some(Instant::now());
            }
            if asked_at.is_some_and(|at: Instant| at.elapsed() >= kill.wait) {
                let log = lab.log();
                lab.kill_all();
                let _status = agent.wait();
                watch(lab, &mut film);
                return Ok(Wreck { film, log });
            }
            // It may be done before its time comes; then it dies between two turns.
            if asked_at.is_none() && has_ended(&mut agent) {
                break;
            }
            if started.elapsed() > PATIENCE {
                lab.kill_all();
                let _status = agent.wait();
                return Err(format!("`{prompt}` took too long\n{}", said(lab)));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
    Err(format!("the job ended before answer {}\n{}", kill.answer, said(lab)))
}

fn watch(lab: &Lab, film: &mut Vec<Picture>) {
    // A file that goes while it is looked at is looked at again.
    let Ok(tree) = try_read_tree(&lab.work()) else { return };
    let now = UNIX_EPOCH.elapsed().map_or(0, |it| it.as_millis() as i64);
    match film.last_mut().filter(|picture| picture.tree == tree) {
        Some(picture) => picture.last = now,
        None => film.push(Picture { first: now, last: now, tree }),
    }
}

impl Wreck {
    /// Was the workspace like this when a checkpoint was taken? Between two pictures it can have been like either.
    /// Files are read first; then the conversation is waited for, and then it is called a checkpoint.
    fn was(&self, at: i64, tree: &Tree) -> bool {
        const TAKES_MS: i64 = 2_000;
        let mut places = 0..self.film.len();
        places.any(|n| {
            let from = if n == 0 { i64::MIN } else { self.film[n - 1].last };
            let to = self.film.get(n + 1).map_or(i64::MAX, |next| next.first);
            from <= at && to >= at - TAKES_MS && self.film[n].tree == *tree
        })
    }
}

/// When was saved what a resume goes on from, in milliseconds.
#[derive(Default)]
struct Saved {
    /// The newest checkpoint that holds a conversation.
    files_at: Option<i64>,
    /// The newest at the end of a turn. In the middle of one, agents write down later what was said.
    turn_at: Option<i64>,
}

impl Saved {
    fn of(lab: &Lab) -> Self {
        let list = lab.json(&["checkpoint", "list"]);
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        let moment =
            |it: &Value| Some(it["created_at"].as_str()?.parse::<Timestamp>().ok()?.as_millis());
        let spoken = || list.iter().filter(|it| !it["conversation"].is_null());
        let ends_turn = |it: &&Value| it["trigger"] == "TURN" || it["trigger"] == "END";
        Self {
            files_at: spoken().next_back().and_then(moment),
            turn_at: spoken().rfind(ends_turn).and_then(moment),
        }
    }
}

fn become_another(lab: &Lab, way: Way, kept: &std::path::Path) -> std::io::Result<Lab> {
    for entry in fs::read_dir(lab.work())? {
        let path = entry?.path();
        match path.is_dir() {
            true if path.ends_with(".git") => {}
            true => fs::remove_dir_all(path)?,
            false => fs::remove_file(path)?,
        }
    }
    // Bivouac knows where transcripts were: as long as they are there, it would read on in them.
    fs::remove_dir_all(lab.home())?;
    if way == Way::Own {
        return Ok(lab.with_bare_home());
    }
    let store = lab.root().join("store");
    fs::remove_dir_all(&store)?;
    fs::create_dir(&store)?;
    copy(kept, &store)?;
    Ok(lab.with_empty_home())
}

/// Goes on, and looks at the first request that reaches the model.
fn go_on(lab: &Lab, way: Way, more: &[&str], known: &Known) -> Result<Score, String> {
    let (n_before, n_entries) = (lab.n_asked("go-on"), lab.log().len());
    let started = Instant::now();
    let mut agent = match way {
        Way::Bivouac => lab.start_resumed(more, GO_ON),
        Way::Own => lab.start_continued(GO_ON),
    };
    let mut seconds = None;
    loop {
        if seconds.is_none() && lab.n_asked("go-on") > n_before {
            seconds = Some(started.elapsed().as_secs_f64());
        }
        if has_ended(&mut agent) {
            break;
        }
        if started.elapsed() > PATIENCE {
            lab.kill_all();
            let _status = agent.wait();
            return Err(format!("`{GO_ON}` took too long\n{}", said(lab)));
        }
        thread::sleep(Duration::from_millis(5));
    }
    let log = lab.log();
    let first = log[n_entries..].iter().find(|it| it["reply"]["script"] == "go-on");
    let (Some(first), Some(seconds)) = (first, seconds) else {
        return Ok(Score { why_not: said(lab), ..Score::default() });
    };
    let first = Request(first.clone());
    let text = first.text();
    let n_facts = FACTS.iter().filter(|fact| text.contains(**fact)).count();
    let mut score = known.score(&first.whole_conversation());
    score.facts = n_facts as f64 / FACTS.len() as f64;
    score.cost = Some((budget::tokens(&text), seconds));
    Ok(score)
}

fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

/// The end of what the agent said.
fn said(lab: &Lab) -> String {
    let said = fs::read(lab.said()).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}
