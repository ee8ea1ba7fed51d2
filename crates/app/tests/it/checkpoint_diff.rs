//! `biv checkpoint diff`

use insta::assert_snapshot;

use crate::env;

#[test]
fn it_has_the_shape_people_know() {
    let env = env();
    env.write("src/auth/session.py", "one\ntwo\nthree\n")
        .write("tests/test_auth.py", "x\n")
        .write("gone.txt", "x");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("src/auth/login.py", "new\n").write("src/auth/session.py", "one\n2\nthree\nfour\n");
    env.write("tests/test_auth.py", "x\ny\nz\n").remove("gone.txt");
    env.biv(&["checkpoint", "create"]).ok();
    assert_snapshot!(env.run("checkpoint diff cp-001 cp-002"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-001 (2026-01-21 14:30)
    To:   cp-20260121-002 (2026-01-21 14:31)

    Files Changed:
      D gone.txt
      + src/auth/login.py (new)
      M src/auth/session.py (+2, -1)
      M tests/test_auth.py (+2, -0)
    ");
    assert_snapshot!(env.run("checkpoint diff cp-001 cp-002 src/auth"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-001 (2026-01-21 14:30)
    To:   cp-20260121-002 (2026-01-21 14:31)

    Files Changed:
      + src/auth/login.py (new)
      M src/auth/session.py (+2, -1)
    ");
    assert_snapshot!(env.run("checkpoint diff cp-002 cp-002"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-002 (2026-01-21 14:31)
    To:   cp-20260121-002 (2026-01-21 14:31)

    No files changed
    ");
}

#[test]
fn one_checkpoint_is_compared_with_the_workspace() {
    let env = env();
    env.write("a.txt", "1\n").write("b.txt", "1\n");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a.txt", "1\n2\n").write("c.txt", "1\n");
    assert_snapshot!(env.run("checkpoint diff latest"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-001 (2026-01-21 14:30)
    To:   workspace (2026-01-21 14:31)

    Files Changed:
      M a.txt (+1, -0)
      + c.txt (new)
    ");
    assert_snapshot!(env.run("checkpoint diff latest c.txt"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-001 (2026-01-21 14:30)
    To:   workspace (2026-01-21 14:32)

    Files Changed:
      + c.txt (new)
    ");
    assert_snapshot!(env.run("checkpoint diff latest cp-009"), @"
    exit 1
    error: there is no checkpoint `cp-009`
    hint: `biv checkpoint list --all` shows all checkpoints
    ");
    assert_snapshot!(env.run("checkpoint diff latest ../elsewhere"), @"
    exit 1
    error: `../elsewhere` is outside the workspace
    hint: name a path inside the workspace
    ");
}

#[test]
fn a_patch_shows_the_lines() {
    let env = env();
    let long: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    env.write("a.txt", &long).write("end.txt", "no newline").write("gone.txt", "x\n");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a.txt", long.replace("line 10\n", "line ten\n")).write("end.txt", "still none");
    env.write("new.txt", "x\n").remove("gone.txt");
    assert_snapshot!(env.run("checkpoint diff latest --patch"), @r"
    --- a/a.txt
    +++ b/a.txt
    @@ -7,7 +7,7 @@
     line 7
     line 8
     line 9
    -line 10
    +line ten
     line 11
     line 12
     line 13
    --- a/end.txt
    +++ b/end.txt
    @@ -1,1 +1,1 @@
    -no newline
    \ No newline at end of file
    +still none
    \ No newline at end of file
    --- a/gone.txt
    +++ /dev/null
    @@ -1,1 +0,0 @@
    -x
    --- /dev/null
    +++ b/new.txt
    @@ -0,0 +1,1 @@
    +x
    ");
}

#[test]
fn a_patch_can_be_applied_by_git() {
    let env = env();
    let long: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    env.write("a.txt", &long).write("b.txt", "x\ny").write("gone.txt", "x\n");
    env.biv(&["checkpoint", "create"]).ok();
    let before = env.tree();
    env.write("a.txt", long.replace("line 3\n", "").replace("line 30\n", "line 30\nline 30.5\n"));
    env.write("b.txt", "x\nz\n").write("new/file.txt", "fresh\n").remove("gone.txt");
    let after = env.tree();
    let patch = env.biv(&["checkpoint", "diff", "latest", "-p"]).ok().stdout;
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.tree(), before);
    std::fs::write(env.root().join("changes.patch"), patch).unwrap();
    env.git(&["apply", "../changes.patch"]);
    assert_eq!(env.tree(), after);
}

#[test]
fn what_is_not_text_is_told_by_size_and_mode() {
    let env = env();
    env.write("image.bin", [0u8, 1, 2, 3])
        .write("script.sh", "echo\n")
        .link("link", "image.bin")
        .folder("empty");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("image.bin", vec![0u8; 2_000])
        .mode("script.sh", 0o755)
        .remove("link")
        .write("link", "file now");
    env.remove("empty").folder("other");
    assert_snapshot!(env.run("checkpoint diff latest"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-001 (2026-01-21 14:30)
    To:   workspace (2026-01-21 14:31)

    Files Changed:
      D empty/
      M image.bin (binary, 4 B → 2.0 KB)
      M link (became something else)
      + other/ (new)
      M script.sh (mode 644 → 755)
    ");
}

#[test]
fn what_is_no_longer_covered_is_told() {
    let env = env();
    env.write("data.csv", "1\n").write(".gitignore", "");
    env.biv(&["checkpoint", "create"]).ok();
    env.write(".gitignore", "data.csv\n");
    env.biv(&["checkpoint", "create"]).ok();
    assert_snapshot!(env.run("checkpoint diff cp-001 cp-002"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-001 (2026-01-21 14:30)
    To:   cp-20260121-002 (2026-01-21 14:31)

    Files Changed:
      M .gitignore (+1, -0)
      ? data.csv (no longer covered: ignored)
    ");
    assert_snapshot!(env.run("checkpoint diff cp-002 cp-001"), @"
    Checkpoint Comparison
    =====================
    From: cp-20260121-002 (2026-01-21 14:31)
    To:   cp-20260121-001 (2026-01-21 14:30)

    Files Changed:
      M .gitignore (+0, -1)
      + data.csv (was not covered: ignored)
    ");
}

#[test]
fn json_counts_lines() {
    let env = env();
    env.write("a.txt", "1\n2\n").write("b.bin", [0u8; 10]);
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a.txt", "1\n3\n4\n").write("b.bin", [0u8; 20]);
    let diff = env.json("checkpoint diff latest");
    assert_eq!(diff["from"]["handle"], "cp-20260121-001");
    assert_eq!(diff["to"], serde_json::Value::Null);
    assert_eq!(diff["files"][0]["path"], "a.txt");
    assert_eq!(diff["files"][0]["status"], "modified");
    assert_eq!(diff["files"][0]["lines_added"], 2);
    assert_eq!(diff["files"][0]["lines_removed"], 1);
    assert_eq!(diff["files"][1]["lines_added"], serde_json::Value::Null);
    assert_eq!(diff["files"][1]["size_after"], 20);
}

#[test]
fn a_patch_leaves_nothing_out() {
    let env = env();
    env.write("run.sh", "x\n")
        .mode("run.sh", 0o644)
        .write("pic", b"\0\x01")
        .write("both", "1\n")
        .mode("both", 0o644);
    env.biv(&["checkpoint", "create"]).ok();
    env.mode("run.sh", 0o755).write("pic", b"\0\x02").write("both", "2\n").mode("both", 0o755);
    env.write("empty", "").mode("empty", 0o644).link("link", "pic").folder("later");
    assert_snapshot!(env.run("checkpoint diff latest --patch"), @r"
    diff --git a/both b/both
    old mode 100644
    new mode 100755
    --- a/both
    +++ b/both
    @@ -1,1 +1,1 @@
    -1
    +2
    diff --git a/empty b/empty
    new file mode 100644
    # + later/ (new)
    diff --git a/link b/link
    new file mode 120000
    --- /dev/null
    +++ b/link
    @@ -0,0 +1,1 @@
    +pic
    \ No newline at end of file
    # M pic (binary, 2 B → 2 B)
    diff --git a/run.sh b/run.sh
    old mode 100644
    new mode 100755
    ");
    let listed = env.run("checkpoint diff latest");
    assert!(listed.contains("M both (+1, -1, mode 644 → 755)"), "{listed}");
}

#[test]
fn a_word_that_is_nothing_is_a_slip() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "save", "mid"]).ok();
    assert_snapshot!(env.run("checkpoint diff latest mdi"), @"
    exit 1
    error: `mdi` is neither in the checkpoint nor in the workspace
    hint: paths are given relative to the current folder
    ");
    assert_eq!(env.biv(&["checkpoint", "diff", "latest", "latest", "cp-9"]).code, 1);
}
