//! The tools a project uses, and their versions. Asking costs a process each, so answers are remembered by what
//! the program's file is. Nothing in a workspace decides what is run.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::process::Program;
use crate::search_path::find_program;

/// A file at the top of a workspace, and the programs it speaks of. `*` stands for a name's start.
const SIGNS: [(&str, &[&str]); 33] = [
    ("Cargo.toml", &["cargo", "rustc"]),
    ("package.json", &["node"]),
    ("package-lock.json", &["npm"]),
    ("npm-shrinkwrap.json", &["npm"]),
    ("pnpm-lock.yaml", &["pnpm"]),
    ("yarn.lock", &["yarn"]),
    ("bun.lock", &["bun"]),
    ("bun.lockb", &["bun"]),
    ("deno.json", &["deno"]),
    ("deno.jsonc", &["deno"]),
    ("pyproject.toml", &["python3"]),
    ("setup.py", &["python3", "pip"]),
    ("requirements.txt", &["python3", "pip"]),
    ("uv.lock", &["python3", "uv"]),
    ("poetry.lock", &["python3", "poetry"]),
    ("Pipfile", &["python3", "pipenv"]),
    ("go.mod", &["go"]),
    ("pom.xml", &["java", "mvn"]),
    ("build.gradle", &["java", "gradle"]),
    ("build.gradle.kts", &["java", "gradle"]),
    ("Gemfile", &["ruby", "bundle"]),
    ("composer.json", &["php", "composer"]),
    ("CMakeLists.txt", &["cc", "cmake"]),
    ("meson.build", &["cc", "meson"]),
    ("Makefile", &["make"]),
    ("GNUmakefile", &["make"]),
    ("justfile", &["just"]),
    ("*.csproj", &["dotnet"]),
    ("*.sln", &["dotnet"]),
    ("mix.exs", &["elixir"]),
    ("Package.swift", &["swift"]),
    ("build.zig", &["zig"]),
    ("flake.nix", &["nix"]),
];
/// Without a file that says which, this one installs packages.
const USUAL: [(&str, &str); 2] = [("node", "npm"), ("python3", "pip")];
const INSTALLERS: [&str; 8] = ["npm", "pnpm", "yarn", "bun", "pip", "uv", "poetry", "pipenv"];

/// The programs a project uses, by what lies at its top.
pub fn used_in(workspace: &Path) -> Vec<&'static str> {
    let entries = fs::read_dir(workspace).into_iter().flatten().flatten();
    let names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let is_there = |sign: &str| match sign.strip_prefix('*') {
        Some(end) => names.iter().any(|name| name.ends_with(end)),
        None => names.iter().any(|name| name == sign),
    };
    let mut programs: Vec<&str> = SIGNS
        .iter()
        .filter(|(sign, _)| is_there(sign))
        .flat_map(|(_, programs)| programs.iter().copied())
        .collect();
    for (program, installer) in USUAL {
        let is_node = program == "node";
        let is_chosen = INSTALLERS
            .iter()
            .enumerate()
            .any(|(at, it)| (at < 4) == is_node && programs.contains(it));
        if programs.contains(&program) && !is_chosen {
            programs.push(installer);
        }
    }
    programs.sort_unstable();
    programs.dedup();
    programs
}

/// What is known about versions. Losing it costs asking again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known(BTreeMap<String, Answer>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    /// Which file was asked, and what chose it.
    identity: String,
    /// `None` if it gave none.
    version: Option<String>,
}

/// A program as it is on this machine now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tool {
    Missing,
    Known(Option<String>),
    /// It would have to be asked.
    Unknown(Question),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    program: String,
    path: PathBuf,
    identity: String,
    /// The toolchain a project wants of rustup.
    toolchain: Option<String>,
}

impl Known {
    pub fn look(&self, program: &str, workspace: &Path) -> Tool {
        let Some((path, meta)) = find(program) else {
            return Tool::Missing;
        };
        let pin = pin(program, workspace);
        let toolchain = pin.clone().filter(|_| is_rustup(program));
        let identity = identity(&path, &meta, pin.as_deref());
        match self.0.get(program).filter(|it| it.identity == identity) {
            Some(answer) => Tool::Known(answer.version.clone()),
            None => {
                Tool::Unknown(Question { program: program.to_owned(), path, identity, toolchain })
            }
        }
    }

