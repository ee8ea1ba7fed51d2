//! `biv export bundle`

use std::fs;
use std::io::Read;
use std::path::Path;

use bivouac_testkit::{TestEnv, bytes};
use flate2::read::GzDecoder;
use insta::assert_snapshot;
use serde_json::{Value, json};
use tar::Archive;

use crate::{env, git_env};

pub(crate) const ID: &str = "11111111-0000-4000-8000-000000000001";
const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

/// A session with a conversation, in which a secret was said.
pub(crate) fn talk(env: &TestEnv) {
    let folder = env.home().join(".claude/projects/-w");
    fs::create_dir_all(&folder).unwrap();
    let transcript = folder.join(format!("{ID}.jsonl"));
    let record = |text: &str| json!({ "type": "user", "uuid": "u1", "cwd": env.work(), "message": { "content": text } });
    let said = format!("{}\n{}\n", record("Add login"), record(&format!("use {TOKEN}")));
    fs::write(&transcript, said).unwrap();
    let input = json!({ "session_id": ID, "transcript_path": transcript, "cwd": env.work(), "prompt": "Add login" });
    env.hook("claude-code", "UserPromptSubmit", input.to_string()).ok();
    env.hook("claude-code", "SessionEnd", input.to_string()).ok();
}

fn read_json(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// What is in a `.tar.gz`: kind, mode, name, and who and when.
fn listing(path: &Path) -> String {
    let mut archive = Archive::new(GzDecoder::new(fs::File::open(path).unwrap()));
    let mut lines = Vec::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        lines.push(format!(
            "{:?} {:o} {} {}:{}:{}{}",
            header.entry_type(),
            header.mode().unwrap(),
            String::from_utf8_lossy(&entry.path_bytes()),
            header.uid().unwrap(),
            header.gid().unwrap(),
            header.mtime().unwrap(),
            entry
                .link_name_bytes()
                .map(|it| format!(" -> {}", it.escape_ascii()))
                .unwrap_or_default(),
        ));
    }
    lines.join("\n")
}

