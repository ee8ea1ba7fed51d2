//! What has to hold when the power is back: the next command succeeds, what was acknowledged is there and exact,
//! nothing is half visible, nobody's files were touched.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bivouac_testkit::{Run, TestEnv, Tree, read_tree};

use super::cases::{Case, Told};
use crate::prove::dice::Dice;

/// What a world holds.
pub(super) struct Facts {
    /// Every checkpoint, with the files that are in it.
    checkpoints: BTreeMap<String, Tree>,
    events: Vec<String>,
    work: Tree,
    makes: BTreeMap<&'static str, Option<Tree>>,
}

/// What must not change, whatever happens.
pub(super) struct Untouched {
    git: Tree,
    outside: Tree,
}

impl Untouched {
    pub(super) fn of(env: &TestEnv) -> Self {
        Self {
            git: read_tree(&env.work().join(".git")),
            outside: read_tree(&env.root().join("outside")),
        }
    }
}

/// What was so before, what was so afterwards, and what was so all the time.
pub(super) struct Promise {
    pub(super) before: Facts,
    pub(super) after: Facts,
    pub(super) untouched: Untouched,
    /// How many checkpoints are restored at each cut; all of them if there are not more.
    pub(super) n_restored: usize,
}

impl Facts {
    pub(super) fn of(env: &TestEnv, case: &Case) -> Result<Self, String> {
        (case.first)(env);
        // Whatever we do with it may become an event as well.
        let (events, work, makes) = (events(env, case), env.tree(), makes(env, case));
        succeeds(env, &case.next.split(' ').collect::<Vec<_>>())?;
        let mut checkpoints = BTreeMap::new();
        for id in listed(env)? {
            let tree = restored(env, &id)?;
            checkpoints.insert(id, tree);
        }
        Ok(Self { checkpoints, events, work, makes })
    }
}

/// Looks at a world in which the power went.
pub(super) fn check(
    env: &TestEnv,
    case: &Case,
    promise: &Promise,
    told: Told,
    seed: u64,
) -> Result<(), String> {
    (case.first)(env);
    let next = succeeds(env, &case.next.split(' ').collect::<Vec<_>>())?;
    if next.stderr.contains("could not be") {
        return Err(format!("`biv {}` says: {}", case.next, next.stderr));
    }
    (case.also)(env, told)?;
    let facts = if told == Told::Done { &promise.after } else { &promise.before };
    let listed = listed(env)?;
    // What is being deleted may be gone before that was said.
    let stays = |id: &&String| promise.after.checkpoints.contains_key(*id);
    if let Some(lost) = facts.checkpoints.keys().filter(stays).find(|id| !listed.contains(id)) {
        return Err(format!("checkpoint {lost} is lost"));
    }
    let mut chosen: Vec<&String> = listed.iter().collect();
    let mut dice = Dice::new(seed, 0);
    while chosen.len() > promise.n_restored {
        chosen.remove(dice.below(chosen.len()));
    }
    for id in chosen {
        let found = restored(env, id)?;
        if promise.known(id).is_some_and(|tree| *tree != found) {
            return Err(format!("checkpoint {id} gives back something else"));
        }
    }
    succeeds(env, &["verify"])?;
    let now = events(env, case);
    if let Some(lost) = facts.events.iter().find(|id| !now.contains(id)) {
        return Err(format!("event {lost} is lost"));
    }
    workspace(env, promise, told, &listed)?;
    let found = makes(env, case);
    let is_there = |name: &str, tree: &Tree| {
        let found = found.get(name).and_then(Option::as_ref);
        tree.iter().all(|(path, is)| found.is_some_and(|found| found.get(path) == Some(is)))
    };
    let made = promise.after.makes.iter().filter_map(|(name, tree)| Some((*name, tree.as_ref()?)));
    if told == Told::Done
        && let Some((name, _)) = made.into_iter().find(|(name, tree)| !is_there(name, tree))
    {
        return Err(format!("{name} is not what was said to be made"));
    }
    if read_tree(&env.work().join(".git")) != promise.untouched.git {
        return Err("the repository was touched".to_owned());
    }
    match read_tree(&env.root().join("outside")) == promise.untouched.outside {
        true => Ok(()),
        false => Err("something outside was touched".to_owned()),
    }
}

