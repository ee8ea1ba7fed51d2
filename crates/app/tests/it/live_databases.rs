//! SQLite databases that programs use while checkpoints are taken and restored. `X`, `X-wal`, `X-shm` and
//! `X-journal` are one thing: a checkpoint holds all of it as it was at one moment, or says that it holds none.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use bivouac_testkit::TestEnv;
use rusqlite::{Connection, OpenFlags};

use crate::{env, git_env};

const SAVES: usize = 30;
/// Rows that follow each other in a transaction are far apart in the file.
const STRIDE: i64 = 367;

/// A program that moves money between two tables, many pages in each transaction.
struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<i64>,
}

fn open(path: &Path, mode: &str) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(10)).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode={mode}; PRAGMA synchronous=OFF;
             CREATE TABLE IF NOT EXISTS one(id INTEGER PRIMARY KEY, n INTEGER, pad TEXT);
             CREATE TABLE IF NOT EXISTS two(id INTEGER PRIMARY KEY, n INTEGER, pad TEXT);"
        ))
        .unwrap();
    connection
}

impl Writer {
    fn start(path: PathBuf, mode: &'static str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let (ready, started) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut connection = open(&path, mode);
            fill(&mut connection);
            let mut n = 0;
            while !is_stopped.load(Ordering::Relaxed) {
                move_money(&mut connection, n);
                n += 1;
                if n == 3 {
                    ready.send(()).unwrap();
                }
            }
            n
        });
        started.recv().unwrap();
        Self { stop, thread }
    }

    fn stop(self) -> i64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Makes the database so large that reading it takes a while.
fn fill(connection: &mut Connection) {
    let rows =
        "WITH RECURSIVE ids(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM ids WHERE id < 999)";
    let insert = |table: &str| {
        format!("INSERT INTO {table} {rows} SELECT id, 0, hex(randomblob(450)) FROM ids;")
    };
    let sql = format!("BEGIN; {} {} COMMIT;", insert("one"), insert("two"));
    connection.execute_batch(&sql).unwrap();
}

/// After every transaction the sum of both tables is 0, and both have the same number of rows.
fn move_money(connection: &mut Connection, n: i64) {
    let transaction = connection.transaction().unwrap();
    let amount = n % 97 + 1;
    for row in 0..8 {
        let (id, pad) = ((n * 8 + row) * STRIDE, "x".repeat(900));
        let insert = |table: &str, n: i64| {
            let sql = format!("INSERT OR REPLACE INTO {table} VALUES (?1, ?2, ?3)");
            transaction.execute(&sql, (id % 1000, n, &pad)).unwrap();
        };
        insert("one", amount);
        insert("two", -amount);
    }
    transaction.commit().unwrap();
}

/// What a database holds, after SQLite has recovered it from its journal or log: the number of rows.
fn check(path: &Path) -> i64 {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    let ask = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(ask("PRAGMA integrity_check"), "ok", "{}", path.display());
    assert_eq!(
        number("SELECT (SELECT total(n) FROM one) + (SELECT total(n) FROM two) = 0"),
        1,
        "half a transaction in {}",
        path.display()
    );
    let rows = number("SELECT count(*) FROM one");
    assert_eq!(rows, number("SELECT count(*) FROM two"), "{}", path.display());
    rows
}

/// Takes checkpoints while a program writes. Every one holds a good database, or says that it holds none.
fn saves_beside_a_writer(mode: &'static str) {
    let env = env();
    env.write("notes.txt", "n").folder("data");
    let writer = Writer::start(env.path("data/app.db"), mode);
    for _ in 0..SAVES {
        env.biv(&["checkpoint", "create"]).ok();
    }
    let n_transactions = writer.stop();
    let mut n_captured = 0;
    for n in 1..=SAVES {
        let into = format!("../out/{n}");
        env.biv(&["checkpoint", "restore", &format!("cp-{n:03}"), "--into", &into]).ok();
        let database = env.work().join(into).join("data/app.db");
        if database.exists() {
            check(&database);
            n_captured += 1;
            continue;
        }
        let shown = env.json(&format!("checkpoint show cp-{n:03}"));
        assert!(
            shown.to_string().contains("changed_while_read"),
            "a gap that is not told: {shown}"
        );
        let folder = env.work().join(format!("../out/{n}/data"));
        assert_eq!(std::fs::read_dir(folder).map_or(0, Iterator::count), 0, "a part of a database");
    }
    assert!(n_captured > 0, "no checkpoint beside {n_transactions} transactions has the database");
}

#[test]
fn a_database_with_a_write_ahead_log_is_captured_at_one_moment() {
    saves_beside_a_writer("WAL");
}

#[test]
fn a_database_with_a_rollback_journal_is_captured_at_one_moment() {
    saves_beside_a_writer("DELETE");
}

#[test]
fn a_database_with_a_persistent_journal_is_captured_at_one_moment() {
    saves_beside_a_writer("PERSIST");
}

/// Leaves a database as a program does that was killed: with a log that is not copied into it yet.
fn leave_with_log(env: &TestEnv, n_transactions: i64) {
    let scratch = tempfile::tempdir().unwrap();
    let names = ["app.db", "app.db-wal", "app.db-shm"];
    for name in names.iter().filter(|name| env.exists(*name)) {
        std::fs::copy(env.path(name), scratch.path().join(name)).unwrap();
    }
    let mut connection = open(&scratch.path().join("app.db"), "WAL");
    connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
    for n in 0..n_transactions {
        move_money(&mut connection, n);
    }
    for name in names {
        std::fs::copy(scratch.path().join(name), env.path(name)).unwrap();
    }
}

