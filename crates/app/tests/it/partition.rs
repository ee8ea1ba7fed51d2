//! Who works on which paths.

use insta::assert_snapshot;

use crate::env;

#[test]
fn an_agent_has_its_paths() {
    let env = env();
    assert_snapshot!(env.run("partition set \"Agent A\" dir1/ dir2/"), @"
    Recorded partition.changed (Agent A)
    note: opened session task-00000001
    ");
    env.run("partition set \"Agent B\" docs/");
    assert_snapshot!(env.run("partition list"), @"
    ID       What  Status  About
    Agent A                dir1/, dir2/
    Agent B                docs/
    ");
    assert!(env.run("rehydrate").contains("Agent A: dir1/, dir2/"));
}
