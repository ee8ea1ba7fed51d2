//! Workspaces, stores and homes whose names are not UTF-8

use std::fs;
use std::path::{Path, PathBuf};

use bivouac_testkit::{TestEnv, bytes};
use serde_json::{Value, json};

use crate::one_document::{as_json, story};
use crate::{env, git_env};

const ODD: &[u8] = b"odd-\xff\xfe";

/// What of a test's world lies in a folder with such a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Odd {
    Workspace,
    Store,
    Home,
    Everything,
}

/// The world, and where its workspace is.
fn world(odd: Odd) -> (TestEnv, PathBuf) {
    let mut env = git_env();
    env.program(
        "claude",
        "case $1 in --version) echo '2.1.325 (Claude Code)';; *) echo done;; esac",
    );
    let folder = env.root().join(bytes(ODD));
    fs::create_dir(&folder).unwrap();
    if matches!(odd, Odd::Store | Odd::Everything) {
        env.set("BIV_STORE", folder.join("store"));
    }
    if matches!(odd, Odd::Home | Odd::Everything) {
        fs::create_dir(folder.join("home")).unwrap();
        env.set("HOME", folder.join("home"));
    }
    let work = match odd {
        Odd::Workspace | Odd::Everything => folder.join("project"),
        Odd::Store | Odd::Home => env.work(),
    };
    if work != env.work() {
        fs::rename(env.work(), &work).unwrap();
        fs::create_dir(env.work()).unwrap();
    }
    fs::write(work.join("a"), "1").unwrap();
    fs::create_dir(work.join("src")).unwrap();
    fs::write(work.join("src/b"), "2").unwrap();
    (env, work)
}

