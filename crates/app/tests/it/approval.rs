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
    // What happened is told as it happened, whatever came later.
    let log = env.run("log");
    assert!(
        log.contains("approval.requested (a1-Run") && log.contains("approval.answered (a1-Run"),
        "{log}"
    );
    let told = env.run("rehydrate");
    assert!(
        told.contains("approval.requested (a1-Run") && told.contains("approval.answered (a1-Run"),
        "{told}"
    );
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
    note: `bivouac.toml` is not used: `approvals.command` is for your own configuration, so a workspace cannot set it; remove it from `bivouac.toml`; if you want it, put it into `[root]/home/.config/bivouac/config.toml`
    error: there is no session in this workspace yet
    hint: `biv checkpoint create` makes one, or `biv session new`
    ");
    assert!(!env.exists("owned"));
}

/// A hook does not wait for the answer: a process of its own asks.
#[test]
fn replies_are_asked_for_when_a_session_goes_on() {
    let env = env();
    let config = env.home().join(".config/bivouac");
    std::fs::create_dir_all(&config).unwrap();
    let script = r#"echo '[{"id": "a1", "answer": "go ahead"}]'"#;
    let text = format!("[approvals]\ncommand = [\"sh\", \"-c\", '''{script}''']\n");
    std::fs::write(config.join("config.toml"), text).unwrap();
    let hook = |event: &str, more: &str| {
        let id = "11111111-0000-4000-8000-000000000001";
        let input = format!(r#"{{"session_id":"{id}","cwd":"{}"{more}}}"#, env.work().display());
        env.hook("claude-code", event, input).ok().stdout
    };
    hook("UserPromptSubmit", r#","prompt":"go""#);
    env.run("approval request \"Migrate?\"");
    let told = hook("SessionStart", r#","source":"resume""#);
    assert!(told.contains("a1 Migrate?"), "{told}");
    let is_answered = || env.json("approval list")[0]["answer"] == "go ahead";
    let started = std::time::Instant::now();
    while !is_answered() && started.elapsed() < std::time::Duration::from_secs(20) {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(is_answered());
}
