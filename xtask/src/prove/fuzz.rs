//! Inputs made up by a fuzzer, for everything that reads what others wrote. The targets, what has to be true of them
//! and the inputs worth keeping are in `fuzz/`; here they are built, run and counted. The quick form runs the kept
//! inputs only, so that every run of the tests does the same; the full form makes up new ones for a while.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::Proof;
use super::stage::folder;
use super::table::Row;
use crate::Result;
use crate::tools::{command, is_installed, root, show, tool};

const CARGO_FUZZ: &str = "0.13.2";
/// One input may take so many seconds, and so many megabytes.
const LIMITS: [&str; 2] = ["-timeout=10", "-rss_limit_mb=2048"];

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    if !is_installed("c++") {
        println!("   left out: libFuzzer needs a C++ compiler");
        return Ok(Vec::new());
    }
    let binaries = build()?;
    let targets: Vec<String> = targets()?.into_iter().filter(|it| proof.wants(it)).collect();
    targets.par_iter().map(|name| row(proof, &binaries.join(name), name)).collect()
}

/// A target for each file.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort_unstable();
    Ok(names)
}

/// Builds all targets. Answers where they are. Without a sanitizer this needs no other compiler than ours, and all
/// we write is safe code.
fn build() -> Result<PathBuf> {
    let host = host()?;
    let mut build = command(tool("cargo-fuzz", CARGO_FUZZ)?);
    build.args(["build", "--fuzz-dir", "fuzz", "--target-dir", "target/fuzz", "--target", &host]);
    // `--dev` leaves to `fuzz/Cargo.toml` what is made fast.
    build.args(["--dev", "--sanitizer", "none"]);
    show(build.current_dir(root()))?;
    Ok(root().join("target/fuzz").join(host).join("debug"))
}

/// What the compiler calls this machine.
fn host() -> Result<String> {
    let told = command("rustc").arg("-vV").output()?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc does not say which machine this is")?.to_owned())
}

/// Runs one target. What it finds on the way is thrown away, but for what breaks a promise.
fn row(proof: &Proof, binary: &Path, name: &str) -> Result<Row> {
    let artifacts = root().join("target/fuzz/artifacts").join(name);
    fs::create_dir_all(&artifacts)?;
    let before = list(&artifacts)?;
    // In memory where that can be: a bundle is made durable many times a second.
    let scratch = tempfile::Builder::new().prefix("biv-fuzz-").tempdir_in(folder())?;
    let (new, corpus) = (scratch.path().join("corpus"), root().join("fuzz/corpus").join(name));
    fs::create_dir(&new)?;
    let mut run = command(binary);
    run.args(LIMITS).args(["-print_final_stats=1", proof.size("-runs=0", "-max_total_time=30")]);
    run.arg(format!("-seed={}", proof.seed)).args(words(name)?);
    run.arg(format!("-artifact_prefix={}/", artifacts.display())).args([&new, &corpus]);
    run.env("TMPDIR", scratch.path()).env("BIV_CONFIG", "/dev/null").env("RAYON_NUM_THREADS", "1");
    let ran = run.current_dir(root()).output()?;
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    let found = list(&artifacts)?.into_iter().filter(|it| !before.contains(it));
    let show_again = |it: PathBuf| format!("{} {}", binary.display(), it.display());
    let mut broken: Vec<String> = found.map(show_again).collect();
    if !ran.status.success() {
        let last: Vec<&str> = told.lines().filter(|line| line.contains("panicked")).collect();
        broken.push(format!("{} ({}) {}", binary.display(), ran.status, last.join("\n")));
    }
    Ok(Row {
        what: format!("inputs for {}", name.replace('_', " ")),
        n_tried: stat(&told, "number_of_executed_units"),
        broken,
        figures: format!("{} branches seen, {} new", coverage(&told), list(&new)?.len()),
    })
}

/// Words that mean something to a target, where somebody wrote them down: `hook.dict` is for all hooks.
fn words(name: &str) -> Result<Option<String>> {
    let is_its = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        name.starts_with(stem.as_ref())
    };
    let found = list(&root().join("fuzz/words"))?.into_iter().find(is_its);
    Ok(found.map(|path| format!("-dict={}", path.display())))
}

pub(super) fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    Ok(paths.collect::<std::io::Result<_>>()?)
}

/// A figure that libFuzzer prints at the end.
fn stat(told: &str, name: &str) -> u64 {
    let start = format!("stat::{name}:");
    let figure = told.lines().find_map(|line| line.strip_prefix(&start));
    figure.and_then(|it| it.trim().parse().ok()).unwrap_or(0)
}

/// How much of the code was reached, as it said last.
fn coverage(told: &str) -> u64 {
    let said = told.lines().filter_map(|line| line.split_once("cov: ")).next_back();
    said.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok()).unwrap_or(0)
}
