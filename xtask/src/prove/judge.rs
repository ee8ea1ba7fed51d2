//! After every fault: what was promised (I1 to I8 of the invariants), seen from outside.
//!
//! I1 nothing acknowledged is lost. I2 nothing unacknowledged is half visible. I3 every object served matches its
//! hash. I4 no byte of the user's is destroyed that cannot be given back. I5 `.git` and the outside stay as they are.
//! I6 the next start succeeds without help. I7 every fault is told. I8 hooks exit 0 in time.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use bivouac_testkit::{Run, Tree, read_stats, read_tree};

use super::operations::{Kind, Operation, Scene, covered, log, once};
use super::stage::Stage;

/// A hook gives itself 25 seconds; with a single fault it needs far less.
const HOOK_DEADLINE: Duration = Duration::from_secs(10);

/// What is looked at right before the fault.
pub(super) struct Before {
    tree: Tree,
    git: BTreeMap<Vec<u8>, String>,
    outside: BTreeMap<Vec<u8>, String>,
}

/// What came of an operation that met a fault.
pub(super) struct Outcome {
    pub(super) run: Run,
    pub(super) time: Duration,
    /// Was the process there to the end, so that it could tell?
    pub(super) lived: bool,
}

impl Outcome {
    /// Did it say that it is done? Whoever was killed says so by its words alone. A hook always exits 0, and says
    /// so if it could keep nothing.
    fn is_acknowledged(&self, kind: Kind) -> bool {
        let is_silent = kind != Kind::Hook || self.run.stderr.is_empty();
        if self.lived { self.run.code == 0 && is_silent } else { self.run.stdout.contains('\n') }
    }
}

impl Before {
    pub(super) fn look(stage: &Stage) -> Self {
        Self {
            tree: stage.env.tree(),
            git: read_stats(&stage.env.path(".git")),
            outside: read_stats(&stage.outside()),
        }
    }

    /// The same, where the workspace was something else before the first of several faults.
    pub(super) fn with(self, tree: &Tree) -> Self {
        Self { tree: tree.clone(), ..self }
    }
}

/// Holds everything that can be seen against what was promised.
pub(super) fn judge(
    operation: &Operation,
    (stage, scene): (&Stage, &Scene),
    before: &Before,
    outcome: &Outcome,
) -> Result<(), String> {
    if operation.kind == Kind::Hook {
        let is_right = outcome.run.code == 0 && outcome.time < HOOK_DEADLINE;
        ensure(is_right, || format!("I8: exit {} after {:?}", outcome.run.code, outcome.time))?;
    }
    told(operation, outcome)?;
    let raw = stage.env.tree();
    let next = stage.env.biv(operation.next());
    ensure(next.code == 0, || format!("I6: the next command says {}", next.text()))?;
    workspace((stage, scene), before, outcome, outcome.is_acknowledged(operation.kind))?;
    checkpoints((stage, scene), before, outcome)?;
    let verified = stage.env.biv(&["verify"]);
    ensure(verified.code == 0, || format!("I3: verify says {}", verified.text()))?;
    let after = log(stage);
    // Half a restore is healed by whoever comes next, and that stays on record.
    let raw = covered(raw);
    let was_whole =
        raw == covered(before.tree.clone()) || Some(raw) == scene.after.clone().map(covered);
    let is_told = outcome.lived
        || after
            .iter()
            .any(|line| ["interrupted", "taken back"].iter().any(|it| line.contains(it)));
    ensure(scene.after.is_none() || was_whole || is_told, || {
        format!("I7: half a restore, and not a word in the log:\n{}", after.join("\n"))
    })?;
    let lost = scene.log.iter().find(|line| !after.contains(line));
    ensure(lost.is_none(), || format!("I1: the log lost {lost:?}"))?;
    for words in scene.once {
        once(stage, "prompt.given", words).map_err(|what| format!("I1: {what}"))?;
    }
    outside(stage, before)?;
    if outcome.is_acknowledged(operation.kind) {
        (operation.done)(stage, scene).map_err(|what| format!("I1: it said so, but {what}"))?;
    }
    again(operation, (stage, scene))
}

/// Whoever lived to tell told what went wrong.
fn told(operation: &Operation, outcome: &Outcome) -> Result<(), String> {
    let run = &outcome.run;
    ensure(!run.stderr.contains("panicked"), || format!("it panicked: {}", run.stderr))?;
    let must_tell = outcome.lived && run.code != 0 && operation.kind != Kind::Hook;
    let tells = run.stderr.contains("error: ") || run.stdout.contains("damage");
    ensure(!must_tell || tells || run.code == 3, || {
        format!("I7: exit {} without a word: {}", run.code, run.text())
    })
}

/// All old, or all new; new if that was said. What could not be saved is told, and stays.
fn workspace(
    (stage, scene): (&Stage, &Scene),
    before: &Before,
    outcome: &Outcome,
    is_acknowledged: bool,
) -> Result<(), String> {
    let mut now = stage.env.tree();
    now.remove(b"bivouac.toml".as_slice());
    let left = left_alone(&outcome.run.stdout);
    // What a program may have written to is kept beside its path. Where that is not possible, it stays in the
    // staging folder, which then has to stay as well.
    let beside = left.iter().filter_map(|path| match path.split('/').next() {
        Some(top) if top.starts_with(".biv-staging-") => Some(top.to_owned()),
        _ => path.ends_with(".kept").then(|| path.clone()),
    });
    let beside: Vec<String> = beside.collect();
    let now = without(&now, &beside);
    let is_old = now == before.tree && !(is_acknowledged && scene.after.is_some());
    let is_new = scene.after.as_ref().is_some_and(|after| {
        // A folder can have to stay although the files in it could go.
        let is_either = |path: &Vec<u8>| {
            let now = now.get(path);
            now == before.tree.get(path) || now == after.get(path)
        };
        let among = now.keys().chain(before.tree.keys()).filter(|path| is_among(path, &left));
        let is_exact = covered(without(&now, &left)) == covered(without(after, &left));
        is_exact && { among }.all(is_either)
    });
    ensure(is_old || is_new, || {
        let differs = |key: &&Vec<u8>| now.get(*key) != before.tree.get(*key);
        let paths = now.keys().chain(before.tree.keys()).filter(differs);
        let paths: Vec<_> = paths.map(|it| String::from_utf8_lossy(it).into_owned()).collect();
        let (paths, said) = (paths.join(", "), outcome.run.text());
        format!("I4: the workspace is neither old nor new: {paths}; it said {said}")
    })
}

