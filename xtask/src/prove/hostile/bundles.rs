//! What is made to be shared carries no secrets: files that hold them are withheld and listed, and the words of prompts
//! and events have them blotted out, whatever form a command line gives them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::ground::{Ground, Outcome, Stop, World, ensure, holds, need, quietly};
use super::{Case, case};

/// Files that carry secrets, by name or by what is in them; the part that must not leave the machine.
const FILES: [(&str, &str, &str); 17] = [
    (
        "id_rsa",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
        "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU5XQ7m",
    ),
    (
        "deploy/id_ed25519",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
        "c3NoLWVkMjU1MTkAAAAgq8ZP2mVt4wLx9Rk",
    ),
    (
        ".npmrc",
        "//registry.example.com/:_authToken={}\n",
        "npm_x8Kq2mVt4wLx9RkPz7Yb3Nc6Hd1Jf5Gs0Wa",
    ),
    (
        ".aws/credentials",
        "[default]\naws_access_key_id = AKIAQ3EGRXN5ZP7VT2WL\naws_secret_access_key = {}\n",
        "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",
    ),
    (
        "infra/terraform.tfstate",
        "{\"resources\": [{\"attributes\": {\"password\": \"{}\"}}]}\n",
        "tf-Vt4wLx9RkPz7Yb3N",
    ),
    ("prod.env", "DATABASE_PASSWORD={}\n", "pe-mVt4wLx9RkPz7Yb3"),
    ("config/staging.env", "API_KEY={}\n", "se-Kq2mVt4wLx9RkPz7"),
    ("services/api/.env", "SESSION_SECRET={}\n", "de-Yb3Nc6Hd1Jf5Gs0W"),
    (".netrc", "machine example.com login me password {}\n", "nr-Hd1Jf5Gs0WaQeTuI"),
    (".pgpass", "db.example.com:5432:app:me:{}\n", "pg-Gs0WaQeTuIoZx8Kq"),
    (
        "server.pem",
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n",
        "MIIEowIBAAKCAQEAx8Kq2mVt4wLx9RkPz7Yb",
    ),
    (
        "putty.ppk",
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\n{}\nPrivate-MAC: 00\n",
        "AAAAIHd1Jf5Gs0WaQeTuIoZx8Kq2mVt4wLx9",
    ),
    (
        "k8s/secret.yaml",
        "apiVersion: v1\nkind: Secret\ndata:\n  password: {}\n",
        "azhzLVZ0NHdMeDlSa1B6N1liM04=",
    ),
    (
        "app/settings.xml",
        "<server><id>repo</id><password>{}</password></server>\n",
        "xm-4wLx9RkPz7Yb3Nc6",
    ),
    (
        ".docker/config.json",
        "{\"auths\": {\"example.com\": {\"auth\": \"{}\"}}}\n",
        "bWU6ZG9ja2VyLVZ0NHdMeDlSa1B6N1li",
    ),
    (
        "gcp.json",
        "{\"type\": \"service_account\", \"private_key\": \"-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n\"}\n",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC9RkP",
    ),
    (".git-credentials", "https://me:{}@example.com\n", "gc-Nc6Hd1Jf5Gs0WaQe"),
];