    pub fn remember(&mut self, question: &Question, version: Option<String>) {
        let identity = question.identity.clone();
        self.0.insert(question.program.clone(), Answer { identity, version });
    }
}

impl Question {
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Asks the program. `Err` if it took too long.
    pub fn ask(&self, within: Duration) -> crate::Result<Option<String>> {
        // One that is not installed would be fetched first.
        if self.toolchain.as_ref().is_some_and(|it| !is_toolchain_there(it)) {
            return Ok(None);
        }
        let word =
            if matches!(self.program.as_str(), "go" | "zig") { "version" } else { "--version" };
        let mut program =
            Program::new(&self.path).args([word]).in_folder(Path::new("/")).within(within);
        // They would rather fetch another version than tell their own.
        for (name, value) in [
            ("RUSTUP_AUTO_INSTALL", "0"),
            ("GOTOOLCHAIN", "local"),
            ("COREPACK_ENABLE_NETWORK", "0"),
            ("COREPACK_ENABLE_DOWNLOAD_PROMPT", "0"),
            ("NO_COLOR", "1"),
        ] {
            program = program.env(name, value);
        }
        if let Some(toolchain) = &self.toolchain {
            program = program.env("RUSTUP_TOOLCHAIN", toolchain);
        }
        match program.output() {
            Ok(answer) => Ok(version_in(&String::from_utf8_lossy(&answer), &self.program)),
            Err(error @ crate::Error::TooSlow { .. }) => Err(error),
            Err(_) => Ok(None),
        }
    }
}

fn is_rustup(program: &str) -> bool {
    matches!(program, "cargo" | "rustc")
}

/// The file that would be run.
fn find(program: &str) -> Option<(PathBuf, Metadata)> {
    let path = find_program(program)?;
    let meta = fs::metadata(&path).ok()?;
    Some((path, meta))
}

fn identity(path: &Path, meta: &Metadata, pin: Option<&str>) -> String {
    let chosen = [std::env::var("RUSTUP_TOOLCHAIN"), std::env::var("PYENV_VERSION")];
    let chosen = chosen.map(Result::unwrap_or_default).join(" ");
    // What rustup runs where nobody says which.
    let default = rustup_home().and_then(|home| fs::metadata(home.join("settings.toml")).ok());
    let default = default.map_or(0, |meta| meta.mtime());
    let (size, inode) = (meta.size(), meta.ino());
    let (seconds, nanoseconds) = (meta.mtime(), meta.mtime_nsec());
    let pin = pin.unwrap_or_default();
    let text = format!(
        "{}|{size}|{seconds}.{nanoseconds}|{inode}|{pin}|{chosen}|{default}",
        path.as_os_str().as_encoded_bytes().escape_ascii()
    );
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

/// The version a project wants of a program, where that is a plain name.
fn pin(program: &str, workspace: &Path) -> Option<String> {
    if !is_rustup(program) || std::env::var_os("RUSTUP_TOOLCHAIN").is_some() {
        return None;
    }
    let read = |name: &str| {
        let path = workspace.join(name);
        // A link in a workspace can lead anywhere.
        fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        bounded::read_text(&path, 10_000).ok()
    };
    let text = read("rust-toolchain").or_else(|| read("rust-toolchain.toml"))?;
    let channel = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "channel").then(|| value.trim().trim_matches(['"', '\'']))
    });
    let channel = channel.or_else(|| text.lines().next().map(str::trim))?;
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    let is_name =
        !channel.is_empty() && !channel.starts_with(['-', '.']) && channel.chars().all(is_plain);
    is_name.then(|| channel.to_owned())
}

fn is_toolchain_there(name: &str) -> bool {
    let folder = rustup_home().map(|home| home.join("toolchains"));
    let entries = folder.and_then(|it| fs::read_dir(it).ok()).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    { names }
        .any(|it| it == name || it.strip_prefix(name).is_some_and(|rest| rest.starts_with('-')))
}

fn rustup_home() -> Option<PathBuf> {
    let told = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    told.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup")))
}

/// The version in what a program says: on a line that speaks of itself, if there is one.
fn version_in(answer: &str, program: &str) -> Option<String> {
    let lines = || answer.lines().take(40);
    let own = lines().filter(|line| line.to_ascii_lowercase().contains(program));
    let versions = own.chain(lines()).filter_map(version_of);
    { versions }.next()
}

