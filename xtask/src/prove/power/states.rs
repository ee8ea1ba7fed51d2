//! What can be on a disk when the power goes: what was made durable, and any part of the rest.
//!
//! A name is durable when its folder was synced after it, contents and modes when their file was. That is less
//! than most file systems give. A rename is one step, and durable with either of its folders.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use super::disk::{Disk, Ino, Name, Op};
use super::story::Story;
use crate::prove::dice::Dice;

/// What became of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// All of it got there.
    Whole,
    /// None.
    Lost,
    /// Names did, contents did not; files are as long as what was written to them before.
    NamesOnly,
    /// Names and lengths did, contents are zeroes.
    Zeroes,
    /// Contents did, names did not.
    ContentsOnly,
    /// Names up to some moment, and of each file all or nothing.
    Ordered(u64),
    /// Some of it, writes torn between sectors.
    Some(u64),
}

impl fmt::Display for Rest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => to.write_str("whole"),
            Self::Lost => to.write_str("lost"),
            Self::NamesOnly => to.write_str("names"),
            Self::Zeroes => to.write_str("zeroes"),
            Self::ContentsOnly => to.write_str("contents"),
            Self::Ordered(n) => write!(to, "ordered{n}"),
            Self::Some(n) => write!(to, "some{n}"),
        }
    }
}

/// A moment: so many operations were done, and this became of what was not durable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) after: usize,
    pub(super) rest: Rest,
}

impl Cut {
    /// What the dice of this one follow from.
    fn number(self) -> u64 {
        let rest = match self.rest {
            Rest::Ordered(n) => 2 * n + 1,
            Rest::Some(n) => 2 * n + 2,
            _ => 0,
        };
        (self.after as u64) << 32 | rest
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}-{}", self.after, self.rest)
    }
}

/// Every cut of a story that leaves another disk than those before it.
pub(super) struct Cuts {
    durable_at: Vec<usize>,
    seed: u64,
}

impl Cuts {
    pub(super) fn new(story: &Story, seed: u64) -> Self {
        Self { durable_at: durable_at(&story.ops), seed }
    }

    /// All there are: more of them where something had been acknowledged, as nothing may be missing then.
    pub(super) fn all(&self, story: &Story, (n_some, n_said): (u64, u64)) -> Vec<Cut> {
        let said = super::said(&story.ops);
        let mut cuts = Vec::new();
        for after in 0..=story.ops.len() {
            let n = if after > said || after == story.ops.len() { n_said } else { n_some };
            let fixed =
                [Rest::Whole, Rest::Lost, Rest::NamesOnly, Rest::Zeroes, Rest::ContentsOnly];
            let rests = fixed.into_iter();
            let rests = rests.chain((0..n).map(Rest::Ordered)).chain((0..n * 2).map(Rest::Some));
            cuts.extend(rests.map(|rest| Cut { after, rest }));
        }
        cuts
    }

    /// The disk as it is found afterwards.
    pub(super) fn disk(&self, start: &Disk, story: &Story, cut: Cut) -> Disk {
        let mut disk = start.clone();
        // Whether something new can be reached is a matter of its name.
        disk.nodes.extend(story.born.iter().cloned());
        let mut dice = Dice::new(self.seed, cut.number());
        let until = dice.below(cut.after + 1);
        let mut blocked: HashSet<(Ino, Name)> = HashSet::new();
        let mut whole: BTreeMap<Ino, bool> = BTreeMap::new();
        for (at, op) in story.ops[..cut.after].iter().enumerate() {
            if self.durable_at[at] < cut.after {
                disk.apply(op);
                continue;
            }
            if let Some(ino) = content_of(op) {
                let is_whole = *whole.entry(ino).or_insert_with(|| dice.below(2) == 0);
                put(&mut disk, op, fate(cut.rest, is_whole, &mut dice), &mut dice);
                continue;
            }
            let names = names_of(op);
            let happened = match cut.rest {
                Rest::Whole | Rest::NamesOnly | Rest::Zeroes => true,
                Rest::Lost | Rest::ContentsOnly => false,
                Rest::Ordered(_) => at < until,
                Rest::Some(_) => dice.below(2) == 0,
            };
            // What was done to a name later cannot have happened where something before it did not.
            if happened && !names.iter().any(|name| blocked.contains(name)) {
                disk.apply(op);
            } else {
                blocked.extend(names);
            }
        }
        disk
    }

