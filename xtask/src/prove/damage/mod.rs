//! Every byte of a small store flipped, every file of it cut, emptied, mixed up: `verify` says so, or all answers
//! are what they were. Nothing crashes, no wrong byte is served, and `reconcile` brings back what can be.

mod place;
mod room;
mod sample;
mod whole;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bivouac_testkit::TestEnv;

use super::dice::Dice;
use super::stage::folder;
use super::table::Row;
use super::{Proof, crew};
use crate::Result;
use place::Place;
use sample::{Image, Sample};

/// One way to damage the store.
pub(super) struct Point {
    name: String,
    /// The file in which something is changed.
    path: String,
    how: How,
    is_mended: bool,
}

enum How {
    /// These bytes, all of them at once.
    Flip(Vec<usize>),
    /// This is all there is, and these are the checkpoints that have to be whole afterwards.
    Files { image: Box<Image>, whole: Whole },
}

/// Which checkpoints have to come back, whatever was done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    /// All that `verify` does not name.
    Unnamed,
    All,
    /// All, among others that nobody can bring back.
    AllOfOurs,
    /// All. Until then the journal may be that of an earlier moment: a log that ends early is what a power cut leaves.
    Earlier,
}

/// How it went, over all trials.
#[derive(Default)]
struct Counts {
    n_tried: AtomicU64,
    n_bytes: AtomicU64,
    n_detected: AtomicU64,
    n_harmless: AtomicU64,
    /// Not called damage, and told all the same.
    n_told: AtomicU64,
    n_earlier: AtomicU64,
    n_mended: AtomicU64,
}

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    let env = TestEnv::new_in(&proof.binary.to_string_lossy(), &folder());
    let sample = Sample::new(&env)?;
    let first = Place::new(&sample, proof.binary.clone(), 0);
    first.lay(&sample.image)?;
    let verify = first.ask(&["verify"])?;
    if verify.code != 0 {
        return Err(
            format!("the store is damaged before anything was done: {}", verify.text).into()
        );
    }
    first.lay(&sample.image)?;
    let expected = first.answers()?;
    let others = sample::foreign(&proof.binary)?;
    let rows = [
        (
            "Files of a store cut, emptied, lost, mixed up",
            whole::points(proof, &sample, &others),
            proof.size(30, 240),
        ),
        ("One byte of a store flipped", flips(proof, &sample), proof.size(90, 1_800)),
    ];
    let rows = rows.into_iter().map(|(what, points, seconds)| {
        let trials = Trials {
            proof,
            sample: &sample,
            expected: &expected,
            until: Instant::now() + Duration::from_secs(seconds),
            counts: Counts::default(),
        };
        trials.row(what, points)
    });
    Ok(rows.filter(|row| row.n_tried > 0).collect())
}

/// What is tried for one row.
struct Trials<'t> {
    proof: &'t Proof,
    sample: &'t Sample,
    expected: &'t [String],
    until: Instant,
    counts: Counts,
}

/// So many are tried before those of them that `verify` did not see are looked at.
const ROUND: usize = 200;
/// What is harmless alone is harmless together: so many are looked at as one.
const TOGETHER: usize = 16;

impl<'t> Trials<'t> {
    /// Tries all points, in a random order: on a slow machine the time is over before all had their turn.
    fn row(&self, what: &str, mut points: Vec<Point>) -> Row {
        let mut dice = Dice::new(self.proof.seed, 1);
        (1..points.len()).for_each(|at| points.swap(at, dice.below(at + 1)));
        let mut broken = Vec::new();
        for round in points.chunks(ROUND) {
            if Instant::now() < self.until && !crew::has_enough(&broken) {
                let unseen = self.unseen(round, &mut broken);
                self.compare(&unseen, &mut broken);
            }
        }
        Row {
            what: what.to_owned(),
            n_tried: self.counts.n_tried.load(Ordering::Relaxed),
            broken,
            figures: self.counts.figures(points.len()),
        }
    }

