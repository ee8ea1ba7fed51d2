//! Paths that cannot be touched do not stop a rollback, and paths that are not text stop nothing at all.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::ground::{
    Ground, Outcome, Ran, Stop, World, below, ensure, need, need_root, quietly, run,
};
use super::mounts::Mount;
use super::odds::COMMANDS;
use super::{Case, case};

pub(super) fn blocked() -> Vec<Case> {
    vec![
        case("mounted-file", |ground| mounted(ground, "d/f3")),
        case("mounted-folder", |ground| mounted(ground, "e")),
        case("immutable", |ground| attribute(ground, "+i", "d/f3")),
        case("append-only", |ground| attribute(ground, "+a", "d/f3")),
        case("immutable-folder", |ground| attribute(ground, "+i", "e")),
        case("append-only-folder", |ground| attribute(ground, "+a", "e")),
        case("immutable new-file", immutable_new),
        case("eperm", eperm),
        case("midway", midway),
    ]
}

pub(super) fn bytes() -> Vec<Case> {
    let all: [(&str, [&[u8]; 3]); 4] = [
        ("workspace", [b"proj\xffect", b"store", b"home"]),
        ("store", [b"project", b"sto\xffre", b"home"]),
        ("home", [b"project", b"", b"ho\xffme"]),
        ("all", [b"proj\xff", b"sto\xfe", b"ho\xfd"]),
    ];
    let mut cases: Vec<Case> = all
        .map(|(name, places)| {
            case(format!("commands {name}"), move |ground| commands(ground, places))
        })
        .into();
    cases.extend([
        case("hooks", hooks),
        case("names lossless", names),
        case("workspaces lossless", workspaces),
    ]);
    cases
}

const N_FILES: usize = 8;

/// A workspace on a disk of its own, saved as `one` and changed in every file since.
fn scene(ground: &Ground<'_>) -> Result<(World, Mount), Stop> {
    let world = ground.world_on_disk()?;
    let disk = Mount::image("ext4", &[], &world.env.work())?;
    fs::remove_dir(world.env.path("lost+found"))?;
    set(&world, "old");
    world.save("one")?;
    set(&world, "new");
    Ok((world, disk))
}

fn set(world: &World, content: &str) {
    for n in 0..N_FILES {
        world.env.write(format!("d/f{n}"), content).write(format!("e/f{n}"), content);
    }
}

/// Everything but what cannot be touched is old; that is as it was, and named; the exit code says so.
fn all_but(world: &World, ran: Ran, blocked: &str) -> Outcome {
    let ran = ran.sound()?;
    for folder in ["d", "e"] {
        for n in 0..N_FILES {
            let path = format!("{folder}/f{n}");
            if path == blocked || folder == blocked {
                continue;
            }
            let now = world.env.read(&path);
            ensure(now == "old", || format!("{path} is `{now}`: {}", ran.text()))?;
        }
    }
    ensure(ran.code == Some(3), || {
        format!("it does not say that something is left: {}", ran.text())
    })?;
    ensure(ran.said().contains(blocked), || format!("it does not name {blocked}: {}", ran.text()))?;
    Ok(1)
}

fn roll_back(world: &World) -> Ran {
    world.biv(&["checkpoint", "rollback", "one", "--yes"])
}

fn mounted(ground: &Ground<'_>, path: &str) -> Outcome {
    let (world, _disk) = scene(ground)?;
    let (from, to) = (world.outside().join("other"), world.env.path(path));
    if to.is_dir() {
        fs::create_dir(&from)?;
        fs::write(from.join("f0"), "theirs")?;
    } else {
        fs::write(&from, "theirs")?;
    }
    let mount = Mount::bind(&from, &to)?;
    let ran = roll_back(&world);
    drop(mount);
    let theirs = if from.is_dir() { from.join("f0") } else { from };
    // A file system that is mounted inside of the workspace is part of it, and may be restored in place.
    let is_restored =
        matches!(ran.code, Some(0 | 3)) && fs::read_to_string(&theirs).is_ok_and(|it| it == "old");
    let stays = fs::read_to_string(&theirs).is_ok_and(|it| it == "theirs");
    ensure(stays || is_restored, || "what is mounted there was damaged".to_owned())?;
    match is_restored && ran.code == Some(0) {
        true => Ok(1),
        false => all_but(&world, ran, path),
    }
}

/// Takes the attribute away again, so that the file can be removed.
struct Attribute(PathBuf);

