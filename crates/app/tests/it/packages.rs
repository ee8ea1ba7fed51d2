//! The packages in this project are what the program writes

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use bivouac_engine::setup;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn the_packages_are_made_from_one_source() {
    let files = setup::packages();
    for (path, text) in &files {
        let written = fs::read_to_string(root().join(path)).unwrap_or_default();
        assert!(written == *text, "{path}: run `cargo xtask packages`");
    }
    let known: BTreeSet<PathBuf> = files.iter().map(|(path, _)| root().join(path)).collect();
    let mut waiting = vec![root().join("packages")];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            assert!(known.contains(&path), "{}: run `cargo xtask packages`", path.display());
        }
    }
}

#[test]
fn a_missing_program_disturbs_no_agent() {
    let files = setup::packages();
    let hooks = files.iter().filter(|(path, _)| path.ends_with("hooks.json"));
    let commands: Vec<&str> = hooks
        .flat_map(|(_, text)| text.lines())
        .filter(|line| line.contains("\"command\": \"biv") || line.contains("\"bash\": "))
        .collect();
    assert!(commands.len() > 40, "{}", commands.len());
    for command in commands {
        assert!(
            command.contains("biv hook ") && command.contains(" 2>/dev/null || true\""),
            "{command}"
        );
    }
}

#[test]
fn documents_are_documents_and_versions_are_ours() {
    for (path, text) in setup::packages() {
        if path.ends_with(".json") {
            let document: serde_json::Value = serde_json::from_str(&text).unwrap();
            if let Some(version) = document.get("version").filter(|it| it.is_string()) {
                assert_eq!(version, env!("CARGO_PKG_VERSION"), "{path}");
            }
        }
        assert!(
            text.ends_with('\n') && !text.contains("{{own}}") && !text.contains("{{command}}"),
            "{path}"
        );
    }
}
