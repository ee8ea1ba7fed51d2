//! The operations that are interrupted: how the stage is set, what is done, and what is known before it.

use std::fs;
use std::process::Command;

use bivouac_testkit::{Tree, read_tree};
use serde_json::json;

use super::dice::noise;
use super::stage::Stage;
use super::talk::{input, say, tell};

/// One thing that the product does.
pub(super) struct Operation {
    pub(super) name: &'static str,
    /// Sets the stage, and says what must not be lost.
    set_up: fn(&Stage) -> Scene,
    /// The command line, or what a hook is called with.
    pub(super) words: &'static [&'static str],
    pub(super) kind: Kind,
    /// What has to be so once it was said to be done, beside what the workspace becomes.
    pub(super) done: fn(&Stage, &Scene) -> Result<(), String>,
}

/// What an operation does to the workspace, and how it begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Leaves the workspace alone; can be done again.
    Keeps,
    /// The same, and doing it again would find it done.
    KeepsOnce,
    /// Is told by an agent, on standard input, and never fails.
    Hook,
    /// Turns the workspace into what the scene says; can be done again.
    Restores,
    /// The same, and doing it again would do something else.
    RestoresOnce,
    /// Nothing works before it has been done.
    Mends,
}

/// What is known before an operation begins.
#[derive(Default)]
pub(super) struct Scene {
    /// Every checkpoint that was acknowledged, and what it holds.
    pub(super) saved: Vec<(String, Tree)>,
    /// Other checkpoints of the stage, of which nothing more is known.
    pub(super) others: Vec<String>,
    /// What the workspace becomes.
    pub(super) after: Option<Tree>,
    /// Lines of the session's log.
    pub(super) log: Vec<String>,
    /// What is to be found in the events, once.
    pub(super) once: &'static [&'static str],
}

pub(super) const OPERATIONS: [Operation; 15] = [
    operation("init", nothing, &["init"], Kind::Keeps),
    operation("first", nothing, &["checkpoint", "create"], Kind::Keeps),
    operation("create", edited, &["checkpoint", "create"], Kind::Keeps),
    Operation {
        done: |stage, _| once(stage, "turn.ended", "Built."),
        ..operation("hook", a_turn, &["hook", "claude-code", "Stop"], Kind::Hook)
    },
    operation(
        "rollback",
        to_the_first,
        &["checkpoint", "rollback", "one", "--yes"],
        Kind::Restores,
    ),
    operation("undo", rolled_back, &["undo", "--yes"], Kind::RestoresOnce),
    operation("gc", deleted, &["gc"], Kind::Keeps),
    operation("migrate", of_old, &["status"], Kind::Keeps),
    operation("resume", a_conversation, &["resume", "--print", "--force"], Kind::Keeps),
    operation("reconcile", without_journal, &["reconcile"], Kind::Mends),
    operation("spool", spooled, &["status"], Kind::Keeps),
    Operation {
        done: |stage, _| once(stage, "note.added", "as it is"),
        ..operation("note", edited, &["note", "as it is"], Kind::Keeps)
    },
    Operation {
        done: is_deleted,
        ..operation("delete", edited, &["checkpoint", "delete", "spare", "--yes"], Kind::KeepsOnce)
    },
    Operation {
        done: is_forked,
        ..operation("fork", edited, &["fork", "one", "--into", "../fork"], Kind::KeepsOnce)
    },
    Operation {
        done: can_be_imported,
        ..operation(
            "bundle",
            edited,
            &["export", "bundle", "one", "--file", "../b.tar.gz"],
            Kind::KeepsOnce,
        )
    },
];

const fn operation(
    name: &'static str,
    set_up: fn(&Stage) -> Scene,
    words: &'static [&'static str],
    kind: Kind,
) -> Operation {
    Operation { name, set_up, words, kind, done: |_, _| Ok(()) }
}

