//! `biv import bundle`

use std::fs;
use std::path::{Path, PathBuf};

use bivouac_testkit::{TestEnv, bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use insta::assert_snapshot;
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use crate::export_bundle::{ID, talk};
use crate::{env, git_env};

#[test]
fn everything_comes_back_on_another_machine() {
    let env = git_env();
    let noise: Vec<u8> = (0..3_000_000u32)
        .flat_map(|n| blake3::hash(&n.to_le_bytes()).as_bytes()[..1].to_vec())
        .collect();
    env.write(".gitignore", ".env\ntarget/\n").write(".env", "KEY=opensesame42\n");
    env.write("big.bin", &noise).write("target/out", "x").write("empty-file", "");
    env.write("src/run.sh", "#!/bin/sh\n").mode("src/run.sh", 0o755).mode("src", 0o750);
    env.write(bytes(b"caf\xe9"), "1").folder("empty/deep").link("link", "nowhere//at all");
    env.biv(&["session", "new", "--name", "auth", "--agent", "claude-code", "--task", "Add login"])
        .ok();
    talk(&env);
    env.biv(&["task", "add", "Write the tests"]).ok();
    env.biv(&["decision", "add", "Use sessions"]).ok();
    env.biv(&["checkpoint", "create", "--name", "done", "--state", "{\"a\": 1.50}"]).ok();
    let mut tree = env.tree();
    tree.retain(|path, _| !path.starts_with(b"target"));
    env.biv(&["export", "bundle", "--raw", "--yes", "--file", "../b.tar.gz"]).ok();
    env.biv(&["export", "bundle", "--raw", "--yes", "--file", "../b", "--layout", "directory"])
        .ok();

    for bundle in ["b.tar.gz", "b"] {
        let other = git_env();
        other.write("own", "mine");
        let bundle = env.root().join(bundle);
        let text = other.run(&format!("import bundle {}", bundle.display()));
        let expected = "Imported cp-20260121-002 as cp-20260121-001 of session task-00000001: 7 files and a \
             conversation with Claude Code\nGo on with `biv resume task-00000001`\n\
             Bring its files with `biv checkpoint rollback cp-20260121-001`";
        assert_eq!(text, expected);
        assert_eq!(other.tree().len(), 1, "nothing in the workspace changes");

        let session = other.json("session show auth");
        assert_eq!(session["agent_type"], "claude-code");
        assert_eq!(session["task_description"], "Add login");
        let from = &session["metadata"]["imported_from"];
        assert_eq!(from["checkpoint_handle"], "cp-20260121-002", "{from}");
        let shown = other.json("checkpoint show done");
        assert_eq!(shown["trigger"], "MANUAL");
        assert_eq!(shown["message"], "imported from cp-20260121-002");
        assert_eq!(shown["conversation"]["turns"], 2);
        let work = other.json("progress auth");
        assert_eq!(work["tasks"][0]["subject"], "Write the tests", "{work}");
        assert_eq!(work["decisions"].as_array().unwrap().len(), 1, "{work}");

        let into = other.root().join("out");
        other.biv(&["checkpoint", "restore", "done", "--into", into.to_str().unwrap()]).ok();
        assert_eq!(bivouac_testkit::read_tree(&into), tree);
        other.biv(&["checkpoint", "rollback", "done", "--yes"]).ok();
        // What is here and in no checkpoint of the bundle is born later.
        assert_eq!(other.tree(), tree);
        // Stored as a scan stores it, so that nothing has to be read twice.
        other.biv(&["checkpoint", "create", "--name", "after"]).ok();
        let diff = other.json("checkpoint diff done after");
        assert_eq!(diff["files"], json!([]), "{diff}");

        let plan = other.json("resume auth --print");
        assert_eq!(plan["mode"], "native", "{plan}");
        let copy = fs::read_to_string(plan["command"][2].as_str().unwrap()).unwrap();
        assert_eq!(copy.lines().count(), 2, "{copy}");
        let here = other.root().canonicalize().unwrap().join("project");
        assert!(copy.contains(here.to_str().unwrap()) && !copy.contains(ID), "{copy}");
        other.biv(&["verify"]).ok();
        other.biv(&["gc"]).ok();
        other.biv(&["checkpoint", "show", "done", "--files"]).ok();
    }
}

#[test]
fn what_was_left_out_is_not_taken_for_deleted() {
    let env = git_env();
    env.write(".gitignore", ".env\n").write(".env", "KEY=opensesame42\n").write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["export", "bundle", "--file", "../b.tar.gz"]).ok();
    let other = git_env();
    other.write(".env", "KEY=own\n").write("a", "2");
    let bundle = env.root().join("b.tar.gz");
    let text = other.run(&format!("import bundle {} --name shared", bundle.display()));
    assert_snapshot!(text, @"
    Imported cp-20260121-001 as cp-20260121-001 of session task-00000001: 2 files
    Go on with `biv resume task-00000001`
    Bring its files with `biv checkpoint rollback cp-20260121-001`
    note: it was written to be shared: secrets are blotted out of its conversation and progress
    note: the sender withheld 1 file: `.env` (by name); a rollback leaves your files of these names alone
    ");
    other.biv(&["checkpoint", "rollback", "latest", "--session", "shared", "--yes"]).ok();
    assert_eq!((other.read(".env"), other.read("a")), ("KEY=own\n".into(), "1".into()));
    // Once more is once more.
    other.biv(&["import", "bundle", bundle.to_str().unwrap(), "--name", "again"]).ok();
    assert_eq!(other.json("session list").as_array().unwrap().len(), 2);
}

#[test]
fn a_conversation_that_is_not_text_travels_only_raw() {
    let env = git_env();
    env.write("a", "1");
    talk(&env);
    let transcript = env.home().join(format!(".claude/projects/-w/{ID}.jsonl"));
    let mut said = fs::read(&transcript).unwrap();
    said.extend_from_slice(b"\xff\xfe\n");
    fs::write(&transcript, &said).unwrap();
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["export", "bundle", "--raw", "--yes", "--file", "../raw"]).ok();
    env.biv(&["export", "bundle", "--file", "../shared"]).ok();
    let other = git_env();
    let import = |name: &str| {
        let bundle = env.root().join(name);
        other.biv(&["import", "bundle", bundle.to_str().unwrap(), "--name", name]).ok();
        other.json(&format!("checkpoint show latest --session {name}"))["conversation"].clone()
    };
    assert_eq!(import("shared"), Value::Null);
    assert_eq!(import("raw")["turns"], 2);
    other
        .biv(&["export", "bundle", "--raw", "--yes", "--layout", "directory", "--file", "../again"])
        .ok();
    let again = fs::read_to_string(other.root().join("again/conversation.json")).unwrap();
    env.biv(&["export", "bundle", "--raw", "--yes", "--layout", "directory", "--file", "../dir"])
        .ok();
    let first = fs::read_to_string(env.root().join("dir/conversation.json")).unwrap();
    assert!(first.contains("\"base64\"") && first == again, "{first}\n{again}");
}