    /// Damages the store at every point. Answers those of which `verify` says nothing.
    fn unseen<'p>(&self, points: &'p [Point], broken: &mut Vec<String>) -> Vec<&'p Point> {
        let points: Vec<&Point> = points.iter().collect();
        let unseen = Mutex::new(Vec::new());
        let found = crew::each(&points, self.places(), |place, point| {
            if Instant::now() < self.until && !trial(place, point, &self.counts)? {
                unseen.lock().expect("nobody panics with it").push(*point);
            }
            Ok(())
        });
        broken.extend(found.into_iter().map(|(at, what)| self.finding(points[at], &what)));
        unseen.into_inner().expect("nobody panics with it")
    }

    /// Holds what nobody saw against what was there before.
    fn compare(&self, unseen: &[&Point], broken: &mut Vec<String>) {
        let count = |counter: &AtomicU64, n: usize| counter.fetch_add(n as u64, Ordering::Relaxed);
        let groups: Vec<&[&Point]> = together(unseen).collect();
        let differing = Mutex::new(Vec::new());
        let found = crew::each(&groups, self.places(), |place, group| {
            if group.len() > 1 && difference(place, group, self.expected) == Ok(None) {
                count(&self.counts.n_harmless, group.len());
                return Ok(());
            }
            for point in *group {
                match difference(place, &[point], self.expected) {
                    Ok(None) => drop(count(&self.counts.n_harmless, 1)),
                    Ok(Some(_)) if point.whole() == Whole::Earlier => {
                        count(&self.counts.n_earlier, 1);
                    }
                    Ok(Some(what)) | Err(what) => {
                        let finding = self.finding(point, &what);
                        differing.lock().expect("nobody panics with it").push(finding);
                    }
                }
            }
            Ok(())
        });
        broken.extend(differing.into_inner().expect("nobody panics with it"));
        broken.extend(found.into_iter().map(|(at, what)| self.finding(groups[at][0], &what)));
    }

    /// A place for each worker.
    fn places(&self) -> impl Fn() -> Place<'t> + Sync {
        let number = AtomicUsize::new(1);
        move || {
            let number = number.fetch_add(1, Ordering::Relaxed);
            Place::new(self.sample, self.proof.binary.clone(), number)
        }
    }

    fn finding(&self, point: &Point, what: &str) -> String {
        self.proof.finding("damage", &point.name, &format!("{}: {what}", point.name))
    }
}

/// Flips can be made all at once; of other damage there is one at a time.
fn together<'g, 'p>(points: &'g [&'p Point]) -> impl Iterator<Item = &'g [&'p Point]> {
    let is_flip = |it: &&Point| matches!(it.how, How::Flip(_));
    let size = if points.iter().all(is_flip) { TOGETHER } else { 1 };
    points.chunks(size)
}

impl Counts {
    fn figures(&self, n_points: usize) -> String {
        let n = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let left = match n_points as u64 - n(&self.n_tried) {
            0 => String::new(),
            left => format!("; {left} more were not reached in time"),
        };
        let earlier = match n(&self.n_earlier) {
            0 => String::new(),
            earlier => format!(", {earlier} an earlier moment"),
        };
        let bytes = match n(&self.n_bytes) {
            bytes if bytes > n(&self.n_tried) => format!("{bytes} bytes: "),
            _ => String::new(),
        };
        format!(
            "{bytes}{} detected, {} harmless, {} told{earlier}; {} rebuilt{left}",
            n(&self.n_detected),
            n(&self.n_harmless),
            n(&self.n_told),
            n(&self.n_mended)
        )
    }
}

/// One in five bytes that hold something, or all of them. What nothing reads is changed many bytes at a time.
fn flips(proof: &Proof, sample: &Sample) -> Vec<Point> {
    let (step, every) = (proof.size(5, 1), proof.size(60, 100));
    let mut points = Vec::new();
    for (name, path) in sample.names() {
        let bytes = &sample.image[path];
        let is_used = match name.as_str() {
            "db" => room::used(bytes, &sample.image["sessions.db-wal"]),
            // The first to open the journal makes it anew.
            "db-shm" => vec![false; bytes.len()],
            _ => vec![true; bytes.len()],
        };
        let is_chosen = |at: &usize| match name.as_str() {
            // The journal's log guards every page as a whole, so that any byte of it stands for others.
            "db-wal" if is_frame_head(*at) => at.is_multiple_of(proof.size(19, 1)),
            "db-wal" => at.is_multiple_of(proof.size(1_999, 97)),
            _ => at.is_multiple_of(step),
        };
        let (used, unused): (Vec<usize>, Vec<usize>) =
            (0..bytes.len()).filter(is_chosen).partition(|at| is_used[*at]);
        let groups = used.chunks(1).chain(unused.chunks(64));
        points.extend(groups.map(|group| Point {
            name: format!("{name} {}", group[0]),
            path: path.to_owned(),
            how: How::Flip(group.to_vec()),
            is_mended: (group[0] / step).is_multiple_of(every),
        }));
    }
    points.retain(|point| proof.wants(&point.name));
    points
}

fn is_frame_head(at: usize) -> bool {
    at < 32 || (at - 32) % (24 + 4096) < 24
}

impl Point {
    fn n_bytes(&self) -> usize {
        match &self.how {
            How::Flip(places) => places.len(),
            How::Files { .. } => 1,
        }
    }