impl Operation {
    /// The command that comes next, and puts right what was left.
    pub(super) fn next(&self) -> &'static [&'static str] {
        if self.kind == Kind::Mends { self.words } else { &["status"] }
    }

    /// Is there something to be put right when it is interrupted?
    pub(super) fn heals(&self) -> bool {
        !matches!(self.kind, Kind::Keeps | Kind::KeepsOnce | Kind::Hook) || self.name == "spool"
    }

    /// A stage on which it can begin, and what is known there.
    pub(super) fn stage(&self, binary: &std::path::Path) -> (Stage, Scene) {
        let mut stage = Stage::new(binary);
        let scene = self.scene(&stage);
        stage.keep().expect("a stage can be copied");
        (stage, scene)
    }

    /// Sets a stage.
    pub(super) fn scene(&self, stage: &Stage) -> Scene {
        (self.set_up)(stage)
    }

    /// It, as it would be run, below another program if there is one.
    pub(super) fn command(&self, stage: &Stage, before: &[String]) -> Command {
        let mut command = match before {
            [] => stage.env.biv_command(&stage.env.work(), self.words),
            _ => stage.env.biv_under(before, self.words),
        };
        if self.kind == Kind::Hook {
            let input = fs::File::open(stage.env.root().join("input"));
            command.stdin(input.expect("the stage has it")).env("BIV_HOOK_WAITS", "1");
        }
        command
    }

    /// The same as agents have it installed: whatever happens to us, they see nothing of it.
    pub(super) fn installed(&self, stage: &Stage, before: &[String]) -> Command {
        if self.kind != Kind::Hook {
            return self.command(stage, before);
        }
        let shell = ["sh", "-c", "\"$0\" \"$@\" 2>/dev/null || true"].map(str::to_owned);
        self.command(stage, &[&shell, before].concat())
    }
}

/// What was said is on record, and not twice.
pub(super) fn once(stage: &Stage, kind: &str, words: &str) -> Result<(), String> {
    let sql = format!(
        "SELECT '' || count(*) FROM events WHERE kind = '{kind}' AND data LIKE '%{words}%'"
    );
    match stage.env.sql_text(&sql).as_str() {
        "1" => Ok(()),
        n => Err(format!("`{words}` is on record {n} times")),
    }
}

fn is_deleted(stage: &Stage, _scene: &Scene) -> Result<(), String> {
    match stage.env.biv(&["checkpoint", "show", "spare"]).code {
        0 => Err("it is still there".to_owned()),
        _ => Ok(()),
    }
}

fn is_forked(stage: &Stage, scene: &Scene) -> Result<(), String> {
    let mut tree = read_tree(&stage.env.root().join("fork"));
    tree.retain(|path, _| path != b".git" && !path.starts_with(b".git/"));
    match tree == scene.saved[0].1 {
        true => Ok(()),
        false => Err("the fork has other files".to_owned()),
    }
}

/// All of a bundle is checked before anything of it is taken in.
fn can_be_imported(stage: &Stage, _scene: &Scene) -> Result<(), String> {
    let import = stage.env.biv(&["import", "bundle", "../b.tar.gz"]);
    match import.code {
        0 => Ok(()),
        _ => Err(format!("the bundle cannot be taken in: {}", import.text())),
    }
}

/// Some files of every kind, and nothing of ours.
fn nothing(stage: &Stage) -> Scene {
    let env = &stage.env;
    for n in 0..12 {
        env.write(format!("src/m{}/f{n}.rs", n % 3), format!("fn f{n}() {{}}\n").repeat(n + 1));
    }
    env.write(".gitignore", "target/\n")
        .write("target/out", "left out")
        .write(".env", "TOKEN=abcdefghijkl\n");
    env.write("run.sh", "#!/bin/sh\n").mode("run.sh", 0o755).link("link", "src/m0").folder("empty");
    env.git(&["add", "src", ".gitignore"]);
    env.git(&["commit", "-qm", "one"]);
    Scene::default()
}

/// Two checkpoints, one more that can go, and edits since.
fn edited(stage: &Stage) -> Scene {
    nothing(stage);
    let env = &stage.env;
    env.biv(&["session", "new", "--task", "Refactor", "--name", "work"]).ok();
    env.biv(&["task", "add", "Move it"]).ok();
    let mut saved = vec![save(stage, "one")];
    env.write("src/m0/f0.rs", "changed").remove("src/m1/f1.rs").write("new/file", "new");
    saved.push(save(stage, "two"));
    env.write("big", noise(1_300_000, 1))
        .write("src/m2/f2.rs", "again")
        .remove("run.sh")
        .folder("run.sh");
    env.biv(&["checkpoint", "create", "--name", "spare"]).ok();
    env.remove("big")
        .write("run.sh/inside", "x")
        .write("src/m0/f3.rs", "edited")
        .mode("src/m0/f3.rs", 0o600);
    Scene { saved, log: log(stage), others: others(stage), ..Scene::default() }
}

