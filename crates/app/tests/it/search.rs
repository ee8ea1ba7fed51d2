//! Finding things again, over all sessions.

use insta::assert_snapshot;
use serde_json::json;

use crate::env;

#[test]
fn prompts_answers_decisions_and_files_are_found_with_a_checkpoint_beside_them() {
    let env = env();
    env.write("a", "1");
    let id = "11111111-0000-4000-8000-000000000001";
    let tell = |event: &str, more: serde_json::Value| {
        let mut input = json!({ "session_id": id, "cwd": env.work() });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        env.hook("claude-code", event, input.to_string()).ok();
    };
    tell("UserPromptSubmit", json!({ "prompt": "Please refactor the auth module" }));
    tell(
        "PostToolUse",
        json!({ "tool_name": "Edit", "tool_input": { "file_path": "src/auth/login.py" } }),
    );
    tell("Stop", json!({ "last_assistant_message": "The auth refactoring is done." }));
    env.run("decision add \"JWT over sessions\" --why \"stateless auth\"");
    assert_snapshot!(env.run("search \"auth refactor\""), @"
    task-00000001  2026-01-21 14:32  turn.ended  cp-20260121-001
        The auth refactoring is done.
    task-00000001  2026-01-21 14:30  prompt.given  cp-20260121-001
        Please refactor the auth module
    task-00000001  2026-01-21 14:30  session.created  cp-20260121-001
        Please refactor the auth module
    ");
    assert_snapshot!(env.run("search login.py"), @"
    task-00000001  2026-01-21 14:31  tool.used  cp-20260121-001
        src/auth/login.py
    ");
    assert_snapshot!(env.run("search stateless"), @"
    task-00000001  2026-01-21 14:33  decision.made  cp-20260121-001
        d1 JWT over sessions stateless auth
    ");
    assert_snapshot!(env.run("search nothing-of-the-kind"), @"Nothing found.");
    assert_snapshot!(env.run("search \"(((\""), @"Nothing found.");
    let hit = &env.json("search stateless")[0];
    assert!(hit["checkpoint"].as_str().unwrap().starts_with("cp-"), "{hit}");
    assert_eq!(hit["kind"], "decision.made");
}

#[test]
fn secrets_cannot_be_found() {
    let env = env();
    env.write(".env", "INTERNAL_PIN=q7Lm2x9Tz4Rk\n");
    env.run("note \"the pin is q7Lm2x9Tz4Rk and API_TOKEN=abcd1234efgh5678\"");
    assert_snapshot!(env.run("search q7Lm2x9Tz4Rk"), @"Nothing found.");
    assert_snapshot!(env.run("search abcd1234efgh5678"), @"Nothing found.");
    let found = env.run("search pin");
    assert!(found.contains("[redacted]") && !found.contains("q7Lm2"), "{found}");
}

#[test]
fn a_search_can_stay_here() {
    let env = env();
    env.run("note \"walrus here\"");
    let other = env.root().join("other");
    std::fs::create_dir(&other).unwrap();
    env.biv_in(&other, &["note", "walrus there"]).ok();
    assert_eq!(env.json("search walrus").as_array().unwrap().len(), 2);
    assert_eq!(env.json("search walrus --here").as_array().unwrap().len(), 1);
    assert_eq!(env.json("search walrus --session latest").as_array().unwrap().len(), 1);
}

#[test]
fn a_rebuilt_store_finds_the_same() {
    let env = env();
    env.run("note \"walrus here\"");
    let before = env.json("search walrus");
    env.sql("DELETE FROM search").unwrap();
    assert_eq!(env.json("search walrus").as_array().unwrap().len(), 0);
    env.run("reconcile");
    assert_eq!(env.json("search walrus"), before);
}

#[test]
fn the_secrets_of_another_workspace_stay_there() {
    let env = env();
    env.write(".env", "INTERNAL_PIN=q7Lm2x9Tz4Rk\n");
    env.write("apps/api/.env", "DB_PASSWORD=\"sunshine river\"\n");
    env.run("note \"the pin is q7Lm2x9Tz4Rk, the password is sunshine river\"");
    let session = env.json("session show")["handle"].as_str().unwrap().to_owned();
    let other = env.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let check = || {
        for words in
            [vec!["log", &session], vec!["search", "pin"], vec!["rehydrate", &session, "--json"]]
        {
            let run = env.biv_in(&other, &words).ok();
            assert!(!run.stdout.contains("q7Lm2"), "{words:?}: {}", run.stdout);
            assert!(!run.stdout.contains("sunshine"), "{words:?}: {}", run.stdout);
        }
        let indexed = env.sql_text("SELECT group_concat(words) FROM search");
        assert!(!indexed.contains("q7Lm2") && !indexed.contains("sunshine"), "{indexed}");
    };
    check();
    env.biv_in(&other, &["reconcile"]).ok();
    check();
    // A store of an older version has no index yet.
    let older = "DROP TABLE search; DROP TABLE progress; DROP INDEX events_said;
                 DROP INDEX events_of_progress; DROP INDEX events_of_saving; PRAGMA user_version = 2";
    env.sql(older).unwrap();
    env.biv_in(&other, &["note", "after the upgrade"]).ok();
    check();
    assert_eq!(env.json("search pin").as_array().unwrap().len(), 1);
}

#[test]
fn a_token_behind_a_dash_is_a_token() {
    let env = env();
    let token = format!("ghp_{}", "Zk3Qw9Xv7Tb5Nm1Lp8Rj2Hd6Fs4Gy0Uc1aBe");
    let said = env.run(&format!("note {token}"));
    assert!(said.contains("n1-[redacted]"), "{said}");
    env.run(&format!("note {token}-leak"));
    assert!(!env.run("session log").contains("Zk3Qw9"), "{}", env.run("session log"));
}
