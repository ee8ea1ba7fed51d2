//! Random stories of edits, checkpoints, rollbacks, undos, forks and sweeps, against a plain copy in memory: bytes,
//! modes and links are the same after every step, nothing is destroyed, and nothing else is touched.

mod act;
mod files;
mod watched;
mod world;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bivouac_testkit::TestEnv;

use super::dice::Dice;
use super::table::Row;
use super::{Proof, crew};
use crate::Result;
use crate::tools::package;
use act::Act;
use world::World;

/// One story in so many runs under strace.
const WATCHED: u64 = 12;

#[derive(Default)]
struct Counts {
    n_stories: AtomicU64,
    n_acts: AtomicU64,
    n_commands: AtomicU64,
    n_watched: AtomicU64,
    n_watched_commands: AtomicU64,
}

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    let template = TestEnv::with_git(&proof.binary.to_string_lossy());
    template.write(".gitignore", "/ignored/\n").write("a", "the first\n");
    template.git(&["add", "."]);
    template.git(&["commit", "-qm", "one"]);
    let git = template.path(".git");
    let can_watch = package("strace");
    if !can_watch {
        println!("left out: watching the calls, as there is no strace");
    }
    let until = Instant::now() + proof.size(Duration::from_secs(180), Duration::from_secs(600));
    let stories: Vec<u64> =
        (0..proof.size(520, 20_000)).filter(|it| proof.wants(&name(*it))).collect();
    let counts = Counts::default();
    let found = crew::each(
        &stories,
        || (),
        |(), story| {
            if Instant::now() > until {
                return Ok(());
            }
            let is_watched = can_watch && story % WATCHED == 1;
            told(proof, &git, (*story, is_watched), &counts)
        },
    );
    Ok(rows(proof, &stories, found, &counts))
}

fn name(story: u64) -> String {
    format!("story-{story}")
}

/// Lives through one story. What breaks is told with all that happened until then.
fn told(
    proof: &Proof,
    git: &Path,
    (story, is_watched): (u64, bool),
    counts: &Counts,
) -> std::result::Result<(), String> {
    let add = |count: &AtomicU64, n: u64| count.fetch_add(n, Ordering::Relaxed);
    let acts = act::story(&mut Dice::new(proof.seed, story));
    add(&counts.n_stories, 1);
    let mut world = World::new(&proof.binary, git, is_watched)?;
    for (n, act) in acts.iter().enumerate() {
        add(&counts.n_acts, 1);
        crew::tried(|| world.act(act)).map_err(|what| format!("{what}\n{}", list(&acts[..=n])))?;
    }
    let n_commands =
        world.finish().map_err(|what| format!("in the end: {what}\n{}", list(&acts)))?;
    add(&counts.n_commands, n_commands);
    if is_watched {
        add(&counts.n_watched, 1);
        add(&counts.n_watched_commands, n_commands);
    }
    Ok(())
}

fn list(acts: &[Act]) -> String {
    acts.iter().map(|act| format!("  {act:?}\n")).collect()
}

fn rows(proof: &Proof, stories: &[u64], found: Vec<(usize, String)>, counts: &Counts) -> Vec<Row> {
    let n = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (mut broken, mut strayed) = (Vec::new(), Vec::new());
    for (at, what) in found {
        let list = if what.contains("wrote to ") { &mut strayed } else { &mut broken };
        list.push(proof.finding("model", &name(stories[at]), what.trim_end()));
    }
    let lived = Row {
        what: "Random stories of edits, checkpoints, rollbacks, undos, forks, deletes, sweeps"
            .to_owned(),
        n_tried: n(&counts.n_stories) - n(&counts.n_watched),
        broken,
        figures: format!("{} acts, {} commands", n(&counts.n_acts), n(&counts.n_commands)),
    };
    let watched = Row {
        what: "The same with every file call watched: nothing written in `.git` or outside"
            .to_owned(),
        n_tried: n(&counts.n_watched),
        broken: strayed,
        figures: format!("{} commands", n(&counts.n_watched_commands)),
    };
    let rows = vec![lived, watched];
    rows.into_iter().filter(|row| row.n_tried > 0 || !row.broken.is_empty()).collect()
}
