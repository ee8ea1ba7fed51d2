//! Trying a failed step again, alone.

use insta::assert_snapshot;

use crate::git_env;

fn env() -> bivouac_testkit::TestEnv {
    let env = git_env();
    env.write("db/schema.sql", "x");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "first"]);
    env.run("step start \"Write the schema\"");
    env.run("step finish 1 --output \"created db/schema.sql\" --cached \"Users, orders, items.\"");
    env.run("step start \"Write the API\" --issue TAS-14 --objective \"Routes for all tables.\"");
    env.run("step fail 2 --error \"type error in api.ts with API_KEY=abcdefgh12345678\"");
    env
}

#[test]
fn the_prompt_has_what_was_cached_and_what_went_wrong() {
    let env = env();
    assert_snapshot!(env.run("replay --print"), @"
    **Retry: TAS-14 (attempt 2)**

    Previous steps completed successfully. Here is the cached context:
    - Step 1 produced: Users, orders, items.

    Step 2 failed with: type error in api.ts with API_KEY=[redacted]

    Your task: Write the API
    Do only this step: the earlier ones are done. Deal with the cause of the error above first.

    Routes for all tables.
    ");
    let printed = env.run("replay --print");
    assert_eq!(env.run("replay"), format!("Step 2, attempt 2:\n\n{printed}"));
    let plan = env.json("replay");
    assert_eq!((&plan["step"], &plan["attempt"]), (&"2".into(), &2.into()));
    // Looking at it changes nothing.
    assert_eq!(env.json("step list")[1]["attempt"], 1);
}

#[test]
fn it_says_when_not_to_replay() {
    let env = env();
    env.run("step start \"Write the page\"");
    env.remove("db/schema.sql");
    env.git(&["commit", "-qam", "someone else"]);
    assert_snapshot!(env.run("replay"), @"
    Step 2, attempt 2:

    **Retry: TAS-14 (attempt 2)**

    Previous steps completed successfully. Here is the cached context:
    - Step 1 produced: Users, orders, items.

    Step 2 failed with: type error in api.ts with API_KEY=[redacted]

    Your task: Write the API
    Do only this step: the earlier ones are done. Deal with the cause of the error above first.

    Routes for all tables.
    note: the code has moved on since the step started (1 commit): what is cached may no longer be true
    note: step 1 produced db/schema.sql that is no longer there: replay from step 1 instead
    ");
    assert_snapshot!(env.run("replay --from 1"), @"
    Step 1, attempt 2:

    **Retry: Step 1 (attempt 2)**

    Your task: Write the schema
    note: the code has moved on since the step started (1 commit): what is cached may no longer be true
    note: 3 steps would be replayed: saving a checkpoint and starting a fresh session may be better
    ");
    assert_snapshot!(env.run("replay --run"), @"
    exit 1
    error: the code has moved on since the step started (1 commit): what is cached may no longer be true
    step 1 produced db/schema.sql that is no longer there: replay from step 1 instead
    hint: look at it with `--print`, or pass `--force` to start it anyway
    ");
    assert_snapshot!(env.run("replay --from 7"), @"
    exit 1
    error: there is no step `7`
    hint: `biv step list` shows all there are
    ");
}

#[test]
fn the_agent_is_started_with_the_prompt_and_the_attempt_is_on_record() {
    let mut env = env();
    env.run("session new --agent codex");
    env.run("step start one");
    env.run("step fail one --error broken");
    let bin = env.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo codex 9.9.9 && exit\necho \"$BIV_SESSION\" \"$@\"\n";
    std::fs::write(bin.join("codex"), script).unwrap();
    env.mode(bin.join("codex"), 0o755);
    env.set("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    let run = env.biv(&["replay", "--run"]).ok();
    assert!(run.stdout.contains("exec **Retry: Step 1 (attempt 2)**"), "{}", run.stdout);
    assert_eq!(env.json("step list")[0]["attempt"], 2);
    assert_eq!(env.json("step list")[0]["status"], "in_progress");
}

#[test]
fn without_a_failure_there_is_nothing_to_replay() {
    let env = git_env();
    env.run("session new");
    assert_snapshot!(env.run("replay"), @"
    exit 1
    error: no step has failed, so there is nothing to replay
    hint: `biv step list` shows all there are
    ");
}
