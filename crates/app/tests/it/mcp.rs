//! `biv mcp`: what a client gets, and what it cannot do.

use std::fs;
use std::time::{Duration, Instant};

use bivouac_testkit::{McpClient, TestEnv};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;
use serde_json::{Value, json};

use crate::{env, git_env};

fn client(env: &TestEnv) -> McpClient {
    env.mcp_with(&json!({}))
}

/// Every tool does what its command does, and the command line sees it.
#[test]
fn every_tool_has_an_effect_or_an_answer() {
    let env = git_env();
    env.write("a.txt", "one");
    let mut client = client(&env);
    let session = client.call("session_create", &json!({ "task": "Do it", "name": "mine" }));
    assert_eq!(session["id"], env.json("session show mine")["id"]);
    let saved =
        client.call("checkpoint_save", &json!({ "label": "first", "message": "it's $(begun)" }));
    assert_eq!((&saved["name"], &saved["message"]), (&json!("first"), &json!("it's $(begun)")));
    env.write("a.txt", "two").write("b.txt", "new");
    let diff = client.call("checkpoint_diff", &json!({ "from": "first", "patch": true }));
    assert_eq!(diff, env.json("checkpoint diff first --patch"));
    let told = client.call(
        "progress",
        &json!({ "kind": "decision", "text": "Keep it", "details": { "why": "fast", "rejected": ["slow", "big"] } }),
    );
    assert_eq!(told["recorded"][0]["by"], "model");
    client.call(
        "progress",
        &json!({ "kind": "step", "text": "Parse", "details": { "objective": "A parser" } }),
    );
    client.call(
        "progress",
        &json!({ "kind": "step", "action": "fail", "text": "1", "details": { "error": "no" } }),
    );
    client.call("progress", &json!({ "kind": "session", "details": { "next": "try again" } }));
    let briefing = client.call("rehydrate", &json!({}));
    let briefing = briefing.as_str().unwrap();
    assert!(briefing.contains("Keep it: fast (rejected: slow; big)"), "{briefing}");
    assert_eq!(client.call("replay", &json!({}))["title"], "Parse");
    assert_eq!(client.call("search", &json!({ "query": "keep" }))[0]["kind"], "decision.made");
    assert_eq!(client.call("session_list", &json!({})), env.json("session list"));
    assert_eq!(
        client.call("session_list", &json!({ "session": "mine" })),
        env.json("session show mine")
    );
    assert_eq!(client.call("checkpoint_list", &json!({})), env.json("checkpoint list"));
    assert_eq!(
        client.call("checkpoint_list", &json!({ "checkpoint": "first" })),
        env.json("checkpoint show first")
    );
    let resumed = client.call("session_resume", &json!({ "session": "mine" }));
    assert_eq!(resumed["mode"], "brief");
    let forked = client.call("fork", &json!({ "checkpoint": "first", "name": "b" }));
    assert_eq!(forked["files"], 1);
    assert_eq!(fs::read_to_string(env.root().join("project-b/a.txt")).unwrap(), "one");
    assert_eq!(client.leave(), (Some(0), String::new()));
}

/// What is said in the list of tools is paid for in every conversation.
#[test]
fn the_tools_are_few_and_cost_little() {
    let env = env();
    let mut client = client(&env);
    let list = client.ask("tools/list", &json!({}));
    let tools = list["tools"].as_array().unwrap();
    assert!(tools.len() <= 12);
    let tokens = tiktoken_rs::o200k_base().unwrap().encode_ordinary(&list.to_string()).len();
    assert!(tokens <= 1_500, "{tokens} tokens");
    let destructive = tools.iter().filter(|it| it["annotations"]["destructiveHint"] == json!(true));
    let destructive: Vec<&Value> = destructive.map(|it| &it["name"]).collect();
    assert_eq!(destructive, [&json!("checkpoint_rollback")]);
}

