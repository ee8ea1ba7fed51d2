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
    ID              What  Status  About
    tdd-compliance        fail    002 · two tests came late
    ");
    assert_snapshot!(env.run("gate pass tdd-compliance"), @"Recorded gate.executed (tdd-compliance: pass)");
    assert_snapshot!(env.run("gate list"), @"
    ID              What  Status  About
    tdd-compliance        pass    002
    ");
    let gate = &env.json("gate list")[0];
    assert_eq!(
        (gate["verdict"].as_str(), gate["findings"].as_array().map(Vec::len)),
        (Some("pass"), Some(0))
    );
}