fn version_of(line: &str) -> Option<String> {
    const LONGEST: usize = 40;
    let words =
        line.split(|it: char| !it.is_ascii_alphanumeric() && !matches!(it, '.' | '-' | '+' | '_'));
    let numbers = words.filter_map(|word| {
        let start = word.find(|it: char| it.is_ascii_digit())?;
        // `python3` has a number and is none.
        let is_number = word[..start].is_empty() || matches!(&word[..start], "v" | "go");
        is_number.then(|| &word[start..])
    });
    let numbers: Vec<&str> = numbers.filter(|it| it.len() <= LONGEST).collect();
    let dotted = numbers.iter().find(|it| it.contains('.'));
    dotted.or(numbers.first()).map(|it| it.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_says_by_its_files_what_it_uses() {
        let check = |files: &[&str], programs: &[&str]| {
            let folder = tempfile::tempdir().unwrap();
            files.iter().for_each(|it| fs::write(folder.path().join(it), "").unwrap());
            assert_eq!(used_in(folder.path()), programs);
        };
        check(&["notes.md"], &[]);
        check(&["Cargo.toml", "Makefile"], &["cargo", "make", "rustc"]);
        check(&["package.json"], &["node", "npm"]);
        check(&["package.json", "pnpm-lock.yaml"], &["node", "pnpm"]);
        check(&["pyproject.toml", "uv.lock"], &["python3", "uv"]);
        check(
            &["requirements.txt", "package.json", "yarn.lock"],
            &["node", "pip", "python3", "yarn"],
        );
        check(&["App.csproj"], &["dotnet"]);
        assert_eq!(used_in(Path::new("/no/such/folder")), Vec::<&str>::new());
    }

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let check = |program: &str, answer: &str, version: &str| {
            assert_eq!(version_in(answer, program).as_deref(), Some(version), "{answer}");
        };
        check("rustc", "rustc 1.91.0-nightly (abc 2026-01-01)\n", "1.91.0-nightly");
        check("node", "v20.20.2\n", "20.20.2");
        check("go", "go version go1.22.1 linux/amd64\n", "1.22.1");
        check("python3", "Python 3.11.2\n", "3.11.2");
        check("java", "openjdk 17 2021-09-14\nOpenJDK Runtime (build 17+35)\n", "17");
        check(
            "elixir",
            "Erlang/OTP 25 [erts-13.1.5] [64-bit]\n\nElixir 1.14.0 (compiled)\n",
            "1.14.0",
        );
        check("cc", "cc (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022\n", "12.2.0-14");
        check("make", "GNU Make 4.3\nBuilt for x86_64\n", "4.3");
        check("claude", "2.1.325 (Claude Code)\n", "2.1.325");
        assert_eq!(version_in("no version", "x"), None);
    }

    #[test]
    fn an_answer_holds_as_long_as_the_program_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let mut known = Known::default();
        assert_eq!(known.look("no-such-program", folder.path()), Tool::Missing);
        let Tool::Unknown(question) = known.look("sh", folder.path()) else {
            panic!("nobody was asked yet");
        };
        known.remember(&question, Some("1.2".to_owned()));
        assert_eq!(known.look("sh", folder.path()), Tool::Known(Some("1.2".to_owned())));
        known.0.get_mut("sh").unwrap().identity.push('x');
        assert!(matches!(known.look("sh", folder.path()), Tool::Unknown(_)));
    }

    #[test]
    fn a_toolchain_is_believed_only_if_it_is_a_name() {
        let check = |name: &str, text: &str, wanted: Option<&str>| {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(name), text).unwrap();
            let found = pin("rustc", folder.path());
            // Whoever runs the tests may have chosen one for all.
            if std::env::var_os("RUSTUP_TOOLCHAIN").is_none() {
                assert_eq!(found.as_deref(), wanted, "{text}");
            }
        };
        check("rust-toolchain", "nightly-2026-01-01\n", Some("nightly-2026-01-01"));
        check("rust-toolchain.toml", "[toolchain]\nchannel = \"1.80\"\n", Some("1.80"));
        check("rust-toolchain.toml", "[toolchain]\npath = \"/tmp/evil\"\n", None);
        check("rust-toolchain", "../evil", None);
    }
}
