//! Restoring in a workspace that another user can write to

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use bivouac_testkit::{TestEnv, left_out};
use insta::assert_snapshot;

use crate::env;

/// Another user of the machine: `nobody`.
const OTHER: u32 = 65_534;

fn is_root() -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    if !is_root {
        left_out("only root can act as two users");
    }
    is_root
}

/// Two checkpoints of a workspace that belongs to another user; root is the caller.
fn foreign_workspace() -> TestEnv {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    give(&env.work());
    give(&env.path("a"));
    env
}

fn give(path: &Path) {
    lchown(path, Some(OTHER), Some(OTHER)).unwrap();
}

#[test]
fn a_workspace_of_another_user_is_restored_only_if_the_person_allows_it() {
    if !is_root() {
        return;
    }
    let mut env = foreign_workspace();
    env.biv(&["checkpoint", "rollback", "cp-001", "--dry-run"]).ok();
    assert_snapshot!(env.run("checkpoint rollback cp-001 --yes"), @"
    exit 1
    error: `[root]/project` belongs to user 65534, and you are root; that user could replace files while they are being restored, so nothing was restored
    hint: run biv as user 65534; or, if you trust that user, set the variable `BIV_WORKSPACE_ALLOW_SHARED=true`, or write `allow_shared = true` under `[workspace]` in `[root]/home/.config/bivouac/config.toml`
    ");
    assert_eq!(env.read("a"), "2");
    assert_eq!(env.sql_text("SELECT '' || count(*) FROM operations"), "0");

    // A project cannot allow it for itself.
    env.write("bivouac.toml", "[workspace]\nallow_shared = true\n");
    let refused = env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]);
    assert!(refused.stderr.contains("is for your own configuration"), "{}", refused.stderr);
    env.remove("bivouac.toml");

    let config = env.home().join(".config/bivouac");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "[workspace]\nallow_shared = true\n").unwrap();
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.read("a"), "1");
    assert_eq!(fs::metadata(env.path("a")).unwrap().uid(), OTHER, "its owner stays");

    fs::remove_file(config.join("config.toml")).unwrap();
    assert_eq!(env.biv(&["undo", "--yes"]).code, 1);
    env.set("BIV_WORKSPACE_ALLOW_SHARED", "true");
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!(env.read("a"), "2");
    env.biv(&["redo", "--yes"]).ok();
    assert_eq!(env.read("a"), "1");
}

#[test]
fn a_workspace_that_every_user_can_write_to_is_refused() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    // A group is chosen by the owner, and in a sticky folder only owners can replace things.
    for (mode, code) in [(0o777, 1), (0o2777, 1), (0o1777, 0), (0o775, 0), (0o2775, 0)] {
        env.write("a", "2");
        fs::set_permissions(env.work(), fs::Permissions::from_mode(mode)).unwrap();
        let rollback = env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]);
        assert_eq!(rollback.code, code, "{mode:o}: {}", rollback.stderr);
    }
    env.write("a", "2");
    fs::set_permissions(env.work(), fs::Permissions::from_mode(0o777)).unwrap();
    assert_snapshot!(env.run("checkpoint rollback cp-001 --yes"), @"
    exit 1
    error: every user can write to `[root]/project`; another user could replace files while they are being restored, so nothing was restored
    hint: take the permission away with `chmod o-w`; or, if you trust all users of this machine, set the variable `BIV_WORKSPACE_ALLOW_SHARED=true`, or write `allow_shared = true` under `[workspace]` in `[root]/home/.config/bivouac/config.toml`
    ");
    env.biv(&["checkpoint", "create"]).ok();
}

