//! The power goes while something is done. What the command did to the disk is recorded from outside; then for every
//! moment of it, and for every kind of thing that a disk may have lost of what was not synced, the world is made as it
//! would be found, at the same place, and looked at.

mod cases;
mod check;
mod device;
mod disk;
mod record;
mod states;
mod story;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bivouac_testkit::TestEnv;

use super::dice::Dice;
use super::stage::folder;
use super::table::Row;
use super::{Proof, crew, talk};
use crate::Result;
use cases::{Act, Case, Told};
use check::{Facts, Promise, Untouched};
use disk::{Disk, Node, Op, What};
use states::{Cut, Cuts, Rest};
use story::Story;

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    let cases = cases::all();
    let wanted: Vec<&Case> = cases.iter().filter(|case| wants(proof, case)).collect();
    if proof.only.as_deref().is_some_and(|only| only.ends_with(" ext4")) {
        return device::run(proof, &wanted);
    }
    let mut rows = crew::rows(
        &wanted,
        |case| tried(proof, case),
        |case, what| Row {
            what: format!("power lost during {}", case.what),
            n_tried: 0,
            broken: vec![format!("{}: {what}", case.name)],
            figures: String::new(),
        },
    );
    if proof.is_full {
        rows.extend(device::run(proof, &wanted)?);
    }
    Ok(rows)
}

/// A name is that of an operation, and may have a cut behind it.
fn wants(proof: &Proof, case: &Case) -> bool {
    let only = proof.only.as_deref();
    only.is_none_or(|only| only.split(' ').next() == Some(case.name))
}

/// An operation that was watched.
struct Watched<'w> {
    case: &'w Case,
    env: &'w TestEnv,
    start: Disk,
    story: Story,
    promise: Promise,
}

fn tried(proof: &Proof, case: &Case) -> Result<Row> {
    let mut env = TestEnv::new_in(&proof.binary.to_string_lossy(), &folder());
    furnish(&mut env)?;
    let watched = watch(proof, case, &env)?;
    let cuts = Cuts::new(&watched.story, proof.seed);
    let (worlds, n_possible) = worlds(proof, &watched, &cuts);
    let mut broken = Vec::new();
    for (cut, world) in &worlds {
        if crew::has_enough(&broken) {
            break;
        }
        let looked = crew::tried(|| watched.look(*cut, world, proof.seed));
        if let Err(what) = looked {
            let at = watched.story.ops[..cut.after].last();
            let name = format!("{} {cut}", case.name);
            let after = at.map_or_else(String::new, |op| watched.said(op));
            broken.push(proof.finding("power", &name, &format!("{name}, after {after}: {what}")));
        }
    }
    let n_syncs = watched
        .story
        .ops
        .iter()
        .filter(|op| matches!(op, Op::Sync { .. } | Op::SyncAll { .. }))
        .count();
    Ok(Row {
        what: format!("power lost during {}", case.what),
        n_tried: worlds.len() as u64,
        broken,
        figures: format!(
            "{} changes, {n_syncs} syncs, {} left to the system, {n_possible} cuts",
            watched.story.ops.len() - n_syncs,
            cuts.n_loose()
        ),
    })
}

/// Puts a repository into the workspace, and something outside.
fn furnish(env: &mut TestEnv) -> Result<()> {
    env.git(&["init", "-q", "-b", "main"]);
    fs::create_dir(env.root().join("outside"))?;
    fs::write(env.root().join("outside/mine"), "not yours")?;
    // One thread does things in the same order whenever it is asked to.
    env.set("RAYON_NUM_THREADS", "1");
    Ok(())
}

/// The repository and what is outside are never to be written; where they are, they stay.
fn is_left_out(path: &Path) -> bool {
    path == Path::new("project/.git") || path == Path::new("outside")
}

fn watch<'w>(proof: &Proof, case: &'w Case, env: &'w TestEnv) -> Result<Watched<'w>> {
    (case.prepare)(env);
    env.set_minute(200);
    let start = Disk::read(env.root(), &is_left_out)?;
    let untouched = Untouched::of(env);
    let (command, input) = command(case, env);
    let recording = record::record(&command, input.as_bytes())?;
    if recording.code != 0 {
        return Err(
            format!("exit {}: {}{}", recording.code, recording.stdout, recording.stderr).into()
        );
    }
    let found = Disk::read(env.root(), &is_left_out)?;
    let top = env.root().canonicalize()?;
    let story = story::tell(start.clone(), (&top, &env.work().canonicalize()?), &recording.calls)?;
    compare(&story.end, &found)?;
    let after = Facts::of(env, case)?;
    start.write_out(env.root(), &is_left_out)?;
    let before = Facts::of(env, case)?;
    let n_restored = proof.size(1, usize::MAX);
    Ok(Watched {
        case,
        env,
        start,
        story,
        promise: Promise { before, after, untouched, n_restored },
    })
}

fn command(case: &Case, env: &TestEnv) -> (Command, String) {
    let hook = |event: &str, more: serde_json::Value| {
        let mut command = env.biv_command(&env.work(), &["hook", "claude-code", event]);
        command.env("BIV_HOOK_WAITS", "1");
        (command, talk::input(env, &more))
    };
    match case.act {
        Act::Words(words) => {
            let words: Vec<&str> = words.split(' ').collect();
            (env.biv_command(&env.work(), &words), String::new())
        }
        Act::TurnEnds => hook("Stop", cases::turn_end(2)),
        Act::Prompt => hook("UserPromptSubmit", cases::prompt()),
    }
}

