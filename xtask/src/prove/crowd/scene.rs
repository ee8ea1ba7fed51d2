//! Where they all meet: one store, many workspaces, and a look at everything when all have gone.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bivouac_testkit::{TestEnv, Tree, read_tree};
use serde_json::Value;

use super::crew::Kept;
use super::{Acked, Outcome};
use crate::prove::limit::within;
use crate::prove::{Proof, crew};
use crate::tools::command;

/// Whoever is not done so long after the crowd has gone is stuck.
const LIMIT: Duration = Duration::from_secs(60);
/// A hook gives up after 25 seconds; it needs a moment to start and to write down what it could not record.
const HOOK_LIMIT: Duration = Duration::from_secs(30);
/// In the workspace that several share, every file says the same.
const N_SHARED: usize = 30;

pub(super) struct Scene {
    binary: PathBuf,
    variables: Vec<(OsString, OsString)>,
    pub(super) root: PathBuf,
    pub(super) seed: u64,
    until: Instant,
    pub(super) times: Mutex<Vec<(&'static str, Duration)>>,
    pub(super) found: Mutex<Vec<String>>,
    /// What the shared workspace is, if nobody ever saw half of a rollback.
    sides: [Tree; 2],
}

impl Scene {
    pub(super) fn new(env: &TestEnv, proof: &Proof, until: Instant) -> Outcome<Self> {
        let side = |word: &str| {
            for n in 0..N_SHARED {
                env.write(format!("d{}/f{n}", n % 5), format!("{word} {n}\n"));
            }
            env.biv(&["checkpoint", "create", "--name", word]).ok();
            env.tree()
        };
        let sides = [side("one"), side("two")];
        let known = env.biv_command(&env.work(), &["status"]);
        let known = known.get_envs().filter_map(|(key, it)| Some((key.to_owned(), it?.to_owned())));
        // They live by the clock on the wall.
        let variables = known.filter(|(key, _)| key != "BIV_CLOCK").collect();
        Ok(Self {
            binary: proof.binary.clone(),
            variables,
            root: env.root().to_owned(),
            seed: proof.seed,
            until,
            times: Mutex::default(),
            found: Mutex::default(),
            sides,
        })
    }

    pub(super) fn is_over(&self) -> bool {
        let found = self.found.lock().expect("nobody panics with it");
        Instant::now() > self.until || crew::has_enough(&found)
    }

    pub(super) fn tell(&self, what: String) {
        self.found.lock().expect("nobody panics with it").push(what);
    }

    /// A folder of one's own.
    pub(super) fn folder(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.root.join(name);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        Ok(folder)
    }

    /// Runs a command, which has to end in one of these ways, in time. Answers its stdout.
    pub(super) fn biv(&self, folder: &Path, words: &[&str], codes: &[i32]) -> Outcome<String> {
        self.timed(folder, words, codes, None)
    }

    /// The same with something to read for it.
    pub(super) fn timed(
        &self,
        folder: &Path,
        words: &[&str],
        codes: &[i32],
        input: Option<&Path>,
    ) -> Outcome<String> {
        let mut command = command(&self.binary);
        command.env_clear().envs(self.variables.iter().map(|(key, value)| (key, value)));
        command.current_dir(folder).args(words);
        if let Some(input) = input {
            command.stdin(fs::File::open(input).map_err(|error| error.to_string())?);
        }
        let line = words.join(" ");
        let started = Instant::now();
        let output = within(self.until.saturating_duration_since(started) + LIMIT, &mut command)
            .map_err(|error| error.to_string())?;
        let output = output.ok_or_else(|| format!("`{line}` is stuck"))?;
        let kind = KINDS.iter().find(|kind| words.contains(kind)).unwrap_or(&"other");
        let time = started.elapsed();
        self.times.lock().expect("nobody panics with it").push((kind, time));
        if *kind == "hook" && time > HOOK_LIMIT {
            return Err(format!("`{line}` took {} ms, longer than any hook may", time.as_millis()));
        }
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        match output.status.code() {
            Some(code) if codes.contains(&code) && !stderr.contains("panicked at") => {
                Ok(stdout.into_owned())
            }
            _ => Err(format!("`{line}`: {}: {stdout}{stderr}", output.status)),
        }
    }

