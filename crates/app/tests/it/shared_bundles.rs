//! What a bundle that is made to be shared keeps back, and how both sides learn of it

use std::fs;
use std::io::Read;
use std::path::Path;

use bivouac_testkit::TestEnv;
use flate2::read::GzDecoder;
use insta::assert_snapshot;
use serde_json::{Value, json};
use tar::Archive;

use crate::{env, git_env};

/// Put together here, so that nobody's scanner takes it for a real one.
fn token() -> String {
    "ghp_".to_owned() + "Abcdefghij0123456789Klmnopqrst012345"
}

fn archived(bundle: &Path) -> Vec<(String, String)> {
    let file = fs::File::open(bundle.join("workspace.tar.gz")).unwrap();
    let mut archive = Archive::new(GzDecoder::new(file));
    let mut files = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        if entry.header().entry_type().is_file() {
            files.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    files
}

fn withheld_of(manifest: &Value) -> Vec<(String, String)> {
    let left_out = manifest["left_out"].as_array().unwrap().iter();
    let private = left_out.filter(|it| it["why"] == "private");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    private.map(|it| (text(&it["path"]), text(&it["reason"]))).collect()
}

fn export(env: &TestEnv) -> Value {
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["export", "bundle", "--layout", "directory", "--file", "../out"]).ok();
    let manifest = fs::read(env.root().join("out/manifest.json")).unwrap();
    serde_json::from_slice(&manifest).unwrap()
}

#[test]
fn files_are_withheld_by_name_whatever_is_in_them() {
    let env = env();
    let secret = [
        ".aws/credentials",
        ".docker/config.json",
        ".env.local",
        ".git-credentials",
        ".kube/config",
        ".netrc",
        ".npmrc",
        ".pgpass",
        ".pypirc",
        ".ssh/id_ed25519",
        "config/secrets.yml",
        "credentials.json",
        "deep/er/and/deeper/still/.env",
        "id_rsa",
        "infra/prod.tfvars",
        "infra/terraform.tfstate",
        "infra/terraform.tfstate.backup",
        "keys/app.jks",
        "keys/app.p12",
        "keys/putty.ppk",
        "prod.env",
        "service-account.json",
    ];
    let plain = ["README.md", "id_rsa.pub", "package-lock.json", "src/credentials.rs", "env.ts"];
    for path in secret.iter().chain(&plain) {
        env.write(path, "nothing special\n");
    }
    let manifest = export(&env);
    let expected: Vec<(String, String)> =
        secret.iter().map(|path| ((*path).to_owned(), "name".to_owned())).collect();
    assert_eq!(withheld_of(&manifest), expected);
    let names: Vec<String> =
        archived(&env.root().join("out")).into_iter().map(|(name, _)| name).collect();
    let mut sorted = plain.map(str::to_owned).to_vec();
    sorted.sort();
    assert_eq!(names, sorted);
}

#[test]
fn files_are_withheld_by_what_is_in_them_and_never_changed() {
    let env = env();
    let dashes = "-".repeat(5);
    let key = format!(
        "{dashes}BEGIN PRIVATE KEY{dashes}\nMIIEfakefakefake\n{dashes}END PRIVATE KEY{dashes}\n"
    );
    let certificate =
        format!("{dashes}BEGIN CERTIFICATE{dashes}\nMIIE\n{dashes}END CERTIFICATE{dashes}\n");
    let large = "plain text\n".repeat(600_000) + &token() + "\n" + &"more text\n".repeat(1_000);
    env.write("src/login.py", format!("TOKEN = \"{}\"\n", token()));
    env.write("deploy.sh", "curl -u bob:hunter22x https://x.example\n");
    env.write("k8s.yaml", "kind: Secret\ndata:\n  pw: aHVudGVyMjI=\n");
    env.write("tls.pem", &key).write("ca.pem", &certificate).write("large.log", &large);
    env.write("data.bin", [b"\0\x01".as_slice(), token().as_bytes(), b"\0\xff"].concat());
    env.write("src/main.py", "print('hello')\n").write("Cargo.lock", "checksum = \"9f86d081\"\n");
    // A value of a file that is withheld gives away the files it is copied into, however deep that file lies.
    env.write("a/b/c/d/e/.env", "STRIPE=zq-Xw81-Lmnp\n");
    env.write("docs/setup.md", "Then type zq-Xw81-Lmnp, and again enpxLVh3ODEtTG1ucA==.\n");
    // Templates are there to be shared, unless somebody filled them in.
    env.write(
        ".env.example",
        "DB_PASSWORD=changeme\nDATABASE_URL=postgres://app:postgres@db/app\n",
    );
    env.write("web/.env.sample", format!("GITHUB={}\n", token()));
    let manifest = export(&env);
    assert_eq!(
        json!(withheld_of(&manifest)),
        json!([
            ["a/b/c/d/e/.env", "name"],
            ["data.bin", "contents"],
            ["deploy.sh", "contents"],
            ["docs/setup.md", "contents"],
            ["k8s.yaml", "contents"],
            ["large.log", "contents"],
            ["src/login.py", "contents"],
            ["tls.pem", "contents"],
            ["web/.env.sample", "contents"],
        ])
    );
    let files = archived(&env.root().join("out"));
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [".env.example", "Cargo.lock", "ca.pem", "src/main.py"]);
    for (name, text) in &files {
        assert_eq!(env.read(name), *text, "{name} goes out as it is");
    }
}

