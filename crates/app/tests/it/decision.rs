//! Decisions, with why and what was rejected.

use insta::assert_snapshot;

use crate::env;

#[test]
fn a_decision_keeps_its_reasons() {
    let env = env();
    assert_snapshot!(env.run("decision add \"Use SQS\" --why \"it retries\" --rejected \"Redis: one more thing to run\" --rejected cron"), @"
    Recorded decision.made (d1-Use SQS)
    note: opened session task-00000001
    ");
    assert_snapshot!(env.run("decision add \"No ORM\""), @"Recorded decision.made (d2-No ORM)");
    assert_snapshot!(env.run("decision list"), @"
    ID   What     Status  About
    d1   Use SQS          it retries · rejected: Redis: one more thing to run; cron
    d2   No ORM
    ");
    let list = env.json("decision list");
    assert_eq!(list[0]["rejected"].as_array().unwrap().len(), 2);
}
