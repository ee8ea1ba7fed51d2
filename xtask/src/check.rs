//! Every check there is. What it needs beyond Rust and git it installs itself, below `target/`; only tmux is
//! the machine's.

use std::path::PathBuf;
use std::time::Instant;

use crate::Result;
use crate::prove;
use crate::tools::{cargo, command, is_installed, package, root, show, tool};

const DENY: &str = "0.20.2";
/// Property tests draw the same cases in every check. Run by hand, without this seed, they draw new ones.
const SEED: &str = "7";

pub(crate) fn run(proof: &prove::ProveArgs) -> Result<()> {
    let started = Instant::now();
    step("format", || show(&mut cargo(&["fmt", "--all", "--check"])))?;
    step("lints", || {
        show(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
    })?;
    step("doc tests", || show(&mut cargo(&["test", "--workspace", "--doc", "--quiet"])))?;
    step("licences and sources", deny)?;
    // What one of them finds is no reason to leave the other out.
    let ended = [step("proof", || prove::run(proof)), step("tests", tests)];
    let found: Vec<String> =
        ended.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    if !found.is_empty() {
        return Err(found.join("\n").into());
    }
    println!("All checks passed in {} seconds", started.elapsed().as_secs());
    Ok(())
}

/// The long form of the test of the same name.
pub(crate) fn soak(minutes: u32) -> Result<()> {
    let mut test = cargo(&["test", "--release", "--package", "bivouac", "--test", "it", "soak::"]);
    show(test.env("BIV_SOAK_SECONDS", (minutes * 60).to_string()))
}

fn step(name: &str, act: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("== {name}");
    let started = Instant::now();
    act()?;
    println!("   {name}: {} seconds", started.elapsed().as_secs());
    Ok(())
}

/// nextest shows slow tests and runs each in a process of its own; without it, cargo does.
fn tests() -> Result<()> {
    // Terminals are built in a real tmux.
    if !package("tmux") {
        println!("left out: the tests with tmux");
    }
    let mut tests = match is_installed("cargo-nextest") {
        true => cargo(&["nextest", "run", "--workspace", "--no-fail-fast"]),
        false => cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]),
    };
    tests.env("PROPTEST_RNG_SEED", SEED);
    match agents()? {
        Some(folder) => show(tests.env("BIV_AGENTS", folder)),
        None => show(&mut tests),
    }
}

/// The released agents, at the versions the tests are written for. `None` where they cannot be had.
pub(crate) fn agents() -> Result<Option<PathBuf>> {
    for needed in ["npm", "node", "python3"] {
        if !is_installed(needed) {
            println!("left out: what is tried with the released agents, as there is no {needed}");
            return Ok(None);
        }
    }
    let folder = root().join("target/agents");
    let wanted = std::fs::read_to_string(root().join("crates/app/tests/agents/package.json"))?;
    let installed = std::fs::read_to_string(folder.join("installed.json")).unwrap_or_default();
    if installed != wanted {
        println!("installing the released agents into target/agents");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("package.json"), &wanted)?;
        let args = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
        if let Err(error) = show(command("npm").args(args).current_dir(&folder)) {
            println!("left out: what is tried with the released agents ({error})");
            return Ok(None);
        }
        std::fs::write(folder.join("installed.json"), &wanted)?;
    }
    Ok(Some(folder))
}

fn deny() -> Result<()> {
    let deny = tool("cargo-deny", DENY)?;
    // It looks at what other systems need as well, of which nothing was downloaded to build on this one.
    show(&mut cargo(&["fetch", "--locked"]))?;
    // Advisories live in a repository of their own, which not every machine can reach.
    let args = ["--offline", "check", "licenses", "bans", "sources"];
    show(command(deny).args(args).current_dir(root()))
}
