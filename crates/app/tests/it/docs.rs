//! Documents that are made from the program, or speak of it

use std::fs;
use std::path::{Path, PathBuf};

use crate::env;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn the_reference_is_the_help() {
    let written = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    assert!(written == bivouac::cli::reference::markdown(), "run `cargo xtask docs`");
}

#[test]
fn the_help_of_every_command_is_an_imperative_without_a_period() {
    let text = bivouac::cli::reference::markdown();
    let openings = text.split("```text\n").skip(1).filter_map(|help| help.lines().next());
    for line in openings {
        assert!(!line.ends_with('.') && line.starts_with(char::is_uppercase), "{line}");
    }
}

#[test]
fn every_setting_of_the_shipped_file_is_shown() {
    let shown = env().run("config show");
    let keys = bivouac_engine::config::DEFAULTS.lines().filter(|line| !line.starts_with('#'));
    for key in keys.filter_map(|line| line.split_once(" = ")).map(|(key, _)| key) {
        assert!(shown.contains(&format!("{key} = ")), "{key}");
    }
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut documents = vec![];
    for folder in ["", "docs", "docs/decisions"] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        documents.extend(
            entries.map(|it| it.unwrap().path()).filter(|it| it.extension() == Some("md".as_ref())),
        );
    }
    assert!(documents.len() > 10);
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or(target);
            let is_local = !path.is_empty() && !path.contains("://");
            assert!(
                !is_local || document.parent().unwrap().join(path).exists(),
                "{target} in {}",
                document.display()
            );
        }
    }
}

#[test]
fn version_and_help_are_quick_and_quiet() {
    let run = env().biv(&["--version"]);
    assert_eq!(
        (run.code, run.stdout.trim(), run.stderr.as_str()),
        (0, concat!("biv ", env!("CARGO_PKG_VERSION")), "")
    );
    assert_eq!(env().biv(&["--help"]).code, 0);
    assert_eq!(env().biv::<&str>(&[]).code, 2);
    assert_eq!(env().biv(&["no-such-command"]).code, 2);
}
