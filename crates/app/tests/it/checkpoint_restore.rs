//! `biv checkpoint restore`

use bivouac_testkit::read_tree;
use insta::assert_snapshot;

use crate::{env, git_env};

#[test]
fn a_tree_is_written_elsewhere_exactly() {
    let env = env();
    env.write("a.txt", "1").write("deep/er/b.sh", "#!/bin/sh\n").mode("deep/er/b.sh", 0o755);
    env.link("deep/link", "../a.txt").folder("empty").mode("empty", 0o711);
    env.write("big.bin", vec![7u8; 3_000_000]);
    env.biv(&["checkpoint", "create"]).ok();
    let tree = env.tree();
    env.remove("deep").remove("big.bin");
    let before = env.tree();
    assert_snapshot!(env.run("checkpoint restore cp-001 --into ../out/here"), @"Wrote 4 files of cp-20260121-001 (3.0 MB) into ../out/here");
    assert_eq!(read_tree(&env.root().join("out/here")), tree);
    assert_eq!(env.tree(), before, "the workspace is not touched");
}

#[test]
fn a_folder_that_is_not_empty_is_refused() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    assert_snapshot!(env.run("checkpoint restore cp-001 --into ."), @"
    exit 1
    error: `.` is not empty
    hint: choose a new or an empty folder
    ");
    assert_snapshot!(env.run("checkpoint restore cp-001"), @"
    exit 2
    error: the following required arguments were not provided:
      --into <DIR>

    Usage: biv checkpoint restore --into <DIR> <CHECKPOINT>

    For more information, try '--help'.
    ");
}

#[test]
fn nothing_is_written_into_git_or_the_store() {
    let env = git_env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    assert_snapshot!(env.run("checkpoint restore latest --into .git/x"), @"
    exit 1
    error: `[root]/project/.git/x` is inside a `.git` folder, where nothing of ours may be written
    hint: name a folder of its own
    ");
    let store = env.store().join("x");
    assert_eq!(
        env.biv(&["checkpoint", "restore", "latest", "--into", store.to_str().unwrap()]).code,
        1
    );
    assert!(!store.exists() && !env.exists(".git/x"));
}