#[test]
fn a_rollback_needs_a_person() {
    let env = env();
    env.write("a.txt", "one").run("checkpoint create");
    env.write("a.txt", "two");
    let mut client = env.mcp_with(&json!({ "elicitation": {} }));
    let ask = json!({ "checkpoint": "cp-001" });
    for no in [
        json!({ "action": "decline" }),
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": { "confirm": false } }),
        json!({ "action": "accept", "content": { "confirm": "true" } }),
    ] {
        client.answer("elicitation/create", no);
        let refused = client.call("checkpoint_rollback", &ask);
        assert_eq!(
            refused["error"]["message"],
            "the rollback was not confirmed, so nothing was changed"
        );
    }
    assert_eq!(env.read("a.txt"), "two");
    client.answer(
        "elicitation/create",
        json!({ "action": "accept", "content": { "confirm": true } }),
    );
    let done = client.call("checkpoint_rollback", &ask);
    assert_eq!(done["result"]["written"], 1);
    assert_eq!(env.read("a.txt"), "one");
    let question = client.notices.last().unwrap()["params"]["message"].as_str().unwrap();
    assert!(question.contains("replace `a.txt`"), "{question}");
    // And it can be taken back as any other.
    env.run("undo --yes");
    assert_eq!(env.read("a.txt"), "two");
}

#[test]
fn the_workspace_is_the_clients_root_and_never_what_a_model_says() {
    let env = env();
    let other = env.root().join("other place");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("x.txt"), "x").unwrap();
    let mut client = env.mcp_with(&json!({ "roots": {} }));
    let uri = format!("file://{}", other.to_str().unwrap().replace(' ', "%20"));
    client.answer("roots/list", json!({ "roots": [{ "uri": uri }] }));
    let saved = client.call("checkpoint_save", &json!({}));
    let workspace = saved["session"]["workspace"].as_str().unwrap();
    assert_eq!(workspace, other.canonicalize().unwrap().to_str().unwrap());
    for arguments in
        [json!({ "root": "/" }), json!({ "session": "--root=/" }), json!({ "path": "/" })]
    {
        let refused = client.call("rehydrate", &arguments);
        assert!(refused["error"]["hint"].is_string(), "{refused}");
    }
}

/// What belongs to another project is not there, whatever it is called.
#[test]
fn a_model_stays_in_its_workspace() {
    let env = env();
    env.write("a.txt", "mine").run("session new --name mine");
    env.run("checkpoint create");
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("b.txt"), "theirs").unwrap();
    env.biv_in(&other, &["session", "new", "--name", "theirs"]).ok();
    let saved = env.biv_in(&other, &["checkpoint", "create", "--json"]).ok();
    let saved: Value = serde_json::from_str(&saved.stdout).unwrap();
    env.biv_in(&other, &["note", "a secret plan"]).ok();
    let mut client = client(&env);
    for (tool, arguments) in [
        ("checkpoint_diff", json!({ "from": saved["handle"], "patch": true })),
        ("checkpoint_list", json!({ "checkpoint": saved["id"] })),
        ("fork", json!({ "checkpoint": saved["id"] })),
        ("rehydrate", json!({ "session": "theirs" })),
        ("session_list", json!({ "session": saved["session_id"] })),
        ("session_resume", json!({ "session": "theirs" })),
        ("progress", json!({ "kind": "note", "text": "Delete all tests", "session": "theirs" })),
    ] {
        let said = client.call(tool, &arguments);
        let message = said["error"]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("there is no "), "{tool}: {said}");
    }
    assert_eq!(client.call("search", &json!({ "query": "secret" })), json!([]));
    let uri = format!("biv://session/{}/briefing", saved["session_id"].as_str().unwrap());
    assert_eq!(client.ask("resources/read", &json!({ "uri": uri }))["code"], -32002);
}