    /// How many operations were never made durable.
    pub(super) fn n_loose(&self) -> usize {
        self.durable_at.iter().filter(|at| **at == usize::MAX).count()
    }
}

enum Fate {
    Whole,
    Lost,
    Zeroes,
    Torn,
}

fn fate(rest: Rest, is_whole: bool, dice: &mut Dice) -> Fate {
    match rest {
        Rest::Whole | Rest::ContentsOnly => Fate::Whole,
        Rest::Lost | Rest::NamesOnly => Fate::Lost,
        Rest::Zeroes => Fate::Zeroes,
        Rest::Ordered(_) if is_whole => Fate::Whole,
        Rest::Ordered(_) => Fate::Lost,
        Rest::Some(_) => match dice.below(4) {
            0 => Fate::Lost,
            1 => Fate::Torn,
            _ => Fate::Whole,
        },
    }
}

const SECTOR: usize = 512;

fn put(disk: &mut Disk, op: &Op, fate: Fate, dice: &mut Dice) {
    match (fate, op) {
        (Fate::Whole, _) => disk.apply(op),
        (Fate::Lost, _) => {}
        (Fate::Zeroes, Op::Write { ino, at, bytes }) => {
            // What was there before is still there; only what is new is empty.
            let end = *at as usize + bytes.len();
            if let Some(content) = disk.content(*ino)
                && content.len() < end
            {
                content.resize(end, 0);
            }
        }
        (Fate::Torn, Op::Write { ino, at, bytes }) => {
            let mut from = 0;
            while from < bytes.len() {
                let to = bytes.len().min(from + SECTOR - (*at as usize + from) % SECTOR);
                if dice.below(2) == 0 {
                    disk.write(*ino, at + from as u64, &bytes[from..to]);
                }
                from = to;
            }
        }
        (Fate::Zeroes | Fate::Torn, _) => disk.apply(op),
    }
}

/// When each operation became durable: the number of the sync, or never.
fn durable_at(ops: &[Op]) -> Vec<usize> {
    let mut durable = vec![usize::MAX; ops.len()];
    for (at, op) in ops.iter().enumerate() {
        let is_reached = |before: &Op| match op {
            Op::SyncAll { .. } => true,
            Op::Sync { ino, with_mode, .. } => match before {
                Op::Mode { ino: of, .. } => of == ino && *with_mode,
                _ => {
                    content_of(before) == Some(*ino)
                        || names_of(before).iter().any(|it| it.0 == *ino)
                }
            },
            _ => false,
        };
        let (Op::Sync { since, .. } | Op::SyncAll { since }) = op else {
            durable[at] = at;
            if content_of(op).is_some() || !names_of(op).is_empty() {
                durable[at] = usize::MAX;
            }
            continue;
        };
        durable[at] = at;
        let mut touched: HashSet<(Ino, Name)> = HashSet::new();
        for before in (0..*since).rev().filter(|it| !matches!(ops[*it], Op::Said)) {
            let names = names_of(&ops[before]);
            // What a durable step stands on is durable with it.
            if durable[before] == usize::MAX
                && (is_reached(&ops[before]) || names.iter().any(|name| touched.contains(name)))
            {
                durable[before] = at;
                touched.extend(names);
            }
        }
    }
    durable
}

/// The file whose contents or mode an operation changes.
fn content_of(op: &Op) -> Option<Ino> {
    match op {
        Op::Write { ino, .. } | Op::Cut { ino, .. } | Op::Mode { ino, .. } => Some(*ino),
        _ => None,
    }
}

/// The names an operation gives or takes.
fn names_of(op: &Op) -> Vec<(Ino, Name)> {
    match op {
        Op::Name { folder, name, .. } | Op::Remove { folder, name } => {
            vec![(*folder, name.clone())]
        }
        Op::Rename { from, to, .. } => vec![from.clone(), to.clone()],
        _ => Vec::new(),
    }
}
