//! Steps and what they produced.

use insta::assert_snapshot;

use crate::git_env;

#[test]
fn a_step_is_started_finished_failed_and_started_again() {
    let env = git_env();
    env.write("a", "1");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "first"]);
    assert_snapshot!(env.run("step start \"Write the schema\" --agent \"DB Engineer\" --issue TAS-12 --objective \"Three tables, no more.\""), @"
    Recorded step.started (1-Write the schema)
    note: opened session task-00000001
    ");
    assert_snapshot!(env.run("step finish 1 --output \"created db/schema.sql: three tables\" --output \"modified a\" --verify lint=pass,tests=fail --cached \"Users, orders, items.\" --took 8m"), @"Recorded step.completed (1-Write the schema)");
    assert_snapshot!(env.run("step start \"Write the API\""), @"Recorded step.started (2-Write the API)");
    assert_snapshot!(env.run("step fail 2 --error \"type error\""), @"Recorded step.failed, attempt 1 (2-Write the API)");
    assert_snapshot!(env.run("step start 2"), @"Recorded step.started (2-Write the API)");
    assert_snapshot!(env.run("step list"), @"
    ID   What              Status                   About
    1    Write the schema  completed                TAS-12 · DB Engineer · Users, orders, items.
    2    Write the API     in-progress (attempt 2)  error: type error
    ");
    let steps = env.json("step list");
    assert_eq!(steps[0]["outputs"][0]["path"], "db/schema.sql");
    assert_eq!(steps[0]["checks"][1]["verdict"], "fail");
    assert_eq!((&steps[0]["seconds"], &steps[1]["attempt"]), (&480.into(), &2.into()));
    assert_eq!(steps[0]["base"].as_str().unwrap().len(), 40);
    assert_snapshot!(env.run("step finish 9"), @"
    exit 1
    error: there is no step `9`
    hint: `biv step list` shows all there are
    ");
    assert_snapshot!(env.run("step finish 2 --verify lint"), @"
    exit 2
    error: invalid value 'lint' for '--verify <CHECKS>': a check is written as `lint=pass`, not `lint`

    For more information, try '--help'.
    ");
}

#[test]
fn what_was_put_right_is_no_error_any_more() {
    let env = git_env();
    env.run("step start one");
    env.run("step fail 1 --error broken");
    env.run("step start 1");
    env.run("step finish 1 --took \"12 min\"");
    assert_snapshot!(env.run("step list"), @"
    ID   What  Status                 About
    1    one   completed (attempt 2)
    ");
    assert!(env.run("step start 1").contains("step.started"));
    assert_eq!(env.json("step list")[0]["attempt"], 3);
}
