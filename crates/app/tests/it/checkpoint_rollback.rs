//! `biv checkpoint rollback`

use std::os::unix::fs::MetadataExt;

use insta::assert_snapshot;

use crate::{env, git_env};

#[test]
fn it_shows_first_and_asks() {
    let env = env();
    env.write("kept.txt", "same").write("changed.txt", "old").write("gone.txt", "back");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("changed.txt", "new").remove("gone.txt").write("born/later.txt", "x");
    let before = env.tree();
    assert_snapshot!(env.run("checkpoint rollback cp-001 --dry-run"), @"
    Rollback to cp-20260121-001 (2026-01-21 14:30)

      D born/ (born later)
      D born/later.txt (born later)
      M changed.txt
      + gone.txt (comes back)
    Everything is saved first; `biv undo` takes it back
    ");
    assert_snapshot!(env.run("checkpoint rollback cp-001"), @"
    exit 2
    error: the rollback needs a confirmation, and there is no terminal to ask on
    hint: look at what it would do, then pass `--yes`
    ");
    assert_eq!(env.tree(), before, "without a yes nothing is touched");
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 1);
    assert_snapshot!(env.run("checkpoint rollback cp-001 --yes"), @"
    Rolled back to cp-20260121-001: 2 files written, 1 removed
    Everything as it was before is in cp-20260121-002
    ");
    assert_snapshot!(env.run("checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        MANUAL     2026-01-21 14:30
    cp-20260121-002  task-00000001        SAFETY     2026-01-21 14:34  before rollback to cp-20260121-001
    ");
}

#[test]
fn it_is_exact_and_touches_nothing_that_is_right() {
    let env = env();
    env.write("same.txt", "same").write("a/b/c.txt", "1").link("link", "same.txt").folder("empty");
    env.mode("a/b/c.txt", 0o600).mode("empty", 0o700);
    env.biv(&["checkpoint", "create"]).ok();
    let (tree, mtime) = (env.tree(), std::fs::metadata(env.path("same.txt")).unwrap().mtime_nsec());
    env.remove("a")
        .write("a", "a file now")
        .remove("link")
        .write("link/inside", "x")
        .mode("empty", 0o755);
    env.write("x/y/z", "later");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.tree(), tree);
    assert_eq!(std::fs::metadata(env.path("same.txt")).unwrap().mtime_nsec(), mtime);
}

#[test]
fn paths_limit_it() {
    let env = git_env();
    env.write("src/a.rs", "1").write("src/b.rs", "1").write("docs/a.md", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("src/a.rs", "2").write("src/b.rs", "2").remove("docs").write("src/new.rs", "2");
    assert_snapshot!(env.run("checkpoint rollback cp-001 src/a.rs docs --yes"), @"
    Rolled back to cp-20260121-001: 2 files written, 0 removed
    Everything as it was before is in cp-20260121-002
    ");
    assert_eq!(
        (env.read("src/a.rs"), env.read("src/b.rs"), env.read("docs/a.md")),
        ("1".into(), "2".into(), "1".into())
    );
    assert!(env.exists("src/new.rs"));
    assert_snapshot!(env.run("checkpoint rollback cp-001 no/such/path --yes"), @"
    exit 1
    error: `no/such/path` is neither in the checkpoint nor in the workspace
    hint: paths are given relative to the current folder
    ");
    // Paths are relative to where one is.
    env.biv_in(&env.path("src"), &["checkpoint", "rollback", "cp-001", "b.rs", "--yes"]).ok();
    assert_eq!(env.read("src/b.rs"), "1");
    assert!(env.exists("src/new.rs"));
}

#[test]
fn what_no_checkpoint_covers_is_never_touched() {
    let env = env();
    env.write(".gitignore", "node_modules/\n*.db\n").write("a", "1");
    env.write("node_modules/x/index.js", "dep").write("local.db", "precious");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2").write("later/b", "x").write("later/cache.db", "uncovered");
    assert_snapshot!(env.run("checkpoint rollback cp-001 --yes"), @"
    Rolled back to cp-20260121-001: 1 file written, 1 removed
      left alone: later (still holds other files)
    Everything as it was before is in cp-20260121-002
    ");
    assert_eq!(env.read("node_modules/x/index.js"), "dep");
    assert_eq!(env.read("local.db"), "precious");
    assert_eq!(env.read("later/cache.db"), "uncovered");
    assert!(!env.exists("later/b"));
}

#[test]
fn rolling_an_ignore_file_back_does_not_take_what_it_protected() {
    let env = env();
    // At the checkpoint `dist/` was ignored, so it is not in it; now it is not ignored any more.
    env.write(".gitignore", "dist/\n").write("dist/app.js", "built").write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write(".gitignore", "").write("dist/new.js", "built later");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.read(".gitignore"), "dist/\n");
    assert_eq!(env.read("dist/app.js"), "built");
    assert_eq!(env.read("dist/new.js"), "built later");
}

#[test]
fn what_came_to_be_ignored_is_saved_before_it_is_replaced() {
    let env = env();
    env.write("data/one.csv", "old").write("data/two.csv", "old");
    env.biv(&["checkpoint", "create"]).ok();
    env.write(".gitignore", "data/\n")
        .write("data/one.csv", "new and ignored")
        .remove("data/two.csv");
    env.write("data/three.csv", "never covered");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!((env.read("data/one.csv"), env.read("data/two.csv")), ("old".into(), "old".into()));
    assert_eq!(env.read("data/three.csv"), "never covered");
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!(env.read("data/one.csv"), "new and ignored");
    assert!(!env.exists("data/two.csv"));
    assert_eq!(env.read("data/three.csv"), "never covered");
}

#[test]
fn nothing_in_git_moves() {
    let env = git_env();
    env.write("a", "1").git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    env.write("a", "2").git(&["add", "."]);
    env.write("a", "3").write("untracked", "x");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "4").remove("untracked");
    let fingerprint = || bivouac_testkit::read_stats(&env.path(".git"));
    let before = fingerprint();
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    env.biv(&["undo", "--yes"]).ok();
    env.biv(&["status"]).ok();
    env.biv(&["checkpoint", "diff", "cp-001"]).ok();
    assert_eq!(fingerprint(), before);
}

#[test]
fn a_stash_is_made_on_request_only() {
    let env = git_env();
    env.write("a", "1\n").git(&["add", "."]);
    env.git(&["config", "user.name", "t"]);
    env.git(&["config", "user.email", "t@t"]);
    env.git(&["commit", "-qm", "one"]);
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2\n");
    let status = env.git(&["status", "--porcelain"]);
    assert_snapshot!(env.run("checkpoint rollback cp-001 --yes --stash").replace(&env.git(&["rev-parse", "stash"])[..12], "[stash]"), @"
    Rolled back to cp-20260121-001: 1 file written, 0 removed
    Everything as it was before is in cp-20260121-002
    git's stash has what was uncommitted in tracked files too, as [stash]
    ");
    assert!(env.git(&["stash", "show", "-p", "stash@{0}"]).ends_with("+2"));
    assert_snapshot!(env.git(&["stash", "list"]), @"stash@{0}: biv: before rollback to cp-20260121-001");
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!(env.git(&["status", "--porcelain"]), status);
}

#[test]
fn without_git_a_stash_is_refused_before_anything_happens() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    assert_snapshot!(env.run("checkpoint rollback cp-001 --yes --stash"), @"
    exit 1
    error: this workspace is not in a git repository, so nothing can be stashed
    ");
    assert_eq!(env.read("a"), "2");
}

#[test]
fn nothing_to_do_is_said_and_leaves_no_trace() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    assert_snapshot!(env.run("checkpoint rollback latest --yes"), @"Nothing to do: the workspace already is as in cp-20260121-001");
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 1);
}

#[test]
fn another_workspaces_checkpoint_is_refused() {
    let env = env();
    env.write("a", "1");
    let id = env.json("checkpoint create")["id"].as_str().unwrap().to_owned();
    let other = env.root().join("other");
    std::fs::create_dir(&other).unwrap();
    assert_snapshot!(env.biv_in(&other, &["checkpoint", "rollback", &id, "--yes"]).text(), @"
    exit 1
    error: checkpoint cp-20260121-001 was taken in another workspace, `[root]/project`
    hint: go there to roll it back, or write it elsewhere with `biv checkpoint restore … --into DIR`
    ");
}

#[test]
fn json_tells_the_plan_and_the_result() {
    let env = env();
    env.write("a", "1").write("b", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2").remove("b").write("c", "2");
    let plan = env.json("checkpoint rollback cp-001 --dry-run");
    let steps: Vec<String> = plan["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {}", it["action"], it["path"]))
        .collect();
    assert_eq!(steps, ["\"replace\" \"a\"", "\"create\" \"b\"", "\"remove\" \"c\""]);
    assert_eq!(plan["result"], serde_json::Value::Null);
    let done = env.json("checkpoint rollback cp-001 --yes");
    assert_eq!(done["result"]["written"], 2);
    assert_eq!(done["result"]["removed"], 1);
    assert_eq!(done["result"]["safety_checkpoint"]["trigger"], "SAFETY");
}

#[test]
fn paths_are_read_from_where_the_person_stands() {
    let env = git_env();
    env.write("src/a", "1").write("b", "1").write(".gitignore", "*.log\n").write("x.log", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("src/a", "2").write("b", "2");
    for (folder, path, a, b) in [
        ("src", "a", "1", "2"),
        ("src", "../b", "2", "1"),
        (".", "../project/src", "1", "2"),
        ("src", "..", "1", "1"),
    ] {
        env.biv(&["-C", folder, "checkpoint", "rollback", "cp-001", path, "--yes"]).ok();
        assert_eq!((env.read("src/a").as_str(), env.read("b").as_str()), (a, b), "{folder} {path}");
        env.biv(&["undo", "--yes"]).ok();
    }
    assert_snapshot!(env.run("checkpoint rollback cp-001 x.log --yes"), @"
    exit 1
    error: `x.log` is not covered: ignored
    hint: `workspace.include` can make ignored files precious
    ");
    assert_snapshot!(env.run("checkpoint rollback cp-001 ../else --yes"), @"
    exit 1
    error: `../else` is outside the workspace
    hint: name a path inside the workspace
    ");
}

#[test]
fn a_stash_without_anything_to_stash_is_no_failure() {
    let env = git_env();
    env.write("f", "1");
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    env.biv(&["checkpoint", "create"]).ok();
    env.write("f", "2");
    env.biv(&["checkpoint", "rollback", "latest", "--yes"]).ok();
    let run = env.biv(&["undo", "--stash", "--yes"]).ok();
    assert!(run.stderr.contains("nothing was stashed"), "{}", run.stderr);
    assert_eq!(env.read("f"), "2");
}

#[test]
fn both_names_of_one_file_come_back() {
    let env = env();
    env.write("p", "old");
    std::fs::hard_link(env.path("p"), env.path("q")).unwrap();
    env.biv(&["checkpoint", "create"]).ok();
    env.write("p", "newer");
    assert_eq!(env.read("q"), "newer");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!((env.read("p"), env.read("q")), ("old".to_owned(), "old".to_owned()));
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!((env.read("p"), env.read("q")), ("newer".to_owned(), "newer".to_owned()));
}