#[test]
fn both_sides_are_told_what_was_withheld_and_nothing_of_the_receiver_is_lost() {
    let env = git_env();
    env.write("a", "1").write(".npmrc", "_authToken=abc\n").write("id_rsa", "k\n");
    env.write("src/login.py", format!("TOKEN = \"{}\"\n", token()));
    env.biv(&["checkpoint", "create"]).ok();
    assert_snapshot!(env.run("export bundle --file ../b.tar.gz"), @"
    Wrote 1 file of cp-20260121-001 (1 B) into ../b.tar.gz
    note: withheld 3 files: `.npmrc` (by name), `id_rsa` (by name), `src/login.py` (a secret in it); `--raw` keeps them, for another machine of yours
    ");
    let document = env.json("export bundle --file ../c.tar.gz");
    let expected = json!([
        { "path": ".npmrc", "reason": "name" },
        { "path": "id_rsa", "reason": "name" },
        { "path": "src/login.py", "reason": "contents" },
    ]);
    assert_eq!(document["withheld"], expected);

    let other = git_env();
    other.write("a", "2").write(".npmrc", "own\n").write("id_rsa", "own key\n");
    other.write("src/login.py", "own\n").write("born-later", "x");
    let bundle = env.root().join("b.tar.gz");
    let import = |name: &str| format!("import bundle {} --name {name}", bundle.display());
    assert_snapshot!(other.run(&import("one")), @"
    Imported cp-20260121-001 as cp-20260121-001 of session task-00000001: 1 file
    Go on with `biv resume task-00000001`
    Bring its files with `biv checkpoint rollback cp-20260121-001`
    note: it was written to be shared: secrets are blotted out of its conversation and progress
    note: the sender withheld 3 files: `.npmrc` (by name), `id_rsa` (by name), `src/login.py` (a secret in it); a rollback leaves your files of these names alone
    ");
    assert_eq!(other.json(&import("two"))["withheld"], expected);
    other.biv(&["checkpoint", "rollback", "latest", "--session", "one", "--yes"]).ok();
    assert_eq!(other.read("a"), "1");
    for (path, text) in [(".npmrc", "own\n"), ("id_rsa", "own key\n"), ("src/login.py", "own\n")] {
        assert_eq!(other.read(path), text, "{path} was not covered");
    }
    assert!(!other.path("born-later").exists());
}

#[test]
fn secrets_leave_only_if_a_person_says_so() {
    let env = git_env();
    env.write("a", "1").write("id_rsa", "k\n");
    env.biv(&["checkpoint", "create"]).ok();
    assert_snapshot!(env.run("export bundle --raw --file ../b"), @"
    exit 2
    error: exporting secrets needs a confirmation, and there is no terminal to ask on
    hint: look at what it would do, then pass `--yes`
    ");
    let model = |args: &[&str]| {
        let mut command = env.biv_command(&env.work(), args);
        let run = command.env("CLAUDECODE", "1").output().unwrap();
        (run.status.code(), String::from_utf8(run.stderr).unwrap())
    };
    let (code, said) = model(&["export", "bundle", "--raw", "--yes", "--file", "../b"]);
    assert_eq!(code, Some(2));
    assert_snapshot!(said, @"
    error: an agent may not export secrets
    hint: leave `--raw` out, or run the command in a terminal of your own
    ");
    assert!(!env.root().join("b").exists());
    // What can be shared may be exported by an agent, too.
    let (code, said) = model(&["export", "bundle", "--file", "../shared"]);
    assert_eq!(code, Some(0), "{said}");
    env.biv(&["export", "bundle", "--raw", "--yes", "--file", "../b"]).ok();
}

#[test]
fn a_captured_env_file_at_any_depth_is_known() {
    let env = git_env();
    env.write("a/b/c/d/e/f/.env", "STRIPE=zq-Xw81-Lmnp\n");
    env.biv(&["checkpoint", "create", "-m", "first"]).ok();
    env.biv(&["task", "add", "Use zq-Xw81-Lmnp in a/b"]).ok();
    let shown = env.run("task list");
    assert!(shown.contains("[redacted]") && !shown.contains("zq-Xw81-Lmnp"), "{shown}");
    // One that comes later, in a folder that was there before.
    env.write("a/b/c/d/g/prod.env", "OTHER=Yk3!vv-Trw90\n");
    env.biv(&["checkpoint", "create", "-m", "second"]).ok();
    env.biv(&["task", "add", "Then Yk3!vv-Trw90"]).ok();
    let shown = env.run("task list");
    assert!(!shown.contains("Yk3!vv-Trw90") && !shown.contains("zq-Xw81-Lmnp"), "{shown}");
}

#[test]
fn bundles_of_other_versions_say_what_they_can() {
    let env = env();
    env.write("a", "1").write("id_rsa", "k\n").write(".npmrc", "x\n");
    let mut manifest = export(&env);
    // An older version gives no reason, a newer one may have another.
    manifest["left_out"][0].as_object_mut().unwrap().remove("reason");
    manifest["left_out"][1]["reason"] = json!("smell");
    fs::write(env.root().join("out/manifest.json"), manifest.to_string()).unwrap();
    let withheld = env.json("import bundle ../out --name other")["withheld"].clone();
    let expected =
        json!([{ "path": ".npmrc", "reason": null }, { "path": "id_rsa", "reason": "other" }]);
    assert_eq!(withheld, expected);
}
