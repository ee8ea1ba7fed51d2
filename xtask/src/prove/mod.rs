//! What is promised, tried from outside on the released binary: killed, starved, cut off, damaged, crowded.
//! Every figure in `docs/proof.md` and in the README's table comes from here, and says how to have it again.

mod crew;
mod crowd;
mod damage;
mod dice;
mod disks;
mod failures;
mod fidelity;
mod fuzz;
mod hostile;
mod judge;
mod kills;
mod limit;
mod model;
mod operations;
mod payloads;
mod power;
mod races;
mod sabotage;
mod stage;
mod strace;
mod table;
mod talk;
mod trials;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::Result;
use crate::tools::{cargo, package, root, show};
use table::Row;

const SEED: u64 = 7;

#[derive(clap::Args, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag on the command line")]
pub(crate) struct ProveArgs {
    /// What runs with all tests: about ten minutes on two cores (the default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// What runs before a release
    #[arg(long)]
    full: bool,
    /// Only these parts
    #[arg(long, value_delimiter = ',')]
    part: Vec<String>,
    /// Only what has this name; a failure says its own
    #[arg(long)]
    only: Option<String>,
    /// What random choices follow from
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Another binary than the released one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Stop at the first finding
    #[arg(long)]
    first: bool,
    /// Put the rows into docs/proof.md and the README
    #[arg(long, conflicts_with_all = ["only", "first"])]
    readme: bool,
}

/// What every part is told.
pub(crate) struct Proof {
    binary: PathBuf,
    is_full: bool,
    only: Option<String>,
    seed: u64,
}

/// One promise.
struct Part {
    name: &'static str,
    /// What is done, for the README.
    about: &'static str,
    /// Nothing can be tried without it.
    needs: Option<&'static str>,
    /// So often it has to be tried, quickly and in full, or it is not proven. A part that tries as much as it can in
    /// a given time has a low number for the quick form: a busy machine must not fail it.
    least: (u64, u64),
    /// Tries it, and answers what came of it.
    run: fn(&Proof) -> Result<Vec<Row>>,
}

const PARTS: [Part; 13] = [
    Part {
        name: "kills",
        about: "killed at every system call that changes something, and again while the next command heals",
        needs: Some("strace"),
        least: (1_000, 10_000),
        run: kills::run,
    },
    Part {
        name: "failures",
        about: "every such call fails: disk full or broken, nothing to be opened, interrupted, written in part, lied about",
        needs: Some("strace"),
        least: (700, 2_000),
        run: failures::run,
    },
    Part {
        name: "disks",
        about: "a loop device that is really full, or read-only",
        needs: None,
        least: (15, 150),
        run: disks::run,
    },
    Part {
        name: "power",
        about: "the power goes at any moment, and what was not synced is lost, torn or out of order",
        needs: Some("strace"),
        least: (400, 3_000),
        run: power::run,
    },
    Part {
        name: "damage",
        about: "every byte of a store flipped, every file of it cut, emptied, lost or mixed up",
        needs: None,
        least: (200, 20_000),
        run: damage::run,
    },
    Part {
        name: "crowd",
        about: "64 processes (in the quick form 23) at once on one store: saving, listing, going back, hooks, servers, gc, verify",
        needs: None,
        least: (100, 4_000),
        run: crowd::run,
    },
    Part {
        name: "races",
        about: "files edited while a rollback is held up at a rename",
        needs: Some("strace"),
        least: (10, 60),
        run: races::run,
    },
    Part {
        name: "model",
        about: "random stories of edits, checkpoints, rollbacks, undos, forks, deletes, against a plain copy",
        needs: None,
        least: (50, 5_000),
        run: model::run,
    },
    Part {
        name: "payloads",
        about: "hostile words of agents, told to hooks: exit 0, and an answer that agents understand or none",
        needs: None,
        least: (10_000, 50_000),
        run: payloads::run,
    },
    Part {
        name: "hostile",
        about: "hostile repositories, configurations and users; foreign file systems; databases written to all the time",
        needs: None,
        least: (200, 1_000),
        run: hostile::run,
    },
    Part {
        name: "fuzz",
        about: "inputs made up by a fuzzer, for everything that reads what others wrote",
        needs: None,
        least: (1_000, 1_000_000),
        run: fuzz::run,
    },
    Part {
        name: "fidelity",
        about: "a released agent killed at a random moment of a job, then resumed",
        needs: None,
        least: (10, 60),
        run: fidelity::run,
    },
    Part {
        name: "sabotage",
        about: "a deliberate fault in our own code, which a part above must find",
        needs: Some("strace"),
        least: (15, 15),
        run: sabotage::run,
    },
];

impl ProveArgs {
    /// What all tests have of it.
    pub(crate) fn quick(readme: bool) -> Self {
        Self { quick: true, seed: SEED, readme, ..Self::default() }
    }
}