#[test]
fn an_interrupted_restore_is_not_finished_where_another_user_can_write() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    env.sql("UPDATE operations SET outcome = NULL").unwrap();
    env.write("a", "2");
    fs::set_permissions(env.work(), fs::Permissions::from_mode(0o777)).unwrap();
    let status = env.biv(&["status"]);
    assert!(
        status.stderr.contains("the interrupted rollback could not be finished"),
        "{}",
        status.stderr
    );
    assert!(status.stderr.contains("every user can write to"), "{}", status.stderr);
    assert_eq!(env.read("a"), "2");
    fs::set_permissions(env.work(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(env.biv(&["status"]).stderr.contains("finished the rollback"));
}

#[test]
fn set_id_bits_are_dropped_in_another_users_workspace_and_that_is_told() {
    if !is_root() {
        return;
    }
    let mut env = env();
    env.set("BIV_WORKSPACE_ALLOW_SHARED", "true");
    env.write("tool", "one").mode("tool", 0o4755);
    give(&env.work());
    env.biv(&["checkpoint", "create"]).ok();
    env.write("tool", "two").mode("tool", 0o755);
    let mode = |env: &TestEnv, path: &str| {
        fs::metadata(env.path(path)).unwrap().permissions().mode() & 0o7777
    };
    let rollback = env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert!(
        rollback.stderr.contains("restored without set-user-id and set-group-id bits"),
        "{}",
        rollback.stderr
    );
    assert_eq!((env.read("tool").as_str(), mode(&env, "tool")), ("one", 0o755));
    // Again: nothing is written, and it is told again.
    let again = env.json("checkpoint rollback cp-001 --yes");
    assert_eq!(again["result"]["without_set_id"], serde_json::json!(["tool"]));
    assert_eq!(again["result"]["written"], 0);
    env.biv(&["undo", "--yes"]).ok();
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!((env.read("tool").as_str(), mode(&env, "tool")), ("two", 0o755));
    env.biv(&["redo", "--yes"]).ok();
    assert_eq!((env.read("tool").as_str(), mode(&env, "tool")), ("one", 0o755));

    // Elsewhere, the file would belong to root at once.
    let into = env.root().join("elsewhere");
    let written = env.biv(&["checkpoint", "restore", "cp-001", "--into", into.to_str().unwrap()]);
    assert!(written.ok().stderr.contains("restored without set-user-id"));
    assert_eq!(fs::metadata(into.join("tool")).unwrap().permissions().mode() & 0o7777, 0o755);
}

const ROUNDS: usize = 12;
/// On a busy machine, the attacker may sleep through some of them.
const MAX_ROUNDS: usize = 200;
const N_TOOLS: usize = 30;

/// The other user swaps the staging folder for another, all the time.
#[test]
fn a_checkpoint_holds_no_set_id_bits_of_another_users_file() {
    if !is_root() {
        return;
    }
    let env = env();
    env.write("sub/tool", "theirs").write("own", "ours");
    give(&env.path("sub"));
    give(&env.path("sub/tool"));
    env.mode("sub/tool", 0o4755).mode("own", 0o4755);
    env.biv(&["checkpoint", "create"]).ok();
    env.remove("sub").remove("own");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    let mode = |name: &str| env.path(name).metadata().unwrap().mode() & 0o7777;
    assert_eq!((mode("sub/tool"), mode("own")), (0o755, 0o4755));
}

#[test]
fn a_private_file_is_not_given_to_who_puts_something_in_its_place() {
    if !is_root() {
        return;
    }
    let env = env();
    env.write("shared/secret", "roots key").mode("shared/secret", 0o600);
    env.write("shared/page", "for all").mode("shared/page", 0o644);
    give(&env.path("shared"));
    env.biv(&["checkpoint", "create"]).ok();
    env.write("shared/secret", "").write("shared/page", "");
    give(&env.path("shared/secret"));
    give(&env.path("shared/page"));
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    let owner = |name: &str| env.path(name).metadata().unwrap().uid();
    assert_eq!(env.read("shared/secret"), "roots key");
    assert_eq!((owner("shared/secret"), owner("shared/page")), (0, OTHER));
}

#[test]
fn saving_writes_no_document_into_another_users_workspace() {
    if !is_root() {
        return;
    }
    let env = env();
    env.write("bivouac.toml", "[export]\non_checkpoint = [\"handoff\"]\n");
    env.write("a", "1").biv(&["checkpoint", "create"]).ok();
    assert!(env.exists("HANDOFF.md"));
    env.remove("HANDOFF.md").write("a", "2");
    give(&env.work());
    let saved = env.biv(&["checkpoint", "create"]).ok();
    assert!(saved.stderr.contains("no documents are written, because other"), "{}", saved.stderr);
    assert!(!env.exists("HANDOFF.md"));
}

#[test]
fn no_race_gives_another_user_a_program_with_roots_rights() {
    if !is_root() {
        return;
    }
    let mut env = env();
    env.set("BIV_WORKSPACE_ALLOW_SHARED", "true");
    fs::set_permissions(env.root(), fs::Permissions::from_mode(0o755)).unwrap();
    give(&env.work());
    for text in ["evil one", "evil two"] {
        for n in 0..N_TOOLS {
            let path = format!("tool{n}");
            env.write(&path, text);
            give(&env.path(&path));
            env.mode(&path, 0o6755);
        }
        env.biv(&["checkpoint", "create"]).ok();
    }
    let lair = env.root().join("lair");
    fs::create_dir(&lair).unwrap();
    give(&lair);
    let Some(mut attacker) = start_attacker(&env, &lair) else {
        return left_out("the other user cannot run the test's own program");
    };
    let has_attacked = || lair.join("attacked").exists();
    let mut n_done = 0;
    let mut found = Vec::new();
    for round in 0..MAX_ROUNDS {
        if round >= ROUNDS && n_done > 0 && has_attacked() {
            break;
        }
        let checkpoint = if round % 2 == 0 { "cp-001" } else { "cp-002" };
        let mut rollback = env.start(&["checkpoint", "rollback", checkpoint, "--yes"]);
        // Also one that exists for a moment only is one too many.
        while rollback.try_wait().unwrap().is_none() {
            found.extend(roots_programs(&env.work()));
        }
        n_done += usize::from(env.finish(rollback).code == 0);
        found.extend(roots_programs(&env.work()));
    }
    attacker.kill().unwrap();
    attacker.wait().unwrap();
    assert_eq!(found, Vec::<PathBuf>::new());
    assert!(has_attacked(), "the attacker never saw a staging folder");
    assert!(n_done > 0, "no rollback was carried out");
}

fn start_attacker(env: &TestEnv, lair: &Path) -> Option<Child> {
    let mut command = env.command(std::env::current_exe().unwrap().to_str().unwrap(), lair);
    command.args(["shared_workspace::attacker", "--exact"]).env("BIV_TEST_ATTACKS", env.work());
    command.uid(OTHER).gid(OTHER).stdout(Stdio::null()).stderr(Stdio::null());
    let mut attacker = command.spawn().ok()?;
    // The first thing it does is to say that it can.
    while !lair.join("ready").exists() {
        if attacker.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::yield_now();
    }
    Some(attacker)
}

/// Everything that root owns and that runs with its owner's rights.
fn roots_programs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(meta) = entry.path().symlink_metadata() else { continue };
        if meta.is_dir() {
            found.extend(roots_programs(&entry.path()));
        } else if meta.mode() & 0o6000 != 0 && (meta.uid() == 0 || meta.gid() == 0) {
            found.push(entry.path());
        }
    }
    found
}

