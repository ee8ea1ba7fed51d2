//! A story as it is lived: every act done, every promise looked at after it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use bivouac_testkit::{TestEnv, Tree, bytes, read_stats, read_tree};
use serde_json::Value;

use super::act::{Act, PATHS};
use super::files::{Files, captured, difference, is_within, rolled_back, spliced};
use super::watched::{self, Said};
use crate::prove::stage::{copy, folder};

type Outcome<T> = std::result::Result<T, String>;

pub(super) struct World {
    env: TestEnv,
    files: Files,
    /// Every checkpoint with what it has to give back.
    checkpoints: Vec<(String, Tree)>,
    undo: Vec<Change>,
    redo: Vec<Change>,
    /// Contents that a rollback replaced.
    owed: BTreeSet<Vec<u8>>,
    n_folders: usize,
    /// What nobody may touch, as it was in the beginning.
    untouched: Vec<String>,
    pub(super) n_commands: u64,
    is_watched: bool,
}

/// A rollback, or one that was taken back: what it changed, and into what.
struct Change {
    before: Tree,
    after: Tree,
}

impl World {
    pub(super) fn new(binary: &Path, git: &Path, is_watched: bool) -> Outcome<Self> {
        let env = TestEnv::new_in(&binary.to_string_lossy(), &folder());
        let set = || -> std::io::Result<Files> {
            fs::create_dir(env.path(".git"))?;
            copy(git, &env.path(".git"))?;
            fs::create_dir(env.root().join("outside"))?;
            fs::write(env.root().join("outside/mine"), "not yours")?;
            fs::write(env.home().join(".profile"), "not yours")?;
            Ok(Files::new(&env))
        };
        let files = set().map_err(|error| error.to_string())?;
        let mut world = Self {
            env,
            files,
            checkpoints: Vec::new(),
            undo: Vec::new(),
            redo: Vec::new(),
            owed: BTreeSet::new(),
            n_folders: 0,
            untouched: Vec::new(),
            n_commands: 0,
            is_watched,
        };
        world.untouched = world.untouchable();
        Ok(world)
    }

    pub(super) fn act(&mut self, act: &Act) -> Outcome<()> {
        self.files.edit(act).map_err(|error| format!("the story itself failed: {error}"))?;
        match act {
            Act::Checkpoint => self.checkpoint(),
            Act::Rollback { checkpoint } => self.roll_back(*checkpoint, None),
            Act::RollbackPath { checkpoint, path } => {
                self.roll_back(*checkpoint, Some(PATHS[*path]))
            }
            Act::Undo => self.take_back("undo"),
            Act::Redo => self.take_back("redo"),
            Act::Fork { checkpoint } => self.elsewhere(*checkpoint, &["fork"]),
            Act::Restore { checkpoint } => self.elsewhere(*checkpoint, &["checkpoint", "restore"]),
            Act::Delete { checkpoint } => self.delete(*checkpoint),
            Act::Gc => self.ok(&["gc"]).map(drop),
            _ => Ok(()),
        }
    }

    /// Runs a command, which stays within its bounds.
    fn biv<W: AsRef<OsStr>>(&mut self, words: &[W]) -> Outcome<Said> {
        self.n_commands += 1;
        let command = self.env.biv_command(&self.env.work(), words);
        watched::run(&command, self.is_watched.then(|| self.env.root()))
    }

    fn ok<W: AsRef<OsStr>>(&mut self, words: &[W]) -> Outcome<Said> {
        let said = self.biv(words)?;
        match said.code {
            0 => Ok(said),
            code => Err(format!("exit {code}: {}{}", said.stdout, said.stderr)),
        }
    }

    /// The workspace has to be this.
    fn expect(&self, expected: &Tree, what: &str) -> Outcome<()> {
        match difference(&self.env.tree(), expected) {
            none if none.is_empty() => Ok(()),
            lines => Err(format!("{what}:\n{lines}")),
        }
    }

    fn checkpoint(&mut self) -> Outcome<()> {
        let said = self.ok(&["checkpoint", "create", "--json"])?;
        let saved: Value = serde_json::from_str(&said.stdout).map_err(|error| error.to_string())?;
        let id = saved["id"].as_str().ok_or("a checkpoint without an id")?;
        self.checkpoints.push((id.to_owned(), captured(&self.files.tree)));
        self.expect(&self.files.tree, "saving changed the workspace")
    }

