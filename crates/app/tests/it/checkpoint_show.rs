//! `biv checkpoint show`

use insta::assert_snapshot;

use crate::{env, git_env};

#[test]
fn it_shows_what_is_there_and_what_is_not() {
    let env = git_env();
    env.write("src/main.rs", "fn main() {}\n").write(".gitignore", "target/\n*.log\n");
    env.write("target/out", "x").write("debug.log", "x").write(".env", "SECRET=1");
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    env.write("src/lib.rs", "").mode("src/main.rs", 0o755);
    env.biv(&[
        "checkpoint",
        "create",
        "-m",
        "two\nlines",
        "--name",
        "label",
        "--state",
        "{\"n\": 1}",
    ])
    .ok();
    assert_snapshot!(env.run("checkpoint show latest --files --coverage"), @r#"
    Checkpoint cp-20260121-001
      Id         id-1
      Session    task-00000001
      Trigger    MANUAL
      Created    2026-01-21 14:30:00
      Name       label
      Message    two
                 lines
      By         tester@here
      Coverage   4 files, 35 B; left out: 2 ignored
      Git        main at 08465138a758
                 0 staged, 1 unstaged, 1 untracked
      Variables  3 kept
      State      {"n": 1}

    Files:
      644      8 B .env
      644     14 B .gitignore
      755          src/
      644      0 B src/lib.rs
      755     13 B src/main.rs

    Not covered:
      debug.log (ignored)
      target/ (ignored)
    "#);
}

#[test]
fn json_lists_files_and_gaps() {
    let env = env();
    env.write("a", "12345").write(".gitignore", "b\n").write("b", "x").link("l", "a");
    env.biv(&["checkpoint", "create"]).ok();
    let shown = env.json("checkpoint show cp-001 --files --coverage");
    let files: Vec<String> = shown["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {} {}", it["path"], it["kind"], it["size_bytes"]))
        .collect();
    assert_eq!(files, ["\".gitignore\" \"file\" 2", "\"a\" \"file\" 5", "\"l\" \"link\" null"]);
    assert_eq!(shown["not_covered"][0]["path"], "b");
    assert_eq!(shown["not_covered"][0]["reason"], "ignored");
}

#[test]
fn words_find_one_checkpoint_or_list_the_candidates() {
    let env = env();
    env.write("a", "1");
    env.biv(&["session", "new", "--name", "one"]).ok();
    for _ in 0..2 {
        env.biv(&["checkpoint", "create"]).ok();
    }
    let id = env.json("checkpoint list")[0]["id"].as_str().unwrap().to_owned();
    let handle = |word: &str| {
        env.json(&format!("checkpoint show {word}"))["handle"].as_str().unwrap().to_owned()
    };
    assert_eq!(handle("cp-20260121-001"), "cp-20260121-001");
    assert_eq!(handle("cp-001"), "cp-20260121-001");
    assert_eq!(handle(&id), "cp-20260121-001");
    assert_eq!(handle("latest"), "cp-20260121-002");
    assert_snapshot!(env.run("checkpoint show cp-2026"), @"
    exit 1
    error: `cp-2026` can be several checkpoints:
      cp-20260121-001  task-00000001
      cp-20260121-002  task-00000001
    hint: write more of it, or its full id
    ");
    assert_snapshot!(env.run("checkpoint show cp-009"), @"
    exit 1
    error: there is no checkpoint `cp-009`
    hint: `biv checkpoint list --all` shows all checkpoints
    ");
    assert_snapshot!(env.run("checkpoint show nonsense"), @"
    exit 1
    error: there is no checkpoint `nonsense`
    hint: `biv checkpoint list --all` shows all checkpoints
    ");
}

#[test]
fn parts_of_words_and_latest_stay_in_the_workspace() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let elsewhere = env.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let there = elsewhere.to_str().unwrap();
    for word in ["latest", "cp-001", "001"] {
        let run = env.biv(&["-C", there, "checkpoint", "delete", word, "--yes"]);
        assert_eq!(run.code, 1, "{word}: {}", run.stdout);
    }
    for verb in ["fail", "pause", "complete"] {
        assert_eq!(env.biv(&["-C", there, "session", verb, "latest"]).code, 1);
    }
    env.biv(&["-C", there, "checkpoint", "show", "cp-20260121-001"]).ok();
    env.biv(&["checkpoint", "show", "001"]).ok();
}