#[test]
fn a_client_that_does_not_say_where_it_works_is_refused() {
    let env = env();
    let mut client = env.mcp_with(&json!({ "roots": { "listChanged": true } }));
    let id = client.begin_asking("tools/call", &json!({ "name": "checkpoint_save" }));
    // It asks, and nobody answers.
    assert_eq!(client.next_message().unwrap()["method"], "roots/list");
    let told = loop {
        let message = client.next_message().unwrap();
        if message["id"] == id {
            break message.to_string();
        }
    };
    assert!(told.contains("did not say where it works"), "{told}");
    let work = format!("file://{}", env.work().display());
    client.answer("roots/list", json!({ "roots": [{ "uri": work }] }));
    let saved = client.call("checkpoint_save", &json!({}));
    assert!(saved["session"]["workspace"].as_str().unwrap().ends_with("project"), "{saved}");
    // From here on it is known, until the client says that it is another.
    client.answer("roots/list", json!({ "roots": [{ "uri": "file:///nowhere/at/all" }] }));
    assert!(client.call("checkpoint_list", &json!({})).is_array());
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    let told = client.call("checkpoint_list", &json!({}));
    assert_eq!(told["error"]["message"], "no root of the client is a folder on this machine");
}

#[test]
fn a_client_that_does_not_read_makes_nothing_grow() {
    let env = env();
    let mut client = client(&env);
    let ask = |client: &mut McpClient| client.try_asking("tools/list");
    let n_taken = (0..5_000).take_while(|_| ask(&mut client)).count();
    assert!(n_taken < 5_000, "all were taken in");
    assert!(client.peak_kilobytes() < 40_000, "{} kB", client.peak_kilobytes());
    assert_eq!(client.leave_unread(), Some(0));
}

#[test]
fn resources_and_prompts_are_there() {
    let env = env();
    env.write("a.txt", "one").run("session new --name mine --task \"Do it\"");
    env.run("checkpoint save first");
    let mut client = client(&env);
    let listed = client.ask("resources/list", &json!({}));
    for resource in listed["resources"].as_array().unwrap() {
        let read = client.ask("resources/read", &json!({ "uri": resource["uri"] }));
        assert_eq!(read["contents"][0]["mimeType"], resource["mimeType"]);
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("cp-"), "{read}");
    }
    assert_eq!(listed["resources"].as_array().unwrap().len(), 2);
    let templates = client.ask("resources/templates/list", &json!({}));
    assert_eq!(
        templates["resourceTemplates"][0]["uriTemplate"],
        "biv://session/{session}/briefing"
    );
    for uri in
        ["file:///etc/passwd", "biv://session/mine/briefing/..", "biv://session/nobody/briefing"]
    {
        assert_eq!(client.ask("resources/read", &json!({ "uri": uri }))["code"], -32002, "{uri}");
    }
    let prompts = client.ask("prompts/list", &json!({}));
    assert_eq!(prompts["prompts"].as_array().unwrap().len(), 2);
    let prompt = client
        .ask("prompts/get", &json!({ "name": "save-checkpoint", "arguments": { "label": "x" } }));
    assert!(
        prompt["messages"][0]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("`checkpoint_save` with the label \"x\"")
    );
    assert_eq!(client.ask("prompts/get", &json!({ "name": "nope" }))["code"], -32602);
}

#[test]
fn answers_are_redacted_and_bounded() {
    let env = env();
    env.write(".env", "API_KEY=sk-live-0123456789abcdef0123456789abcdef\n");
    for n in 0..3_000 {
        env.write(format!("some/long/folder/name/file-{n}.txt"), "x");
    }
    let mut client = client(&env);
    client.call(
        "checkpoint_save",
        &json!({ "message": "key sk-live-0123456789abcdef0123456789abcdef" }),
    );
    for n in 0..3_000 {
        env.remove(format!("some/long/folder/name/file-{n}.txt"));
    }
    let answer = client.ask(
        "tools/call",
        &json!({ "name": "checkpoint_diff", "arguments": { "from": "latest" } }),
    );
    assert!(answer.to_string().len() < 30_000);
    assert!(
        answer["content"][1]["text"].as_str().unwrap().contains("were left out of `/files`"),
        "{answer}"
    );
    assert!(!answer.to_string().contains("0123456789abcdef0123"), "{answer}");
}

