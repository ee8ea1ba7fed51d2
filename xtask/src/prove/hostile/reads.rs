//! Where a small file is expected there is a fifo, a device, a socket, a folder or a file without end. No command waits
//! for it or reads all of it, hooks still record what they are told, and a save that crashed is on record.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use serde_json::json;

use super::ground::{Ground, Outcome, Stop, World, ensure, need, need_root, quietly, run};
use super::{Case, case};

/// Files of others that are read on the way.
const PLACES: [&str; 18] = [
    "bivouac.toml",
    ".git",
    ".git/HEAD",
    ".git/config",
    ".git/commondir",
    ".git/gitdir",
    ".git/index",
    ".git/packed-refs",
    ".git/info/exclude",
    ".git/info/sparse-checkout",
    ".git/refs/heads/main",
    ".git/rebase-merge",
    ".git/MERGE_HEAD",
    ".gitignore",
    ".gitattributes",
    "src/.gitignore",
    ".env",
    "src/.git",
];

/// Those of them that the quick form tries with every kind.
const FEW: [&str; 6] = ["bivouac.toml", ".git", ".git/HEAD", ".git/index", ".gitignore", ".env"];

/// What is there instead.
const KINDS: [&str; 5] = ["fifo", "zero", "endless", "folder", "socket"];

/// More than any command needs, and little enough to stop one that reads a file without end.
const MEMORY: &str = "ulimit -v 4000000; exec \"$0\" \"$@\"";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in KINDS {
        for place in PLACES {
            let is_git_itself = place == ".git" && kind == "folder";
            if !is_git_itself {
                cases.push(case(format!("{kind} {place}"), move |ground| {
                    obstacle(ground, kind, place)
                }));
            }
        }
    }
    cases.extend([
        case("config own", own_config),
        case("settings fifo", |ground| settings(ground, "fifo")),
        case("settings zero", |ground| settings(ground, "zero")),
        case("index bomb", index_bomb),
        case("transcript fifo", |ground| transcript(ground, "fifo")),
        case("transcript zero", |ground| transcript(ground, "zero")),
        case("transcript endless", |ground| transcript(ground, "endless")),
        case("transcript folder", |ground| transcript(ground, "folder")),
        case("devices", devices),
        case("deep 2000", |ground| deep(ground, 2_000)),
        case("deep 20000", |ground| deep(ground, ground.size(4_000, 20_000))),
        case("deep rollback", deep_rollback),
        case("killed save", |ground| killed(ground, "KILL")),
        case("crashed save", |ground| killed(ground, "ABRT")),
    ]);
    cases
}

/// Settings that a project brings for an agent are looked at by several commands.
fn settings(ground: &Ground<'_>, kind: &str) -> Outcome {
    let world = ground.repository()?;
    let _listener = put(kind, &world.env.path(".claude/settings.json"))?;
    for words in [
        &["hooks", "status"][..],
        &["doctor", "--agent", "claude-code"],
        &["hooks", "install", "--agent", "claude-code", "--scope", "project", "--yes"],
    ] {
        world.biv_by(MEMORY, words).sound()?;
    }
    Ok(3)
}

/// An index whose names are stored as differences to a name of a megabyte.
fn index_bomb(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    world.env.write(".gitignore", "build/\n").write("build/x", "1\n");
    world.env.write(".git/index", bivouac_testkit::index_bomb());
    world.biv_by(MEMORY, &["checkpoint", "create", "--name", "one"]).done()?;
    world.biv_by(MEMORY, &["status"]).done()?;
    Ok(2)
}

fn put(kind: &str, path: &Path) -> Result<Option<UnixListener>, Stop> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    if path.is_dir() {
        fs::rename(path, path.with_extension("aside"))?;
    }
    let _not_there = fs::remove_file(path);
    match kind {
        "fifo" => drop(quietly("mkfifo", &[&path.to_string_lossy()])?),
        "zero" => symlink("/dev/zero", path)?,
        "endless" => File::create(path)?
            .set_len(1 << 40)
            .or_else(|_| File::create(path)?.set_len(1 << 36))?,
        "folder" => fs::create_dir(path)?,
        _ => {
            // A path this long may not fit into an address, so its folder is named by a descriptor.
            let folder = File::open(path.parent().ok_or("it is in a folder")?)?;
            let name = path.file_name().unwrap_or_default();
            let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
            return Ok(Some(UnixListener::bind(short)?));
        }
    }
    Ok(None)
}

