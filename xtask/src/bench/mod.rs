//! Bivouac beside what people would use instead: the same files, the same edits, one run, in turns.
//! Machines are noisy, so what counts is the ratio within a row.

mod hooks;
mod mcp;
mod measure;
mod peers;
mod progress;
mod table;
mod watch;
mod workspace;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Result;
use crate::tools::{cargo, root, show};
use measure::{Measured, median};
use peers::{Peer, available};
use table::Row;
use workspace::Workspace;

#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag on the command line")]
pub(crate) struct BenchArgs {
    /// How many files the workspace has
    #[arg(long, default_value_t = 20_000)]
    files: usize,
    /// How often each thing is done; the median counts
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// How many files are edited between two checkpoints
    #[arg(long, default_value_t = 10)]
    edits: usize,
    /// Whom to compare with
    #[arg(long, value_delimiter = ',', default_value = "walk,git,restic,borg,tar")]
    peers: Vec<String>,
    /// Also: disk use after 100 checkpoints, the thousandth checkpoint, start-up, a 2 GB file
    #[arg(long)]
    more: bool,
    /// Only: how long agents wait for hooks
    #[arg(long)]
    hooks: bool,
    /// Only: how long it takes to tell, find and record things in a long history
    #[arg(long)]
    progress: bool,
    /// Only: how long models wait for the server
    #[arg(long)]
    mcp: bool,
    /// Only: what a checkpoint costs with a watcher alive, and what the watcher costs
    #[arg(long)]
    watch: bool,
    /// Put the table into README.md
    #[arg(long)]
    readme: bool,
}

/// Measures in a folder with this binary, and answers a table.
type Measure = fn(&Path, &Path) -> Result<String>;

pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    show(&mut cargo(&["build", "--release", "--quiet", "--package", "bivouac"]))?;
    let biv = root().join("target/release/biv");
    let folder = tempfile::Builder::new().prefix("biv-bench-").tempdir()?;
    let alone: [(bool, &str, Measure); 3] = [
        (args.hooks, "hooks", hooks::run),
        (args.progress, "progress", progress::run),
        (args.mcp, "mcp", mcp::run),
    ];
    if let Some((_, mark, measure)) = alone.into_iter().find(|(is_wanted, ..)| *is_wanted) {
        let table = measure(folder.path(), &biv)?;
        println!("\n{table}");
        if args.readme {
            table::put_into_readme(&root().join("README.md"), &table, mark)?;
        }
        return Ok(());
    }
    println!("making {} files", args.files);
    let source = folder.path().join("source");
    let made = Workspace::make(&source, args.files)?;
    if args.watch {
        let (rows, seen) = watch::run(folder.path(), &source, &biv, args.rounds)?;
        let table = format!("{}\n{seen}\n", table::render(&rows, made, args));
        println!("\n{table}");
        if args.readme {
            table::put_into_readme(&root().join("README.md"), &table, "watched")?;
        }
        return Ok(());
    }
    let mut contest = Contest::new(&folder, &source, &biv, &args.peers)?;
    let mut rows = contest.measure(args)?;
    drop(contest);
    if args.more {
        rows.extend(measure::more(&folder, &source, &biv)?);
    }
    let table = table::render(&rows, made, args);
    println!("\n{table}");
    if args.readme {
        table::put_into_readme(&root().join("README.md"), &table, &args.files.to_string())?;
    }
    Ok(())
}

/// Every peer with a copy of the workspace of its own.
struct Contest {
    entrants: Vec<Entrant>,
}

struct Entrant {
    peer: Box<dyn Peer>,
    workspace: Workspace,
}

impl Contest {
    fn new(folder: &TempDir, source: &Path, biv: &Path, names: &[String]) -> Result<Self> {
        let mut entrants = Vec::new();
        for name in std::iter::once("biv").chain(names.iter().map(String::as_str)) {
            let base = folder.path().join(name);
            let work: PathBuf = base.join("work");
            let Some(peer) = available(name, &work, &base.join("store"), biv)? else {
                println!("{name} is not installed and left out");
                continue;
            };
            let workspace = Workspace::copy(source, &work)?;
            peer.prepare()?;
            entrants.push(Entrant { peer, workspace });
        }
        Ok(Self { entrants })
    }

    fn measure(&mut self, args: &BenchArgs) -> Result<Vec<Row>> {
        let mut first = self.row("first checkpoint");
        for (n, entrant) in self.entrants.iter_mut().enumerate() {
            first.cells[n] = Some(entrant.save()?);
        }
        let mut idle = self.row("nothing changed");
        self.rounds(args.rounds, &mut idle, |_, _| Ok(()))?;
        let mut edited = self.row(&format!("{} files edited, 1 new, 1 gone", args.edits));
        self.rounds(args.rounds, &mut edited, |workspace, round| {
            workspace.edit(args.edits, round)
        })?;
        let mut back = self.row(&format!("rollback of {} edits", args.edits));
        self.rollbacks(args, &mut back)?;
        Ok(vec![first, idle, edited, back])
    }

    fn row(&self, what: &str) -> Row {
        let names = self.entrants.iter().map(|entrant| entrant.peer.name().to_owned()).collect();
        Row::new(what, names)
    }

    /// All peers in turns, and in turning order, so that none always comes first.
    fn rounds(
        &mut self,
        rounds: usize,
        row: &mut Row,
        mut change: impl FnMut(&mut Workspace, usize) -> Result<()>,
    ) -> Result<()> {
        let count = self.entrants.len();
        let mut times: Vec<Vec<Measured>> = vec![Vec::new(); count];
        for round in 0..rounds {
            for place in 0..count {
                let n = (place + round) % count;
                let entrant = &mut self.entrants[n];
                change(&mut entrant.workspace, round)?;
                times[n].push(entrant.save()?);
            }
        }
        for (cell, times) in row.cells.iter_mut().zip(times) {
            *cell = median(times);
        }
        Ok(())
    }

    fn rollbacks(&mut self, args: &BenchArgs, row: &mut Row) -> Result<()> {
        for (n, entrant) in self.entrants.iter_mut().enumerate() {
            let mut times = Vec::new();
            let mut is_exact = true;
            for round in 0..args.rounds {
                let saved = entrant.peer.save()?;
                let before = entrant.workspace.fingerprint()?;
                entrant.workspace.edit(args.edits, 1_000 + round)?;
                let Some(measured) = entrant.peer.restore(&saved.id)? else { break };
                times.push(measured);
                is_exact &= entrant.workspace.fingerprint()? == before;
            }
            row.cells[n] = median(times).map(|it| Measured { is_exact, ..it });
        }
        Ok(())
    }
}

impl Entrant {
    fn save(&mut self) -> Result<Measured> {
        Ok(self.peer.save()?.measured)
    }
}
