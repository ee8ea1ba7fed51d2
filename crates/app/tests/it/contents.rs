//! Whatever the file system allows, comes back as it was

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;

use bivouac_testkit::{TestEnv, bytes};

use crate::env;

/// Saves, makes a mess, rolls back: everything must be as it was.
fn survives(env: &TestEnv, mess: impl FnOnce()) {
    let before = env.tree();
    env.biv(&["checkpoint", "create"]).ok();
    mess();
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.tree(), before);
    env.biv(&["verify"]).ok();
}

#[test]
fn names_that_are_not_text() {
    let env = env();
    let longest = "n".repeat(255);
    let names: [&[u8]; 6] = [
        b"caf\xe9",
        b"new\nline",
        b"\xff\xfe",
        b"tab\there",
        "emoji-🏕".as_bytes(),
        longest.as_bytes(),
    ];
    for name in names {
        env.write(bytes(name), name);
    }
    env.write(bytes(b"dir-\xe9/inner"), "x");
    survives(&env, || {
        for name in names {
            env.remove(bytes(name));
        }
    });
    assert!(env.run("checkpoint diff cp-002 cp-001").contains("+ caf\\xe9 (new)"));
    assert!(env.run("checkpoint show cp-001 --files").contains("new\\nline"));
}

#[test]
fn links_stay_links_and_are_never_followed() {
    let env = env();
    let outside = env.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "private").unwrap();
    env.link("way-out", &outside)
        .link("dangling", "no/such/file")
        .link("loop", "loop")
        .link("absolute", "/etc/hostname");
    env.write("d/x", "1").link("d/up", "..");
    survives(&env, || {
        env.remove("way-out")
            .remove("dangling")
            .remove("loop")
            .write("loop", "a file")
            .remove("d")
            .link("d", &outside);
    });
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "private");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "nothing was written through the link");
}

#[test]
fn a_folder_that_became_a_link_is_not_written_through() {
    let env = env();
    let outside = env.root().join("outside");
    fs::create_dir(&outside).unwrap();
    env.write("d/a", "1").write("d/b", "1");
    survives(&env, || {
        env.remove("d").link("d", &outside);
    });
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_folder_that_became_a_link_to_one_like_it_comes_back_whole() {
    let env = env();
    env.write("a/file", "same").folder("a/empty").write("a/other", "x").link("a/link", "file");
    env.write("b/file", "same").folder("b/empty").folder("b/other").link("b/link", "file");
    survives(&env, || {
        std::fs::remove_dir_all(env.path("b")).unwrap();
        env.link("b", "a");
    });
}

#[test]
fn modes_survive() {
    let env = env();
    for mode in [0o600, 0o644, 0o755, 0o444, 0o400, 0o4755, 0o2755, 0o777] {
        env.write(format!("f{mode:o}"), "x").mode(format!("f{mode:o}"), mode);
    }
    env.write("locked/inside", "x").mode("locked", 0o555).folder("private").mode("private", 0o700);
    survives(&env, || {
        env.mode("locked", 0o755)
            .write("locked/inside", "changed")
            .remove("f755")
            .mode("f644", 0o666)
            .mode("private", 0o755);
    });
}

#[test]
fn hard_links_are_broken_not_written_through() {
    let env = env();
    let outside = env.root().join("twin");
    env.write("a", "original");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "changed");
    fs::hard_link(env.path("a"), &outside).unwrap();
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.read("a"), "original");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "changed");
}

#[test]
fn permissions_do_not_change_through_a_hard_link() {
    let env = env();
    env.write("f", "same").mode("f", 0o644);
    env.biv(&["checkpoint", "create"]).ok();
    let outside = env.root().join("outside");
    fs::write(&outside, "same").unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o600)).unwrap();
    env.remove("f");
    fs::hard_link(&outside, env.path("f")).unwrap();
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&outside), mode(&env.path("f"))), (0o600, 0o644));
}

#[test]
fn large_files_come_in_chunks_and_go_back_whole() {
    let env = env();
    let noise: Vec<u8> = (0..1_500_000u64)
        .flat_map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40).to_le_bytes()[..4].to_vec())
        .collect();
    env.write("big", &noise);
    let first = env.json("checkpoint create")["stored_bytes"].as_u64().unwrap();
    let mut longer = noise.clone();
    longer.extend_from_slice(b"one more line\n");
    env.write("big", &longer);
    let second = env.json("checkpoint create")["stored_bytes"].as_u64().unwrap();
    assert!(second < first / 2, "appending stored {second} of {first}");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(fs::read(env.path("big")).unwrap(), noise);
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!(fs::read(env.path("big")).unwrap(), longer);
}

#[test]
fn a_sparse_giant_is_left_out_and_told() {
    let env = env();
    env.write("a", "1");
    fs::File::create(env.path("sparse")).unwrap().set_len(10 << 30).unwrap();
    let saved = env.json("checkpoint create");
    assert_eq!(saved["coverage"]["not_covered"]["too_large"], 1);
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(fs::metadata(env.path("sparse")).unwrap().len(), 10 << 30);
}

