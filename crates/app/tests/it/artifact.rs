//! Documents and pull requests.

use insta::assert_snapshot;

use crate::env;

#[test]
fn documents_are_named_and_looked_for() {
    let env = env();
    env.write("docs/design.md", "x");
    assert_snapshot!(env.run("artifact add design docs/design.md"), @"
    Recorded artifact.changed (design: docs/design.md)
    note: opened session task-00000001
    ");
    env.run("artifact add plan docs/plan.md");
    env.run("artifact add pr https://example.com/pr/7");
    assert_snapshot!(env.run("artifact list"), @"
    ID                        What    Status  About
    docs/design.md            design
    docs/plan.md              plan
    https://example.com/pr/7  pr
    ");
    let told = env.run("rehydrate");
    assert!(told.contains("Design: docs/design.md\n"), "{told}");
    assert!(told.contains("Plan: docs/plan.md (missing)"), "{told}");
    assert!(told.contains("Pr: https://example.com/pr/7 (unverified)"), "{told}");
    assert_snapshot!(env.run("artifact remove plan"), @"Recorded artifact.removed (plan: docs/plan.md)");
    assert!(!env.run("rehydrate").contains("Plan: "), "{told}");
}