/// A bundle whose parts can be exchanged, and a place to import it.
struct Lab {
    env: TestEnv,
    bundle: PathBuf,
}

impl Lab {
    fn new() -> Self {
        let env = env();
        env.write("a", "1");
        env.biv(&["checkpoint", "create"]).ok();
        env.biv(&["export", "bundle", "--layout", "directory", "--file", "../b"]).ok();
        let bundle = env.root().join("b");
        Self { env, bundle }
    }

    fn manifest(&self, change: impl FnOnce(&mut Value)) {
        let path = self.bundle.join("manifest.json");
        let mut manifest = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut manifest);
        fs::write(path, manifest.to_string()).unwrap();
    }

    /// A file, with a manifest that agrees.
    fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.bundle.join(name), bytes).unwrap();
        let hash = blake3::hash(bytes).to_hex().to_string();
        self.manifest(|it| {
            it["files"][name] = json!({ "blake3": hash, "size_bytes": bytes.len() });
        });
    }

    fn workspace(&self, entries: &[(&str, EntryType, &str)]) {
        self.put("workspace.tar.gz", &archive(entries));
    }

    /// What the import says; it may leave nothing behind.
    fn import(&self) -> String {
        self.import_from(&self.bundle)
    }

    fn import_from(&self, path: &Path) -> String {
        let text = self.env.run(&format!("import bundle {}", path.display()));
        assert!(text.starts_with("exit 1\n"), "{text}");
        let sessions = self.env.json("session list");
        assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
        let packs = fs::read_dir(self.env.store().join("packs")).unwrap().count();
        assert_eq!(packs, 1, "nothing was stored");
        let scratch = fs::read_dir(self.env.store().join("restored")).into_iter().flatten();
        assert_eq!(scratch.count(), 0, "nothing is left lying about");
        text
    }
}

