//! Programs write while a checkpoint is taken. Whatever it holds of their files is what was there at one moment, or it
//! says that it does not hold them; a database and the files beside it come back together.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use bivouac_testkit::{read_stats, until};

use super::ground::{Ground, Outcome, Stop, World, ensure, need, quietly};
use super::mounts::Mount;
use super::{Case, case};
use crate::tools::command;

/// What belongs to a database.
const DATABASE: [&str; 4] = ["app.db", "app.db-wal", "app.db-shm", "app.db-journal"];

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = ["wal", "delete", "truncate", "persist"]
        .map(|mode| case(format!("sqlite {mode}"), move |ground| sqlite(ground, mode)))
        .into();
    cases.extend(
        ["ext4", "xfs", "btrfs"]
            .map(|kind| case(format!("sqlite-on {kind}"), move |ground| sqlite_on(ground, kind))),
    );
    cases.extend(
        ["mapped", "written", "log", "renamed"]
            .map(|how| case(format!("rewritten {how}"), move |ground| rewritten(ground, how))),
    );
    cases.extend([
        case("untouched", untouched),
        case("together", |ground| together(ground, "")),
        case("together ignored", |ground| together(ground, "*-wal\n*-shm\n")),
        case("together path", together_path),
        case("undo", |ground| changed_since(ground, "undo")),
        case("redo", |ground| changed_since(ground, "redo")),
    ]);
    cases
}

/// A program that writes without pause. Ended with its value.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// Commits without pause: a transaction moves amounts between rows, so that their sum is the same after each of them.
const SQLITE: &str = r#"
import random, sqlite3, sys
path, mode, ready = sys.argv[1:4]
db = sqlite3.connect(path, isolation_level=None, timeout=60)
db.execute("pragma journal_mode=%s" % mode)
db.execute("pragma synchronous=off")
db.execute("pragma wal_autocheckpoint=200")
db.execute("create table if not exists t (id integer primary key, n int, pad text)")
db.execute("create index if not exists i on t (n)")
db.execute("begin immediate")
db.executemany("insert or replace into t values (?, 1000, ?)", [(k, "x" * 700) for k in range(3000)])
db.execute("commit")
open(ready, "w").close()
turn = 0
while True:
    turn += 1
    db.execute("begin immediate")
    for _ in range(30):
        a, b = random.sample(range(3000), 2)
        db.execute("update t set n = n - ?, pad = ? where id = ?", (turn % 9, "abc"[turn % 3] * (500 + turn % 300), a))
        db.execute("update t set n = n + ? where id = ?", (turn % 9, b))
    db.execute("commit")
"#;

/// Says which of the folders hold a database that is not whole.
const SQLITE_CHECK: &str = r#"
import os, sqlite3, sys
for folder in sys.argv[1:]:
    path = os.path.join(folder, "app.db")
    if not os.path.exists(path):
        print(folder, "missing")
        continue
    try:
        db = sqlite3.connect(path)
        check = db.execute("pragma integrity_check").fetchone()
        rows = db.execute("select count(*), sum(n) from t not indexed").fetchone()
        print(folder, "whole" if check == ("ok",) and rows == (3000, 3000000) else "torn %s %s" % (check[0], rows))
        db.close()
    except sqlite3.Error as error:
        print(folder, "torn", error)
"#;

fn python(script: &str, words: &[&str]) -> Result<String, Stop> {
    quietly("python3", &[&["-c", script], words].concat())
}

fn write(world: &World, script: &str, words: &[&str]) -> Result<Writer, Stop> {
    need("python3", "python3")?;
    let ready = world.env.root().join("ready");
    let _not_there = fs::remove_file(&ready);
    let mut program = command("python3");
    program.arg("-c").arg(script).args(words).arg(&ready).process_group(0);
    let child = program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let writer = Writer(child);
    until("the writer", || ready.exists());
    Ok(writer)
}

/// Saves so often, and gives each back into a folder of its own.
fn saved(world: &World, n_saves: usize) -> Result<Vec<(String, PathBuf)>, Stop> {
    let mut saved = Vec::new();
    for n in 0..n_saves {
        let name = format!("save-{n}");
        world.save(&name)?;
        let out = world.env.root().join(&name);
        world.biv(&["checkpoint", "restore", &name, "--into", &out.to_string_lossy()]).done()?;
        saved.push((name, out));
    }
    Ok(saved)
}

