//! What can happen to whole files: cut, emptied, overwritten, lost, taken for one another.

use super::sample::{Image, Sample};
use super::{How, Point, Whole};
use crate::prove::Proof;
use crate::prove::dice::Dice;

pub(super) fn points(proof: &Proof, sample: &Sample, others: &Image) -> Vec<Point> {
    let mut dice = Dice::new(proof.seed, 0);
    let mut points = Vec::new();
    for (name, path) in sample.names() {
        for (how, bytes) in variants(&sample.image[path], &mut dice) {
            // Nobody can know of a note that is gone.
            if bytes.is_none() && path.starts_with("spool/") {
                continue;
            }
            let mut image = sample.image.clone();
            match bytes {
                Some(bytes) => drop(image.insert(path.to_owned(), bytes)),
                None => drop(image.remove(path)),
            }
            let whole = match path.starts_with("packs/") {
                true => Whole::Unnamed,
                false if path.ends_with("-wal") => Whole::Earlier,
                false => Whole::All,
            };
            points.push(point(format!("{name} {how}"), path, image, whole));
        }
    }
    points.extend(mixed_up(sample, others));
    points.retain(|point| proof.wants(&point.name));
    points
}

fn point(name: String, path: &str, image: Image, whole: Whole) -> Point {
    let how = How::Files { image: Box::new(image), whole };
    Point { name, path: path.to_owned(), how, is_mended: true }
}

/// A file in every bad shape; `None` is gone.
fn variants(good: &[u8], dice: &mut Dice) -> Vec<(String, Option<Vec<u8>>)> {
    let length = good.len();
    let mut variants =
        vec![("lost".to_owned(), None), ("garbage".to_owned(), Some(dice.bytes(length.max(9))))];
    if length == 0 {
        return variants;
    }
    let lengths = [
        0,
        1,
        length / 4,
        length / 2,
        length / 4096 * 4096,
        length * 3 / 4,
        length - 16.min(length),
        length - 1,
    ];
    let mut lengths: Vec<usize> = lengths.into_iter().filter(|it| *it < length).collect();
    lengths.sort_unstable();
    lengths.dedup();
    variants
        .extend(lengths.into_iter().map(|it| (format!("cut to {it}"), Some(good[..it].to_vec()))));
    let mut half = good.to_vec();
    half[length / 2..].fill(0);
    let longer = [good, &dice.bytes(100)].concat();
    variants.push(("zeroed".to_owned(), Some(vec![0; length])));
    variants.push(("half zeroed".to_owned(), Some(half)));
    variants.push(("longer".to_owned(), Some(longer)));
    variants
}

/// Files of this store and of others in each other's place.
fn mixed_up(sample: &Sample, others: &Image) -> Vec<Point> {
    let packs: Vec<&str> =
        sample.image.keys().map(String::as_str).filter(|it| it.starts_with("packs/")).collect();
    let mut points = Vec::new();
    for (n, pack) in packs.iter().enumerate() {
        let next = packs[(n + 1) % packs.len()];
        let mut image = sample.image.clone();
        image.insert((*pack).to_owned(), sample.image[next].clone());
        image.insert(next.to_owned(), sample.image[*pack].clone());
        points.push(point(
            format!("pack-{} and the next exchanged", n + 1),
            pack,
            image,
            Whole::All,
        ));
        let strange = others.iter().find(|(path, _)| path.starts_with("packs/"));
        let mut image = sample.image.clone();
        image.insert(
            (*pack).to_owned(),
            strange.map(|(_, bytes)| bytes.clone()).unwrap_or_default(),
        );
        points.push(point(format!("pack-{} of another store", n + 1), pack, image, Whole::Unnamed));
    }
    let database = "sessions.db";
    let forged = sample.forged.clone();
    points.push(point("db forged".to_owned(), database, forged, Whole::All));
    for (name, from, whole) in [
        ("another store", others, Whole::AllOfOurs),
        ("an older copy", &sample.older, Whole::Earlier),
    ] {
        let mut image = sample.image.clone();
        image.insert(database.to_owned(), from[database].clone());
        points.push(point(
            format!("db of {name}, with the log of this one"),
            database,
            image.clone(),
            whole,
        ));
        image.retain(|path, _| path == database || !path.starts_with(database));
        points.push(point(format!("db of {name}"), database, image, whole));
    }
    points
}