fn archive(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, kind, text) in entries {
        let mut header = Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o6755);
        let text = match kind {
            EntryType::Regular => text,
            _ => {
                header.set_link_name_literal(text.as_bytes()).unwrap();
                ""
            }
        };
        header.set_size(text.len() as u64);
        header.set_cksum();
        builder.append(&header, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

const FILE: EntryType = EntryType::Regular;

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    let lab = Lab::new();
    let check = |entries: &[(&str, EntryType, &str)], path: &str, what: &str| {
        lab.workspace(entries);
        let expected = format!(
            "exit 1\nerror: the bundle holds `{path}`, {what}\n\
             hint: nothing was recorded; do not trust where it came from"
        );
        assert_eq!(lab.import(), expected);
    };
    let stray = "which is no path inside a workspace";
    check(&[("../evil", FILE, "x")], "../evil", stray);
    check(&[("a/../../evil", FILE, "x")], "a/../../evil", stray);
    check(&[("/etc/evil", FILE, "x")], "/etc/evil", stray);
    check(&[("", FILE, "x")], "", stray);
    check(&[("a//b", FILE, "x")], "a//b", stray);
    check(&[(".git/hooks/x", FILE, "x")], ".git/hooks/x", "which belongs to git");
    check(&[("sub/.GiT", EntryType::Directory, "")], "sub/.GiT", "which belongs to git");
    check(
        &[("l", EntryType::Symlink, "/etc"), ("l/passwd", FILE, "x")],
        "l/passwd",
        "which lies below something that is no folder",
    );
    check(&[("d/x", FILE, "x"), ("d", EntryType::Symlink, "/etc")], "d", "which is there twice");
    check(&[("a", FILE, "x"), ("a", FILE, "y")], "a", "which is there twice");
    check(&[("h", EntryType::Link, "/etc/passwd")], "h", "which is a hard link");
    check(&[("dev", EntryType::Char, "")], "dev", "which is a device");
    check(&[("dev", EntryType::Fifo, "")], "dev", "which is a device");
    check(&[("x", EntryType::XHeader, "")], "x", "which is neither a file, a folder nor a link");
    check(&[("l", EntryType::Symlink, "")], "l", "a link that leads to no path");
    lab.workspace(&[("a", FILE, "x")]);
    lab.manifest(|it| {
        let path = vec!["d"; 101].join("/");
        it["left_out"] = json!([{ "path": path, "why": "ignored", "is_folder": true }]);
    });
    assert!(lab.import().contains("which is more than 100 folders deep"));
    lab.manifest(|it| it["left_out"] = json!([{ "path": "../x", "why": "", "is_folder": false }]));
    assert!(lab.import().contains("is not a path inside the workspace"));
}

#[test]
fn rights_to_run_as_someone_else_stay_behind() {
    let lab = Lab::new();
    lab.workspace(&[
        ("run", FILE, "x"),
        ("d", EntryType::Directory, ""),
        ("d/l", EntryType::Symlink, "/etc/passwd"),
    ]);
    lab.env.biv(&["import", "bundle", "../b", "--name", "b"]).ok();
    lab.env.biv(&["checkpoint", "restore", "latest", "--session", "b", "--into", "../out"]).ok();
    let tree = bivouac_testkit::read_tree(&lab.env.root().join("out"));
    assert_eq!(tree[b"run".as_slice()], ('f', 0o755, b"x".to_vec()));
    assert_eq!(tree[b"d/l".as_slice()], ('l', 0, b"/etc/passwd".to_vec()));
}