    pub(super) fn json(&self, folder: &Path, words: &[&str]) -> Outcome<Value> {
        let words = [words, &["--json"]].concat();
        let text = self.biv(folder, &words, &[0])?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}: {text}", words.join(" ")))
    }

    /// Is everything there that was acknowledged, and as it was? Answers how much is not.
    pub(super) fn judge(&self, env: &TestEnv, acked: &Acked) -> Outcome<usize> {
        let work = env.work();
        self.biv(&work, &["verify"], &[0]).map(drop).unwrap_or_else(|what| self.tell(what));
        let ids = |list: &Value| -> BTreeSet<String> {
            let rows = list.as_array().map(Vec::as_slice).unwrap_or_default();
            rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)).collect()
        };
        let listed = ids(&self.json(&work, &["checkpoint", "list", "--all"])?);
        let mut n_lost = 0;
        for (n, kept) in acked.iter().enumerate() {
            if let Err(what) = self.is_kept(env, kept, &listed, n) {
                self.tell(what);
                n_lost += 1;
            }
        }
        for id in ids(&self.json(&work, &["checkpoint", "list"])?) {
            let tree = self.restored(&work, &id)?;
            if !self.sides.contains(&tree) {
                self.tell(format!(
                    "checkpoint {id} of the shared workspace is half of one and half of the other"
                ));
            }
        }
        Ok(n_lost)
    }

    fn is_kept(
        &self,
        env: &TestEnv,
        kept: &Kept,
        listed: &BTreeSet<String>,
        n: usize,
    ) -> Outcome<()> {
        match kept {
            Kept::Checkpoint { folder, id, tree } => {
                if !listed.contains(id) {
                    return Err(format!("checkpoint {id} of {} is not listed", folder.display()));
                }
                // Every single one is listed; every third is looked into, which takes longer.
                if n.is_multiple_of(3) && self.restored(folder, id)? != *tree {
                    return Err(format!(
                        "checkpoint {id} of {} is not what was saved",
                        folder.display()
                    ));
                }
                Ok(())
            }
            // What it holds is looked at with all others of its workspace.
            Kept::Shared { id } if !listed.contains(id) => {
                Err(format!("checkpoint {id} of the shared workspace is not listed"))
            }
            Kept::Shared { .. } => Ok(()),
            Kept::Prompt { folder, word } => {
                if n_told(env, "prompt.given", word) == "0" {
                    // What a hook could not record in time waits for a command in its workspace.
                    self.biv(folder, &["checkpoint", "create"], &[0])?;
                }
                is_told_once(env, "prompt.given", word)
            }
            Kept::Note { word } => is_told_once(env, "note.added", word),
        }
    }

    fn restored(&self, folder: &Path, id: &str) -> Outcome<Tree> {
        let into = self.root.join("into");
        let _never_made = fs::remove_dir_all(&into);
        self.biv(folder, &["checkpoint", "restore", id, "--into", &into.to_string_lossy()], &[0])?;
        Ok(read_tree(&into))
    }
}

fn n_told(env: &TestEnv, kind: &str, word: &str) -> String {
    env.sql_text(&format!(
        "SELECT '' || count(*) FROM events WHERE kind = '{kind}' AND data LIKE '%{word}.%'"
    ))
}

fn is_told_once(env: &TestEnv, kind: &str, word: &str) -> Outcome<()> {
    match n_told(env, kind, word).as_str() {
        "1" => Ok(()),
        n => Err(format!("`{word}` is on record {n} times")),
    }
}

/// What is measured apart.
const KINDS: [&str; 10] =
    ["create", "list", "rollback", "undo", "delete", "restore", "hook", "mcp", "gc", "verify"];