/// Every acknowledged checkpoint is listed; every listed one gives back what its moment was.
fn checkpoints(
    (stage, scene): (&Stage, &Scene),
    before: &Before,
    outcome: &Outcome,
) -> Result<(), String> {
    let list = stage.env.json("checkpoint list --all");
    let listed: Vec<(&str, &str)> = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| Some((it["id"].as_str()?, it["handle"].as_str()?)))
        .collect();
    for (id, _) in &scene.saved {
        ensure(listed.iter().any(|it| it.0 == id), || format!("I1: checkpoint {id} is gone"))?;
    }
    let said = outcome
        .run
        .stdout
        .split_once("Saved checkpoint ")
        .and_then(|it| it.1.split_whitespace().next());
    if let Some(said) = said {
        ensure(listed.iter().any(|it| it.1 == said), || {
            format!("I1: {said} was acknowledged and is not there")
        })?;
    }
    let now = covered(before.tree.clone());
    let new = scene.after.clone().map(covered);
    for (id, handle) in listed {
        // Those that the stage was set with and the scene does not follow are read by `verify`.
        let known = scene.saved.iter().find(|it| it.0 == id).map(|it| &it.1);
        if known.is_none() && scene.others.iter().any(|other| other == id) {
            continue;
        }
        let out = stage.env.root().join("out");
        let restore =
            stage.env.biv(&["checkpoint", "restore", id, "--into", &out.to_string_lossy()]);
        ensure(restore.code == 0, || format!("I2: {handle} is listed: {}", restore.text()))?;
        let tree = read_tree(&out);
        let is_right = match known {
            Some(known) => tree == *known,
            // What came with the operation is of that moment; a fork's is of the checkpoint it began with.
            None => {
                let is_known = scene.saved.iter().any(|it| it.1 == tree);
                let is_all = |tree: &Tree| tree == &now || Some(tree) == new.as_ref();
                is_all(&tree)
                    || is_known
                    || is_all_but(stage, id, &tree, [Some(&now), new.as_ref()])
            }
        };
        ensure(is_right, || format!("I1: {handle} gives back something else"))?;
        fs::remove_dir_all(&out).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// What was said to stay because it could not be saved or changed, and the folders that hold it.
fn left_alone(said: &str) -> Vec<String> {
    let reasons = [
        " (what is there now is not covered)",
        " (still holds other files)",
        " (no permission to change it)",
        // One that could not be looked at may have changed.
        " (changed meanwhile)",
    ];
    let paths = said.lines().filter_map(|line| line.trim().strip_prefix("left alone: "));
    let paths = paths.filter_map(|it| reasons.iter().find_map(|why| it.strip_suffix(why)));
    paths.map(str::to_owned).collect()
}

/// Is it one of these, but for what the checkpoint says that it could not read?
fn is_all_but(stage: &Stage, id: &str, tree: &Tree, whole: [Option<&Tree>; 2]) -> bool {
    let shown = stage.env.json(&format!("checkpoint show {id} --coverage"));
    let gaps = shown["not_covered"].as_array().into_iter().flatten();
    let unreadable = gaps.filter(|gap| gap["reason"] == "unreadable");
    let paths: Vec<String> =
        unreadable.filter_map(|gap| Some(gap["path"].as_str()?.to_owned())).collect();
    whole.into_iter().flatten().any(|whole| without(whole, &paths) == *tree)
}

fn without(tree: &Tree, paths: &[String]) -> Tree {
    let mut tree = tree.clone();
    tree.retain(|path, _| !is_among(path, paths));
    tree
}

/// Is it one of these paths, or below one?
fn is_among(path: &[u8], paths: &[String]) -> bool {
    paths.iter().any(|it| {
        let below = path.strip_prefix(it.as_bytes());
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    })
}

fn outside(stage: &Stage, before: &Before) -> Result<(), String> {
    ensure(read_stats(&stage.env.path(".git")) == before.git, || {
        "I5: `.git` was changed".to_owned()
    })?;
    ensure(read_stats(&stage.outside()) == before.outside, || {
        "I5: the outside was changed".to_owned()
    })
}

/// It can be done again, and does what it is for.
fn again(operation: &Operation, (stage, scene): (&Stage, &Scene)) -> Result<(), String> {
    if matches!(operation.kind, Kind::KeepsOnce | Kind::RestoresOnce) {
        return Ok(());
    }
    let run = stage.env.run_command(&mut operation.command(stage, &[]));
    ensure(run.code == 0, || format!("I6: done again, it says {}", run.text()))?;
    let Some(after) = &scene.after else { return Ok(()) };
    let is_right = covered(stage.env.tree()) == covered(after.clone());
    ensure(is_right, || "I6: done again, the workspace is not as it should be".to_owned())
}

fn ensure(is_so: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(otherwise()) }
}