impl Promise {
    fn known(&self, id: &str) -> Option<&Tree> {
        self.after.checkpoints.get(id).or_else(|| self.before.checkpoints.get(id))
    }
}

/// All old or all new; new if that was said. What was there before it became new is in a checkpoint.
fn workspace(
    env: &TestEnv,
    promise: &Promise,
    told: Told,
    listed: &[String],
) -> Result<(), String> {
    let tree = env.tree();
    let (old, new) = (&promise.before.work, &promise.after.work);
    if told == Told::Done && tree != *new {
        return Err(format!("the workspace is not as was said: {}", differences(&tree, new)));
    }
    if tree != *old && tree != *new {
        return Err(format!(
            "the workspace is neither as before ({}) nor as after ({})",
            differences(&tree, old),
            differences(&tree, new)
        ));
    }
    if tree != *old && !listed.iter().any(|id| promise.known(id) == Some(old)) {
        return Err("what was in the workspace before is in no checkpoint".to_owned());
    }
    Ok(())
}

fn differences(found: &Tree, wanted: &Tree) -> String {
    let paths = found.keys().chain(wanted.keys().filter(|path| !found.contains_key(*path)));
    let other = paths.filter(|path| found.get(*path) != wanted.get(*path));
    let shown = other.take(5).map(|path| {
        let kind = |tree: &Tree| {
            tree.get(path).map_or("-".to_owned(), |(kind, mode, bytes)| {
                format!("{kind} {mode:o} {}", bytes.len())
            })
        };
        format!("{}: {} instead of {}", String::from_utf8_lossy(path), kind(found), kind(wanted))
    });
    shown.collect::<Vec<_>>().join("; ")
}

fn succeeds(env: &TestEnv, words: &[&str]) -> Result<Run, String> {
    let run = env.biv(words);
    match run.code {
        0 => Ok(run),
        code => {
            Err(format!("`biv {}` exits {code}: {}{}", words.join(" "), run.stdout, run.stderr))
        }
    }
}

/// The ids of all checkpoints there are.
fn listed(env: &TestEnv) -> Result<Vec<String>, String> {
    let run = succeeds(env, &["checkpoint", "list", "--json"])?;
    let list: serde_json::Value = serde_json::from_str(&run.stdout).map_err(|it| it.to_string())?;
    let ids = list.as_array().into_iter().flatten().filter_map(|it| it["id"].as_str());
    Ok(ids.map(str::to_owned).collect())
}

fn restored(env: &TestEnv, id: &str) -> Result<Tree, String> {
    let into = env.root().join("out");
    let _none_yet = fs::remove_dir_all(&into);
    succeeds(env, &["checkpoint", "restore", id, "--into", "../out"])?;
    Ok(read_tree(&into))
}

/// The ids of all events, as they stand in the journal. Those of one that is made anew are new.
fn events(env: &TestEnv, case: &Case) -> Vec<String> {
    let is_there = || {
        env.store().join("sessions.db").exists() && env.sql("SELECT id FROM events LIMIT 0").is_ok()
    };
    if case.rebuilds || !is_there() {
        return Vec::new();
    }
    let ids = "SELECT coalesce(group_concat(id, ' '), '') FROM events";
    env.sql_text(ids).split(' ').filter(|id| !id.is_empty()).map(str::to_owned).collect()
}

fn makes(env: &TestEnv, case: &Case) -> BTreeMap<&'static str, Option<Tree>> {
    let read = |path: &Path| match path.is_dir() {
        true => Some(read_tree(path)),
        false => fs::read(path).ok().map(|bytes| Tree::from([(Vec::new(), ('f', 0, bytes))])),
    };
    case.makes.iter().map(|name| (*name, read(&env.root().join(name)))).collect()
}