#[test]
fn a_directory_holds_all_of_a_checkpoint_and_can_be_shared() {
    let env = git_env();
    env.write(".gitignore", ".env\nsecrets/\ntarget/\n").write(".env", "KEY=opensesame42\n");
    env.write("bivouac.toml", "[workspace]\ninclude = [\"secrets/\"]\n");
    env.write("secrets/key.pem", "hush").write("target/out", "big");
    env.write("src/run.sh", "#!/bin/sh\n").mode("src/run.sh", 0o755);
    env.folder("empty").link("link", "./src//run.sh");
    talk(&env);
    env.biv(&["task", "add", &format!("Remove {TOKEN} from the code")]).ok();
    env.biv(&["checkpoint", "create", "-m", "It was opensesame42"]).ok();
    // A value that is no longer used here may still open something.
    env.write(".env", "KEY=changed-since\n");
    assert_snapshot!(env.run("export bundle --layout directory --file ../out"), @"
    Wrote 4 files of cp-20260121-002 (67 B) and the conversation into ../out
    note: withheld 2 files: `.env` (by name), `secrets/key.pem` (in `workspace.include`); `--raw` keeps them, for another machine of yours
    ");

    let out = env.root().join("out");
    assert_snapshot!(listing(&out.join("workspace.tar.gz")), @"
    Regular 644 .gitignore 0:0:0
    Regular 644 bivouac.toml 0:0:0
    Directory 755 empty 0:0:0
    Symlink 777 link 0:0:0 -> ./src//run.sh
    Directory 755 secrets 0:0:0
    Directory 755 src 0:0:0
    Regular 755 src/run.sh 0:0:0
    ");
    let manifest = read_json(out.join("manifest.json"));
    assert_eq!((&manifest["format"], &manifest["version"]), (&json!("bivouac-bundle"), &json!(1)));
    assert_eq!(manifest["care"], "redacted");
    assert_eq!(manifest["checkpoint"]["trigger"], "MANUAL");
    assert_eq!(manifest["checkpoint"]["message"], "It was [redacted]");
    assert_eq!(manifest["checkpoint"]["git"]["branch"], "main");
    assert_eq!(manifest["checkpoint"]["usage"]["n_turns"], 2);
    assert_eq!(
        manifest["left_out"],
        json!([
            { "path": ".env", "why": "private", "is_folder": false, "reason": "name" },
            { "path": "secrets/key.pem", "why": "private", "is_folder": false, "reason": "include" },
            { "path": "target", "why": "ignored", "is_folder": true },
        ])
    );
    for (name, seal) in manifest["files"].as_object().unwrap() {
        let bytes = fs::read(out.join(name)).unwrap();
        assert_eq!(seal["blake3"], blake3::hash(&bytes).to_hex().as_str(), "{name}");
        assert_eq!(seal["size_bytes"], bytes.len(), "{name}");
    }
    let conversation = read_json(out.join("conversation.json"));
    assert_eq!((&conversation["agent"], &conversation["id"]), (&json!("claude-code"), &json!(ID)));
    assert_eq!(conversation["parts"][0]["name"], "main.jsonl");
    let said = conversation["parts"][0]["text"].as_str().unwrap();
    assert!(said.contains("Add login") && said.contains("use [redacted]"), "{said}");
    assert!(said.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{said}");
    let progress = read_json(out.join("progress.json"));
    assert_eq!(progress["tasks"][0]["subject"], "Remove [redacted] from the code");
    assert_eq!(read_json(out.join("env.json"))["variables"]["TZ"], "UTC");
    let terminal = fs::read_to_string(out.join("tmux-layout.txt")).unwrap();
    assert_eq!(terminal, "# no terminal was captured\n");
    for entry in fs::read_dir(&out).unwrap() {
        let text = fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains(TOKEN));
    }
    assert_eq!(env.tree().keys().filter(|it| it.starts_with(b".biv")).count(), 0);
}

#[test]
fn raw_keeps_everything_to_the_byte() {
    let env = git_env();
    env.write(".gitignore", ".env\n").write(".env", "KEY=opensesame42\n").write("a", "1");
    talk(&env);
    assert_snapshot!(env.run("export bundle --raw --yes --layout directory --file ../out"), @"
    Wrote 3 files of cp-20260121-001 (23 B) and the conversation into ../out
    note: it holds everything as it was, secrets included: for another machine of yours
    ");
    let out = env.root().join("out");
    let listing = listing(&out.join("workspace.tar.gz"));
    assert!(listing.contains(" .env "), "{listing}");
    let conversation = read_json(out.join("conversation.json"));
    let kept = fs::read_to_string(env.home().join(format!(".claude/projects/-w/{ID}.jsonl")));
    assert_eq!(conversation["parts"][0]["text"], kept.unwrap());
    assert_eq!(read_json(out.join("manifest.json"))["left_out"], json!([]));
}

#[test]
fn one_file_is_the_same_every_time_and_overwrites_nothing() {
    let env = env();
    env.write("a", "1");
    assert_snapshot!(env.run("export bundle"), @"
    exit 1
    error: there is no session in this workspace yet
    hint: `biv checkpoint create` makes one, or `biv session new`
    ");
    env.biv(&["session", "new", "--name", "auth"]).ok();
    assert_snapshot!(env.run("export bundle"), @"
    exit 1
    error: session task-00000001 has no checkpoint yet
    hint: `biv checkpoint create` takes one
    ");
    env.biv(&["checkpoint", "create"]).ok();
    let handle = env.json("session show auth")["handle"].as_str().unwrap().to_owned();
    let export = || env.run("export bundle").replace(&handle, "[session]");
    assert_snapshot!(export(), @"Wrote 1 file of cp-20260121-001 (1 B) into [session]-cp-20260121-001.tar.gz");
    let path = env.path(format!("{handle}-cp-20260121-001.tar.gz"));
    let first = fs::read(&path).unwrap();
    assert_snapshot!(listing(&path), @"
    Regular 644 manifest.json 0:0:0
    Regular 644 conversation.json 0:0:0
    Regular 644 env.json 0:0:0
    Regular 644 progress.json 0:0:0
    Regular 644 tmux-layout.txt 0:0:0
    Regular 644 workspace.tar.gz 0:0:0
    ");
    assert_snapshot!(export(), @"
    exit 1
    error: `[session]-cp-20260121-001.tar.gz` is already there
    hint: nothing is overwritten; choose another place
    ");
    assert_eq!(fs::read(&path).unwrap(), first);
    let run = env.biv_command(&env.work(), &["export", "bundle", "--file", "-"]).output().unwrap();
    assert!(run.status.success() && run.stdout == first, "{} bytes", run.stdout.len());
    env.folder("there");
    assert_snapshot!(env.run("export bundle --layout directory --file there"), @"
    exit 1
    error: `there` is already there
    hint: nothing is overwritten; choose another place
    ");
    assert_snapshot!(env.run("export bundle --file nowhere/x"), @"
    exit 1
    error: could not use `nowhere`
    cause: No such file or directory (os error 2)
    ");
    assert_eq!(env.json("export bundle cp-001 --file x.tar.gz")["files"], 1);
}

#[test]
fn names_of_any_length_and_letters_are_kept() {
    let env = env();
    let long = "l".repeat(120);
    env.write(format!("{long}/{long}"), "deep").write(bytes(b"caf\xe9"), "1");
    env.link("long-link", format!("{long}/../{long}/{long}"));
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["export", "bundle", "--file", "../x", "--layout", "directory"]).ok();
    let packed = fs::File::open(env.root().join("x/workspace.tar.gz")).unwrap();
    let mut archive = Archive::new(GzDecoder::new(packed));
    let mut found: Vec<(Vec<u8>, String)> = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let link = entry.link_name_bytes().map(|it| String::from_utf8(it.into_owned()).unwrap());
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        found.push((entry.path_bytes().into_owned(), link.unwrap_or(text)));
    }
    let expected: [(Vec<u8>, String); 4] = [
        (b"caf\xe9".to_vec(), "1".to_owned()),
        (long.clone().into_bytes(), String::new()),
        (format!("{long}/{long}").into_bytes(), "deep".to_owned()),
        (b"long-link".to_vec(), format!("{long}/../{long}/{long}")),
    ];
    assert_eq!(found, expected);
}
