//! Notes.

use insta::assert_snapshot;

use crate::env;

#[test]
fn a_note_is_kept_and_found() {
    let env = env();
    assert_snapshot!(env.run("note \"the rate limit is 10/s\""), @"
    Recorded note.added (n1-the rate limit is 10/s)
    note: opened session task-00000001
    ");
    assert!(env.run("rehydrate").contains("note: the rate limit is 10/s"));
    assert!(env.run("search \"rate limit\"").contains("note.added"));
    assert!(env.run("note \"  \"").contains("some words are needed"));
    assert_snapshot!(env.run("note"), @"
    exit 2
    error: the following required arguments were not provided:
      <TEXT>

    Usage: biv note <TEXT>

    For more information, try '--help'.
    ");
}