/// Everything ends, hooks with 0; what they were told is on record once the obstacle is gone.
fn obstacle(ground: &Ground<'_>, kind: &str, place: &str) -> Outcome {
    let is_usual = matches!(kind, "fifo" | "zero") || FEW.contains(&place);
    if !ground.size(is_usual, true) {
        return Ok(0);
    }
    let world = ground.repository()?;
    // What is ignored makes a scan ask which of it git tracks.
    world
        .env
        .write(".gitignore", "build/\n")
        .write("build/x", "1\n")
        .write("src/.gitignore", "x\n");
    world.biv(&["checkpoint", "create", "--name", "one"]).ok()?;
    world.env.write("a.txt", "second\n");
    let path = world.env.path(place);
    let _socket = put(kind, &path)?;
    world.biv_by(MEMORY, &["checkpoint", "create", "--name", "two"]).done()?;
    if matches!(kind, "zero" | "endless") {
        frugal(&world, &["checkpoint", "create"])?;
    }
    world.hook_by(MEMORY, "UserPromptSubmit", &json!({ "prompt": "find the lighthouse" })).ok()?;
    world.hook_by(MEMORY, "Stop", &json!({})).ok()?;
    world.biv_by(MEMORY, &["status"]).sound()?;
    let back = world.biv_by(MEMORY, &["checkpoint", "rollback", "one", "--yes"]).done()?;
    ensure(world.env.read("a.txt") == "first\n", || {
        format!("went back, but not all the way: {}", back.text())
    })?;
    // What stands in the way is gone.
    if path.is_dir() {
        fs::remove_dir_all(&path)?;
    } else {
        drop(fs::remove_file(&path));
    }
    let aside = path.with_extension("aside");
    if aside.exists() {
        fs::rename(aside, &path)?;
    }
    let tree = world.restored("two")?;
    let kept = tree.get(b"a.txt".as_slice()).map(|it| it.2.clone()).unwrap_or_default();
    ensure(kept == b"second\n", || "the checkpoint does not hold what was there".to_owned())?;
    // Git's own files may be beyond repair; the record is looked for from a place that does not need them.
    if place.starts_with(".git/") {
        fs::rename(world.env.path(".git"), world.env.root().join("git-aside"))?;
    }
    ensure(world.has_event_with("find the lighthouse")?, || "the prompt is lost".to_owned())?;
    Ok(1)
}

/// A command takes as little memory as without the obstacle, give or take a lot.
fn frugal(world: &World, words: &[&str]) -> Result<(), Stop> {
    need("python3", "python3")?;
    const MOST_KILOBYTES: u64 = 400_000;
    let peak = world.env.root().join("peak");
    let script = "import resource, subprocess, sys; subprocess.call(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); open(sys.argv[1], 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))";
    let limited = format!(
        "ulimit -v 4000000; exec python3 -c \"{script}\" '{}' \"$0\" \"$@\"",
        peak.display()
    );
    world.biv_by(&limited, words).sound()?;
    let kilobytes: u64 =
        fs::read_to_string(&peak)?.trim().parse().map_err(|_| "no peak was measured")?;
    ensure(kilobytes < MOST_KILOBYTES, || {
        format!("`biv {}` took {} MB of memory", words.join(" "), kilobytes >> 10)
    })
}

/// The user's own configuration cannot be read either: a hook still records.
fn own_config(ground: &Ground<'_>) -> Outcome {
    for kind in KINDS {
        let world = ground.repository()?;
        let path = world.env.home().join(".config/bivouac/config.toml");
        let _socket = put(kind, &path)?;
        world
            .hook_by(MEMORY, "UserPromptSubmit", &json!({ "prompt": "find the lighthouse" }))
            .ok()?;
        world.biv_by(MEMORY, &["checkpoint", "create"]).sound()?;
        if path.is_dir() {
            fs::remove_dir_all(&path)?;
        } else {
            fs::remove_file(&path)?;
        }
        ensure(world.has_event_with("find the lighthouse")?, || {
            format!("{kind}: the prompt is lost")
        })?;
    }
    Ok(KINDS.len() as u64)
}

/// The transcript that a hook names is no file.
fn transcript(ground: &Ground<'_>, kind: &str) -> Outcome {
    let world = ground.repository()?;
    let path = world.env.home().join(".claude/projects/-w/t.jsonl");
    let _socket = put(kind, &path)?;
    for event in ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"] {
        let more = json!({ "transcript_path": path, "prompt": "find the lighthouse", "source": "startup" });
        world.hook_by(MEMORY, event, &more).ok()?;
    }
    world.biv_by(MEMORY, &["checkpoint", "create"]).sound()?;
    fs::remove_file(&path).or_else(|_| fs::remove_dir(&path))?;
    ensure(world.has_event_with("find the lighthouse")?, || "the prompt is lost".to_owned())?;
    Ok(4)
}