/// Programs that only take text may be refused such a path; nothing else fails that does not fail elsewhere.
fn every_command_works(odd: Odd) {
    let (env, work) = world(odd);
    let mut wrong = Vec::new();
    for (words, fails) in story() {
        let run = env.biv_in(&work, &as_json(&words));
        let is_document = serde_json::from_str::<Value>(&run.stdout).is_ok();
        if run.stderr.contains("panicked") || !is_document || (run.code != 0) != fails {
            wrong.push(format!("{words:?}: {} {}{}", run.code, run.stdout, run.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_works_in_such_a_workspace() {
    every_command_works(Odd::Workspace);
}

#[test]
fn every_command_works_with_such_a_store() {
    every_command_works(Odd::Store);
}

#[test]
fn every_command_works_with_such_a_home() {
    every_command_works(Odd::Home);
}

#[test]
fn every_command_works_where_all_of_them_are_such() {
    every_command_works(Odd::Everything);
}

#[test]
fn every_command_speaks_to_people_where_all_of_them_are_such() {
    let (env, work) = world(Odd::Everything);
    let is_stream = |words: &[String]| words == ["export", "bundle", "first", "--file", "-"];
    for (words, _) in story().filter(|(words, _)| !is_stream(words)) {
        let run = env.biv_in(&work, &words);
        let is_good = !run.stderr.contains("panicked") && run.code != 101 && run.code >= 0;
        assert!(is_good, "{words:?}: {} {}{}", run.code, run.stdout, run.stderr);
    }
}

#[test]
fn a_model_works_in_such_a_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(bytes(ODD));
    fs::create_dir(&odd).unwrap();
    let env = TestEnv::new_in(env!("CARGO_BIN_EXE_biv"), &odd);
    env.write("a", "1");
    let mut client = env.mcp_with(&json!({}));
    let saved = client.call("checkpoint_save", &json!({ "label": "first" }));
    assert!(saved.to_string().contains("cp-"), "{saved}");
    assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), 1);
}

/// What a document says a path is, as bytes.
fn path_in(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.as_bytes().to_vec(),
        Value::Array(bytes) => {
            bytes.iter().map(|it| u8::try_from(it.as_u64().unwrap()).unwrap()).collect()
        }
        other => panic!("{other} is no path"),
    }
}

fn document(env: &TestEnv, folder: &Path, words: &[&str]) -> Value {
    let run = env.biv_in(folder, &[words, &["--json"]].concat()).ok();
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn documents_carry_every_byte() {
    let (env, work) = world(Odd::Everything);
    let odd_file = work.join(bytes(b"caf\xe9"));
    fs::write(&odd_file, "1").unwrap();
    env.biv_in(&work, &["checkpoint", "create"]).ok();
    let (work_bytes, store) =
        (work.as_os_str().as_encoded_bytes(), env.root().join(bytes(ODD)).join("store"));
    let status = document(&env, &work, &["status"]);
    assert_eq!(path_in(&status["workspace"]), work_bytes);
    assert_eq!(path_in(&status["store"]), store.as_os_str().as_encoded_bytes());
    assert_eq!(path_in(&status["session"]["workspace"]), work_bytes);
    let shown = document(&env, &work, &["checkpoint", "show", "latest", "--files"]);
    let files: Vec<Vec<u8>> =
        shown["files"].as_array().unwrap().iter().map(|it| path_in(&it["path"])).collect();
    assert!(files.contains(&b"caf\xe9".to_vec()) && files.contains(&b"src/b".to_vec()));
    let log = document(&env, &work, &["log"]);
    assert_eq!(path_in(&log[0]["data"]["workspace"]), work_bytes);
    fs::remove_file(&odd_file).unwrap();
    let plan = document(&env, &work, &["checkpoint", "rollback", "latest", "--dry-run"]);
    assert_eq!(path_in(&plan["steps"][0]["path"]), b"caf\xe9");
    // Text stays text.
    assert_eq!(shown["session"]["handle"], status["session"]["handle"]);
}

/// Two workspaces whose names look the same once their bytes are replaced are two workspaces.
#[test]
fn names_that_look_alike_are_told_apart() {
    let env = env();
    let folders = [&b"w-\xff"[..], b"w-\xfe"].map(|name| env.root().join(bytes(name)));
    for (number, folder) in folders.iter().enumerate() {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("a"), number.to_string()).unwrap();
        env.biv_in(folder, &["checkpoint", "create"]).ok();
        env.biv_in(folder, &["export", "handoff"]).ok();
    }
    for folder in &folders {
        assert_eq!(document(&env, folder, &["checkpoint", "list"]).as_array().unwrap().len(), 1);
        // Our own document is known as ours.
        env.biv_in(folder, &["export", "handoff"]).ok();
    }
    // The same after the tables were made from the events again.
    env.biv(&["reconcile"]).ok();
    for folder in &folders {
        assert_eq!(document(&env, folder, &["checkpoint", "list"]).as_array().unwrap().len(), 1);
    }
}

/// A store that can only be read is opened under its own name.
#[test]
fn such_a_store_is_read_where_it_cannot_be_written() {
    if rustix::process::geteuid().is_root() {
        return bivouac_testkit::left_out("root can write everywhere");
    }
    let (env, work) = world(Odd::Store);
    env.biv_in(&work, &["checkpoint", "create"]).ok();
    let store = env.root().join(bytes(ODD)).join("store");
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(&store, mode(0o500)).unwrap();
    let listed = document(&env, &work, &["checkpoint", "list"]);
    fs::set_permissions(&store, mode(0o700)).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1);
}

/// Agents speak JSON, so they replace what is no text. The hook is called in the folder they mean.
#[test]
fn a_hook_finds_the_folder_its_agent_cannot_name() {
    let (env, work) = world(Odd::Workspace);
    let cwd = work.to_string_lossy();
    let input = json!({ "session_id": "s1", "cwd": cwd, "prompt": "go" }).to_string();
    let mut command = env.biv_command(&work, &["hook", "claude-code", "UserPromptSubmit"]);
    let path = env.root().join("input");
    fs::write(&path, input).unwrap();
    command.env("BIV_HOOK_WAITS", "1").stdin(fs::File::open(path).unwrap());
    env.run_command(&mut command).ok();
    assert_eq!(document(&env, &work, &["session", "list"]).as_array().unwrap().len(), 1);
}

/// An argument nobody asked for is no reason to fail.
#[test]
fn a_hook_takes_any_words() {
    let env = env();
    let words = [bytes(b"hook"), bytes(b"claude-code"), bytes(b"Stop"), bytes(b"\xff")];
    let mut command = env.biv_command(&env.work(), &words);
    command.stdin(std::process::Stdio::null());
    assert_eq!(env.run_command(&mut command).code, 0);
    for words in [&["hook"][..], &["hook", "claude-code"], &["hook", "x", "y", "--json"]] {
        let mut command = env.biv_command(&env.work(), words);
        command.stdin(std::process::Stdio::null());
        let run = env.run_command(&mut command);
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{words:?}");
    }
}
