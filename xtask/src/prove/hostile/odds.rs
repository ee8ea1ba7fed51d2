//! What does not fit elsewhere: sparse files, moved workspaces, stores put back, `PATH`, limits, questions, JSON.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::{Value, json};

use super::ground::{Ground, Outcome, Ran, Stop, World, ensure, quietly};
use super::{Case, case};

/// Every command that ends by itself, in an order in which most of them have something to do.
pub(super) const COMMANDS: [&str; 92] = [
    "status",
    "session list",
    "checkpoint list",
    "init",
    "config show",
    "config path",
    "session new --name work --task build",
    "session show",
    "session rename work work2",
    "session describe --feature x --next y",
    "checkpoint create --name one",
    "checkpoint save two",
    "checkpoint list --all",
    "checkpoint show one --files --coverage",
    "checkpoint diff one",
    "checkpoint diff one two --patch",
    "checkpoint pin one",
    "checkpoint unpin one",
    "checkpoint rollback one --dry-run",
    "checkpoint rollback one --yes",
    "undo --yes",
    "redo --yes",
    "checkpoint restore one --into ../restored-a",
    "fork one --into ../forked-a",
    "note remember",
    "task add first",
    "task start 1",
    "task done 1",
    "task list",
    "phase set build",
    "gate pass tests",
    "gate fail tests",
    "gate list",
    "decision add \"use rust\"",
    "decision list",
    "blocker add \"no key\"",
    "blocker resolve 1",
    "blocker list",
    "artifact add README.md",
    "artifact list",
    "artifact remove README.md",
    "approval request \"may I\"",
    "approval list",
    "approval check",
    "approval resolve 1 yes",
    "step start one",
    "step finish one",
    "step list",
    "replay",
    "delegation start helper",
    "delegation finish 1",
    "delegation list",
    "fork-point open \"which way\"",
    "fork-point decide 1",
    "fork-point list",
    "partition set helper src",
    "partition list",
    "worktree set side",
    "worktree list",
    "context",
    "progress",
    "rehydrate",
    "log",
    "session log",
    "search remember",
    "export handoff",
    "export session-checkpoint",
    "export memory",
    "export checkpoint-md",
    "export bundle one --file ../bundle-a",
    "export bundle one --layout directory --file ../bundle-b",
    "export events --file ../events-a",
    "import bundle ../bundle-a",
    "import session-checkpoint docs/SESSION-CHECKPOINT.md",
    "import handoff HANDOFF.md",
    "hooks install --yes",
    "hooks status",
    "hooks remove --yes",
    "setup --dry-run",
    "setup --yes",
    "doctor",
    "setup --remove --yes",
    "resume --print --force",
    "watch --status",
    "run -- true",
    "pause",
    "session complete",
    "verify",
    "reconcile",
    "gc",
    "du",
    "checkpoint delete two --yes",
];

/// Splits a command line at blanks; quotes keep words together.
pub(super) fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    parts
        .flat_map(|(n, part)| match n % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        case("sparse", sparse),
        case("moved", moved),
        case("moved-from", moved_from),
        case("handles", handles),
        case("delete asks", delete_asks),
        case("json", one_document),
        case("ndjson", ndjson),
    ];
    let paths = [("empty", ":"), ("last", ""), ("dot", ".:"), ("relative", "tools:")];
    cases.extend(
        paths.map(|(name, start)| case(format!("path {name}"), move |ground| path(ground, start))),
    );
    cases.extend([0, 1, 8, 64].map(|blocks| {
        case(format!("limit file-{blocks}"), move |ground| {
            limited(ground, &format!("ulimit -f {blocks}"))
        })
    }));
    cases.push(case("limit memory", memory));
    cases
}

/// A file of holes with a little in it takes as little after a rollback.
fn sparse(ground: &Ground<'_>) -> Outcome {
    let world = ground.world_on_disk()?;
    let path = world.env.path("disk.img");
    let mut file = File::create(&path)?;
    file.set_len(64 << 20)?;
    file.seek(SeekFrom::Start(40 << 20))?;
    file.write_all(&[7; 4_096])?;
    file.sync_all()?;
    let before = fs::metadata(&path)?;
    let content = fs::read(&path)?;
    if before.blocks() * 512 > 4 << 20 {
        return Err(Stop::LeftOut("this file system has no sparse files".to_owned()));
    }
    world.save("one")?;
    fs::write(&path, "small")?;
    world.biv(&["checkpoint", "rollback", "one", "--yes"]).ok()?;
    ensure(fs::read(&path)? == content, || "the bytes are others".to_owned())?;
    let taken = fs::metadata(&path)?.blocks() * 512;
    ensure(taken < 4 << 20, || format!("64 MB of holes take {} MB on disk", taken >> 20))?;
    let out = world.env.root().join("out");
    world.biv(&["checkpoint", "restore", "one", "--into", &out.to_string_lossy()]).ok()?;
    let taken = fs::metadata(out.join("disk.img"))?.blocks() * 512;
    ensure(taken < 4 << 20, || format!("restored elsewhere, they take {} MB", taken >> 20))?;
    Ok(2)
}