/// The number of rows in a copy, so that looking changes nothing.
fn rows(env: &TestEnv) -> i64 {
    let scratch = tempfile::tempdir().unwrap();
    for name in ["app.db", "app.db-wal", "app.db-journal"] {
        if env.exists(name) {
            std::fs::copy(env.path(name), scratch.path().join(name)).unwrap();
        }
    }
    check(&scratch.path().join("app.db"))
}

#[test]
fn a_rollback_and_its_undo_bring_a_database_back_with_its_log() {
    let env = env();
    leave_with_log(&env, 3);
    assert_eq!(rows(&env), 24);
    env.biv(&["checkpoint", "create"]).ok();
    // A program opens it, adds to it and closes it: the log is copied into the database and removed.
    let mut connection = open(&env.path("app.db"), "WAL");
    (3..9).for_each(|n| move_money(&mut connection, n));
    drop(connection);
    assert!(!env.exists("app.db-wal"));
    assert_eq!(rows(&env), 72);

    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(rows(&env), 24);
    env.biv(&["undo", "--yes"]).ok();
    assert_eq!(rows(&env), 72);
    assert!(!env.exists("app.db-wal") && !env.exists("app.db-shm"));
    env.biv(&["redo", "--yes"]).ok();
    assert_eq!(rows(&env), 24);
}

#[test]
fn one_file_of_a_database_is_never_restored_alone() {
    let env = env();
    leave_with_log(&env, 3);
    env.write("notes.txt", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let mut connection = open(&env.path("app.db"), "WAL");
    (3..9).for_each(|n| move_money(&mut connection, n));
    drop(connection);
    env.write("notes.txt", "2");
    // Only one of its files is named; all of them go back, and nothing else does.
    env.biv(&["checkpoint", "rollback", "cp-001", "app.db", "--yes"]).ok();
    assert_eq!(rows(&env), 24);
    assert_eq!(env.read("notes.txt"), "2");
}

#[test]
fn undo_leaves_a_database_alone_that_a_program_changed_since() {
    let env = env();
    leave_with_log(&env, 3);
    env.write("notes.txt", "1");
    env.biv(&["checkpoint", "create"]).ok();
    leave_with_log(&env, 9);
    env.write("notes.txt", "2");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    let mut connection = open(&env.path("app.db"), "WAL");
    move_money(&mut connection, 20);
    drop(connection);

    let run = env.biv(&["undo", "--yes"]);
    assert_eq!(run.code, 3, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("left alone: app.db (changed meanwhile)"), "{}", run.stdout);
    assert_eq!(env.read("notes.txt"), "2", "the rest is taken back");
    assert_eq!(rows(&env), 32);
}

#[test]
fn a_database_that_a_program_has_open_stays_as_it_is() {
    let env = env();
    leave_with_log(&env, 3);
    env.write("notes.txt", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("notes.txt", "2");
    let mut connection = open(&env.path("app.db"), "WAL");
    move_money(&mut connection, 20);

    let pid = std::process::id();
    let run = env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]);
    assert_eq!(run.code, 3, "{}{}", run.stdout, run.stderr);
    let told = format!("the database `app.db` is open in process {pid} and stays as it is");
    assert!(run.stderr.contains(&told), "{}", run.stderr);
    assert_eq!(env.read("notes.txt"), "1", "the rest is restored");
    // The program notices nothing, and nothing of what it wrote is lost.
    move_money(&mut connection, 21);
    drop(connection);
    assert_eq!(rows(&env), 40);

    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(rows(&env), 24);
}

#[test]
fn the_siblings_of_a_database_follow_it_whatever_is_ignored() {
    let env = git_env();
    leave_with_log(&env, 3);
    env.folder("kept");
    for name in ["app.db", "app.db-wal", "app.db-shm"] {
        std::fs::copy(env.path(name), env.path(format!("kept/{name}"))).unwrap();
    }
    // The database at the top is ignored, which the names of its siblings are not; in `kept` it is the other
    // way round.
    env.write(".gitignore", "/app.db\n*-wal\n!/app.db-wal\n*-shm\n");
    env.biv(&["checkpoint", "create"]).ok();
    let into = env.root().join("out");
    env.biv(&["checkpoint", "restore", "cp-001", "--into", into.to_str().unwrap()]).ok();
    assert_eq!(check(&into.join("kept/app.db")), 24);
    for name in ["app.db", "app.db-wal", "app.db-shm"] {
        assert!(!into.join(name).exists(), "{name} without the rest of its database");
    }
    // Another scan of the same names decides the same.
    env.write("kept/new.txt", "n").write("new.txt", "n");
    env.biv(&["checkpoint", "create"]).ok();
    let changes = env.json("checkpoint diff cp-001 cp-002").to_string();
    assert!(!changes.contains("-wal"), "{changes}");
}

#[test]
fn a_database_with_a_log_that_is_too_large_is_a_gap_as_a_whole() {
    let mut env = env();
    env.set("BIV_CHECKPOINT_MAX_FILE_SIZE", "40KB");
    leave_with_log(&env, 9);
    env.biv(&["checkpoint", "create"]).ok();
    let coverage = env.run("checkpoint show cp-001 --coverage");
    for name in ["app.db", "app.db-wal", "app.db-shm"] {
        assert!(coverage.contains(name), "{name} is not told: {coverage}");
    }
    // What no checkpoint holds stays as it is.
    leave_with_log(&env, 12);
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(rows(&env), 96);
}

#[test]
fn files_that_are_only_named_like_a_database_are_files_of_their_own() {
    let env = env();
    env.write("notes", "1").write("notes-journal", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("notes", "2").write("notes-journal", "2");
    env.biv(&["checkpoint", "rollback", "cp-001", "notes", "--yes"]).ok();
    assert_eq!((env.read("notes"), env.read("notes-journal")), ("1".into(), "2".into()));
}
