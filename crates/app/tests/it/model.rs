//! Random stories against a plain copy: whatever is done, in whatever order, rollback gives back the
//! very bytes, modes and links of the checkpoint, and undo those of the moment before.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use bivouac_testkit::{TestEnv, Tree};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::env;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Act {
    Write { path: usize, contents: u8, length: usize },
    Append { path: usize },
    Remove { path: usize },
    Link { path: usize, target: usize },
    Folder { path: usize },
    Mode { path: usize, mode: u32 },
    Checkpoint,
    Rollback { checkpoint: usize },
    RollbackPath { checkpoint: usize, path: usize },
    Undo,
    Redo,
    Delete { checkpoint: usize },
    Gc,
}

/// Few names, so that files become folders and folders become links.
const PATHS: &[&str] =
    &["a", "b", "c", "a/x", "a/y", "b/x", "b/x/deep", "c/z", "d/e/f", "d/e", "d", "été/ñ"];

fn any_act() -> impl Strategy<Value = Act> {
    let path = 0..PATHS.len();
    prop_oneof![
        6 => (path.clone(), any::<u8>(), prop_oneof![0usize..200, 3_000usize..9_000])
            .prop_map(|(path, contents, length)| Act::Write { path, contents, length }),
        3 => path.clone().prop_map(|path| Act::Append { path }),
        3 => path.clone().prop_map(|path| Act::Remove { path }),
        1 => (path.clone(), path.clone()).prop_map(|(path, target)| Act::Link { path, target }),
        1 => path.clone().prop_map(|path| Act::Folder { path }),
        2 => (path.clone(), prop::sample::select(vec![0o600, 0o644, 0o755, 0o700, 0o444]))
            .prop_map(|(path, mode)| Act::Mode { path, mode }),
        5 => Just(Act::Checkpoint),
        4 => (0usize..20).prop_map(|checkpoint| Act::Rollback { checkpoint }),
        2 => (0usize..20, path).prop_map(|(checkpoint, path)| Act::RollbackPath { checkpoint, path }),
        3 => Just(Act::Undo),
        2 => Just(Act::Redo),
        1 => (0usize..20).prop_map(|checkpoint| Act::Delete { checkpoint }),
        1 => Just(Act::Gc),
    ]
}

/// What ought to be.
struct World {
    env: TestEnv,
    /// Every checkpoint with the tree it was taken of.
    checkpoints: Vec<(String, Tree)>,
    deleted: Vec<String>,
    /// What each undo must give back, and each redo.
    undo: Vec<Tree>,
    redo: Vec<Tree>,
}

impl World {
    fn act(&mut self, act: &Act) -> Result<(), TestCaseError> {
        let path = |n: usize| self.env.path(PATHS[n]);
        match act {
            Act::Write { path: at, contents, length } => {
                let bytes: Vec<u8> =
                    (0..*length).map(|n| contents.wrapping_add((n / 7) as u8)).collect();
                let _folder_in_the_way = fs::create_dir_all(path(*at).parent().unwrap());
                let _folder_in_the_way = fs::write(path(*at), bytes);
            }
            Act::Append { path: at } => {
                if path(*at).symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                    let mut bytes = fs::read(path(*at)).unwrap_or_default();
                    bytes.extend_from_slice(b"\none more line\n");
                    let _read_only = fs::write(path(*at), bytes);
                }
            }
            Act::Remove { path: at } => {
                let _not_there = match path(*at).symlink_metadata().is_ok_and(|meta| meta.is_dir())
                {
                    true => fs::remove_dir_all(path(*at)),
                    false => fs::remove_file(path(*at)),
                };
            }
            Act::Link { path: at, target } => {
                let _in_the_way = fs::create_dir_all(path(*at).parent().unwrap());
                let _in_the_way = symlink(PATHS[*target], path(*at));
            }
            Act::Folder { path: at } => {
                let _in_the_way = fs::create_dir_all(path(*at));
            }
            Act::Mode { path: at, mode } => {
                if path(*at).symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                    fs::set_permissions(path(*at), fs::Permissions::from_mode(*mode)).unwrap();
                }
            }
            Act::Checkpoint => {
                let saved = self.env.json("checkpoint create");
                let id = saved["id"].as_str().unwrap().to_owned();
                self.checkpoints.push((id, self.env.tree()));
            }
            Act::Rollback { checkpoint } => self.rollback(*checkpoint, None)?,
            Act::RollbackPath { checkpoint, path } => {
                self.rollback(*checkpoint, Some(PATHS[*path]))?;
            }
            Act::Undo => self.take_back("undo")?,
            Act::Redo => self.take_back("redo")?,
            Act::Delete { checkpoint } => {
                if !self.checkpoints.is_empty() {
                    let (id, _) = self.checkpoints.remove(checkpoint % self.checkpoints.len());
                    self.env.biv(&["checkpoint", "delete", &id]).ok();
                    self.deleted.push(id);
                }
            }
            Act::Gc => {
                self.env.biv(&["gc"]).ok();
            }
        }
        Ok(())
    }

    fn rollback(&mut self, checkpoint: usize, path: Option<&str>) -> Result<(), TestCaseError> {
        let Some((id, target)) = self.checkpoints.get(checkpoint % self.checkpoints.len().max(1))
        else {
            return Ok(());
        };
        let before = self.env.tree();
        let within = |key: &[u8]| match path {
            None => true,
            Some(path) => key == path.as_bytes() || key.starts_with(format!("{path}/").as_bytes()),
        };
        let expected = match path {
            None => target.clone(),
            Some(path) => match splice(&before, target, path) {
                Some(expected) => expected,
                None => return Ok(()),
            },
        };
        let mut words = vec!["checkpoint", "rollback", id, "--yes"];
        words.extend(path);
        let run = self.env.biv(&words);
        if run.stderr.contains("is neither in the checkpoint nor in the workspace") {
            prop_assert!(!before.keys().chain(target.keys()).any(|key| within(key)));
            return Ok(());
        }
        prop_assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        prop_assert_eq!(diff(&self.env.tree(), &expected), Vec::<String>::new());
        if !run.stdout.contains("Nothing to do") {
            self.undo.push(before);
            self.redo.clear();
        }
        Ok(())
    }

    /// Undo and redo are exact when nothing changed in between, which is when they are checked.
    fn take_back(&mut self, what: &str) -> Result<(), TestCaseError> {
        let before = self.env.tree();
        let run = self.env.biv(&[what, "--yes"]);
        if run.stderr.contains("there is nothing to") {
            let stack = if what == "undo" { &self.undo } else { &self.redo };
            prop_assert!(stack.is_empty(), "{what}: {}", run.stderr);
            return Ok(());
        }
        prop_assert!(run.code == 0 || run.code == 3, "{what}: {}{}", run.stdout, run.stderr);
        let (from, to) = match what {
            "undo" => (&mut self.undo, &mut self.redo),
            _ => (&mut self.redo, &mut self.undo),
        };
        from.pop();
        to.push(before.clone());
        // Whatever it did, doing the opposite at once gives back the very moment before.
        if run.code == 0 {
            let opposite = if what == "undo" { "redo" } else { "undo" };
            let after = self.env.tree();
            self.env.biv(&[opposite, "--yes"]).ok();
            prop_assert_eq!(diff(&self.env.tree(), &before), Vec::<String>::new());
            self.env.biv(&[what, "--yes"]).ok();
            prop_assert_eq!(diff(&self.env.tree(), &after), Vec::<String>::new());
        }
        Ok(())
    }

    /// Nothing that was saved is ever lost.
    fn check_all(&self) -> Result<(), TestCaseError> {
        self.env.biv(&["verify"]).ok();
        for (n, (id, tree)) in self.checkpoints.iter().enumerate() {
            let into = self.env.root().join(format!("out-{n}"));
            self.env.biv(&["checkpoint", "restore", id, "--into", into.to_str().unwrap()]).ok();
            prop_assert_eq!(diff(&bivouac_testkit::read_tree(&into), tree), Vec::<String>::new());
        }
        Ok(())
    }
}