/// The other user's process, until it is killed. Run as a test of its own it does nothing.
#[test]
fn attacker() {
    let Some(work) = std::env::var_os("BIV_TEST_ATTACKS").map(PathBuf::from) else { return };
    // Names like these are never captured, so the attack does not become part of a checkpoint.
    let (away, fake) = (work.join(".biv-staging-away"), work.join(".biv-staging-fake"));
    fs::create_dir(&fake).unwrap();
    fs::write("ready", "").unwrap();
    // If the test itself is killed, nobody is left to end this process.
    let parent = std::os::unix::process::parent_id();
    while std::os::unix::process::parent_id() == parent {
        for n in 0..N_TOOLS {
            let _there = fs::write(fake.join(format!("{n}.part")), "evil");
        }
        for entry in fs::read_dir(&work).into_iter().flatten().flatten() {
            let staging = entry.path();
            let name = entry.file_name();
            let is_staging = name.as_encoded_bytes().starts_with(b".biv-staging-");
            if !is_staging || staging == away || staging == fake {
                continue;
            }
            // Any of these may come too late. The other folder stands there for as long as it takes to
            // restore a file or two.
            let _stolen = fs::rename(&staging, &away);
            let _replaced = fs::rename(&fake, &staging);
            for _ in 0..500 {
                let _waits = staging.symlink_metadata();
            }
            let _taken = fs::rename(&staging, &fake);
            let _given = fs::rename(&away, &staging);
            let _told = fs::write("attacked", "");
        }
    }
}