/// What people and agents type. `{}` is the secret.
const FORMS: [(&str, &str, &str); 24] = [
    ("curl-user", "curl -u admin:{} https://example.com/api", "Vt4wLx9RkPz7"),
    ("curl-long", "curl --user admin:{} https://example.com", "Kq2mVt4wLx9R"),
    (
        "curl-header",
        "curl -H 'Authorization: Bearer {}' https://example.com",
        "Yb3Nc6Hd1Jf5Gs0WaQeT",
    ),
    ("curl-proxy", "curl --proxy-user me:{} https://example.com", "Pz7Yb3Nc6Hd1"),
    ("mysql", "mysql -uroot -p{} app", "Wq8-Lx9RkPz7"),
    ("mysql-long", "mysqldump --password={} app", "Rk4-Nc6Hd1Jf"),
    ("psql", "PGPASSWORD={} psql -h db", "Jf5Gs0WaQeTu"),
    ("sshpass", "sshpass -p {} ssh me@example.com", "Gs0-aQeTuIoZ"),
    ("sshpass-quoted", "sshpass -p '{}' scp a b", "Ha0 WaQe TuIo"),
    ("docker", "docker login -u me -p {} registry.example.com", "Tu9-Zx8Kq2mV"),
    (
        "docker-long",
        "docker login --username me --password {} registry.example.com",
        "Io3-x8Kq2mVt",
    ),
    ("helm", "helm registry login -u me -p {} registry.example.com", "Zx8-q2mVt4wL"),
    ("netrc", "machine example.com login me password {}", "Qe7-uIoZx8Kq"),
    ("pgpass", "db.example.com:5432:app:me:{}", "Aq6-eTuIoZx8"),
    ("sudo", "echo {} | sudo -S apt-get update", "Sd5-QeTuIoZx"),
    ("python", "requests.get(url, auth=('me', '{}'))", "Py4-aQeTuIoZ"),
    ("kubernetes", "kind: Secret\ndata:\n  token: {}", "S3ViZS1TZWNyZXQtRGF0YQ=="),
    ("xml", "<add key=\"ApiPassword\" value=\"{}\"/>", "Xm3-Gs0WaQeT"),
    (
        "putty",
        "PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 1\n{}\nPrivate-MAC: 1",
        "AAAAgQDHd1Jf5Gs0WaQeTuIoZx8K",
    ),
    ("aws", "the secret is {} for the bucket", "wJ4lrXUtnFEMI/K7MDENG/bPxRfiCYzEXTuIoZx8"),
    ("url", "postgres://me:{}@db.example.com/app", "Ur2-Jf5Gs0Wa"),
    ("url-slash", "amqp://me:{}@mq.example.com/vhost", "Us1/Hd1Jf5Gs"),
    (
        "github",
        "git clone https://x-access-token:{}@github.com/o/r",
        "ghp_x8Kq2mVt4wLx9RkPz7Yb3Nc6Hd1Jf5Gs0WaQ",
    ),
    ("assign", "export DB_PASSWORD='{}'", "As0-Nc6Hd1Jf5"),
];

/// What looks like a secret and is none.
const HARMLESS: [&str; 6] = [
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 is the last good one",
    "session 019be164-3740-76d1-89f2-b252b5e4c9b1 was resumed",
    "run mysql -p and type it, or curl -u admin and wait to be asked",
    "docker login -u me --password-stdin reads it from a file",
    "the password is asked for by sudo -S when there is no terminal",
    "listen on http://localhost:8080/users/me and look at docker ps -p",
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        case("files directory", |ground| files(ground, "directory")),
        case("files file", |ground| files(ground, "file")),
        case("files raw", files_raw),
        case("known depth", known_depth),
        case("known forms", known_forms),
        case("harmless", harmless),
    ];
    cases.extend(FORMS.map(|(name, form, secret)| {
        case(format!("form {name}"), move |ground| blotted(ground, form, secret))
    }));
    cases
}

fn filled(form: &str, secret: &str) -> String {
    form.replacen("{}", secret, 1)
}

fn with_secrets(ground: &Ground<'_>) -> Result<World, Stop> {
    let world = ground.world()?;
    world
        .env
        .write("src/main.rs", "fn main() {}\n")
        .write("package-lock.json", "{\"integrity\": \"sha512-abc\"}\n");
    for (path, form, secret) in FILES {
        world.env.write(path, filled(form, secret));
    }
    world.save("one")?;
    Ok(world)
}

/// Exports the checkpoint, and answers the folder where its bytes are plain, with what was said.
fn exported(world: &World, layout: &str, more: &[&str]) -> Result<(PathBuf, String), Stop> {
    let place = world.env.root().join("bundle");
    let words = ["export", "bundle", "one", "--layout", layout, "--file", &place.to_string_lossy()]
        .map(str::to_owned);
    let words: Vec<String> =
        words.into_iter().chain(more.iter().map(|it| (*it).to_owned())).collect();
    let said = world.biv(&words).done()?.said();
    need("tar", "tar")?;
    let unpack = |archive: &Path, name: &str| -> Result<PathBuf, Stop> {
        let plain = world.env.root().join(name);
        fs::create_dir(&plain)?;
        quietly("tar", &["-xzf", &archive.to_string_lossy(), "-C", &plain.to_string_lossy()])?;
        Ok(plain)
    };
    let plain = if layout == "directory" { place } else { unpack(&place, "plain")? };
    // The files are an archive of their own.
    let files = unpack(&plain.join("workspace.tar.gz"), "files")?;
    fs::rename(files, plain.join("files"))?;
    Ok((plain, said))
}