impl Attribute {
    fn give(what: &str, path: &Path) -> Result<Self, Stop> {
        need("chattr", "e2fsprogs")?;
        quietly("chattr", &[what, &path.to_string_lossy()])?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Attribute {
    fn drop(&mut self) {
        let _not_set = quietly("chattr", &["-i", "-a", &self.0.to_string_lossy()]);
    }
}

fn attribute(ground: &Ground<'_>, what: &str, path: &str) -> Outcome {
    let (world, _disk) = scene(ground)?;
    let attribute = Attribute::give(what, &world.env.path(path))?;
    let ran = roll_back(&world);
    drop(attribute);
    let tried = all_but(&world, ran, path)?;
    // Once it can be touched, the same command does the rest.
    roll_back(&world).ok()?;
    ensure(world.env.read("d/f3") == "old" && world.env.read("e/f3") == "old", || {
        "the rest was not done".to_owned()
    })?;
    Ok(tried)
}

/// A file born after the checkpoint that cannot be removed.
fn immutable_new(ground: &Ground<'_>) -> Outcome {
    let (world, _disk) = scene(ground)?;
    world.env.write("d/born-later", "mine");
    let attribute = Attribute::give("+i", &world.env.path("d/born-later"))?;
    let ran = roll_back(&world);
    drop(attribute);
    ensure(world.env.read("d/born-later") == "mine", || "it was changed".to_owned())?;
    all_but(&world, ran, "d/born-later")
}

/// As an ordinary user: a file of another user in a folder where only owners may rename.
fn eperm(ground: &Ground<'_>) -> Outcome {
    need_root()?;
    need("setpriv", "util-linux")?;
    let world = ground.world_on_disk()?;
    set(&world, "old");
    let binary = world.env.root().join("biv");
    fs::copy(ground.binary, &binary)?;
    fs::set_permissions(world.env.root(), fs::Permissions::from_mode(0o755))?;
    for place in [world.env.work(), world.env.home()] {
        quietly("chown", &["-R", "65534:65534", &place.to_string_lossy()])?;
    }
    let as_nobody = |words: &[&str]| {
        let mut command = world.env.command("setpriv", &world.env.work());
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary).args(words);
        command.env("BIV_STORE_MIN_FREE", "0");
        run(command, b"")
    };
    as_nobody(&["checkpoint", "create", "--name", "one"]).ok()?;
    set(&world, "new");
    // The folder is root's and sticky, and so is one file in it; anybody may write there.
    for (path, mode) in [("d", 0o1777), ("d/f3", 0o644)] {
        quietly("chown", &["0:0", &world.env.path(path).to_string_lossy()])?;
        fs::set_permissions(world.env.path(path), fs::Permissions::from_mode(mode))?;
    }
    let ran = as_nobody(&["checkpoint", "rollback", "one", "--yes"]);
    // Others may write there, so it may be refused as well; then an option says to go on.
    let ran = match ran.code {
        Some(1) => {
            let said = ran.said();
            let option =
                said.split(['`', ' ', '\n']).find(|it| it.starts_with("--") && *it != "--yes");
            as_nobody(&[
                "checkpoint",
                "rollback",
                "one",
                "--yes",
                option.ok_or_else(|| ran.text())?,
            ])
        }
        _ => ran,
    };
    all_but(&world, ran, "d/f3")
}

/// The attribute comes while the rollback is held up at a rename.
fn midway(ground: &Ground<'_>) -> Outcome {
    need("strace", "strace")?;
    let mut n_tried = 0;
    for nth in 1..=ground.size(3, 12) {
        let (world, _disk) = scene(ground)?;
        let trace = world.env.root().join("trace");
        let inject = format!("inject=renameat2:delay_enter=1000ms:when={nth}");
        let place = trace.to_string_lossy().into_owned();
        let words = ["strace", "-f", "-q", "-o", &place, "-e", "trace=renameat2", "-e", &inject]
            .map(str::to_owned);
        let mut command = world.env.biv_under(&words, &["checkpoint", "rollback", "one", "--yes"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        for _ in 0..2_000 {
            let seen = fs::read_to_string(&trace).unwrap_or_default();
            if seen.matches("renameat2").count() >= nth {
                break;
            }
            thread::sleep(Duration::from_millis(2));
        }
        let attribute = Attribute::give("+i", &world.env.path("e/f7"))?;
        let output = child.wait_with_output()?;
        drop(attribute);
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        // It may have been done already when the attribute came.
        let now = world.env.read("e/f7");
        let is_right = match now.as_str() {
            "old" => matches!(code, Some(0 | 3)),
            "new" => code == Some(3) && said.contains("e/f7"),
            _ => false,
        };
        ensure(is_right, || format!("exit {code:?}, e/f7 is `{now}`: {said}"))?;
        let rest =
            (0..N_FILES).map(|n| format!("d/f{n}")).find(|path| world.env.read(path) != "old");
        ensure(rest.is_none(), || format!("{rest:?} was not restored: {said}"))?;
        n_tried += 1;
    }
    Ok(n_tried)
}

/// A world whose folders have names that are not text.
struct Odd {
    world: World,
    work: PathBuf,
    store: Option<PathBuf>,
    home: PathBuf,
}

impl Odd {
    fn new(ground: &Ground<'_>, [work, store, home]: [&[u8]; 3]) -> Result<Self, Stop> {
        let world = ground.world()?;
        let place = |name: &[u8]| below(&world.env.root().join("odd"), name);
        let (work, home) = (place(work), place(home));
        let store = (!store.is_empty()).then(|| place(store));
        fs::create_dir_all(&work)?;
        fs::create_dir_all(&home)?;
        fs::write(work.join("a.txt"), "1")?;
        fs::write(below(&work, b"f\xff.txt"), "1")?;
        Ok(Self { work, store, home, world })
    }

    fn biv(&self, words: &[&str], input: &str) -> Ran {
        let mut command = self.world.env.biv_command(&self.work, words);
        command.env("HOME", &self.home).env("BIV_HOOK_WAITS", "1");
        if let Some(store) = &self.store {
            command.env("BIV_STORE", store);
        }
        run(command, input.as_bytes())
    }
}

/// Every command, plain and with JSON: no panic, no signal, and JSON that is one document.
fn commands(ground: &Ground<'_>, places: [&[u8]; 3]) -> Outcome {
    let odd = Odd::new(ground, places)?;
    let mut broken = Vec::new();
    let mut n_tried = 0;
    for line in COMMANDS {
        for with_json in [false, true] {
            let mut words = super::odds::words(line);
            if with_json {
                words.push("--json".to_owned());
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ran = odd.biv(&words, "");
            n_tried += 1;
            let is_json =
                |text: &str| text.trim().is_empty() || serde_json::from_str::<Value>(text).is_ok();
            let is_wrong = with_json && !is_json(&ran.stdout);
            match ran.sound() {
                Err(Stop::Broken(what)) => broken.push(format!("{}: {what}", words.join(" "))),
                Ok(ran) if is_wrong => {
                    broken.push(format!("{}: not one document: {}", words.join(" "), ran.text()));
                }
                _ => {}
            }
        }
    }
    ensure(broken.is_empty(), || format!("{} of {n_tried}: {}", broken.len(), broken.join("\n")))?;
    let list = odd.biv(&["checkpoint", "list", "--json"], "").ok()?.json()?;
    ensure(list.as_array().is_some_and(|it| !it.is_empty()), || {
        "nothing was saved there".to_owned()
    })?;
    Ok(n_tried)
}

fn hooks(ground: &Ground<'_>) -> Outcome {
    let odd = Odd::new(ground, [b"proj\xff", b"sto\xfe", b"ho\xfd"])?;
    let events = [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "SessionEnd",
        "PreCompact",
    ];
    for event in events {
        // The agent can say such a path only with the letter for what cannot be said.
        let input = serde_json::json!({
            "session_id": "22222222-0000-4000-8000-000000000002", "cwd": odd.work.to_string_lossy(), "prompt": "hello",
            "transcript_path": odd.home.join("t.jsonl").to_string_lossy(), "tool_name": "Bash",
            "tool_input": { "command": "rm -rf ." }, "source": "startup",
        });
        odd.biv(&["hook", "claude-code", event], &input.to_string()).ok()?;
    }
    Ok(events.len() as u64)
}

/// Two names that differ in one byte that is not text are two names in JSON as well: the files are the same otherwise.
fn names(ground: &Ground<'_>) -> Outcome {
    let odd = Odd::new(ground, [b"project", b"", b"home"])?;
    fs::write(below(&odd.work, b"f\xfe.txt"), "1")?;
    odd.biv(&["checkpoint", "create", "--name", "one"], "").ok()?;
    let shown = odd.biv(&["checkpoint", "show", "one", "--files", "--json"], "").ok()?.json()?;
    let files = distinct(&shown["files"]);
    ensure(files.len() == 3, || {
        format!("three files are {} in JSON: {}", files.len(), shown["files"])
    })?;
    fs::write(below(&odd.work, b"f\xfe.txt"), "2")?;
    fs::write(below(&odd.work, b"f\xff.txt"), "2")?;
    let diff = odd.biv(&["checkpoint", "diff", "one", "--json"], "").ok()?.json()?;
    let changed = distinct(&diff);
    ensure(changed.len() == 2, || format!("two changes are {} in JSON: {diff}", changed.len()))?;
    Ok(2)
}

/// All paths in a document, each as it stands there: a string, or an array of bytes.
fn distinct(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(distinct).collect(),
        Value::Object(fields) => {
            let own = fields.get("path").map(Value::to_string);
            own.into_iter().chain(fields.values().flat_map(distinct)).collect()
        }
        _ => BTreeSet::new(),
    }
}

fn workspaces(ground: &Ground<'_>) -> Outcome {
    let one = Odd::new(ground, [b"w\xfe", b"", b"home"])?;
    let other = below(&one.world.env.root().join("odd"), b"w\xff");
    fs::create_dir(&other)?;
    one.biv(&["checkpoint", "create"], "").ok()?;
    let here = one.biv(&["status", "--json"], "").ok()?.json()?;
    let second = Odd { work: other, store: None, home: one.home.clone(), world: ground.world()? };
    second.biv(&["checkpoint", "create"], "").ok()?;
    let there = second.biv(&["status", "--json"], "").ok()?.json()?;
    let place = |status: &Value| status["workspace"].to_string();
    ensure(place(&here) != place(&there), || format!("both workspaces are {}", place(&here)))?;
    let list = second.biv(&["checkpoint", "list", "--json"], "").ok()?.json()?;
    ensure(list.as_array().is_some_and(|it| it.len() == 1), || {
        "one has the checkpoints of the other".to_owned()
    })?;
    Ok(2)
}