/// A workspace under another name.
fn renamed(ground: &Ground<'_>) -> Result<(World, std::path::PathBuf, std::path::PathBuf), Stop> {
    let world = ground.repository()?;
    world.save("one")?;
    let (old, new) = (world.env.work(), world.env.root().join("renamed"));
    fs::rename(&old, &new)?;
    Ok((world, old, new))
}

fn has_one(world: &World, folder: &std::path::Path) -> Result<bool, Stop> {
    let list = world.biv_in(folder, &["checkpoint", "list", "--json"]).ok()?.json()?;
    Ok(list.to_string().contains("\"one\""))
}

/// Its checkpoints are found, or it is said where they are and how to have them.
fn moved(ground: &Ground<'_>) -> Outcome {
    let (world, old, new) = renamed(ground)?;
    let said = world.biv_in(&new, &["checkpoint", "list"]).sound()?.said()
        + &world.biv_in(&new, &["status"]).sound()?.said();
    let is_hinted = said.contains(&*old.to_string_lossy()) && said.contains("--moved-from");
    ensure(is_hinted || has_one(&world, &new)?, || format!("neither found nor hinted at: {said}"))?;
    Ok(1)
}

fn moved_from(ground: &Ground<'_>) -> Outcome {
    let (world, old, new) = renamed(ground)?;
    if !has_one(&world, &new)? {
        world.biv_in(&new, &["init", "--moved-from", &old.to_string_lossy()]).ok()?;
    }
    ensure(has_one(&world, &new)?, || "its checkpoints are not there".to_owned())?;
    fs::write(new.join("a.txt"), "second\n")?;
    world.biv_in(&new, &["checkpoint", "rollback", "one", "--yes"]).ok()?;
    let now = fs::read_to_string(new.join("a.txt"))?;
    ensure(now == "first\n", || format!("it did not go back: {now}"))?;
    Ok(1)
}

/// A backup of the store is put back; what was acknowledged since keeps its handle to itself.
fn handles(ground: &Ground<'_>) -> Outcome {
    let world = ground.world()?;
    world.env.write("a", "1");
    world.save("one")?;
    let (store, backup) = (world.env.store(), world.env.root().join("backup"));
    quietly("cp", &["-a", &store.to_string_lossy(), &backup.to_string_lossy()])?;
    let handle = |name: &str| -> Result<String, Stop> {
        let saved = world.biv(&["checkpoint", "create", "--name", name, "--json"]).ok()?.json()?;
        Ok(saved["handle"].as_str().unwrap_or_default().to_owned())
    };
    world.env.write("a", "2");
    let two = handle("two")?;
    fs::remove_dir_all(&store)?;
    fs::rename(&backup, &store)?;
    world.env.write("a", "3");
    let three = handle("three")?;
    ensure(two != three, || format!("{two} was given twice"))?;
    Ok(1)
}

/// Programs of the workspace's folder are not taken for git, tmux or any tool, whatever `PATH` says.
fn path(ground: &Ground<'_>, start: &str) -> Outcome {
    let mut world = ground.repository()?;
    let (program, mark) = world.trap("trap")?;
    for name in [
        "git", "tmux", "node", "python3", "python", "cargo", "rustc", "go", "java", "npm", "sh",
        "claude", "codex", "gemini", "ps", "uname",
    ] {
        for place in ["", "tools/"] {
            fs::create_dir_all(world.env.path("tools"))?;
            fs::copy(&program, world.env.path(format!("{place}{name}")))?;
            fs::set_permissions(
                world.env.path(format!("{place}{name}")),
                fs::Permissions::from_mode(0o755),
            )?;
        }
    }
    world
        .env
        .write("package.json", "{}")
        .write("Cargo.toml", "")
        .write("go.mod", "")
        .write("requirements.txt", "");
    let usual = std::env::var("PATH").unwrap_or_default();
    let value = if start.is_empty() { format!("{usual}:") } else { format!("{start}{usual}") };
    world.env.set("PATH", value);
    for words in [
        &["checkpoint", "create", "--name", "one"][..],
        &["status"],
        &["context"],
        &["doctor"],
        &["attach"],
        &["resume", "--print"],
        &["rehydrate"],
        &["run", "--tmux", "--detach", "--", "true"],
        &["worktree", "list"],
    ] {
        world.biv(words).sound()?;
    }
    // Started without a shell, as some agents do.
    let mut hook =
        world.env.biv_command(&world.env.work(), &["hook", "claude-code", "UserPromptSubmit"]);
    hook.env("BIV_HOOK_WAITS", "1");
    super::ground::run(hook, world.hook_input(&json!({ "prompt": "hello" })).as_bytes()).ok()?;
    ensure(!mark.exists(), || "a program of the workspace ran".to_owned())?;
    Ok(1)
}

