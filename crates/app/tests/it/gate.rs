//! Gates: what they said last.

use insta::assert_snapshot;

use crate::env;

#[test]
fn the_last_run_of_a_gate_counts() {
    let env = env();
    assert_snapshot!(env.run("gate fail tdd-compliance --task 002 --finding \"two tests came late\""), @"
    Recorded gate.executed (tdd-compliance: fail)
    note: opened session task-00000001
    ");
    assert_snapshot!(env.run("gate list"), @"
    ID                  What  Status  About
    tdd-compliance/002        fail    002 · two tests came late
    ");
    assert_snapshot!(env.run("gate pass tdd-compliance --task 002"), @"Recorded gate.executed (tdd-compliance: pass)");
    assert_snapshot!(env.run("gate list"), @"
    ID                  What  Status  About
    tdd-compliance/002        pass    002
    ");
    let gate = &env.json("gate list")[0];
    assert_eq!(
        (gate["verdict"].as_str(), gate["findings"].as_array().map(Vec::len)),
        (Some("pass"), Some(0))
    );
}

#[test]
fn a_gate_is_run_for_each_task_on_its_own() {
    let env = env();
    env.run("gate fail tdd --task 004 --finding \"no test\"");
    assert_snapshot!(env.run("gate pass tdd --task 001"), @"Recorded gate.executed (tdd: pass)");
    assert_snapshot!(env.run("gate list"), @"
    ID       What  Status  About
    tdd/004        fail    004 · no test
    tdd/001        pass    001
    ");
    let told = env.run("rehydrate");
    assert!(told.contains("tdd (004): fail (no test) (unverified)"), "{told}");
}