/// Was everything understood? What SQLite keeps in shared memory is written past all calls, and worth nothing later.
fn compare(told: &Disk, found: &Disk) -> Result<()> {
    let (told, found) = (told.paths(), found.paths());
    let paths: HashSet<&PathBuf> = told.keys().chain(found.keys()).collect();
    let is_memory = |path: &Path| path.to_string_lossy().ends_with("-shm");
    for path in paths.into_iter().filter(|path| !is_memory(path)) {
        let show = |tree: &BTreeMap<PathBuf, &Node>| match tree
            .get(path)
            .map(|node| (node.mode, &node.what))
        {
            None => "nothing".to_owned(),
            Some((mode, What::Folder(_))) => format!("a folder {mode:o}"),
            Some((_, What::Link(target))) => format!("a link to {target:?}"),
            Some((mode, What::File(content))) => {
                format!("a file {mode:o} of {} bytes", content.len())
            }
        };
        let same = match (told.get(path).map(|it| &it.what), found.get(path).map(|it| &it.what)) {
            (Some(What::File(told)), Some(What::File(found))) => told == found,
            _ => true,
        };
        if !same || show(&told) != show(&found) {
            let (told, found) = (show(&told), show(&found));
            return Err(
                format!("`{}` is {found}, the recording says {told}", path.display()).into()
            );
        }
    }
    Ok(())
}

/// The worlds to look at, none twice, and how many cuts there are. Too many for the quick form are drawn from.
fn worlds(proof: &Proof, watched: &Watched<'_>, cuts: &Cuts) -> (Vec<(Cut, Disk)>, usize) {
    let mut all = cuts.all(&watched.story, proof.size((1, 8), (6, 150)));
    let n_possible = all.len();
    if let Some((_, only)) = proof.only.as_deref().and_then(|only| only.split_once(' ')) {
        all.retain(|cut| cut.to_string() == only);
    }
    // What the strictest disk keeps comes first, then what the kindest does, and with both what was acknowledged; then
    // some of each kind by turns. The full form has every prefix of either.
    let mut dice = Dice::new(proof.seed, 0);
    let mut drawn = Vec::new();
    for cut in all {
        let is_done = watched.told(cut) == Told::Done;
        let turn = match cut.rest {
            Rest::Lost => 0,
            Rest::Whole if proof.is_full => 1,
            Rest::Some(_) | Rest::Ordered(_) => dice.below(4_000),
            _ => dice.below(1_000),
        };
        drawn.push((if is_done { turn / 2 } else { turn }, cut));
    }
    drawn.sort_by_key(|(turn, _)| *turn);
    let mut seen = HashSet::new();
    let mut worlds = Vec::new();
    for (_, cut) in drawn {
        if worlds.len() >= proof.size(48, 500) {
            break;
        }
        let world = cuts.disk(&watched.start, &watched.story, cut);
        if seen.insert((world.fingerprint(), watched.told(cut) == Told::Done)) {
            worlds.push((cut, world));
        }
    }
    worlds.sort_by_key(|(cut, _)| cut.after);
    (worlds, n_possible)
}

/// When the last word was said. A command may say something of each thing it did.
fn said(ops: &[Op]) -> usize {
    ops.iter().rposition(|op| matches!(op, Op::Said)).unwrap_or(ops.len())
}

impl Watched<'_> {
    /// A command that says nothing has said so by its end.
    fn told(&self, cut: Cut) -> Told {
        let ops = &self.story.ops;
        match cut.after > said(ops) || cut.after == ops.len() {
            true => Told::Done,
            false => Told::Nothing,
        }
    }

    fn look(&self, cut: Cut, world: &Disk, seed: u64) -> std::result::Result<(), String> {
        world.write_out(self.env.root(), &is_left_out).map_err(|error| error.to_string())?;
        self.env.set_minute(300);
        let seed = seed ^ cut.after as u64;
        check::check(self.env, self.case, &self.promise, self.told(cut), seed)
    }

    /// An operation in words, with the path it was about at the end.
    fn said(&self, op: &Op) -> String {
        let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let path = |ino: &usize| {
            let paths = self.story.end.paths();
            let node = &self.story.end.nodes[*ino];
            let found = paths.iter().find(|(_, it)| std::ptr::eq(**it, node));
            found
                .map_or_else(|| "something gone".to_owned(), |(path, _)| path.display().to_string())
        };
        match op {
            Op::Name { folder, name: it, .. } => format!("making {} in {}", name(it), path(folder)),
            Op::Remove { folder, name: it } => format!("removing {} in {}", name(it), path(folder)),
            Op::Rename { from, to, .. } => format!("renaming {} to {}", name(&from.1), name(&to.1)),
            Op::Write { ino, at, bytes } => {
                format!("writing {} at {at} of {}", bytes.len(), path(ino))
            }
            Op::Cut { ino, length } => format!("cutting {} to {length}", path(ino)),
            Op::Mode { ino, mode } => format!("the mode {mode:o} of {}", path(ino)),
            Op::Sync { ino, .. } => format!("syncing {}", path(ino)),
            Op::SyncAll { .. } => "syncing all".to_owned(),
            Op::Said => "saying so".to_owned(),
        }
    }
}
