//! Several at once: nothing lost, nothing torn, nobody stuck. Sixty-four at once are `cargo xtask prove --part crowd`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use bivouac_core::progress::Silent;
use bivouac_engine::Engine;
use bivouac_engine::home::Wishes;
use bivouac_engine::open::Need;
use bivouac_testkit::TestEnv;

use crate::env;

fn workspaces(env: &TestEnv, number: usize) -> Vec<PathBuf> {
    let folders: Vec<_> = (0..number).map(|n| env.root().join(format!("ws-{n}"))).collect();
    folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
    folders
}

fn start(env: &TestEnv, folder: &Path, words: &[&str]) -> Child {
    let mut command = env.biv_command(folder, words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn checkpoints_of_one_workspace_at_once() {
    let env = env();
    env.write("a", "1");
    env.biv(&["session", "new"]).ok();
    let children: Vec<_> = (0..16)
        .map(|n| env.start(&["checkpoint", "create", "-m", &format!("number {n}")]))
        .collect();
    let runs: Vec<_> = children.into_iter().map(|child| env.finish(child)).collect();
    for run in &runs {
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    }
    let list = env.json("checkpoint list");
    let handles: BTreeSet<&str> =
        list.as_array().unwrap().iter().map(|it| it["handle"].as_str().unwrap()).collect();
    assert_eq!(handles.len(), 16);
    env.biv(&["verify"]).ok();
}

#[test]
fn many_workspaces_share_a_store_from_its_first_moment() {
    let env = env();
    let folders = workspaces(&env, 8);
    for folder in &folders {
        fs::write(folder.join("a"), folder.to_string_lossy().as_bytes()).unwrap();
        fs::write(folder.join("shared"), "the same in all").unwrap();
    }
    let start = |folder: &Path, words: &[&str]| start(&env, folder, words);
    let mut children: Vec<_> =
        folders.iter().map(|folder| start(folder, &["checkpoint", "create"])).collect();
    for round in 0..4 {
        for folder in &folders {
            fs::write(folder.join("round"), format!("{round} {}", folder.display())).unwrap();
            children.push(start(folder, &["checkpoint", "create"]));
        }
        children.push(start(&folders[0], &["gc"]));
        children.push(start(&folders[1], &["verify"]));
    }
    for child in children {
        let run = env.finish(child);
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    }
    assert_eq!(env.json("checkpoint list --all").as_array().unwrap().len(), 8 * 5);
    env.biv(&["verify"]).ok();
}

#[test]
fn a_sweep_beside_saving_and_deleting_loses_nothing() {
    let env = env();
    let noise = |n: u32| {
        (0..5_000u32)
            .flat_map(|k| (k ^ n.wrapping_mul(2_654_435_761)).to_le_bytes())
            .collect::<Vec<u8>>()
    };
    env.write("a", noise(0));
    env.biv(&["session", "new"]).ok();
    for round in 0..12 {
        // The same contents come and go, so that what a sweep calls dead is needed again.
        env.write("a", noise(round % 3));
        let saving = env.start(&["checkpoint", "create"]);
        let sweeping = env.start(&["gc"]);
        for child in [saving, sweeping] {
            let run = env.finish(child);
            assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        }
        if round % 2 == 1 {
            let list = env.json("checkpoint list");
            let oldest = list[0]["id"].as_str().unwrap();
            env.biv(&["checkpoint", "delete", oldest, "--yes"]).ok();
        }
        env.biv(&["verify"]).ok();
    }
}

#[test]
fn a_check_beside_saving_finds_nothing_that_is_not_in_the_index() {
    let env = env();
    let folders = workspaces(&env, 3);
    // Where there is no store yet, there is nothing to check.
    env.biv(&["checkpoint", "create"]).ok();
    for round in 0..10 {
        let mut children = Vec::new();
        for folder in &folders {
            fs::write(folder.join("a"), format!("{} {round}", folder.display())).unwrap();
            children.push(start(&env, folder, &["checkpoint", "create"]));
        }
        children.push(start(&env, &folders[0], &["gc"]));
        let checked = env.biv(&["verify"]).ok().stderr;
        assert!(!checked.contains("not in the index"), "{checked}");
        for child in children {
            assert_eq!(env.finish(child).code, 0);
        }
    }
}

#[test]
fn a_file_that_changes_during_a_rollback_keeps_its_new_bytes() {
    let env = env();
    for n in 0..300 {
        env.write(format!("d/f{n:03}"), "old");
    }
    env.biv(&["checkpoint", "create"]).ok();
    for n in 0..300 {
        env.write(format!("d/f{n:03}"), "new");
    }
    let child = env.start(&["checkpoint", "rollback", "cp-001", "--yes"]);
    let mut edited = Vec::new();
    for n in (0..300).rev() {
        let text = format!("edited by someone else {n}");
        env.write(format!("d/f{n:03}"), &text);
        edited.push((n, text));
    }
    let run = env.finish(child);
    assert!(run.code == 0 || run.code == 3, "{}{}", run.stdout, run.stderr);
    // Every edit is on disk, or a checkpoint holds it.
    let mut kept: BTreeSet<Vec<u8>> = env.tree().into_values().map(|(_, _, bytes)| bytes).collect();
    for checkpoint in env.json("checkpoint list").as_array().unwrap() {
        let into = env.root().join(format!("out-{}", checkpoint["handle"].as_str().unwrap()));
        env.biv(&[
            "checkpoint",
            "restore",
            checkpoint["id"].as_str().unwrap(),
            "--into",
            into.to_str().unwrap(),
        ])
        .ok();
        kept.extend(bivouac_testkit::read_tree(&into).into_values().map(|(_, _, bytes)| bytes));
    }
    let lost: Vec<_> = edited.iter().filter(|(_, text)| !kept.contains(text.as_bytes())).collect();
    // A write that truncates a file we are about to swap can land in the file that was swapped out;
    // that file is put back, so nothing may be missing.
    assert!(lost.is_empty(), "{} edits were lost: {:?}", lost.len(), lost.first());
}

/// Whoever closes a file takes away all locks that its process has on it. Without those of SQLite, another process
/// could remove the journal's log while it is being opened here.
#[cfg(target_os = "linux")]
#[test]
fn two_engines_in_one_process_keep_their_journal_locked() {
    use std::os::unix::fs::MetadataExt;
    let env = env();
    env.run("session new");
    let wishes = Wishes { workspace: Some(env.work()), store: Some(env.store()), folder: None };
    let open = || Engine::open(&wishes, Need::Write, Box::new(Silent)).unwrap();
    let inode = fs::metadata(env.store().join("sessions.db")).unwrap().ino();
    let mine = format!(" {} ", std::process::id());
    let is_locked = || {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let is_it = |line: &str| line.contains(&mine) && line.contains(&format!(":{inode} "));
        locks.lines().any(is_it)
    };
    let first = open();
    assert!(is_locked(), "by the first");
    drop(open());
    assert!(is_locked(), "still");
    drop(first);
    assert!(!is_locked(), "by nobody");
}