pub(crate) fn run(args: &ProveArgs) -> Result<()> {
    if let Some(part) = args.part.iter().find(|it| !PARTS.iter().any(|part| part.name == **it)) {
        let names = PARTS.map(|part| part.name).join(", ");
        return Err(format!("there is no part `{part}`; there are {names}").into());
    }
    crew::FIRST.store(args.first, Ordering::Relaxed);
    let proof = Proof {
        binary: released(args)?,
        is_full: args.full,
        only: args.only.clone(),
        seed: args.seed,
    };
    let is_wanted =
        |it: &&Part| args.part.is_empty() || args.part.iter().any(|name| name == it.name);
    let (mut n_tried, mut broken, mut left_out) = (0, Vec::new(), Vec::new());
    for part in PARTS.iter().filter(is_wanted) {
        println!("-- {}: {}", part.name, part.about);
        let started = Instant::now();
        let rows = part.rows(&proof);
        rows.iter().for_each(Row::print);
        println!("   {} seconds", started.elapsed().as_secs());
        if rows.is_empty() {
            left_out.push(part.name);
        } else if args.readme {
            table::put(&root(), (part.name, part.about), &rows, &proof.again(part.name))?;
        }
        n_tried += rows.iter().map(|row| row.n_tried).sum::<u64>();
        let first =
            |row: &Row| Some(format!("\n{}: {}: {}", part.name, row.what, row.broken.first()?));
        broken.extend(rows.iter().filter_map(first));
    }
    // Whoever sees only the last lines sees what it was.
    if !left_out.is_empty() {
        println!("   not proven here: {}", left_out.join(", "));
    }
    match broken.len() {
        0 if n_tried == 0 => Err("nothing was tried".into()),
        0 => Ok(()),
        n => Err(format!("{n} promises were broken{}", broken.concat()).into()),
    }
}

impl Part {
    /// What came of it. What could not be tried, or not often enough, is not proven. None where a machine lacks what
    /// it takes.
    fn rows(&self, proof: &Proof) -> Vec<Row> {
        if let Some(missing) = self.needs.filter(|program| !package(program)) {
            println!("   left out: there is no {missing}");
            return Vec::new();
        }
        let short = |why: String| Row {
            what: "all of it".to_owned(),
            n_tried: 0,
            broken: vec![why],
            figures: String::new(),
        };
        let mut rows = match (self.run)(proof) {
            Ok(rows) => rows,
            Err(error) => return vec![short(format!("it could not be tried: {error}"))],
        };
        let n_tried: u64 = rows.iter().map(|row| row.n_tried).sum();
        let least = proof.size(self.least.0, self.least.1);
        let is_whole = proof.only.is_none() && !crew::FIRST.load(Ordering::Relaxed);
        if is_whole && !rows.is_empty() && n_tried < least {
            rows.push(short(format!("{n_tried} were tried, which is less than {least}")));
        }
        rows
    }
}

fn released(args: &ProveArgs) -> Result<PathBuf> {
    if let Some(binary) = &args.binary {
        let place = binary.canonicalize();
        return Ok(place.map_err(|error| format!("`{}`: {error}", binary.display()))?);
    }
    show(&mut cargo(&["build", "--release", "--quiet", "--package", "bivouac"]))?;
    Ok(root().join("target/release/biv"))
}

impl Proof {
    /// One of two sizes: for every run of the tests, and for a release.
    fn size<T>(&self, quick: T, full: T) -> T {
        if self.is_full { full } else { quick }
    }

    /// Is this to be tried? A name is several words, and the first of them name all that begin so.
    fn wants(&self, name: &str) -> bool {
        let is_in = |only: &str| {
            name.strip_prefix(only).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        self.only.as_deref().is_none_or(is_in)
    }

    /// At most so many of all points that are wanted, spread evenly, and how many that is, in words.
    fn some<'p, P>(
        &self,
        all: &'p [P],
        most: usize,
        name: impl Fn(&P) -> String,
    ) -> (Vec<&'p P>, String) {
        let wanted: Vec<&P> = all.iter().filter(|point| self.wants(&name(point))).collect();
        let step = wanted.len().div_ceil(most).max(1);
        let chosen = wanted.into_iter().skip(self.seed as usize % step).step_by(step).collect();
        (chosen, if step == 1 { "all".to_owned() } else { format!("one in {step}") })
    }

    /// Is anything to be tried whose name begins so?
    fn wants_some_of(&self, start: &str) -> bool {
        let begins = |only: &str| only.split(' ').next() == Some(start);
        self.only.as_deref().is_none_or(begins)
    }

    /// Is this all that is wanted? One finding can be enough.
    fn has_enough(&self, rows: &[Row]) -> bool {
        rows.iter().any(|row| crew::has_enough(&row.broken))
    }

    /// What was found, and how to see it again.
    fn finding(&self, part: &str, name: &str, what: &str) -> String {
        format!("{what}\nagain: {} --only \"{name}\"", self.again(part))
    }

    /// The command that has the rows of a part again.
    fn again(&self, part: &str) -> String {
        let form = self.size("", " --full");
        format!("cargo xtask prove{form} --part {part} --seed {}", self.seed)
    }
}