    fn damage(&self, image: &mut Image) {
        match &self.how {
            How::Files { image: files, .. } => image.clone_from(files),
            How::Flip(places) => {
                let bytes = image.get_mut(&self.path).expect("a point is in a file of the store");
                places.iter().for_each(|at| bytes[*at] ^= 1 << (at % 8));
            }
        }
    }

    fn whole(&self) -> Whole {
        match &self.how {
            How::Files { whole, .. } => *whole,
            How::Flip(_) if self.path.starts_with("packs/") => Whole::Unnamed,
            How::Flip(_) => Whole::All,
        }
    }

    /// What has to be in the words of `verify`.
    fn is_named(&self, text: &str) -> bool {
        let stem = self.path.rsplit('/').next().unwrap_or_default().split('.').next();
        match self.path.starts_with("packs/") || self.path.starts_with("spool/") {
            true => stem.is_some_and(|stem| text.contains(stem)),
            // Its first line counts what was looked at, whatever was found.
            false => text.lines().filter(|line| !line.starts_with("Checked ")).any(|line| {
                ["journal", "event", "table", "index says", "checkpoint"]
                    .iter()
                    .any(|it| line.contains(it))
            }),
        }
    }
}

/// Is the damage seen? Where it is, nothing wrong may be served; where it is to be mended, that has to work.
fn trial(place: &Place<'_>, point: &Point, counts: &Counts) -> std::result::Result<bool, String> {
    let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
    count(&counts.n_tried);
    counts.n_bytes.fetch_add(point.n_bytes() as u64, Ordering::Relaxed);
    let mut image = place.sample.image.clone();
    point.damage(&mut image);
    place.lay(&image)?;
    let verify = place.ask(&["verify"])?;
    let named = place.named(&verify.text);
    let is_told = is_told(place, point, &verify.text, &image);
    match verify.code {
        0 if is_told => drop(count(&counts.n_told)),
        0 => {}
        1 if point.is_named(&verify.text) => {
            // Who asks all the same gets the right bytes, or none.
            let turn: usize = point.name.bytes().map(usize::from).sum();
            if turn.is_multiple_of(3) {
                let kept = &place.sample.kept;
                place.serves(&kept[turn / 3 % kept.len()])?;
            }
            count(&counts.n_detected);
        }
        code => {
            return Err(format!("verify ended with {code} and does not name it: {}", verify.text));
        }
    }
    let is_seen = is_told || verify.code == 1;
    if !point.is_mended {
        return Ok(is_seen);
    }
    place.lay(&image)?;
    let whole = place.sample.kept.iter().map(|kept| kept.handle.as_str());
    let must: BTreeSet<&str> =
        whole.filter(|it| point.whole() != Whole::Unnamed || !named.contains(it)).collect();
    place.mends(&must, point.whole())?;
    count(&counts.n_mended);
    let changed = image
        .get(&point.path)
        .filter(|bytes| verify.code == 1 && Some(*bytes) != place.sample.image.get(&point.path));
    match changed {
        Some(bytes) if point.path.starts_with("packs/") && !place.is_aside(bytes) => {
            Err("the damaged pack was not set aside".to_owned())
        }
        _ => Ok(is_seen),
    }
}

/// Not all that is lost can be called damage: what was never acknowledged looks the same. It is told all the same.
fn is_told(place: &Place<'_>, point: &Point, text: &str, image: &Image) -> bool {
    let mut notes = image.iter().filter(|(path, _)| path.starts_with("spool/"));
    let is_earlier = point.path.ends_with("-wal") || point.whole() == Whole::Earlier;
    is_earlier && (text.contains("is not in the index") || text.contains("is torn"))
        || text.contains("was set aside") && notes.any(|(_, bytes)| place.is_aside(bytes))
}

/// `verify` found nothing: then nothing may be different. Answers what is. Wrong bytes are worse than that, and so is
/// a crash.
fn difference(
    place: &Place<'_>,
    points: &[&Point],
    expected: &[String],
) -> std::result::Result<Option<String>, String> {
    let mut image = place.sample.image.clone();
    points.iter().for_each(|point| point.damage(&mut image));
    place.lay(&image)?;
    let answers = place.answers()?;
    if let Some((found, was)) = answers.iter().zip(expected).find(|(found, was)| found != was) {
        return Ok(Some(format!("changed an answer unseen\nfound {found}\nnot   {was}")));
    }
    for kept in &place.sample.kept {
        if !place.serves(kept)? {
            return Ok(Some(format!("{} cannot be had, unseen", kept.handle)));
        }
    }
    let is_kept =
        |point: &&Point| point.path.starts_with("packs/") || point.path.starts_with("sessions.db");
    if !points.iter().all(is_kept) {
        place.saves()?;
    }
    Ok(None)
}