fn files(ground: &Ground<'_>, layout: &str) -> Outcome {
    let world = with_secrets(ground)?;
    let (place, said) = exported(&world, layout, &[])?;
    let mut leaked = Vec::new();
    for (path, _, secret) in FILES {
        if let Some(file) = holds(&place, secret.as_bytes()) {
            leaked.push(format!("{path} (in {file})"));
        }
    }
    ensure(leaked.is_empty(), || format!("the bundle has the secrets of {}", leaked.join(", ")))?;
    // Those that are withheld are named, on the screen or in the bundle.
    let unnamed = FILES
        .iter()
        .find(|(path, _, _)| !said.contains(path) && holds(&place, path.as_bytes()).is_none());
    ensure(unnamed.is_none(), || format!("withheld and not listed: {:?}", unnamed.map(|it| it.0)))?;
    ensure(holds(&place, b"fn main() {}").is_some(), || "ordinary files are not in it".to_owned())?;
    Ok(FILES.len() as u64)
}

/// Who asks for everything has everything.
fn files_raw(ground: &Ground<'_>) -> Outcome {
    let world = with_secrets(ground)?;
    let (place, _) = exported(&world, "directory", &["--raw", "--yes"])?;
    let lost = FILES.iter().find(|(_, _, secret)| holds(&place, secret.as_bytes()).is_none());
    ensure(lost.is_none(), || format!("`--raw` lacks {:?}", lost.map(|it| it.0)))?;
    Ok(1)
}

/// All that leaves the store of what was said in a prompt.
fn shown(world: &World) -> Result<String, Stop> {
    let mut said = String::new();
    for words in [
        &["export", "events"][..],
        &["log", "--json"],
        &["rehydrate"],
        &["status"],
        &["search", "marker"],
        &["export", "handoff", "--file", "-"],
    ] {
        said.push_str(&world.biv(words).sound()?.said());
    }
    Ok(said)
}

fn blotted(ground: &Ground<'_>, form: &str, secret: &str) -> Outcome {
    let world = ground.world()?;
    let line = filled(form, secret);
    world.prompt(&format!("marker\n{line}"))?;
    let input = json!({ "tool_name": "Bash", "tool_input": { "command": line } });
    world.hook("PreToolUse", &input).ok()?;
    world.save("one")?;
    let said = shown(&world)?;
    ensure(said.contains("marker"), || "the prompt is not on record".to_owned())?;
    ensure(!said.contains(secret), || {
        let line = said.lines().find(|line| line.contains(secret)).unwrap_or_default();
        format!("the secret is in: {}", line.chars().take(300).collect::<String>())
    })?;
    Ok(1)
}

/// A value from an `.env` file, however deep, is known wherever it turns up.
fn known_depth(ground: &Ground<'_>) -> Outcome {
    let world = ground.world()?;
    // No rule would take these for secrets by their looks.
    let files = [
        ("a/b/c/d/.env", "harbour-lantern-seventeen"),
        ("services/web/.env.production", "copper-saddle-ninety"),
        (".env", "orange-kettle-forty"),
    ];
    for (path, value) in files {
        world.env.write(path, format!("MY_TOKEN={value}\n"));
    }
    world.save("one")?;
    for (_, value) in files {
        world.prompt(&format!("marker: why does {value} not work"))?;
    }
    let said = shown(&world)?;
    let leaked = files.iter().find(|(_, value)| said.contains(value));
    ensure(leaked.is_none(), || format!("the value of {:?} is told", leaked.map(|it| it.0)))?;
    Ok(files.len() as u64)
}

/// A known value that is not plain letters: as it is, in base64, in a URL, in JSON.
fn known_forms(ground: &Ground<'_>) -> Outcome {
    let world = ground.world()?;
    world.env.write(".env", "MY_TOKEN=Schlüssel-für-Übung\n");
    world.save("one")?;
    let forms = [
        "Schlüssel-für-Übung",
        "U2NobMO8c3NlbC1mw7xyLcOcYnVuZw==",
        "Schl%C3%BCssel-f%C3%BCr-%C3%9Cbung",
        "Schl\\u00fcssel-f\\u00fcr-\\u00dcbung",
    ];
    for form in forms {
        world.prompt(&format!("marker: why does {form} not work"))?;
    }
    let said = shown(&world)?;
    let leaked = forms.iter().find(|form| said.contains(*form));
    ensure(leaked.is_none(), || format!("`{}` is told", leaked.unwrap_or(&"")))?;
    Ok(forms.len() as u64)
}

fn harmless(ground: &Ground<'_>) -> Outcome {
    let world = ground.world()?;
    for line in HARMLESS {
        world.prompt(line)?;
    }
    let said = world.biv(&["export", "events"]).ok()?.stdout;
    let lost = HARMLESS.iter().find(|line| !said.contains(*line));
    ensure(lost.is_none(), || format!("it was blotted out: {}", lost.unwrap_or(&"")))?;
    Ok(HARMLESS.len() as u64)
}