    fn chosen(&self, checkpoint: usize) -> Option<(String, Tree)> {
        self.checkpoints.get(checkpoint % self.checkpoints.len().max(1)).cloned()
    }

    fn roll_back(&mut self, checkpoint: usize, path: Option<&[u8]>) -> Outcome<()> {
        let Some((id, target)) = self.chosen(checkpoint) else { return Ok(()) };
        let before = self.files.tree.clone();
        let expected = match path {
            None => Some(rolled_back(&before, &target)),
            Some(path) => spliced(&before, &target, path),
        };
        let Some(expected) = expected else { return Ok(()) };
        let mut words: Vec<OsString> =
            ["checkpoint", "rollback", &id, "--yes"].map(OsString::from).to_vec();
        words.extend(
            path.map(|path| [OsString::from("--"), bytes(path).to_owned()]).into_iter().flatten(),
        );
        let run = self.biv(&words)?;
        if run.stderr.contains("is neither in the checkpoint nor in the workspace") {
            let is_there = before
                .keys()
                .chain(target.keys())
                .any(|key| is_within(key, path.unwrap_or_default()));
            return if is_there { Err(run.stderr) } else { Ok(()) };
        }
        if run.code != 0 {
            return Err(format!("exit {}: {}{}", run.code, run.stdout, run.stderr));
        }
        self.expect(&expected, "the rollback is not exact")?;
        self.owe(&before, &expected);
        self.files.tree.clone_from(&expected);
        if !run.stdout.contains("Nothing to do") {
            self.undo.push(Change { before, after: expected });
            self.redo.clear();
        }
        Ok(())
    }

    /// Takes the last rollback back, or does it again: exactly if nothing changed since, and else without touching
    /// anything that it had not changed.
    fn take_back(&mut self, what: &str) -> Outcome<()> {
        let before = self.files.tree.clone();
        let run = self.biv(&[what, "--yes"])?;
        let stack = if what == "undo" { &mut self.undo } else { &mut self.redo };
        if run.stderr.contains("there is nothing to") {
            return if stack.is_empty() { Ok(()) } else { Err(format!("{what}: {}", run.stderr)) };
        }
        let change = stack
            .pop()
            .ok_or_else(|| format!("{what}: {}, and nothing was to be done", run.stdout))?;
        if !matches!(run.code, 0 | 3) {
            return Err(format!("{what}: exit {}: {}{}", run.code, run.stdout, run.stderr));
        }
        let found = self.env.tree();
        if captured(&before) == captured(&change.after) {
            let expected = rolled_back(&before, &captured(&change.before));
            self.expect(&expected, &format!("the {what} is not exact"))?;
        }
        let is_free = |key: &Vec<u8>| change.before.get(key) == change.after.get(key);
        let touched =
            before.keys().chain(found.keys()).filter(|key| before.get(*key) != found.get(*key));
        // A folder comes and goes with what is in it.
        let is_on_the_way = |key: &Vec<u8>| {
            let mut all = change.before.keys().chain(change.after.keys());
            all.any(|it| !is_free(it) && (is_within(it, key) || is_within(key, it)))
        };
        if let Some(key) = touched.filter(|key| is_free(key)).find(|key| !is_on_the_way(key)) {
            return Err(format!(
                "the {what} touched {}, which is not its business",
                key.escape_ascii()
            ));
        }
        self.owe(&before, &found);
        self.files.tree.clone_from(&found);
        if run.code == 0 {
            self.there_and_back(what, &before, &found)?;
        }
        let to = if what == "undo" { &mut self.redo } else { &mut self.undo };
        to.push(Change { before, after: found });
        Ok(())
    }

    /// Whatever it did, doing the opposite at once gives back the very moment before.
    fn there_and_back(&mut self, what: &str, before: &Tree, after: &Tree) -> Outcome<()> {
        let opposite = if what == "undo" { "redo" } else { "undo" };
        self.ok(&[opposite, "--yes"])?;
        self.expect(before, &format!("the {opposite} right after the {what} is not exact"))?;
        self.ok(&[what, "--yes"])?;
        self.expect(after, &format!("the second {what} is not exact"))
    }

