//! What people wrote down by hand, taken in.

use insta::assert_snapshot;

use crate::env;

#[test]
fn a_file_that_was_edited_by_hand_becomes_events() {
    let env = env();
    env.run("session new --name notification-system");
    env.run("task add email-sender");
    env.run("export session-checkpoint");
    let file = "docs/SESSION-CHECKPOINT.md";
    let edited = env
        .read(file)
        .replace("## Key Decisions Made\n", "## Key Decisions Made\n\n- Use SQS: it retries\n")
        .replace("| email-sender <!-- 001 --> |  |", "| email-sender <!-- 001 --> | TAS-12 |");
    env.write(file, &edited);
    assert_snapshot!(env.run("import session-checkpoint docs/SESSION-CHECKPOINT.md"), @"
    Recorded task.changed (001-email-sender)
    Recorded decision.made (d1-Use SQS)
    ");
    assert_eq!(env.json("task list")[0]["issue"], "TAS-12");
    assert_eq!(env.json("task list")[0]["by"], "import");
    assert_snapshot!(env.run("import session-checkpoint docs/SESSION-CHECKPOINT.md"), @"Nothing in it is new.");
    // Now it may be written again.
    assert_snapshot!(env.run("export session-checkpoint"), @"
    Wrote [root]/project/docs/SESSION-CHECKPOINT.md
    note: what somebody else wrote there is in [root]/project/docs/SESSION-CHECKPOINT.md.kept
    ");
}

#[test]
fn the_other_two_come_back_as_well() {
    let env = env();
    env.run("session new --name one");
    env.run("task add email-sender");
    env.run("blocker add \"no key\"");
    env.run("export handoff");
    assert_eq!(env.run("import handoff HANDOFF.md"), "Nothing in it is new.");
    env.run("export checkpoint-md --file moment.md");
    env.run("session new --name two");
    let handoff = env.run("import handoff HANDOFF.md");
    assert!(
        handoff.contains("task.added (001-email-sender)") && handoff.contains("no key"),
        "{handoff}"
    );
    assert_snapshot!(env.run("import checkpoint-md moment.md"), @"Nothing in it is new.");
}

#[test]
fn a_file_that_makes_no_sense_is_refused_whole() {
    let env = env();
    env.write("a.md", "# Something else\n");
    assert_snapshot!(env.run("import session-checkpoint a.md"), @"
    exit 1
    error: `a.md`, line 1: the title `# Session Checkpoint` is missing
    hint: nothing was changed; mend the file, or use another
    ");
    let row = "| Task | Linear | Agent | Status | Files |\n|---|---|---|---|---|\n| one | | | perhaps | |\n";
    env.write("b.md", format!("# Session Checkpoint\n\n## Completed Work\n\n{row}"));
    assert_snapshot!(env.run("import session-checkpoint b.md"), @"
    exit 1
    error: `b.md`, line 7: `perhaps` is no status
    hint: nothing was changed; mend the file, or use another
    ");
    env.write("c.md", b"# Session Checkpoint\n\n\xff\xfe\n");
    assert_snapshot!(env.run("import session-checkpoint c.md"), @"
    exit 1
    error: `c.md`, line 3: it is not UTF-8
    hint: nothing was changed; mend the file, or use another
    ");
    assert_snapshot!(env.run("import handoff a.md"), @"
    exit 1
    error: `a.md`, line 1: no heading begins with `session handoff` or `handoff`
    hint: nothing was changed; mend the file, or use another
    ");
    assert_snapshot!(env.run("import checkpoint-md missing.md"), @"
    exit 1
    error: could not read `missing.md`
    cause: No such file or directory (os error 2)
    ");
    // Nothing was taken in, and no session was opened for it.
    assert_eq!(env.json("session list").as_array().unwrap().len(), 0);
}

#[test]
fn a_row_that_was_taken_out_was_answered() {
    let env = env();
    env.run("task add one");
    env.run("approval request \"Migrate?\" --posted-at \"2026-01-20 14:30\"");
    env.run("blocker add \"no key\"");
    env.run("export session-checkpoint");
    env.run("approval request \"Deploy?\"");
    let file = "docs/SESSION-CHECKPOINT.md";
    let text = env.read(file);
    let kept = text.lines().filter(|line| !line.contains("Migrate?") && !line.contains("no key"));
    let edited: String = kept.map(|line| format!("{line}\n")).collect();
    env.write(file, edited);
    assert_snapshot!(env.run("import session-checkpoint docs/SESSION-CHECKPOINT.md"), @"
    Recorded approval.answered (a1-Migrate?)
    Recorded blocker.resolved (b1-no key)
    note: the file is older than what was on record
    ");
    // What came up after the file was written was never in it.
    assert_eq!(env.json("approval list --open").as_array().unwrap().len(), 1);
}
