//! FIFOs, devices and huge files where a repository has small ones: no command waits, and what is unknown is said

use std::fs;
use std::path::Path;

use bivouac_testkit::{Run, TestEnv};
use serde_json::Value;

use crate::git_env;

/// Longer than a command may take, and than git may be stuck.
const LIMIT: &str = "25";

/// Runs a command that may not wait.
fn in_time(env: &TestEnv, words: &[&str]) -> Run {
    let run = env.run_command(&mut env.biv_under(&["timeout".into(), LIMIT.into()], words));
    assert_ne!(run.code, 124, "{words:?} hangs");
    run
}

fn make_fifo(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else if path.symlink_metadata().is_ok() {
        fs::remove_file(path).unwrap();
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o600.into()).unwrap();
}

fn committed() -> TestEnv {
    let env = git_env();
    env.write("a", "1").write("sub/b", "1").git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    env
}

#[test]
fn a_fifo_or_a_device_below_git_holds_nothing_up() {
    let places = [
        "HEAD",
        "commondir",
        "index",
        "config",
        "packed-refs",
        "refs/heads/main",
        "info/exclude",
        "info/attributes",
        "logs/refs/stash",
        "shallow",
        "objects/info/alternates",
        "worktrees/x/gitdir",
        "worktrees/x/HEAD",
    ];
    let put: [fn(&Path); 2] = [make_fifo, |path| {
        make_fifo(path);
        fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    }];
    for (place, put) in places.iter().flat_map(|place| put.map(|put| (place, put))) {
        let env = committed();
        put(&env.path(".git").join(place));
        env.write("a", "2");
        let run = in_time(&env, &["checkpoint", "create"]);
        assert_eq!(run.code, 0, "{place}: {}", run.text());
        env.write("a", "3");
        in_time(&env, &["checkpoint", "rollback", "cp-001", "--yes"]).ok();
        assert_eq!(env.read("a"), "2", "{place}");
        let git = env.json("checkpoint show cp-001")["git"].clone();
        let is_harmless = place.starts_with("worktrees");
        assert!(is_harmless || git["unread"][0].is_string(), "{place}: {git}");
    }
}

#[test]
fn a_fifo_in_place_of_git_is_no_repository() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_biv"));
    env.write("a", "1");
    make_fifo(&env.path(".git"));
    in_time(&env, &["checkpoint", "create"]).ok();
    assert_eq!(env.json("checkpoint show latest")["git"], Value::Null);
}

#[test]
fn a_configuration_that_includes_a_fifo_holds_nothing_up() {
    let env = committed();
    make_fifo(&env.path("fifo"));
    env.git(&["config", "core.excludesFile", env.path("fifo").to_str().unwrap()]);
    fs::write(env.path(".git/more"), "[include]\n\tpath = ../fifo\n").unwrap();
    let config = fs::read_to_string(env.path(".git/config")).unwrap();
    fs::write(env.path(".git/config"), format!("{config}[include]\n\tpath = more\n")).unwrap();
    env.write("a", "2");
    in_time(&env, &["checkpoint", "create"]).ok();
    let git = env.json("checkpoint show latest")["git"].clone();
    assert!(git["unread"][0].as_str().unwrap().ends_with("it is not a regular file"), "{git}");
}

#[test]
fn a_fifo_that_git_itself_opens_ends_the_question_only() {
    let env = committed();
    env.write("a", "2");
    let objects = env.path(".git/objects/info");
    make_fifo(&objects.join("commit-graph"));
    make_fifo(&env.path("sub/.gitattributes"));
    env.write("sub/b", "2");
    in_time(&env, &["checkpoint", "create"]).ok();
    let git = env.json("checkpoint show latest")["git"].clone();
    assert_eq!(git["branch"], "main");
    assert_eq!(git["unread"][0], "status: `git` did not answer within 3 seconds", "{git}");
}

#[test]
fn files_that_are_too_large_are_left_alone() {
    let env = committed();
    let large = |name: &str| {
        let file = fs::File::options().append(true).create(true).open(env.path(name)).unwrap();
        file.set_len(1 << 40).unwrap();
    };
    large(".git/packed-refs");
    large(".git/info/exclude");
    large(".git/logs/refs/stash");
    large(".git/index");
    env.write("a", "2");
    in_time(&env, &["checkpoint", "create"]).ok();
    let git = env.json("checkpoint show latest")["git"].clone();
    assert_eq!((git["branch"].as_str(), git["head"].is_string()), (Some("main"), true));
    let n_said = git["unread"].as_array().unwrap().iter();
    assert!(n_said.filter(|it| it.as_str().unwrap().contains("too large")).count() >= 4, "{git}");
}
