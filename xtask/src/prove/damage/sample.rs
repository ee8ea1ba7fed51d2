//! A small store with something of everything, as plain bytes: three checkpoints, one with a conversation, a
//! session with a log, a note of a hook that waits, a stat cache, and a log of the journal that is not empty.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bivouac_testkit::{TestEnv, Tree};
use serde_json::{Value, json};

use crate::prove::talk::{say, tell};

/// The files of a store by their paths in it.
pub(super) type Image = BTreeMap<String, Vec<u8>>;

/// A checkpoint, and what it has to give back.
pub(super) struct Kept {
    pub(super) id: String,
    pub(super) handle: String,
    pub(super) tree: Tree,
}

/// All that a trial needs to know of the store.
pub(super) struct Sample {
    pub(super) image: Image,
    /// The same store, one checkpoint earlier.
    pub(super) older: Image,
    /// The same store with a word that nobody wrote, in an event and in the tables that follow from it.
    pub(super) forged: Image,
    pub(super) kept: Vec<Kept>,
    pub(super) sessions: Vec<String>,
    /// What the workspace holds.
    pub(super) tree: Tree,
    pub(super) root: PathBuf,
    pub(super) work: PathBuf,
    pub(super) variables: Vec<(OsString, OsString)>,
}

impl Sample {
    pub(super) fn new(env: &TestEnv) -> io::Result<Self> {
        env.write("a.txt", "one\n").write("dir/b.txt", "two\n").link("l", "a.txt");
        env.write("run.sh", "#!/bin/sh\n").mode("run.sh", 0o755);
        env.biv(&["session", "new", "--name", "work", "--task", "see what breaks"]).ok();
        let mut trees = Vec::new();
        let save = |message: &str, trees: &mut Vec<Tree>| {
            env.biv(&["checkpoint", "create", "-m", message]).ok();
            trees.push(env.tree());
        };
        save("first", &mut trees);
        let older = read(&env.store())?;
        env.write("a.txt", "three\n").write("c.txt", "four\n").folder("empty");
        tell(env, "UserPromptSubmit", &json!({ "prompt": "change c" }));
        env.write("c.txt", "five\n");
        say(env, "change c", "changed");
        tell(env, "Stop", &json!({ "last_assistant_message": "changed" }));
        trees.push(env.tree());
        let note = waiting_note(env)?;
        env.write("dir/b.txt", "six\n").remove("run.sh");
        let mut image = env.while_read(|| {
            env.biv(&["task", "add", "look again"]).ok();
            save("third", &mut trees);
            env.biv(&["note", "the last words"]).ok();
            read(&env.store())
        })?;
        image.extend(note);
        let list = env.json("checkpoint list --all");
        let rows = list.as_array().map(Vec::as_slice).unwrap_or_default();
        assert_eq!(rows.len(), trees.len(), "{list}");
        let word = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let kept = rows.iter().zip(trees);
        let kept =
            kept.map(|(row, tree)| Kept { id: word(row, "id"), handle: word(row, "handle"), tree });
        let kept = kept.collect();
        let sessions = env.json("session list");
        let sessions = sessions.as_array().map(Vec::as_slice).unwrap_or_default();
        let variables = env.biv_command(&env.work(), &["status"]);
        let variables = variables.get_envs();
        let forged = forged(env)?;
        Ok(Self {
            image,
            older,
            forged,
            kept,
            sessions: sessions.iter().map(|row| word(row, "handle")).collect(),
            tree: env.tree(),
            root: env.root().to_owned(),
            work: env.work(),
            variables: variables
                .filter_map(|(key, it)| Some((key.to_owned(), it?.to_owned())))
                .collect(),
        })
    }

    /// Every file with a name that is the same in every run: `pack-1`, `db`, `wal`.
    pub(super) fn names(&self) -> Vec<(String, &str)> {
        let mut n_packs = 0;
        let named = self.image.keys().map(|path| {
            let end = path.rsplit('.').next().unwrap_or(path);
            let name = match path.split('/').next() {
                Some("packs") => {
                    n_packs += 1;
                    format!("pack-{n_packs}")
                }
                Some("index" | "spool" | "runs" | "watch") => {
                    path.split_once('/').map_or("", |it| it.0).to_owned() + "-" + end
                }
                _ => path.trim_start_matches("sessions.").to_owned(),
            };
            (name, path.as_str())
        });
        named.collect()
    }
}

/// Everything fits together, but for the chain of the events.
fn forged(env: &TestEnv) -> io::Result<Image> {
    let guard = "events_never_change";
    let made = env.sql_text(&format!("SELECT sql FROM sqlite_schema WHERE name = '{guard}'"));
    let change = |table: &str, column: &str| {
        format!("UPDATE {table} SET {column} = replace({column}, 'third', 'forged');")
    };
    let changes = [
        change("events", "data"),
        change("session_checkpoints", "message"),
        change("session_checkpoints", "checkpoint_data"),
        change("session_logs", "message"),
    ];
    env.sql(&format!("DROP TRIGGER {guard}; {} {made}", changes.concat()))
        .map_err(io::Error::other)?;
    read(&env.store())
}

/// Another store that has nothing to do with it.
pub(super) fn foreign(binary: &Path) -> io::Result<Image> {
    let env = TestEnv::new(&binary.to_string_lossy());
    env.write("other", "of somebody else\n");
    env.biv(&["checkpoint", "create"]).ok();
    read(&env.store())
}

/// The note of a hook that found the journal damaged, taken from where it waits.
fn waiting_note(env: &TestEnv) -> io::Result<Image> {
    let journal = env.store().join("sessions.db");
    let good = fs::read(&journal)?;
    fs::write(&journal, vec![0xAA; good.len()])?;
    tell(env, "UserPromptSubmit", &json!({ "prompt": "said meanwhile" }));
    fs::write(&journal, good)?;
    let image = read(&env.store())?;
    fs::remove_dir_all(env.store().join("spool"))?;
    Ok(image.into_iter().filter(|(path, _)| path.starts_with("spool/")).collect())
}

pub(super) fn read(store: &Path) -> io::Result<Image> {
    let mut image = Image::new();
    let mut waiting = vec![store.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.is_file() {
                let name = path.strip_prefix(store).unwrap_or(&path).to_string_lossy().into_owned();
                image.insert(name, fs::read(&path)?);
            }
        }
    }
    Ok(image)
}