fn to_the_first(stage: &Stage) -> Scene {
    let scene = edited(stage);
    Scene { after: Some(scene.saved[0].1.clone()), ..scene }
}

fn rolled_back(stage: &Stage) -> Scene {
    let scene = edited(stage);
    let after = stage.env.tree();
    stage.env.biv(&["checkpoint", "rollback", "one", "--yes"]).ok();
    Scene { after: Some(after), log: log(stage), others: others(stage), ..scene }
}

/// Much that nobody needs any more, in packs beside what is needed.
fn deleted(stage: &Stage) -> Scene {
    let scene = edited(stage);
    for n in 0..4 {
        stage.env.write("noise", noise(40_000, n));
        stage.env.biv(&["checkpoint", "create", "--name", &format!("n{n}")]).ok();
    }
    stage.env.biv(&["checkpoint", "delete", "n0", "n1", "n3", "spare", "--yes"]).ok();
    Scene { log: log(stage), others: others(stage), ..scene }
}

/// As the first version left its stores.
fn of_old(stage: &Stage) -> Scene {
    let scene = edited(stage);
    stage
        .env
        .sql("DROP INDEX events_said; DROP INDEX events_of_progress; DROP INDEX events_of_saving; PRAGMA user_version = 1")
        .expect("the journal can be changed");
    scene
}

fn without_journal(stage: &Stage) -> Scene {
    let scene = edited(stage);
    for name in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
        let _not_there = fs::remove_file(stage.env.store().join(name));
    }
    Scene { log: Vec::new(), ..scene }
}

/// A turn that is about to end.
fn a_turn(stage: &Stage) -> Scene {
    let scene = edited(stage);
    tell(&stage.env, "UserPromptSubmit", &json!({ "prompt": "Build it" }));
    say(&stage.env, "Build it", "Built.");
    fs::write(
        stage.env.root().join("input"),
        input(&stage.env, &json!({ "last_assistant_message": "Built." })),
    )
    .expect("the stage takes a file");
    Scene { log: log(stage), others: others(stage), ..scene }
}

/// A turn that has ended, and more that was said since.
fn a_conversation(stage: &Stage) -> Scene {
    let scene = a_turn(stage);
    tell(&stage.env, "Stop", &json!({ "last_assistant_message": "Built." }));
    say(&stage.env, "Build it", "And more.");
    Scene { log: log(stage), others: others(stage), ..scene }
}

/// What agents said while nobody could write it down.
fn spooled(stage: &Stage) -> Scene {
    let scene = a_turn(stage);
    let journal = stage.env.store().join("sessions.db");
    let good = fs::read(&journal).expect("there is a journal");
    fs::write(&journal, "not a journal, and long enough to be looked at as if it were one")
        .expect("it can be written");
    tell(&stage.env, "UserPromptSubmit", &json!({ "prompt": "said while deaf" }));
    tell(&stage.env, "UserPromptSubmit", &json!({ "prompt": "said a second time" }));
    fs::write(&journal, good).expect("it can be written");
    Scene { once: &["said while deaf", "said a second time"], ..scene }
}

fn save(stage: &Stage, name: &str) -> (String, Tree) {
    let saved = stage.env.json(&format!("checkpoint create --name {name}"));
    (saved["id"].as_str().unwrap_or_default().to_owned(), covered(stage.env.tree()))
}

fn others(stage: &Stage) -> Vec<String> {
    let list = stage.env.json("checkpoint list --all");
    let ids = list.as_array().into_iter().flatten().filter_map(|it| it["id"].as_str());
    ids.map(str::to_owned).collect()
}

/// A tree without what is ignored, which no checkpoint holds.
pub(super) fn covered(mut tree: Tree) -> Tree {
    tree.retain(|path, _| path != b"target" && !path.starts_with(b"target/"));
    tree
}

/// The session's log, a line for each thing that happened.
pub(super) fn log(stage: &Stage) -> Vec<String> {
    stage.env.biv(&["session", "log", "work"]).stdout.lines().map(str::to_owned).collect()
}