#[test]
fn fifos_and_sockets_are_left_out_and_never_opened() {
    let env = env();
    env.write("a", "1");
    assert!(env.command("mkfifo", &env.work()).arg("fifo").status().unwrap().success());
    let _socket = UnixListener::bind(env.path("socket")).unwrap();
    let saved = env.json("checkpoint create");
    assert_eq!(saved["coverage"]["not_covered"]["special"], 2);
    env.write("a", "2");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert!(env.exists("fifo") && env.exists("socket"));
}

#[test]
fn empty_files_and_folders_survive() {
    let env = env();
    env.write("empty", "").folder("nothing/in/here");
    survives(&env, || {
        env.remove("empty").remove("nothing");
    });
}

#[test]
fn deep_trees_survive() {
    let env = env();
    let deep = ["d"; 300].join("/");
    env.write(format!("{deep}/leaf"), "x");
    survives(&env, || {
        env.remove("d");
    });
}

#[test]
fn names_that_differ_in_case_only_survive() {
    let env = env();
    env.write("README", "1").write("readme", "2").write("Dir/a", "3").write("dir/a", "4");
    survives(&env, || {
        env.remove("readme").remove("Dir");
    });
}

/// Root reads everything, so this is only a test for the rest of us.
#[test]
fn unreadable_files_are_told_and_never_touched() {
    let env = env();
    env.write("a", "1")
        .write("locked", "secret")
        .mode("locked", 0o000)
        .write("closed/x", "1")
        .mode("closed", 0o000);
    let saved = env.json("checkpoint create");
    let is_root =
        fs::metadata(env.work()).unwrap().uid() == 0 && fs::read(env.path("locked")).is_ok();
    if !is_root {
        assert_eq!(saved["coverage"]["not_covered"]["unreadable"], 2);
        env.write("a", "2");
        env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
        // One that the checkpoint knows to be absent stays as well, which nobody expects.
        env.write("later", "1").mode("later", 0o000);
        let rollback = env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]);
        assert_eq!(rollback.code, 3);
        assert!(rollback.stdout.contains("left alone: later (what is there now is not covered)"));
        env.remove("later").mode("locked", 0o600).mode("closed", 0o755);
        assert_eq!(env.read("locked"), "secret");
        assert_eq!(env.json("checkpoint create")["coverage"]["files"], 3);
    } else {
        assert_eq!(saved["coverage"]["files"], 3);
    }
    fs::set_permissions(env.path("closed"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn changes_that_hide_behind_an_old_date_are_seen() {
    let env = env();
    env.write("a", "same length 1");
    let stamp = fs::metadata(env.path("a")).unwrap().modified().unwrap();
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "same length 2");
    fs::File::options().write(true).open(env.path("a")).unwrap().set_modified(stamp).unwrap();
    let saved = env.json("checkpoint create --trigger turn");
    assert_eq!(saved["changed"], 1);
}

#[test]
fn quick_changes_of_the_same_length_are_all_seen() {
    let env = env();
    for n in 10..60 {
        env.write("a", format!("value {n}"));
        let saved = env.json("checkpoint create --trigger turn");
        assert_ne!(saved["skipped"], true, "change {n} was missed");
    }
}

#[test]
fn files_that_change_or_vanish_while_read_do_no_harm() {
    let env = env();
    for n in 0..200 {
        env.write(format!("d{}/f{n}", n % 10), format!("{n}"));
    }
    let work = env.work();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = std::sync::Arc::clone(&stop);
    let mess = std::thread::spawn(move || {
        let mut n = 0u64;
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            n += 1;
            let path = work.join(format!("d{}/f{}", n % 10, n % 200));
            let _raced = if n.is_multiple_of(3) {
                fs::remove_file(&path)
            } else {
                fs::write(&path, "x".repeat((n % 5_000) as usize))
            };
        }
    });
    for _ in 0..10 {
        let run = env.biv(&["checkpoint", "create"]);
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    mess.join().unwrap();
    env.biv(&["verify"]).ok();
    let tree = env.tree();
    env.biv(&["checkpoint", "create"]).ok();
    for n in 0..10 {
        let _gone = fs::remove_dir_all(env.path(format!("d{n}")));
    }
    env.biv(&["checkpoint", "rollback", "latest", "--yes"]).ok();
    assert_eq!(env.tree(), tree);
}

#[test]
fn the_workspace_itself_may_have_a_strange_name() {
    let env = env();
    let strange = env.root().join(bytes(b"work \xe9 %20 ?#"));
    fs::create_dir(&strange).unwrap();
    fs::write(strange.join("a"), "1").unwrap();
    env.biv_in(&strange, &["checkpoint", "create"]).ok();
    fs::write(strange.join("a"), "2").unwrap();
    env.biv_in(&strange, &["checkpoint", "rollback", "latest", "--yes"]).ok();
    assert_eq!(fs::read_to_string(strange.join("a")).unwrap(), "1");
    env.biv_in(&strange, &["undo", "--yes"]).ok();
    assert_eq!(fs::read_to_string(strange.join("a")).unwrap(), "2");
    let listed = env.biv_in(&strange, &[OsStr::new("session"), OsStr::new("list")]).ok();
    assert!(listed.stdout.contains("manual"));
}
