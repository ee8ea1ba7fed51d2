//! What is being done when the power goes, and what it is done to.

use std::fs;

use bivouac_testkit::TestEnv;
use serde_json::{Value, json};

use crate::prove::dice::noise;
use crate::prove::talk::{say, tell};

/// An operation on a world of its own.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// For the table.
    pub(super) what: &'static str,
    pub(super) prepare: fn(&TestEnv),
    pub(super) act: Act,
    /// What is set right before the next command, as a person would.
    pub(super) first: fn(&TestEnv),
    /// The next command: it has to succeed whatever is found.
    pub(super) next: &'static str,
    /// Is the journal made anew?
    pub(super) rebuilds: bool,
    /// What is made beside the store and the workspace; it is there when that was said.
    pub(super) makes: &'static [&'static str],
    /// What else has to hold. It is told whether the command had said that it is done.
    pub(super) also: fn(&TestEnv, Told) -> Result<(), String>,
}

pub(super) enum Act {
    Words(&'static str),
    /// An agent's turn ends.
    TurnEnds,
    /// A prompt is given.
    Prompt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Nothing,
    Done,
}

pub(super) fn all() -> Vec<Case> {
    let words = Act::Words;
    let mut cases = vec![
        case("rollback", "a rollback", edited, words("checkpoint rollback cp-001 --yes")),
        case("undo", "an undo", rolled_back, words("undo --yes")),
        case("init", "the first checkpoint in an empty home", written, words("checkpoint create")),
        case("create", "saving a checkpoint", edited, words("checkpoint create")),
        case("hook", "the end of an agent's turn", talked, Act::TurnEnds),
        case("gc", "a sweep", deleted, words("gc")),
        case("delete", "deleting checkpoints", many, words("checkpoint delete n1 n3 --yes")),
        case("migrate", "the upgrade of an older store", older, words("status")),
        case("import", "the import of a bundle", bundled, words("import bundle ../b.tar.gz")),
    ];
    cases.push(Case {
        next: "reconcile",
        ..case("reconcile", "rebuilding tables", torn_tables, words("reconcile"))
    });
    cases.push(Case {
        rebuilds: true,
        next: "reconcile",
        ..case("rebuild", "rebuilding a lost journal", lost_journal, words("reconcile"))
    });
    cases.push(Case {
        also: |env, _| n_told(env, 1..=1),
        ..case("spool", "taking in what a hook put aside", put_aside, words("checkpoint create"))
    });
    cases.push(Case {
        first: mend_journal,
        also: |env, told| n_told(env, usize::from(told == Told::Done)..=1),
        ..case("aside", "a hook that puts aside what it was told", damaged_journal, Act::Prompt)
    });
    cases.push(Case {
        makes: &["home/.local/share/bivouac/restored", "home/.claude"],
        ..case("resume", "giving a conversation back", ended, words("resume --print"))
    });
    cases.push(Case {
        makes: &["try-b"],
        ..case("fork", "a fork", edited, words("fork cp-001 --into ../try-b"))
    });
    cases.push(Case {
        makes: &["b.tar.gz"],
        ..case(
            "export",
            "the export of a bundle",
            edited,
            words("export bundle cp-001 --raw --yes --file ../b.tar.gz"),
        )
    });
    cases
}

fn case(name: &'static str, what: &'static str, prepare: fn(&TestEnv), act: Act) -> Case {
    Case {
        name,
        what,
        prepare,
        act,
        first: |_| (),
        next: "status",
        rebuilds: false,
        makes: &[],
        also: |_, _| Ok(()),
    }
}

/// Files as they are before the first checkpoint.
fn written(env: &TestEnv) {
    env.write("a", "one")
        .write("src/lib.rs", "fn main() {}\n")
        .write("src/deep/er", "x".repeat(9_000));
    env.write("run.sh", "#!/bin/sh\n").mode("run.sh", 0o755).link("link", "a").folder("empty");
    env.write("big", noise(1_300_000, 1)).write("folder-then-file/x", "x").write("gone", "going");
    env.write("private/key", "k").mode("private", 0o750);
}

/// A checkpoint, and work since.
fn edited(env: &TestEnv) {
    written(env);
    env.biv(&["checkpoint", "create", "-m", "first"]).ok();
    env.write("a", "two").write("src/lib.rs", "fn main() { work() }\n").write("new/in/folder", "n");
    env.write("big", noise(1_400_000, 2))
        .mode("run.sh", 0o644)
        .remove("gone")
        .remove("link")
        .link("link", "src");
    env.remove("folder-then-file").write("folder-then-file", "now a file").mode("private", 0o700);
    env.remove("empty");
}

/// The same with a second checkpoint, rolled back to the first.
fn rolled_back(env: &TestEnv) {
    edited(env);
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
}

/// Several checkpoints with names.
fn many(env: &TestEnv) {
    written(env);
    for n in 0..5 {
        env.write("a", n.to_string().repeat(5_000)).write("src/lib.rs", noise(3_000, n));
        env.biv(&["checkpoint", "create", "--name", &format!("n{n}")]).ok();
    }
}

/// The same with some of them deleted.
fn deleted(env: &TestEnv) {
    many(env);
    env.biv(&["checkpoint", "delete", "n1", "n3", "--yes"]).ok();
}

fn torn_tables(env: &TestEnv) {
    edited(env);
    env.sql("DELETE FROM session_logs; UPDATE sessions SET name = 'x'").expect("the store is ours");
}

/// As the second version left it: without the indexes of later ones.
fn older(env: &TestEnv) {
    edited(env);
    env.sql(
        "DROP TABLE search; DROP TABLE progress; DROP INDEX events_said; DROP INDEX events_of_progress;
         DROP INDEX events_of_saving; PRAGMA user_version = 2",
    )
    .expect("the store is ours");
}

fn bundled(env: &TestEnv) {
    edited(env);
    env.biv(&["export", "bundle", "cp-001", "--raw", "--yes", "--file", "../b.tar.gz"]).ok();
}

fn lost_journal(env: &TestEnv) {
    edited(env);
    for suffix in ["", "-wal", "-shm"] {
        let _not_there = fs::remove_file(env.store().join(format!("sessions.db{suffix}")));
    }
}

const SAID: &str = "said while the journal was damaged";

/// A journal that cannot be read, and a good one for later.
fn damaged_journal(env: &TestEnv) {
    talked(env);
    let journal = env.store().join("sessions.db");
    fs::copy(&journal, env.home().join("good.db")).expect("the home takes files");
    fs::write(journal, "this is not a database, but it is long enough to look like one")
        .expect("it is ours");
}

fn mend_journal(env: &TestEnv) {
    fs::copy(env.home().join("good.db"), env.store().join("sessions.db"))
        .expect("it was put there");
    for suffix in ["-wal", "-shm"] {
        let _not_there = fs::remove_file(env.store().join(format!("sessions.db{suffix}")));
    }
}

/// A note of a hook that waits.
fn put_aside(env: &TestEnv) {
    damaged_journal(env);
    tell(env, "UserPromptSubmit", &prompt());
    mend_journal(env);
}

/// What is said to the journal that cannot be read.
pub(super) fn prompt() -> Value {
    json!({ "prompt": SAID })
}

/// Is what was said there, and only once?
fn n_told(env: &TestEnv, wanted: std::ops::RangeInclusive<usize>) -> Result<(), String> {
    let n = env.sql_text(&format!("SELECT '' || count(*) FROM events WHERE data LIKE '%{SAID}%'"));
    match n.parse().is_ok_and(|n| wanted.contains(&n)) {
        true => Ok(()),
        false => Err(format!("what the hook was told is there {n} times")),
    }
}

/// One turn with its checkpoint, and another that is about to end.
fn talked(env: &TestEnv) {
    written(env);
    let prompt = json!({ "prompt": "count" });
    tell(env, "UserPromptSubmit", &prompt);
    say(env, "count", "turn 1");
    tell(env, "Stop", &turn_end(1));
    tell(env, "UserPromptSubmit", &prompt);
    say(env, "count", "turn 2");
    env.write("a", "by the agent").write("src/more", "more").remove("gone");
}

/// The same, and the agent is gone.
fn ended(env: &TestEnv) {
    talked(env);
    tell(env, "Stop", &turn_end(2));
    tell(env, "SessionEnd", &json!({ "reason": "exit" }));
}

pub(super) fn turn_end(number: u32) -> Value {
    json!({ "last_assistant_message": format!("turn {number}") })
}
