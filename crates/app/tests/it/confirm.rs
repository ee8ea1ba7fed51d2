//! `biv confirm`: only a person can; the rest is with `biv mcp`.

use std::thread;

use bivouac_testkit::{McpClient, TestEnv};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::env;

/// A workspace that differs from its only checkpoint.
fn changed() -> TestEnv {
    let env = env();
    env.write("a.txt", "one").run("checkpoint create");
    env.write("a.txt", "two");
    env
}

fn client(env: &TestEnv) -> McpClient {
    env.mcp_with(&json!({}))
}

fn ask(client: &mut McpClient, code: Option<&str>) -> Value {
    let mut arguments = json!({ "checkpoint": "cp-20260121-001" });
    if let Some(code) = code {
        arguments["code"] = json!(code);
    }
    client.call("checkpoint_rollback", &arguments)
}

#[test]
fn where_nothing_is_asked_there_is_nothing_to_confirm() {
    assert_snapshot!(env().run("confirm"), @"No agent asks for anything here");
}

#[test]
fn it_needs_a_terminal_and_shows_what_would_be_done() {
    let env = env();
    env.write("a.txt", "one").run("checkpoint create");
    env.write("a.txt", "two").write("b.txt", "new");
    env.mcp_with(&json!({})).call("checkpoint_rollback", &json!({ "checkpoint": "cp-001" }));
    assert_snapshot!(env.live(&["confirm"]).text(), @"
    exit 2
    error: only a person at a terminal can confirm what an agent asks for
    hint: open a terminal of your own in this folder, and run `biv confirm` there
    ");
    let (code, shown) = env.live_dialog(&["confirm"], &[("[y/N]", "n\n")]);
    assert_eq!(code, 1);
    assert!(
        shown.contains("a.txt") && shown.contains("b.txt") && !shown.contains("this code"),
        "{shown}"
    );
    ask(&mut client(&env), None);
    env.write("c.txt", "since then");
    let (code, shown) = env.live_dialog(&["confirm"], &[]);
    assert_eq!(code, 1);
    assert!(shown.contains("would no longer do what was shown"), "{shown}");
}

/// The code that the person sees.
fn confirmed(env: &TestEnv) -> String {
    let (_, shown) = env.live_dialog(&["confirm"], &[("[y/N]", "y\n")]);
    let code = shown.split("this code: ").nth(1).unwrap_or_else(|| panic!("{shown}"));
    code.lines()
        .next()
        .unwrap()
        .replace("\u{1b}[36m", "")
        .replace("\u{1b}[0m", "")
        .replace("\u{1b}[39m", "")
}

#[test]
fn without_a_way_to_ask_a_code_from_the_persons_terminal_is_needed() {
    let env = env();
    env.write("a.txt", "one").run("checkpoint create");
    env.write("a.txt", "two");
    let mut client = client(&env);
    let ask = |client: &mut McpClient, code: &str| {
        client
            .call("checkpoint_rollback", &json!({ "checkpoint": "cp-20260121-001", "code": code }))
    };
    assert_eq!(
        ask(&mut client, "aaaa-aaaa")["error"]["message"],
        "no model asked leave for this, or what it would do has changed since"
    );
    let plan = client.call("checkpoint_rollback", &json!({ "checkpoint": "cp-20260121-001" }));
    assert_eq!((&plan["dry_run"], &plan["steps"][0]["path"]), (&json!(true), &json!("a.txt")));
    assert_eq!(
        ask(&mut client, "aaaa-aaaa")["error"]["message"],
        "nobody has confirmed this yet, or it was too long ago"
    );
    let code = confirmed(&env);
    assert_eq!(
        ask(&mut client, "aaaa-aaaa")["error"]["message"],
        "this is not the code that was shown"
    );
    assert_eq!(env.read("a.txt"), "two");
    assert_eq!(ask(&mut client, &code.to_uppercase())["result"]["written"], 1);
    assert_eq!(env.read("a.txt"), "one");
    env.write("a.txt", "two");
    assert!(ask(&mut client, &code)["error"].is_object(), "a code is good once");
    // What was confirmed is this plan and no other.
    client.call("checkpoint_rollback", &json!({ "checkpoint": "cp-20260121-001" }));
    let code = confirmed(&env);
    env.write("b.txt", "born since");
    assert!(ask(&mut client, &code)["error"].is_object());
    assert_eq!((env.read("a.txt"), env.read("b.txt")), ("two".to_owned(), "born since".to_owned()));
}

#[test]
fn three_wrong_codes_end_a_question() {
    let env = env();
    env.write("a.txt", "one").run("checkpoint create");
    env.write("a.txt", "two");
    let mut client = client(&env);
    client.call("checkpoint_rollback", &json!({ "checkpoint": "cp-001" }));
    let code = confirmed(&env);
    let mut ask = |code: &str| {
        let answer =
            client.call("checkpoint_rollback", &json!({ "checkpoint": "cp-001", "code": code }));
        answer["error"]["message"].as_str().unwrap_or("done").to_owned()
    };
    for _ in 0..3 {
        assert_eq!(ask("aaaa-aaaa"), "this is not the code that was shown");
    }
    assert_eq!(ask(&code), "no model asked leave for this, or what it would do has changed since");
    assert_eq!(env.read("a.txt"), "two");
}

#[test]
fn a_no_takes_an_earlier_yes_back() {
    let env = changed();
    let mut client = client(&env);
    ask(&mut client, None);
    let code = confirmed(&env);
    env.live_dialog(&["confirm"], &[("[y/N]", "n\n")]);
    assert!(ask(&mut client, Some(&code))["error"].is_object());
    assert_eq!(env.read("a.txt"), "two");
}

/// However many servers judge it at the same time.
#[test]
fn a_code_is_good_once() {
    let env = changed();
    for _ in 0..5 {
        ask(&mut client(&env), None);
        let code = confirmed(&env);
        let codes = [code.as_str(), "aaaa-aaaa", &code, "bbbb-bbbb"];
        let done = thread::scope(|scope| {
            let tries = codes.map(|code| {
                let mut client = client(&env);
                scope.spawn(move || ask(&mut client, Some(code)))
            });
            tries
                .map(|it| it.join().unwrap())
                .into_iter()
                .filter(|it| it["result"].is_object())
                .count()
        });
        assert!(done <= 1, "{done} rollbacks");
        env.write("a.txt", "two");
        assert!(ask(&mut client(&env), Some(&code))["error"].is_object(), "it was good again");
    }
}

/// Names of files are words of a model, and the person is asked by us.
#[test]
fn a_name_cannot_speak_to_the_person() {
    let env = env();
    env.write("zz.txt", "one").run("checkpoint create");
    env.write("zz.txt", "two").write("0\n\nNothing of yours changes.\n\u{1b}[8m", "x");
    let mut client = env.mcp_with(&json!({ "elicitation": {} }));
    client.answer("elicitation/create", json!({ "action": "decline" }));
    ask(&mut client, None);
    let asked = client.notices.last().unwrap()["params"]["message"].as_str().unwrap();
    assert_snapshot!(asked, @r"
    An agent wants to roll back to cp-20260121-001.
    It would remove 1, replace 1 and bring back 0:
      remove `0\n\nNothing of yours changes.\n\u{1b}[8m`
      replace `zz.txt`
    ");
}
