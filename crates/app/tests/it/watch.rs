//! `biv watch`: saving beside an agent that was started by hand

use std::fs;
use std::process::Child;
use std::time::Duration;

use bivouac_testkit::{TestEnv, until};
use insta::assert_snapshot;

use crate::env;

fn n_checkpoints(env: &TestEnv) -> usize {
    env.json("checkpoint list").as_array().unwrap().len()
}

fn start(env: &TestEnv, options: &[&str]) -> Child {
    let child = env.start_live(&[&["watch"][..], options].concat());
    until("the watcher", || env.json("watch --status")["watcher"].is_object());
    child
}

fn stop(env: &TestEnv, child: Child) {
    env.biv(&["watch", "--stop"]).ok();
    assert_eq!(env.finish(child).code, 0);
}

#[test]
fn what_changes_is_saved_and_what_does_not_is_not() {
    let env = env();
    env.write("a", "1");
    let child = start(&env, &["--interval", "1s"]);
    until("a first checkpoint", || n_checkpoints(&env) == 1);
    env.write("deep/er/b", "1");
    until("a second checkpoint", || n_checkpoints(&env) == 2);
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(n_checkpoints(&env), 2);
    env.write("deep/er/b", "2").remove("a");
    until("a third checkpoint", || n_checkpoints(&env) == 3);
    stop(&env, child);
    env.biv(&["checkpoint", "restore", "latest", "--into", "../out"]).ok();
    assert_eq!(bivouac_testkit::read_tree(&env.root().join("out")), env.tree());
    assert_eq!(env.json("checkpoint list")[2]["trigger"], "PERIODIC");
}

#[test]
fn there_is_one_for_each_workspace() {
    let env = env();
    let child = start(&env, &[]);
    let second = env.live(&["watch"]);
    assert_eq!(second.code, 1);
    assert!(second.stderr.contains("already watched by process"), "{}", second.stderr);
    stop(&env, child);
    assert_snapshot!(env.run("watch --stop"), @"
    exit 1
    error: nobody watches this workspace
    hint: `biv watch` starts one
    ");
    assert_snapshot!(env.run("watch --status"), @"Nobody watches this workspace; `biv watch` does, and so does `biv run`");
    assert_snapshot!(env.run("watch --interval 0s"), @"
    exit 2
    error: invalid value '0s' for '--interval <TIME>': it is at least `1s`

    For more information, try '--help'.
    ");
}

#[test]
fn it_ends_with_the_session_and_with_the_workspace() {
    let env = env();
    let session = env.json("session new")["handle"].as_str().unwrap().to_owned();
    let child = start(&env, &["--interval", "1s"]);
    env.biv(&["session", "complete", &session]).ok();
    let run = env.finish(child).ok();
    assert!(run.stderr.contains("is completed; no longer watching"), "{}", run.stderr);

    let child = start(&env, &["--interval", "1s"]);
    fs::rename(env.work(), env.root().join("elsewhere")).unwrap();
    let run = env.finish(child);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("the workspace is gone"), "{}", run.stderr);
}

/// With a watcher alive, a checkpoint still holds exactly what is there: whatever was done, and by whom.
#[test]
fn every_checkpoint_is_whole() {
    let env = crate::git_env();
    env.write(".gitignore", "build/\n").write("src/a.rs", "1").write("build/out", "1");
    let child = start(&env, &["--interval", "60s"]);
    env.biv(&["checkpoint", "create"]).ok();
    let check = |what: &str| {
        env.biv(&["checkpoint", "create"]).ok();
        let handle = env.json("checkpoint list").as_array().unwrap().last().unwrap()["handle"]
            .as_str()
            .unwrap()
            .to_owned();
        let out = env.root().join(&handle);
        env.biv(&["checkpoint", "restore", &handle, "--into", out.to_str().unwrap()]).ok();
        let mut expected = env.tree();
        expected.retain(|path, _| !path.starts_with(b"build"));
        assert_eq!(bivouac_testkit::read_tree(&out), expected, "{what}");
    };
    check("nothing was done");
    env.write("src/b.rs", "1").write("new/deep/c.rs", "1");
    check("files and folders are new");
    env.write("new/deep/c.rs", "2").mode("src/a.rs", 0o755).link("link", "src");
    check("a new folder's file is another");
    fs::rename(env.path("new"), env.path("moved")).unwrap();
    env.write("moved/deep/d.rs", "1");
    check("a folder was moved");
    env.write("moved/deep/d.rs", "2");
    check("a moved folder's file is another");
    env.remove("src").write("src/a.rs", "3");
    check("a folder took another's place");
    env.write("src/a.rs", "4");
    check("and its file is another");
    env.write("build/out", "2");
    check("what is ignored is ignored");
    env.write(".gitignore", "nothing\n");
    fs::remove_dir_all(env.path("build")).unwrap();
    env.write("kept/out", "3");
    check("the rules are others");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "all"]);
    env.write("kept/out", "4");
    check("git was used");
    env.biv(&["checkpoint", "rollback", "cp-002", "--yes"]).ok();
    check("we went back");
    stop(&env, child);
}

/// A kernel that lets us watch no more folders: everything is looked at instead, and that is said.
#[test]
fn where_nothing_can_be_watched_everything_is_looked_at() {
    let check = |limit: &str, expected: &str| {
        let env = env();
        env.write("a/b/c/d", "1");
        let script = format!(
            "echo 0 > /proc/sys/user/{limit} && exec {} watch --interval 1s",
            env!("CARGO_BIN_EXE_biv")
        );
        let mut command = env.command("unshare", &env.work());
        command.args(["--user", "--map-root-user", "sh", "-c", &script]);
        command.env("BIV_STORE_MIN_FREE", "0").stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let is_up = || env.json("watch --status")["watcher"].is_object();
        until("the watcher", || is_up() || child.try_wait().unwrap().is_some());
        if !is_up() {
            return bivouac_testkit::left_out("this kernel does not let us set a limit");
        }
        until("a first checkpoint", || n_checkpoints(&env) == 1);
        env.write("a/b/c/d", "2");
        until("a second checkpoint", || n_checkpoints(&env) == 2);
        let status = env.json("watch --status");
        let trouble = status["watcher"]["trouble"].as_str().unwrap_or_default();
        assert!(trouble.contains(expected), "{status}");
        env.biv(&["watch", "--stop"]).ok();
        let said = env.finish(child).stderr;
        assert!(said.contains("so everything is looked at, and more rarely"), "{said}");
    };
    check("max_inotify_watches", "fs.inotify.max_user_watches");
    check("max_inotify_instances", "nothing can be watched here");
}

/// Whoever else is there: no state of the workspace is saved twice.
#[test]
fn a_watcher_a_supervisor_and_hooks_do_not_save_twice() {
    let env = env();
    let child = start(&env, &["--interval", "1s"]);
    let binary = env!("CARGO_BIN_EXE_biv");
    let script = format!(
        "for n in 1 2 3 4 5 6; do echo $n > count; {binary} checkpoint create --trigger turn; sleep 0.7; done"
    );
    env.live(&["run", "--interval", "1s", "--", "sh", "-c", &script]).ok();
    stop(&env, child);
    let list = env.json("checkpoint list");
    let trees: Vec<&str> =
        list.as_array().unwrap().iter().map(|it| it["tree"].as_str().unwrap()).collect();
    assert!(trees.len() >= 6, "{trees:?}");
    assert!(trees.windows(2).all(|two| two[0] != two[1]), "{trees:?}");
}
