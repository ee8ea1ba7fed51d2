//! The client of the official kit, which knows nothing of ours, against `biv mcp`.

use std::path::Path;

use bivouac_testkit::{TestEnv, left_out};
use serde_json::{Value, json};

/// What a job of `mcp_client.mjs` found. `None` where the kit is not installed.
fn job(env: &TestEnv, job: &str) -> Option<Value> {
    let kit = std::env::var_os("BIV_AGENTS")?;
    if !Path::new(&kit).join("node_modules/@modelcontextprotocol/sdk").exists() {
        left_out("the official kit is not installed (`cargo xtask check` does that)");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/mcp_client.mjs");
    let mut command = env.command("node", &env.work());
    command.arg(script).args([job, env!("CARGO_BIN_EXE_biv"), "mcp"]).env("BIV_AGENTS", kit);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{job}: {said}{stderr}");
    Some(serde_json::from_str(&said).unwrap())
}

fn env() -> TestEnv {
    TestEnv::with_git(env!("CARGO_BIN_EXE_biv"))
}

#[test]
fn it_finds_its_way() {
    let env = env();
    env.write("a.txt", "one");
    let Some(found) = job(&env, "tour") else {
        return;
    };
    assert_eq!(found["server"]["name"], "bivouac");
    let counts = ["n_tools", "n_resources", "n_templates", "n_prompts"].map(|it| &found[it]);
    assert_eq!(counts, [&json!(12), &json!(2), &json!(2), &json!(2)]);
    assert_eq!(found["saved"], "here");
    assert_eq!(found["errors"], json!([-32602, -32002, -32601]));
    assert_eq!(found["refused"], true);
    // The person was asked once, through the client, and the file is what it was.
    let rolled = ["steps", "asked", "file"].map(|it| &found[it]);
    assert_eq!(rolled, [&json!(1), &json!(1), &json!("one")]);
    assert!(found["briefing"].as_str().unwrap().contains("Go left: it is shorter"), "{found}");
    assert_eq!(env.json("decision list")[0]["by"], "model");
}

#[test]
fn it_calls_a_thousand_times_in_a_row() {
    let env = env();
    env.write("a.txt", "one").run("session new --name mine");
    let Some(found) = job(&env, "many") else {
        return;
    };
    assert_eq!(found["calls"], 1_000, "{found}");
}

#[test]
fn two_of_them_lose_nothing() {
    let env = env();
    env.run("session new --name mine");
    let Some(found) = job(&env, "two") else {
        return;
    };
    assert_eq!((&found["answers"], &found["errors"]), (&json!(100), &json!([])));
    let notes = env.sql_text("SELECT CAST(count(*) AS TEXT) FROM events WHERE kind = 'note.added'");
    assert_eq!(notes, "100");
}

#[test]
fn it_calls_a_save_off() {
    let env = env();
    for n in 0..2_000 {
        env.write(format!("f{n}"), format!("{n}\n").repeat(5_000));
    }
    let Some(found) = job(&env, "cancel") else {
        return;
    };
    assert!(found["outcome"].as_str().unwrap().contains("changed my mind"), "{found}");
    assert_eq!((&found["reached"], &found["checkpoints"]), (&json!(1), &json!([])));
}
