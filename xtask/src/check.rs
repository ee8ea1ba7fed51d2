//! Every check there is. What it needs beyond Rust and git it installs itself, below `target/`.

use std::path::PathBuf;
use std::time::Instant;

use crate::Result;
use crate::tools::{cargo, command, is_installed, root, show};

const DENY: &str = "0.20.2";

pub(crate) fn run() -> Result<()> {
    let started = Instant::now();
    step("format", || show(&mut cargo(&["fmt", "--all", "--check"])))?;
    step("lints", || {
        show(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
    })?;
    step("doc tests", || show(&mut cargo(&["test", "--workspace", "--doc", "--quiet"])))?;
    step("licences and sources", deny)?;
    step("tests", tests)?;
    println!("All checks passed in {} seconds", started.elapsed().as_secs());
    Ok(())
}

fn step(name: &str, act: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("== {name}");
    act()
}

/// nextest shows slow tests and runs each in a process of its own; without it, cargo does.
fn tests() -> Result<()> {
    match is_installed("cargo-nextest") {
        true => show(&mut cargo(&["nextest", "run", "--workspace", "--no-fail-fast"])),
        false => show(&mut cargo(&[
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--no-fail-fast",
        ])),
    }
}

fn deny() -> Result<()> {
    let deny = tool("cargo-deny", DENY)?;
    // Advisories live in a repository of their own, which not every machine can reach.
    let args = ["--offline", "check", "licenses", "bans", "sources"];
    show(command(deny).args(args).current_dir(root()))
}

/// A tool from the registry, built once into `target/tools`.
fn tool(name: &str, version: &str) -> Result<PathBuf> {
    let folder = root().join("target/tools");
    let binary = folder.join("bin").join(name);
    if !binary.exists() {
        println!("installing {name} {version} into target/tools");
        let version = format!("{name}@{version}");
        let mut install = cargo(&["install", "--locked", "--quiet", &version, "--root"]);
        show(install.arg(&folder).env("CARGO_TARGET_DIR", folder.join("build")))?;
        std::fs::remove_dir_all(folder.join("build"))?;
    }
    Ok(binary)
}
