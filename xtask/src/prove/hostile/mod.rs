//! The edges of the promise: hostile repositories and configurations, other users, foreign file systems, live databases.
//!
//! Each case sets its own stage, as an attacker would, runs the released binary, and judges from outside: exit codes,
//! restored bytes, files outside, `.git`, marks left by programs that must not run. The words on the screen are judged
//! loosely. A case that the machine cannot set up is named in its row and does not count as tried.

mod bundles;
mod config;
mod databases;
mod file_systems;
mod git;
mod ground;
mod mounts;
mod odds;
mod paths;
mod pulled;
mod reads;
mod restore;
mod store;
mod watcher;

use std::sync::{Mutex, PoisonError};

use super::crew;
use super::table::Row;
use super::{Proof, Result};
use ground::{Ground, Outcome, Stop};

const PART: &str = "hostile";
/// So much of a finding is enough to know it by.
const MOST_LETTERS: usize = 2_000;

/// One attack, and what has to be so afterwards.
struct Case {
    name: String,
    run: Box<dyn Fn(&Ground<'_>) -> Outcome + Sync>,
}

fn case(name: impl Into<String>, run: impl Fn(&Ground<'_>) -> Outcome + Sync + 'static) -> Case {
    Case { name: name.into(), run: Box::new(run) }
}

/// Attacks of one kind: a row of the table.
struct Theme {
    name: &'static str,
    about: &'static str,
    cases: fn() -> Vec<Case>,
}

const THEMES: [Theme; 13] = [
    Theme {
        name: "store",
        about: "a store that somebody else put into the workspace, and links inside our own",
        cases: store::cases,
    },
    Theme {
        name: "pulled",
        about: "a store in the project that a pull or a clone changes or prepares",
        cases: pulled::cases,
    },
    Theme {
        name: "restore",
        about: "root going back in a workspace of another user",
        cases: restore::cases,
    },
    Theme {
        name: "config",
        about: "a `bivouac.toml` that came with the repository",
        cases: config::cases,
    },
    Theme {
        name: "reads",
        about: "fifos, devices, endless files and 2,000 folders where a small file is expected",
        cases: reads::cases,
    },
    Theme {
        name: "git",
        about: "repositories that run programs, fetch or write when git is asked",
        cases: git::cases,
    },
    Theme {
        name: "databases",
        about: "databases and logs that programs write to during every save",
        cases: databases::cases,
    },
    Theme { name: "watcher", about: "changes that inotify does not see", cases: watcher::cases },
    Theme {
        name: "file-systems",
        about: "file systems whose times tell nothing",
        cases: file_systems::cases,
    },
    Theme {
        name: "bundles",
        about: "secrets in files and in words that are shared",
        cases: bundles::cases,
    },
    Theme { name: "blocked", about: "paths that a rollback cannot touch", cases: paths::blocked },
    Theme {
        name: "bytes",
        about: "workspace, store and home with names that are not text, over all commands",
        cases: paths::bytes,
    },
    Theme {
        name: "odds",
        about: "sparse files, moved workspaces, old stores, `PATH`, limits, questions, JSON",
        cases: odds::cases,
    },
];

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    let ground = Ground { binary: &proof.binary, is_full: proof.is_full };
    let mut points = Vec::new();
    for theme in &THEMES {
        let all = (theme.cases)().into_iter().map(|case| Point { theme, case });
        points.extend(all.filter(|point| proof.wants(&point.name())));
    }
    let came = Mutex::new(Vec::new());
    let trial = |(): &mut (), point: &Point| {
        let outcome = match (point.case.run)(&ground) {
            Ok(n_tried) => Ok(n_tried),
            Err(Stop::LeftOut(why)) => Err(why),
            Err(Stop::Broken(what)) => return Err(what.chars().take(MOST_LETTERS).collect()),
        };
        came.lock().unwrap_or_else(PoisonError::into_inner).push((point.name(), outcome));
        Ok(())
    };
    let found = crew::each(&points, || (), trial);
    let came = came.into_inner().unwrap_or_else(PoisonError::into_inner);
    let row = |theme: &Theme| {
        let is_here = |name: &str| name.split(' ').next() == Some(theme.name);
        let here = points.iter().enumerate().filter(|(_, point)| is_here(&point.name()));
        let broken = here.flat_map(|(at, point)| {
            let what = found.iter().filter(move |(found, _)| *found == at);
            what.map(|(_, what)| {
                proof.finding(PART, &point.name(), &format!("{}: {what}", point.name()))
            })
        });
        let broken: Vec<String> = broken.collect();
        let came = came.iter().filter(|(name, _)| is_here(name));
        let n_held: u64 = came.clone().filter_map(|(_, outcome)| outcome.as_ref().ok()).sum();
        let left_out: Vec<String> = came
            .filter_map(|(name, outcome)| Some(format!("{name} ({})", outcome.as_ref().err()?)))
            .collect();
        let figures = match left_out.is_empty() {
            true => String::new(),
            false => format!("left out: {}", left_out.join(", ")),
        };
        let n_tried = n_held + broken.len() as u64;
        Row { what: theme.about.to_owned(), n_tried, broken, figures }
    };
    let rows = THEMES.iter().map(row);
    Ok(rows.filter(|row| row.n_tried > 0 || !row.figures.is_empty()).collect())
}

/// One case with the row it belongs to.
struct Point {
    theme: &'static Theme,
    case: Case,
}

impl Point {
    fn name(&self) -> String {
        format!("{} {}", self.theme.name, self.case.name)
    }
}