/// The workspace itself holds what is no file. All the rest is saved and comes back, and they stay.
fn devices(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    world.save("one")?;
    quietly("mkfifo", &[&world.env.path("fifo").to_string_lossy()])?;
    if need_root().is_ok() {
        quietly("mknod", &[&world.env.path("zero").to_string_lossy(), "c", "1", "5"])?;
    }
    let short = tempfile::tempdir()?;
    let _listener = UnixListener::bind(short.path().join("s"))?;
    fs::rename(short.path().join("s"), world.env.path("socket"))
        .or_else(|_| fs::write(world.env.path("socket"), ""))?;
    world.env.link("link", "/dev/zero");
    world.env.write("a.txt", "second\n");
    world.save("two")?;
    ensure(world.has_gap("two", "fifo")?, || {
        "the checkpoint does not say that it lacks a fifo".to_owned()
    })?;
    world.biv(&["checkpoint", "rollback", "one", "--yes"]).done()?;
    ensure(world.env.read("a.txt") == "first\n", || "it did not go back".to_owned())?;
    ensure(world.env.exists("fifo"), || {
        "the fifo was removed, and nothing can bring it back".to_owned()
    })?;
    Ok(1)
}

/// So many folders, each in the other, with a file at the end.
fn dig(world: &World, depth: usize) -> Result<(), Stop> {
    need("python3", "python3")?;
    let script = "import os, sys\nos.chdir(sys.argv[1])\nfor _ in range(int(sys.argv[2])):\n    os.mkdir('d')\n    os.chdir('d')\nopen('end', 'w').write('deep')\n";
    let work = world.env.work();
    quietly("python3", &["-c", script, &work.to_string_lossy(), &depth.to_string()])?;
    Ok(())
}

/// The standard library removes folders by recursion; `rm` does not.
fn fill_in(world: &World) -> Result<(), Stop> {
    quietly("rm", &["-rf", &world.env.path("d").to_string_lossy()]).map(drop)
}

fn deep(ground: &Ground<'_>, depth: usize) -> Outcome {
    let world = ground.repository()?;
    dig(&world, depth)?;
    let held = deep_saves(&world);
    fill_in(&world)?;
    held
}

fn deep_saves(world: &World) -> Outcome {
    let ran = world.save("one")?;
    world.prompt("hello")?;
    world.hook("Stop", &json!({})).ok()?;
    world.biv(&["status"]).ok()?;
    let out = world.env.root().join("out");
    world.biv(&["checkpoint", "restore", "one", "--into", &out.to_string_lossy()]).done()?;
    let top = fs::read_to_string(out.join("a.txt")).unwrap_or_default();
    quietly("rm", &["-rf", &out.to_string_lossy()])?;
    ensure(top == "first\n", || "the file at the top is not in the checkpoint".to_owned())?;
    let shown = world
        .biv(&["checkpoint", "show", "one", "--files", "--coverage", "--json"])
        .ok()?
        .json()?;
    let has_end = shown["files"].to_string().contains("/end");
    let has_gap = shown["not_covered"].as_array().is_some_and(|gaps| {
        gaps.iter().any(|gap| gap["path"].as_str().is_some_and(|path| path.starts_with("d")))
    });
    ensure(has_end || has_gap, || format!("neither saved nor said: {}", ran.text()))?;
    Ok(1)
}

/// Going back beside such a folder does the rest, and leaves the folder as it is or removes it whole.
fn deep_rollback(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    world.save("one")?;
    dig(&world, 2_000)?;
    world.env.write("a.txt", "second\n");
    let ran = world.biv(&["checkpoint", "rollback", "one", "--yes"]);
    fill_in(&world)?;
    let ran = ran.done()?;
    ensure(world.env.read("a.txt") == "first\n", || format!("it did not go back: {}", ran.text()))?;
    Ok(1)
}

/// A save that is killed when it has begun to write is told by the next command, and by the log.
fn killed(ground: &Ground<'_>, signal: &str) -> Outcome {
    need("strace", "strace")?;
    let world = ground.repository()?;
    world.save("one")?;
    world.env.write("a.txt", "second\n");
    let before = record(&world)?;
    let trace = world.env.root().join("trace").to_string_lossy().into_owned();
    let inject = format!("inject=fsync:signal={signal}:when=1");
    let words =
        ["strace", "-f", "-q", "-o", &trace, "-e", "trace=fsync", "-e", &inject].map(str::to_owned);
    let ran = run(world.env.biv_under(&words, &["checkpoint", "create", "--name", "two"]), b"");
    ensure(ran.code != Some(0), || format!("it was not killed: {}", ran.text()))?;
    let next = world.biv(&["status"]).ok()?;
    let after = record(&world)?;
    let news: Vec<&String> = after.iter().filter(|line| !before.contains(line)).collect();
    let words = ["fail", "interrupt", "killed", "crash", "did not finish", "not saved"];
    let tells = |text: &str| words.iter().any(|word| text.to_lowercase().contains(word));
    ensure(news.iter().any(|line| tells(line)), || {
        format!("the log says nothing of it: {news:?}; status: {}", next.text())
    })?;
    Ok(1)
}

fn record(world: &World) -> Result<Vec<String>, Stop> {
    let log = world.biv(&["log"]).ok()?;
    Ok(log.stdout.lines().map(str::to_owned).collect())
}
