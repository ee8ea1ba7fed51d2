//! Habits a machine can hold

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every Rust file of ours, with its path from the top.
fn sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut waiting = vec![root().join("crates"), root().join("xtask")];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension() == Some("rs".as_ref()) {
                let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                files.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(files.len() > 80);
    files
}

/// A file without its tests.
fn own_part(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

#[test]
fn every_file_says_what_it_is_for() {
    for (name, text) in sources() {
        assert!(text.starts_with("//! "), "{name}");
    }
}

#[test]
fn no_file_is_two_rooms() {
    for (name, text) in sources() {
        let n_lines = own_part(&text).lines().count();
        assert!(n_lines <= 500, "{name} has {n_lines} lines");
    }
}

#[test]
fn names_mean_something() {
    let banned = [
        "util", "utils", "helper", "helpers", "common", "misc", "manager", "handler", "service",
        "data", "info",
    ];
    for (name, _) in sources() {
        let is_banned = Path::new(&name).components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            banned.contains(&part.trim_end_matches(".rs"))
        });
        assert!(!is_banned, "{name}");
    }
}

#[test]
fn the_arrow_points_one_way() {
    let allowed: [(&str, &[&str]); 6] = [
        ("core", &[]),
        ("journal", &["core"]),
        ("snapshot", &["core"]),
        ("capture", &["core"]),
        ("engine", &["core", "journal", "snapshot", "capture"]),
        ("app", &["core", "journal", "snapshot", "engine"]),
    ];
    for (name, allowed) in allowed {
        let manifest =
            fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let own = manifest.split("[dev-dependencies]").next().unwrap();
        let used =
            own.lines().filter_map(|line| line.strip_prefix("bivouac-")?.split(['.', ' ']).next());
        for crate_used in used {
            assert!(allowed.contains(&crate_used), "{name} uses {crate_used}");
        }
    }
}

#[test]
fn core_touches_nothing() {
    let doing = [
        "std::fs",
        "std::env",
        "std::net",
        "std::process",
        "std::thread",
        "SystemTime",
        "Instant::now",
        "now_v7",
        "Zoned::now",
        "println!",
    ];
    for (name, text) in
        sources().into_iter().filter(|(name, _)| name.starts_with("crates/core/src"))
    {
        for word in doing {
            assert!(!text.contains(word), "{name} says {word}");
        }
    }
}

#[test]
fn sql_lives_in_the_journal_and_programs_are_started_in_one_place() {
    for (name, text) in sources().into_iter().filter(|(name, _)| name.contains("/src/")) {
        let text = own_part(&text);
        // opencode keeps its conversations in a database, and only `capture` knows foreign formats.
        let places = [
            "crates/journal",
            "crates/testkit",
            "crates/capture/src/agents/opencode",
            "crates/capture/src/error.rs",
        ];
        let may_sql = places.iter().any(|it| name.starts_with(it));
        assert!(may_sql || !text.contains("rusqlite"), "{name}");
        let may_start = name == "crates/capture/src/process.rs"
            || name.starts_with("crates/testkit")
            || name.starts_with("xtask");
        assert!(may_start || !text.contains("Command::new("), "{name}");
    }
}

/// Applied to people's stores: a script that was released never changes.
#[test]
fn migrations_never_change() {
    let agreed = [
        ("0001_journal.sql", "361d20a76bb16f2a"),
        ("0002_agents.sql", "88ec6bfdcd22f784"),
        ("0003_progress.sql", "00f0e5a76881fac3"),
        ("0004_runs.sql", "b166ea064cf0d3dc"),
    ];
    for (name, hash) in agreed {
        let script = fs::read(root().join("crates/journal/src/schema").join(name)).unwrap();
        assert_eq!(&blake3::hash(&script).to_hex()[..16], hash, "{name}");
    }
    let scripts = fs::read_dir(root().join("crates/journal/src/schema")).unwrap();
    let numbered = scripts.filter(|it| {
        it.as_ref().unwrap().file_name().to_string_lossy().starts_with(char::is_numeric)
    });
    assert_eq!(numbered.count(), agreed.len());
}

#[test]
fn every_command_has_a_test_file() {
    let tests: String = fs::read_dir(root().join("crates/app/tests/it"))
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap() + "\n")
        .collect();
    for (name, _) in sources() {
        let Some(command) =
            name.strip_prefix("crates/app/src/cli/").map(|it| it.trim_end_matches(".rs"))
        else {
            continue;
        };
        let parts_of_others = [
            "mod",
            "session/mod",
            "checkpoint/mod",
            "hooks/mod",
            "export/mod",
            "import/mod",
            "complete",
            "restoring",
            "reference",
            "saying",
            "withheld",
        ];
        if parts_of_others.contains(&command) {
            continue;
        }
        let file = match command.split_once('/') {
            Some((group @ ("session" | "hook"), _)) => format!("{group}.rs"),
            Some((group, verb)) => format!("{group}_{verb}.rs"),
            None => format!("{command}.rs"),
        };
        assert!(tests.lines().any(|it| it == file), "{name} has no {file}");
    }
}
