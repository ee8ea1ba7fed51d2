//! Work that was handed over, and what it cost.

use insta::assert_snapshot;

use crate::env;

#[test]
fn a_delegation_tells_what_it_cost() {
    let env = env();
    assert_snapshot!(env.run("delegation start \"Content Engineer\" --issue TAS-12 --tier Standard"), @"
    Recorded delegation.started (1-Content Engineer)
    note: opened session task-00000001
    ");
    assert_snapshot!(env.run("delegation finish 1 --tokens ~20K --took 8m"), @"Recorded delegation.completed (1-Content Engineer)");
    env.run("delegation start \"UI Expert\" --issue TAS-14 --review");
    assert_snapshot!(env.run("delegation finish TAS-14 --status \"❌ Failed\" --note retry"), @"Recorded delegation.failed (2-UI Expert)");
    assert_snapshot!(env.run("delegation list"), @"
    ID   What              Status     About
    1    Content Engineer  completed  TAS-12 · Standard · ~20K tokens · 8 minutes
    2    UI Expert         failed     TAS-14 · retry
    ");
    let list = env.json("delegation list");
    assert_eq!((&list[0]["tokens"], &list[0]["seconds"]), (&20_000.into(), &480.into()));
    assert_eq!(list[1]["is_review"], true);
    assert_snapshot!(env.run("delegation finish 1 --tokens many"), @"
    exit 2
    error: invalid value 'many' for '--tokens <TOKENS>': write it as 20000 or 20K

    For more information, try '--help'.
    ");
}
