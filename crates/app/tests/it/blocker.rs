//! Blockers: recorded, shown, resolved.

use insta::assert_snapshot;

use crate::env;

#[test]
fn a_blocker_is_there_until_it_is_resolved() {
    let env = env();
    assert_snapshot!(env.run("blocker add \"No APNS key\" --needs \"the key from ops\" --reference DLQ-7"), @"
    Recorded blocker.added (b1-No APNS key)
    note: opened session task-00000001
    ");
    assert!(env.run("status").contains("Blocked    No APNS key"));
    assert_snapshot!(env.run("blocker resolve \"no apns\" --how \"it came by mail\""), @"Recorded blocker.resolved (b1-No APNS key)");
    assert_snapshot!(env.run("blocker list"), @"
    ID   What         Status    About
    b1   No APNS key  resolved  needs: the key from ops · DLQ-7 · it came by mail
    ");
    assert_snapshot!(env.run("blocker list --open"), @"No blockers on record.");
    assert_snapshot!(env.run("blocker resolve b9"), @"
    exit 1
    error: there is no blocker `b9`
    hint: `biv blocker list` shows all there are
    ");
}