#[test]
fn a_bundle_that_is_not_whole_is_refused() {
    let lab = Lab::new();
    assert_snapshot!(lab.import_from(&lab.env.root().join("project")), @"
    exit 1
    error: `[root]/project` is not a bundle: it has no `manifest.json`
    hint: `biv export bundle` writes one
    ");
    assert_snapshot!(lab.import_from(&lab.env.path("a")), @"
    exit 1
    error: `[root]/project/a` is not a bundle: unexpected end of file
    hint: `biv export bundle` writes one
    ");
    assert_snapshot!(lab.import_from(&lab.env.path("nowhere")), @"
    exit 1
    error: could not use `[root]/project/nowhere`
    cause: No such file or directory (os error 2)
    ");
    lab.env.biv(&["export", "bundle", "--file", "../whole.tar.gz"]).ok();
    let whole = fs::read(lab.env.root().join("whole.tar.gz")).unwrap();
    let cut = lab.env.root().join("cut.tar.gz");
    for length in [20, 300, whole.len() / 2, whole.len() - 9] {
        fs::write(&cut, &whole[..length]).unwrap();
        let text = lab.import_from(&cut);
        assert!(text.contains("cut.tar.gz` "), "{length}: {text}");
    }
    fs::write(lab.bundle.join("progress.json"), "{}").unwrap();
    assert_snapshot!(lab.import(), @"
    exit 1
    error: `progress.json` in the bundle is not what its manifest says
    hint: nothing was recorded; export it once more
    ");
    fs::remove_file(lab.bundle.join("progress.json")).unwrap();
    assert_snapshot!(lab.import(), @"
    exit 1
    error: `progress.json` is missing from the bundle
    hint: nothing was recorded; export it once more
    ");
    lab.put("progress.json", b"[1]");
    assert_snapshot!(lab.import(), @"
    exit 1
    error: `progress.json` in the bundle cannot be used: invalid type: integer `1`, expected a sequence at line 1 column 2
    hint: nothing was recorded; export it once more
    ");
    let nested = format!("{{\"tasks\": [{{\"title\": {}", "[".repeat(100_000));
    lab.put("progress.json", nested.as_bytes());
    assert!(lab.import().contains("`progress.json` in the bundle cannot be used: "));
    lab.put("progress.json", b"{}");
    lab.put("workspace.tar.gz", b"not an archive");
    assert_snapshot!(lab.import(), @"
    exit 1
    error: `workspace.tar.gz` in the bundle cannot be used: invalid gzip header
    hint: nothing was recorded; export it once more
    ");
    let mut packed = archive(&[("a", FILE, &"x".repeat(5000))]);
    packed.truncate(packed.len() - 10);
    lab.put("workspace.tar.gz", &packed);
    assert!(lab.import().contains("`workspace.tar.gz` in the bundle cannot be used: "));
}

#[test]
fn words_that_would_command_are_refused() {
    let lab = Lab::new();
    lab.manifest(|it| it["version"] = json!(2));
    assert_snapshot!(lab.import(), @"
    exit 1
    error: the bundle has version 2, and this program reads up to 1
    hint: upgrade biv
    ");
    lab.manifest(|it| it["version"] = json!(1));
    let git = json!({ "branch": "main", "head": "--output=/tmp/x", "staged": [], "unstaged": [],
        "untracked": [], "conflicted": [], "stashes": [], "worktrees": [], "submodules": [] });
    lab.manifest(|it| it["checkpoint"]["git"] = git);
    assert_snapshot!(lab.import(), @"
    exit 1
    error: `manifest.json` in the bundle cannot be used: git has no such branch or commit
    hint: nothing was recorded; export it once more
    ");
    lab.manifest(|it| {
        it["checkpoint"]["git"] = Value::Null;
        it["checkpoint"]["handle"] = json!("\u{1b}[2J");
    });
    assert_snapshot!(lab.import(), @"
    exit 1
    error: `manifest.json` in the bundle cannot be used: an agent or a handle has no plain name
    hint: nothing was recorded; export it once more
    ");
    lab.manifest(|it| it["checkpoint"]["handle"] = json!("cp-20260121-001"));
    let talk = |name: &str| {
        json!({ "version": 1, "agent": "claude-code", "id": ID, "workspace": "/w", "usage": { "n_turns": 0, "by_model": {} },
            "cost_usd": null, "parts": [{ "name": name, "text": "x" }] })
    };
    for name in ["../x", "/x", "a/b/c", "conversation.json", ".git", "..", ""] {
        lab.put("conversation.json", talk(name).to_string().as_bytes());
        assert!(lab.import().contains("it has a part with a name that cannot be"), "{name}");
    }
    std::os::unix::fs::symlink("/etc/passwd", lab.bundle.join("link")).unwrap();
    fs::rename(lab.bundle.join("link"), lab.bundle.join("env.json")).unwrap();
    assert!(lab.import().contains("`env.json` in the bundle cannot be used"));
}