    /// A checkpoint given back into a folder of its own; the workspace stays as it is.
    fn elsewhere(&mut self, checkpoint: usize, words: &[&str]) -> Outcome<()> {
        let Some((id, target)) = self.chosen(checkpoint) else { return Ok(()) };
        let into = self.new_folder();
        let place = into.to_string_lossy().into_owned();
        self.ok(&[words, &[&id, "--into", &place]].concat())?;
        let lines = difference(&read_tree(&into), &target);
        if !lines.is_empty() {
            return Err(format!("{} is not exact:\n{lines}", words.join(" ")));
        }
        self.expect(&self.files.tree, "the workspace changed meanwhile")
    }

    fn new_folder(&mut self) -> PathBuf {
        self.n_folders += 1;
        self.env.root().join(format!("into-{}", self.n_folders))
    }

    fn delete(&mut self, checkpoint: usize) -> Outcome<()> {
        let Some((id, tree)) = self.chosen(checkpoint) else { return Ok(()) };
        self.checkpoints.retain(|(it, _)| *it != id);
        // What only this one held is let go by whoever deletes it.
        self.owed.retain(|owed| !holds(&tree, owed));
        self.ok(&["checkpoint", "delete", &id, "--yes"])?;
        Ok(())
    }

    /// What was in the workspace and no longer is has to be somewhere.
    fn owe(&mut self, before: &Tree, after: &Tree) {
        let files = captured(before).into_values().filter(|(kind, ..)| *kind == 'f');
        let gone = files.map(|(_, _, contents)| contents).filter(|it| !holds(after, it));
        self.owed.extend(gone);
    }

    /// Nothing that was saved is lost, nothing that was replaced is gone, nothing else was touched.
    pub(super) fn finish(mut self) -> Outcome<u64> {
        self.ok(&["verify"])?;
        for (id, tree) in std::mem::take(&mut self.checkpoints) {
            let (found, _) = self.restored(&id)?;
            let lines = difference(&found, &tree);
            if !lines.is_empty() {
                return Err(format!("checkpoint {id} is not what was saved:\n{lines}"));
            }
            self.owed.retain(|owed| !holds(&tree, owed));
        }
        let tree = std::mem::take(&mut self.files.tree);
        self.expect(&tree, "the workspace is not what the story made of it")?;
        self.owed.retain(|owed| !holds(&tree, owed));
        self.find_owed()?;
        let untouched = self.untouchable();
        let changed = untouched.iter().zip(&self.untouched).find(|(now, then)| now != then);
        match changed {
            None if untouched.len() == self.untouched.len() => Ok(self.n_commands),
            changed => Err(format!("something outside was touched: {changed:?}")),
        }
    }

    /// Looks for the rest of what is owed in the checkpoints that were made on the way.
    fn find_owed(&mut self) -> Outcome<()> {
        if self.owed.is_empty() {
            return Ok(());
        }
        let list = self.ok(&["checkpoint", "list", "--json"])?;
        let list: Value = serde_json::from_str(&list.stdout).map_err(|error| error.to_string())?;
        for row in list.as_array().map(Vec::as_slice).unwrap_or_default() {
            if self.owed.is_empty() {
                break;
            }
            let (found, _) = self.restored(row["id"].as_str().unwrap_or_default())?;
            self.owed.retain(|owed| !holds(&found, owed));
        }
        match self.owed.first() {
            None => Ok(()),
            Some(lost) => Err(format!(
                "{} contents are nowhere any more, one of {} bytes",
                self.owed.len(),
                lost.len()
            )),
        }
    }

    fn restored(&mut self, id: &str) -> Outcome<(Tree, PathBuf)> {
        let into = self.new_folder();
        let place = into.to_string_lossy().into_owned();
        self.ok(&["checkpoint", "restore", id, "--into", &place])?;
        Ok((read_tree(&into), into))
    }

    /// All there is to see of what nobody may touch.
    fn untouchable(&self) -> Vec<String> {
        let store = self.env.home().join(".local");
        let folders = [self.env.path(".git"), self.env.root().join("outside"), self.env.home()];
        let stats = folders.iter().flat_map(|folder| read_stats(folder));
        let is_ours = |path: &[u8]| {
            is_within(path, store.as_os_str().as_encoded_bytes())
                || path == self.env.home().as_os_str().as_encoded_bytes()
        };
        let kept = stats.filter(|(path, _)| !is_ours(path));
        kept.map(|(path, facts)| format!("{} {facts}", path.escape_ascii())).collect()
    }
}

fn holds(tree: &Tree, contents: &[u8]) -> bool {
    tree.values().any(|(kind, _, found)| *kind == 'f' && found == contents)
}
