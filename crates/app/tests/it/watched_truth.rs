//! With a watcher alive, "nothing changed" is true: also where inotify reports nothing

use std::fs;
use std::io::Write;
use std::process::Child;

use bivouac_testkit::{Mounted, TestEnv, left_out, make_ext4, until};

use crate::env;
use crate::foreign_file_systems::settle;

/// A workspace with a watcher that has seen everything in it.
fn watched(env: &TestEnv) -> Child {
    settle(env);
    let child = env.start_live(&["watch", "--interval", "1h"]);
    until("the watcher", || env.json("watch --status")["watcher"].is_object());
    env.biv(&["checkpoint", "create"]).ok();
    assert!(!is_seen_by(env, "turn"));
    child
}

/// Does an automatic checkpoint find something new?
fn is_seen_by(env: &TestEnv, trigger: &str) -> bool {
    env.json(&format!("checkpoint create --trigger {trigger}"))["skipped"] != true
}

/// What the newest checkpoint holds at a path.
fn newest(env: &TestEnv, path: &str) -> Vec<u8> {
    let list = env.json("checkpoint list");
    let handle = list.as_array().unwrap().last().unwrap()["handle"].as_str().unwrap().to_owned();
    let out = env.root().join(&handle);
    if !out.exists() {
        env.biv(&["checkpoint", "restore", &handle, "--into", out.to_str().unwrap()]).ok();
    }
    fs::read(out.join(path)).unwrap()
}

fn stop(env: &TestEnv, child: Child) {
    env.biv(&["watch", "--stop"]).ok();
    assert_eq!(env.finish(child).code, 0);
}

/// Changes a file in a way that inotify does not report: through a name outside, made after the scan.
fn write_unseen(env: &TestEnv, content: &str) {
    let outside = env.root().join("outside");
    if !outside.exists() {
        fs::hard_link(env.path("a/file"), &outside).unwrap();
    }
    fs::write(outside, content).unwrap();
}

#[test]
fn a_write_through_a_name_outside_is_seen_by_all_who_must() {
    let env = env();
    env.write("a/file", "1").write("b/other", "1");
    let child = watched(&env);
    write_unseen(&env, "2");
    assert_eq!(env.json("status")["changes"]["modified"], 1);
    assert_eq!(env.json("checkpoint diff latest")["files"].as_array().unwrap().len(), 1);
    let plan = env.json("checkpoint rollback latest --dry-run");
    assert!(plan.to_string().contains("a/file"), "{plan}");
    for trigger in ["risk", "error", "end"] {
        write_unseen(&env, &format!("before {trigger}"));
        assert!(is_seen_by(&env, trigger), "{trigger}");
        assert_eq!(newest(&env, "a/file"), format!("before {trigger}").as_bytes());
    }
    write_unseen(&env, "by hand");
    env.biv(&["checkpoint", "create"]).ok();
    assert_eq!(newest(&env, "a/file"), b"by hand");
    write_unseen(&env, "before a rollback");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.read("a/file"), "1");
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!(env.read("a/file"), "before a rollback");
    stop(&env, child);
}

#[test]
fn what_nobody_reports_is_found_by_a_rescan() {
    let mut env = env();
    env.set("BIV_WATCH_RESCAN_SECONDS", "1");
    env.write("a/file", "1");
    settle(&env);
    env.biv(&["checkpoint", "create"]).ok();
    let child = env.start_live(&["watch", "--interval", "1s"]);
    let status = || env.json("watch --status")["watcher"].clone();
    until("a rescan", || status()["last_rescan_seconds"].is_u64());
    write_unseen(&env, "unseen");
    until("a checkpoint", || newest(&env, "a/file") == b"unseen");
    let said = env.biv(&["watch", "--status"]).ok().stdout;
    assert!(said.contains("Rescan     every "), "{said}");
    assert!(said.contains(" everything is looked at; last "), "{said}");
    assert!(said.contains("Blind to   writes through a hard link outside"), "{said}");
    stop(&env, child);
}

/// The kernel writes an image without a word to anybody.
#[test]
fn a_mounted_image_is_seen_to_change() {
    let env = env();
    let source = env.root().join("source");
    fs::create_dir(&source).unwrap();
    if !make_ext4(&env.path("disk.img"), &source) {
        return left_out("there is no `mkfs.ext4` here");
    }
    let place = env.root().join("disk");
    let Some(_mounted) = Mounted::image(&place, &env.path("disk.img"), "noinit_itable") else {
        return left_out("ext4 images cannot be mounted here");
    };
    let child = watched(&env);
    let mut file = fs::File::create(place.join("file")).unwrap();
    file.write_all(b"written by the kernel").unwrap();
    file.sync_all().unwrap();
    env.biv(&["checkpoint", "create"]).ok();
    let image = newest(&env, "disk.img");
    assert!(image.windows(21).any(|window| window == b"written by the kernel"));
    stop(&env, child);
}

#[test]
fn a_file_system_over_a_folder_is_noticed_at_once() {
    let env = env();
    env.write("folder/file", "below").write("other", "1");
    let child = watched(&env);
    let Some(mounted) = Mounted::at(&env.path("folder"), &["-t", "tmpfs", "tmpfs"]) else {
        stop(&env, child);
        return left_out("nothing can be mounted here");
    };
    env.write("folder/file", "above");
    assert!(is_seen_by(&env, "turn"));
    assert_eq!(newest(&env, "folder/file"), b"above");
    env.write("folder/file", "again");
    assert!(is_seen_by(&env, "turn"));
    mounted.unmount();
    assert!(is_seen_by(&env, "turn"));
    assert_eq!(newest(&env, "folder/file"), b"below");
    // From here on the watcher knows the folder again.
    env.write("folder/file", "later");
    assert!(is_seen_by(&env, "turn"));
    assert_eq!(newest(&env, "folder/file"), b"later");
    stop(&env, child);
}
