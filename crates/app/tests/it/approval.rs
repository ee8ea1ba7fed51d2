//! Questions that wait for a person, and who is asked for replies.

use insta::assert_snapshot;

use crate::env;

#[test]
fn a_question_waits_until_it_is_answered() {
    let env = env();
    assert_snapshot!(env.run("approval request \"Run migration on production?\" --provider slack --channel C0AHAQFJ7C1 --thread 1772393542.345149"), @"
    Recorded approval.requested (a1-Run migration on production?)
    note: opened session task-00000001
    ");
    assert!(env.run("status").contains("Waiting    for an answer: Run migration on production?"));
    let asked = &env.json("approval list")[0];
    for key in ["provider", "channel", "thread", "question", "posted_at"] {
        assert!(asked[key].is_string(), "{key}");
    }
    assert_snapshot!(env.run("approval resolve a1 --answer \"yes, at night\""), @"Recorded approval.answered (a1-Run migration on production?)");
    assert_snapshot!(env.run("approval list"), @"
    ID   What                          Status    About
    a1   Run migration on production?  answered  slack · C0AHAQFJ7C1 · 1772393542.345149 · answer: yes, at night
    ");
    assert_snapshot!(env.run("approval list --open"), @"No approvals on record.");
}

#[test]
fn the_configured_command_is_asked_for_replies() {
    let env = env();
    env.run("approval request \"Migrate?\"");
    env.run("approval request \"Deploy?\"");
    assert_snapshot!(env.run("approval check"), @"
    exit 1
    error: no command is configured that could be asked for replies
    hint: set `approvals.command` in your own configuration
    ");
    let config = env.home().join(".config/bivouac");
    std::fs::create_dir_all(&config).unwrap();
    let answer = |script: &str| {
        let text = format!("[approvals]\ncommand = [\"sh\", \"-c\", '''{script}''']\n");
        std::fs::write(config.join("config.toml"), text).unwrap();
    };
    answer(
        r#"grep -q Deploy && echo '[{"id": "a2", "answer": "not today"}, {"id": "zz", "answer": "?"}]'"#,
    );
    assert_snapshot!(env.run("approval check"), @"
    Recorded approval.answered (a2-Deploy?)
    1 answered, 1 pending
    ");
    assert_eq!(env.json("approval list")[1]["answer"], "not today");
    answer("echo nonsense");
    assert_snapshot!(env.run("approval check"), @r#"
    exit 1
    error: `sh -c echo nonsense` did not answer as it should: expected ident at line 1 column 2
    hint: it has to print a list such as [{"id": "a1", "answer": "yes"}]
    "#);
    answer("exit 3");
    assert_snapshot!(env.run("approval check"), @"
    exit 1
    error: `sh` failed: it gave no reason
    ");
}

#[test]
fn a_project_cannot_name_a_command_to_run() {
    let env = env();
    env.write("bivouac.toml", "[approvals]\ncommand = [\"touch\", \"owned\"]\n");
    assert_snapshot!(env.run("approval check"), @"
    exit 1
    error: `approvals.command` is for your own configuration, so a workspace cannot set it
    hint: put it into `[root]/home/.config/bivouac/config.toml`
    ");
    assert!(!env.exists("owned"));
}