/// `current` with everything at or below `path` as in `target`. `None` where a file of one stands on
/// the way to the path in the other: then what a partial rollback does is not this simple.
fn splice(current: &Tree, target: &Tree, path: &str) -> Option<Tree> {
    let parents: Vec<&str> = path.match_indices('/').map(|(slash, _)| &path[..slash]).collect();
    let blocks = |tree: &Tree| {
        parents.iter().any(|it| tree.get(it.as_bytes()).is_some_and(|it| it.0 != 'd'))
    };
    if blocks(current) || blocks(target) {
        return None;
    }
    let prefix = format!("{path}/");
    let within = |key: &Vec<u8>| key == path.as_bytes() || key.starts_with(prefix.as_bytes());
    let mut spliced: Tree = current
        .iter()
        .filter(|(key, _)| !within(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut taken = target.iter().filter(|(key, _)| within(key)).peekable();
    if taken.peek().is_some() {
        for parent in parents {
            if let Some(folder) = target.get(parent.as_bytes()) {
                spliced.entry(parent.as_bytes().to_vec()).or_insert_with(|| folder.clone());
            }
        }
    }
    spliced.extend(taken.map(|(key, value)| (key.clone(), value.clone())));
    Some(spliced)
}

/// The paths in which two trees differ, readably.
fn diff(found: &Tree, expected: &Tree) -> Vec<String> {
    let keys: BTreeMap<&Vec<u8>, ()> =
        found.keys().chain(expected.keys()).map(|key| (key, ())).collect();
    let show = |value: Option<&(char, u32, Vec<u8>)>| match value {
        Some((kind, mode, bytes)) => format!("{kind} {mode:o} {} bytes", bytes.len()),
        None => "absent".to_owned(),
    };
    let differing = keys.into_keys().filter(|key| found.get(*key) != expected.get(*key));
    let lines = differing.map(|key| {
        let name = String::from_utf8_lossy(key);
        format!("{name}: found {}, expected {}", show(found.get(key)), show(expected.get(key)))
    });
    lines.collect()
}

#[test]
fn no_story_destroys_a_byte() {
    let cases =
        std::env::var("BIV_MODEL_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let mut runner = TestRunner::new(Config { cases, max_shrink_iters: 200, ..Config::default() });
    let stories = prop::collection::vec(any_act(), 5..40);
    runner
        .run(&stories, |acts| {
            let mut world = World {
                env: env(),
                checkpoints: vec![],
                deleted: vec![],
                undo: vec![],
                redo: vec![],
            };
            for act in &acts {
                world.act(act)?;
            }
            world.check_all()
        })
        .unwrap();
}