/// A hook under a limit of the shell: exit 0, as long as the program can be started at all.
fn limited(ground: &Ground<'_>, limit: &str) -> Outcome {
    let world = ground.repository()?;
    let script = format!("{limit}; exec \"$0\" \"$@\"");
    if world.biv_by(&script, &["--version"]).code != Some(0) {
        return Ok(0);
    }
    for event in ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd"] {
        let more = json!({ "prompt": "hello", "tool_name": "Bash", "tool_input": { "command": "rm -rf src" } });
        let ran = world.hook_by(&script, event, &more);
        ensure(ran.code == Some(0), || format!("under `{limit}`, {event}: {}", ran.text()))?;
    }
    // And once the limit is gone, everything works.
    world.save("one")?;
    world.biv(&["verify"]).ok()?;
    Ok(5)
}

fn memory(ground: &Ground<'_>) -> Outcome {
    let mut n_tried = 0;
    for megabytes in [8, 12, 16, 24, 32, 48, 64, 96, 128, 256] {
        n_tried += limited(ground, &format!("ulimit -v {}", megabytes * 1_024))?;
    }
    Ok(n_tried)
}

/// Without a yes nothing is deleted, and who is asked can say no.
fn delete_asks(ground: &Ground<'_>) -> Outcome {
    let world = ground.world()?;
    world.env.write("a", "1");
    world.save("one")?;
    world.save("two")?;
    let is_there = || -> Result<bool, Stop> { Ok(world.checkpoints()?.len() == 2) };
    let ran = world.biv(&["checkpoint", "delete", "one"]).sound()?;
    ensure(ran.code != Some(0) && is_there()?, || {
        format!("deleted without asking: {}", ran.text())
    })?;
    let (code, shown) = world.env.on_terminal(&["checkpoint", "delete", "one"], "n\n");
    ensure(is_there()?, || format!("deleted after a no (exit {code}): {shown}"))?;
    world.biv(&["checkpoint", "delete", "one", "--yes"]).ok()?;
    ensure(world.checkpoints()?.len() == 1, || "not deleted after a yes".to_owned())?;
    Ok(3)
}

fn documents(ran: &Ran) -> usize {
    let stream = serde_json::Deserializer::from_str(&ran.stdout).into_iter::<Value>();
    stream.map(|it| it.map_or(100, |_| 1)).sum()
}

/// `--json` prints one document, also when a command fails.
fn one_document(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    let mut broken = Vec::new();
    for line in COMMANDS.iter().chain(&[
        "checkpoint show nothing",
        "checkpoint rollback nothing --yes",
        "undo --yes",
        "export events",
        "log",
        "search nothing-of-the-kind",
        "session show nothing",
    ]) {
        let mut words = words(line);
        words.push("--json".to_owned());
        let ran = world.biv(&words).sound()?;
        let n_documents = documents(&ran);
        // What was refused because of its words is told by the parser, on the other channel.
        let is_right = n_documents == 1 || n_documents == 0 && ran.code == Some(2);
        // What a supervised command prints is its own.
        if !is_right && !line.starts_with("run ") {
            broken.push(format!(
                "{line}: {n_documents} documents: {}",
                ran.text().chars().take(200).collect::<String>()
            ));
        }
    }
    ensure(broken.is_empty(), || format!("{}: {}", broken.len(), broken.join("\n")))?;
    Ok(COMMANDS.len() as u64)
}

/// Who asks for one document per line has that.
fn ndjson(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    world.save("one")?;
    let ran = world.biv(&["export", "events"]).ok()?;
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let is_right =
        lines.len() > 1 && lines.iter().all(|line| serde_json::from_str::<Value>(line).is_ok());
    ensure(is_right, || format!("not one document per line: {}", ran.text()))?;
    Ok(1)
}