fn sqlite(ground: &Ground<'_>, mode: &str) -> Outcome {
    let world = ground.world_on_disk()?;
    let n_quick = if matches!(mode, "wal" | "delete") { 30 } else { 8 };
    sqlite_in(&world, mode, ground.size(n_quick, 300))
}

/// The same on other file systems.
fn sqlite_on(ground: &Ground<'_>, kind: &str) -> Outcome {
    let world = ground.world_on_disk()?;
    let _disk = Mount::image(kind, &[], &world.env.work())?;
    let _not_there = fs::remove_dir(world.env.path("lost+found"));
    sqlite_in(&world, "wal", ground.size(6, 200))
}

fn sqlite_in(world: &World, mode: &str, n_saves: usize) -> Outcome {
    let path = world.env.path("app.db");
    world.env.write("other.txt", "beside");
    let writer = write(world, SQLITE, &[&path.to_string_lossy(), mode])?;
    let saved = saved(world, n_saves)?;
    drop(writer);
    let n_held = whole(world, &saved)?;
    // Once nobody writes, nothing is left out.
    world.save("quiet")?;
    let out = world.env.root().join("quiet");
    world.biv(&["checkpoint", "restore", "quiet", "--into", &out.to_string_lossy()]).ok()?;
    let said = python(SQLITE_CHECK, &[&out.to_string_lossy()])?;
    ensure(said.ends_with(" whole"), || format!("of a quiet database: {said}"))?;
    Ok(n_held)
}

