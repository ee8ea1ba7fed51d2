//! `biv checkpoint pin` and `unpin`

use insta::assert_snapshot;

use crate::env;

#[test]
fn a_pin_goes_on_and_off() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create", "-m", "worth keeping"]).ok();
    assert_snapshot!(env.run("checkpoint pin cp-001"), @"Pinned cp-20260121-001");
    assert_snapshot!(env.run("checkpoint pin cp-001"), @"Already pinned: cp-20260121-001");
    assert_snapshot!(env.run("checkpoint list"), @"
    ID               Session              Trigger    Created           Message
    cp-20260121-001  task-00000001        MANUAL     2026-01-21 14:30  (pinned) worth keeping
    ");
    assert_eq!(env.json("checkpoint show cp-001")["pinned"], true);
    assert_snapshot!(env.run("checkpoint unpin cp-001"), @"Unpinned cp-20260121-001");
    assert_snapshot!(env.run("checkpoint unpin cp-001"), @"Was not pinned: cp-20260121-001");
    assert_snapshot!(env.run("checkpoint pin cp-009"), @"
    exit 1
    error: there is no checkpoint `cp-009`
    hint: `biv checkpoint list --all` shows all checkpoints
    ");
}