#[test]
fn long_work_tells_how_far_it_is_and_can_be_called_off() {
    let env = env();
    for n in 0..2_000 {
        env.write(format!("f{n}"), format!("{n}\n").repeat(5_000));
    }
    let mut client = client(&env);
    let save = |token: &str| json!({ "name": "checkpoint_save", "arguments": { "label": token }, "_meta": { "progressToken": token } });
    let id = client.begin_asking("tools/call", &save("first"));
    let first = client.next_message().unwrap();
    assert_eq!(first["method"], "notifications/progress", "{first}");
    let cancelled = json!({ "requestId": id, "reason": "changed my mind" });
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }),
    );
    assert_eq!(client.call("checkpoint_list", &json!({})), json!([]));
    client.ask("tools/call", &save("second"));
    let of_second = client.notices.iter().filter(|it| it["params"]["progressToken"] == "second");
    let reached: Vec<f64> =
        of_second.map(|it| it["params"]["progress"].as_f64().unwrap()).collect();
    assert!(reached.is_sorted() && reached.last() == Some(&2_000.0), "{reached:?}");
    let names: Vec<String> = env
        .json("checkpoint list")
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].to_string())
        .collect();
    assert_eq!(names, ["\"second\""]);
}

#[test]
fn what_goes_wrong_is_told_with_a_remedy_and_the_server_lives() {
    let env = env();
    env.write("a.txt", "one").run("checkpoint create");
    let mut client = client(&env);
    let error = |client: &mut McpClient, tool: &str, arguments: &Value| {
        let said = client.call(tool, arguments);
        assert!(said["error"]["hint"].is_string(), "{said}");
        said["error"]["message"].as_str().unwrap().to_owned()
    };
    let progress = |arguments: Value| ("progress", arguments);
    let calls = [
        ("rehydrate", json!({ "session": "nobody" })),
        ("checkpoint_diff", json!({ "from": 1 })),
        progress(json!({ "kind": "gate", "text": "x" })),
        progress(json!({ "kind": "approval", "action": "resolve", "text": "a1" })),
        ("search", json!({ "query": "x".repeat(100_000) })),
        progress(json!({ "kind": "task", "text": "t", "details": { "file": vec!["a"; 5_000] } })),
        progress(json!({ "kind": "task", "text": "t", "details": { "note": "x".repeat(50_000) } })),
        progress(json!({ "kind": "delegation", "text": "t", "details": { "review": "yes" } })),
        progress(json!({ "kind": "task", "text": "t", "details": { "title": "u" } })),
        progress(json!({ "kind": "note", "action": "remove", "text": "t" })),
        progress(
            json!({ "kind": "delegation", "action": "finish", "text": "1", "details": { "tokens": "many\nmany" } }),
        ),
        progress(json!({ "kind": "decision" })),
        ("session_list", json!({ "x".repeat(3_000): 1 })),
    ];
    let said = calls.map(|(tool, arguments)| error(&mut client, tool, &arguments));
    insta::assert_snapshot!(said.join("\n"), @r"
    there is no session `nobody`
    `from` has to be a short text
    `gate` needs an `action`
    a model cannot do `resolve` with `approval`
    `query` is longer than 16 KiB
    the details are too much to be told again
    the details are too much to be told again
    `review` in the details is not what it has to be
    `task add` has everything it needs without `text`
    a model cannot do `remove` with `note`
    `tokens` cannot be `many\nmany`
    the title is missing
    `session_list` takes no `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (2920 more bytes)`
    ");
    assert_eq!(client.ask("tools/call", &json!({ "name": "nope" }))["code"], -32602);
    assert_eq!(
        client.ask("tools/call", &json!({ "name": "search", "arguments": [] }))["code"],
        -32602
    );
}

#[test]
fn a_store_that_is_damaged_is_told_and_the_server_lives() {
    let env = env();
    env.write("a.txt", "one").run("checkpoint create");
    let mut client = client(&env);
    let journal = env.store().join("sessions.db");
    let kept = fs::read(&journal).unwrap();
    fs::write(&journal, b"this is no database, and it is long enough to be looked at as one")
        .unwrap();
    let _gone = fs::remove_file(env.store().join("sessions.db-wal"));
    assert!(client.call("session_list", &json!({}))["error"].is_object());
    fs::write(&journal, kept).unwrap();
    assert_eq!(client.call("session_list", &json!({})).as_array().unwrap().len(), 1);
}

#[test]
fn a_client_that_vanishes_takes_nothing_with_it() {
    let env = env();
    env.write("a.txt", "one");
    let mut client = client(&env);
    client.begin_asking(
        "tools/call",
        &json!({ "name": "checkpoint_save", "arguments": { "label": "last" } }),
    );
    assert_eq!(client.leave(), (Some(0), String::new()));
    assert_eq!(env.json("checkpoint list")[0]["name"], "last");
    // One that never said a word, and one that stopped in the middle of one.
    assert_eq!(env.mcp().leave(), (Some(0), String::new()));
    let mut client = env.mcp();
    client.send_line(b"{\"jsonrpc\": \"2.0\", \"id\"");
    assert_eq!(client.leave(), (Some(0), String::new()));
}

#[test]
fn two_clients_and_a_thousand_calls() {
    let env = env();
    env.write("a.txt", "one").run("session new --name mine");
    let mut clients = [client(&env), client(&env)];
    let mut slowest = Duration::ZERO;
    for n in 0..500 {
        let ids = clients.each_mut().map(|client| {
            let arguments = match n % 10 {
                0 => json!({ "name": "progress", "arguments": { "kind": "note", "text": format!("note {n}") } }),
                _ => json!({ "name": "session_list", "arguments": {} }),
            };
            client.begin_asking("tools/call", &arguments)
        });
        let started = Instant::now();
        for (client, id) in clients.iter_mut().zip(ids) {
            let answer = client.await_answer(id);
            assert_eq!(answer["isError"], json!(false), "{answer}");
        }
        slowest = slowest.max(started.elapsed());
    }
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    let notes = env.sql_text("SELECT CAST(count(*) AS TEXT) FROM events WHERE kind = 'note.added'");
    assert_eq!(notes, "100");
    for client in clients {
        assert!(client.peak_kilobytes() < 40_000, "{} kB", client.peak_kilobytes());
        assert_eq!(client.leave(), (Some(0), String::new()));
    }
}

/// Anything that can be on a line.
fn lines() -> impl Strategy<Value = String> {
    let word = || {
        prop_oneof![
            Just("\"2.0\""),
            Just("1"),
            Just("null"),
            Just("{}"),
            Just("[]"),
            Just("-1e400"),
            Just("\"tools/call\""),
            Just("\"initialize\""),
            Just("\"notifications/cancelled\""),
            Just("{\"name\":\"search\"}"),
            Just("{\"name\":\"progress\",\"arguments\":{\"kind\":\"note\",\"text\":\"\\ud800\"}}"),
            Just("\"\\u0000\""),
            Just("{\"requestId\":1}"),
            Just("{\"uri\":\"biv://session/a/briefing\"}"),
            Just("true"),
        ]
    };
    let key = || {
        prop_oneof![
            Just("jsonrpc"),
            Just("id"),
            Just("method"),
            Just("params"),
            Just("result"),
            Just("error")
        ]
    };
    let object = proptest::collection::vec((key(), word()), 0..5).prop_map(|fields| {
        let fields: Vec<String> =
            fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    });
    let garbage = any::<String>().prop_map(|text| text.replace('\n', " "));
    prop_oneof![
        object,
        garbage,
        Just("[".repeat(5_000)),
        Just("{\"jsonrpc\":\"2.0\",\"id\":1".to_owned())
    ]
}

#[test]
fn no_line_ends_the_server() {
    let env = env();
    let client = std::cell::RefCell::new(client(&env));
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    proptest!(config, |(lines in proptest::collection::vec(lines(), 1..8))| {
        let mut client = client.borrow_mut();
        for line in &lines {
            client.send_line(line.as_bytes());
        }
        let alive = client.ask("tools/list", &json!({}));
        assert!(alive["tools"].is_array(), "{lines:?}: {alive}");
    });
    assert_eq!(client.into_inner().leave().0, Some(0));
}