/// Every restored database is whole, or all of it is missing and said to be.
fn whole(world: &World, saved: &[(String, PathBuf)]) -> Result<u64, Stop> {
    let folders: Vec<String> = saved.iter().map(|it| it.1.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = folders.iter().map(String::as_str).collect();
    // What is beside it is looked at before SQLite opens it and makes some of it itself.
    let has_rest: Vec<bool> =
        saved.iter().map(|(_, out)| DATABASE[1..].iter().any(|it| out.join(it).exists())).collect();
    let said = python(SQLITE_CHECK, &words)?;
    let mut torn = Vec::new();
    for ((line, (name, _)), has_rest) in said.lines().zip(saved).zip(has_rest) {
        let is_missing = line.ends_with(" missing");
        if is_missing && (has_rest || !world.has_gap(name, "app.db")?) {
            torn.push(format!("{name}: only a part of it is held, or the gap is not said"));
        } else if !is_missing && !line.ends_with(" whole") {
            torn.push(line.rsplit('/').next().unwrap_or_default().to_owned());
        }
    }
    ensure(torn.is_empty(), || {
        format!("{} of {} captures are torn: {}", torn.len(), saved.len(), torn.join("; "))
    })?;
    Ok(saved.len() as u64)
}

/// Two places for the content, and a page in front that says which of them counts. What is there at one moment is
/// always whole; what is read while the writer goes on twice is not. LMDB works like this.
const PAGES: &str = r#"
import mmap, os, sys
path, how, ready = sys.argv[1:4]
SIZE = 1 << 20
file = open(path, "w+b", buffering=0)
file.truncate(4096 + 2 * SIZE)
view = mmap.mmap(file.fileno(), 0)
n = 0
while True:
    n += 1
    at, body = 4096 + (n % 2) * SIZE, n.to_bytes(8, "little") * (SIZE // 8)
    if how == "mapped":
        view[at:at + SIZE] = body
        view[0:8] = n.to_bytes(8, "little")
    else:
        os.pwrite(file.fileno(), body, at)
        os.pwrite(file.fileno(), n.to_bytes(8, "little"), 0)
    if n == 2:
        open(ready, "w").close()
"#;

/// A log that grows by lines, some of them longer than a page, and a file that is replaced by renaming.
const LINES: &str = r#"
import os, sys
path, how, ready = sys.argv[1:4]
n = 0
log = open(path, "wb", buffering=0)
while True:
    n += 1
    if how == "log":
        if n < 20000:
            log.write(b"%d %s\n" % (n, b"x" * (n % 700)))
    else:
        with open(path + ".new", "wb") as file:
            file.write(b"%08d" % n * 30000)
        os.rename(path + ".new", path)
    if n == 20:
        open(ready, "w").close()
"#;

fn rewritten(ground: &Ground<'_>, how: &'static str) -> Outcome {
    let world = ground.world_on_disk()?;
    world.env.write("other.txt", "beside");
    let path = world.env.path("data");
    let script = if matches!(how, "mapped" | "written") { PAGES } else { LINES };
    let writer = write(&world, script, &[&path.to_string_lossy(), how])?;
    let saved = saved(&world, ground.size(10, 300))?;
    drop(writer);
    let all = fs::read(&path)?;
    let mut torn = Vec::new();
    for (name, out) in &saved {
        match fs::read(out.join("data")) {
            Ok(bytes) if !is_one_moment(how, &bytes, &all) => torn.push(name.as_str()),
            Err(_) if !world.has_gap(name, "data")? => torn.push(name.as_str()),
            _ => {}
        }
    }
    ensure(torn.is_empty(), || {
        format!("{} of {} captures are torn: {}", torn.len(), saved.len(), torn.join(", "))
    })?;
    world.save("quiet")?;
    let tree = world.restored("quiet")?;
    let kept = tree.get(b"data".as_slice()).map(|it| it.2.as_slice());
    ensure(kept == Some(all.as_slice()), || "once quiet, it is still not saved".to_owned())?;
    Ok(saved.len() as u64)
}

/// Was this in the file at one moment?
fn is_one_moment(how: &str, bytes: &[u8], all: &[u8]) -> bool {
    match how {
        "log" => all.starts_with(bytes),
        "renamed" => bytes.chunks(8).all(|piece| Some(piece) == bytes.get(..8)),
        _ => {
            const SIZE: usize = 1 << 20;
            let number =
                bytes.get(..8).and_then(|it| it.try_into().ok()).map_or(0, u64::from_le_bytes);
            let at = 4_096 + (number as usize % 2) * SIZE;
            let body = bytes.get(at..at + SIZE).unwrap_or_default();
            // Before the second round one of the places is still empty.
            number < 2
                || !body.is_empty() && body.chunks(8).all(|piece| piece == number.to_le_bytes())
        }
    }
}

/// A database whose program was killed: what it committed last is in the log beside it.
const LEFT: &str = r#"
import os, sqlite3, sys
path, n = sys.argv[1], int(sys.argv[2])
db = sqlite3.connect(path, isolation_level=None)
db.execute("pragma journal_mode=wal")
db.execute("pragma wal_autocheckpoint=0")
db.execute("create table if not exists t (id integer primary key, n int, pad text)")
db.execute("begin")
db.executemany("insert or replace into t values (?, ?, ?)", [(k, n, "p%d" % n * 60) for k in range(200)])
db.execute("commit")
if len(sys.argv) > 3:
    db.execute("pragma wal_checkpoint(truncate)")
    db.execute("begin")
    db.execute("update t set n = n, pad = pad")
    db.execute("commit")
os._exit(0)
"#;

const ASK: &str = r#"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(db.execute("pragma integrity_check").fetchone()[0], db.execute("select group_concat(distinct n) from t").fetchone()[0])
"#;

fn state(folder: &Path) -> Result<String, Stop> {
    // Looked at in a copy: SQLite tidies up what it opens.
    let copy = tempfile::tempdir()?;
    for name in DATABASE {
        if folder.join(name).exists() {
            fs::copy(folder.join(name), copy.path().join(name))?;
        }
    }
    python(ASK, &[&copy.path().join("app.db").to_string_lossy()]).or_else(|stop| match stop {
        Stop::Broken(what) => Ok(format!("corrupt: {}", what.lines().last().unwrap_or_default())),
        left_out @ Stop::LeftOut(_) => Err(left_out),
    })
}

/// A save reads a database and does nothing to it: no recovery, no checkpoint of its log, no file beside it.
fn untouched(ground: &Ground<'_>) -> Outcome {
    need("python3", "python3")?;
    let world = ground.world_on_disk()?;
    let path = world.env.path("app.db").to_string_lossy().into_owned();
    python(LEFT, &[&path, "1"])?;
    let before = read_stats(&world.env.work());
    world.save("one")?;
    world.save("two")?;
    ensure(read_stats(&world.env.work()) == before, || {
        "the database was changed by a save".to_owned()
    })?;
    let out = world.env.root().join("out");
    world.biv(&["checkpoint", "restore", "two", "--into", &out.to_string_lossy()]).ok()?;
    let held = state(&out)?;
    ensure(held == "ok 1", || format!("what came back is {held}"))?;
    Ok(2)
}

/// Goes from one state of a database to an older one, with logs beside it that belong to neither.
fn together(ground: &Ground<'_>, ignored: &str) -> Outcome {
    need("python3", "python3")?;
    let world = ground.world_on_disk()?;
    world.env.git(&["init", "-q", "-b", "main"]);
    world.env.write(".gitignore", ignored).write("other.txt", "1");
    let path = world.env.path("app.db").to_string_lossy().into_owned();
    python(LEFT, &[&path, "1", "and on"])?;
    world.save("one")?;
    python(LEFT, &[&path, "2", "and on"])?;
    world.env.write("other.txt", "2");
    let ran = world.biv(&["checkpoint", "rollback", "one", "--yes"]).done()?;
    let held = state(&world.env.work())?;
    // All of it old; or, where not all of it was saved, all of it left alone, and said.
    let is_left_alone = held == "ok 2" && ran.said().contains("app.db") && ran.code == Some(3);
    ensure(held == "ok 1" || is_left_alone, || {
        format!("after the rollback it is {held}: {}", ran.text())
    })?;
    ensure(world.env.read("other.txt") == "1", || "the rest did not go back".to_owned())?;
    world.biv(&["undo", "--yes"]).done()?;
    let held = state(&world.env.work())?;
    ensure(held == "ok 2", || format!("after the undo it is {held}"))?;
    Ok(2)
}

/// A database with its log, saved, and changed since.
fn saved_and_changed(ground: &Ground<'_>) -> Result<World, Stop> {
    need("python3", "python3")?;
    let world = ground.world_on_disk()?;
    let path = world.env.path("app.db").to_string_lossy().into_owned();
    python(LEFT, &[&path, "1", "and on"])?;
    world.save("one")?;
    python(LEFT, &[&path, "2", "and on"])?;
    Ok(world)
}

/// Who asks for the database alone has the files beside it as well.
fn together_path(ground: &Ground<'_>) -> Outcome {
    let world = saved_and_changed(ground)?;
    let ran = world.biv(&["checkpoint", "rollback", "one", "app.db", "--yes"]).done()?;
    let held = state(&world.env.work())?;
    ensure(held == "ok 1", || format!("after the rollback it is {held}: {}", ran.text()))?;
    Ok(1)
}

/// Between a rollback and its undo a program commits. That is not lost: it is still there, or in a checkpoint.
fn changed_since(ground: &Ground<'_>, how: &str) -> Outcome {
    let world = saved_and_changed(ground)?;
    world.biv(&["checkpoint", "rollback", "one", "--yes"]).done()?;
    if how == "redo" {
        world.biv(&["undo", "--yes"]).done()?;
    }
    python(LEFT, &[&world.env.path("app.db").to_string_lossy(), "3"])?;
    let ran = world.biv(&[how, "--yes"]).sound()?;
    let mut states = vec![state(&world.env.work())?];
    ensure(states[0].starts_with("ok "), || {
        format!("the database is {}: {}", states[0], ran.text())
    })?;
    for id in world.checkpoints()? {
        let out = world.env.root().join(&id);
        world.biv(&["checkpoint", "restore", &id, "--into", &out.to_string_lossy()]).done()?;
        states.push(state(&out)?);
    }
    ensure(states.iter().any(|it| it == "ok 3"), || {
        format!("what the program wrote is nowhere: {states:?}; {}", ran.text())
    })?;
    Ok(1)
}
