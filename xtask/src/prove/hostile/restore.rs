//! Root goes back in a workspace that belongs to another user, who swaps folders meanwhile: no file ends up with
//! root's owner and that user's set-id bit, and nothing is done at all unless root says so.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Stdio};

use super::ground::{Ground, Outcome, Ran, Stop, World, ensure, need, need_root, quietly};
use super::{Case, case};
use crate::prove::stage::folder;
use crate::tools::command;

/// The number of `nobody`, who is another user on every machine.
const OTHER: &str = "65534";
const ROLLBACK: [&str; 4] = ["checkpoint", "rollback", "one", "--yes"];

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("refused owner", |ground| refused(ground, give_away)),
        case("refused writable", |ground| {
            refused(ground, |work| {
                Ok(fs::set_permissions(work, fs::Permissions::from_mode(0o777))?)
            })
        }),
        case("set-id", set_id),
        case("captured set-id", captured_set_id),
        case("private", private),
        case("race", race),
        case("own", own),
    ]
}

/// A workspace with a set-id program, saved, and changed since.
fn scene(ground: &Ground<'_>) -> Result<World, Stop> {
    let world = ground.world()?;
    // The other user has to come as far as the workspace.
    fs::set_permissions(world.env.root(), fs::Permissions::from_mode(0o755))?;
    world.env.write("tool", "#!/bin/sh\nid\n").mode("tool", 0o4755);
    for n in 0..8 {
        world.env.write(format!("more/f{n}"), "old").mode(format!("more/f{n}"), 0o4755);
    }
    world.biv(&["checkpoint", "create", "--name", "one"]).ok()?;
    world.env.write("tool", "changed").mode("tool", 0o755);
    for n in 0..8 {
        world.env.write(format!("more/f{n}"), "new").mode(format!("more/f{n}"), 0o755);
    }
    Ok(world)
}

fn give_away(work: &Path) -> Result<(), Stop> {
    quietly("chown", &["-R", &format!("{OTHER}:{OTHER}"), &work.to_string_lossy()])?;
    Ok(())
}

/// Refused, with nothing changed, unless it is told to go on.
fn refused(ground: &Ground<'_>, spoil: fn(&Path) -> Result<(), Stop>) -> Outcome {
    need_root()?;
    let world = scene(ground)?;
    spoil(&world.env.work())?;
    let before = world.env.tree();
    let ran = world.biv(&ROLLBACK).sound()?;
    ensure(matches!(ran.code, Some(1 | 2)), || format!("it was not refused: {}", ran.text()))?;
    ensure(world.env.tree() == before, || "refused, but something changed".to_owned())?;
    let ran = told(&world, &ran)?.done()?;
    let tool = world.env.read("tool");
    ensure(tool.contains("id"), || format!("told to, it still did not: {}", ran.text()))?;
    Ok(2)
}

/// How root says to go on: a variable, or the same key in root's own configuration.
const GO_ON: &str = "BIV_WORKSPACE_ALLOW_SHARED=true";

/// Goes back as the refusal says how.
fn told(world: &World, refusal: &Ran) -> Result<Ran, Stop> {
    let said = refusal.said();
    ensure(said.contains(GO_ON), || format!("the refusal does not say how to go on: {said}"))?;
    Ok(world.biv_by(&format!("{GO_ON} exec \"$0\" \"$@\""), &ROLLBACK))
}

/// Any file below with a set-id bit that belongs to us.
fn set_id_files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.is_dir() {
            waiting.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|it| it.path()));
        } else if meta.is_file() && meta.mode() & 0o6000 != 0 {
            found.push(format!("{} of user {} is {:o}", path.display(), meta.uid(), meta.mode()));
        }
    }
    found
}

/// A checkpoint of root's holds no set-id bits of another user's file, so that root cannot become its owner with them:
/// not in a folder that a group can write to, not in a sticky one, not in a folder that is gone.
fn captured_set_id(ground: &Ground<'_>) -> Outcome {
    need_root()?;
    for (mode, is_gone) in [(0o775, false), (0o1777, false), (0o755, true)] {
        let world = ground.world()?;
        world.env.write("sub/tool", "#!/bin/sh\nid\n");
        give_away(&world.env.path("sub/tool"))?;
        world.env.mode("sub/tool", 0o4755).mode("sub", mode);
        world.save("one")?;
        world.env.remove(if is_gone { "sub" } else { "sub/tool" });
        world.biv(&ROLLBACK).done()?;
        let found = set_id_files(&world.env.work());
        ensure(found.is_empty(), || format!("set-id bits were given: {}", found.join(", ")))?;
    }
    Ok(3)
}

/// Root's private file is not given to the user who put something in its place.
fn private(ground: &Ground<'_>) -> Outcome {
    need_root()?;
    let world = ground.world()?;
    world.env.write("theirs/key", "root's").mode("theirs/key", 0o600);
    quietly("chown", &[OTHER, &world.env.path("theirs").to_string_lossy()])?;
    world.save("one")?;
    world.env.write("theirs/key", "");
    give_away(&world.env.path("theirs/key"))?;
    world.biv(&ROLLBACK).done()?;
    let owner = fs::metadata(world.env.path("theirs/key"))?.uid();
    ensure(owner == 0, || format!("root's key belongs to user {owner}"))?;
    Ok(1)
}

/// No set-id bits in a workspace whose owner is not the caller.
fn set_id(ground: &Ground<'_>) -> Outcome {
    need_root()?;
    let world = scene(ground)?;
    give_away(&world.env.work())?;
    let ran = world.biv(&ROLLBACK).sound()?;
    if ran.code == Some(1) {
        told(&world, &ran)?.done()?;
    }
    let found = set_id_files(&world.env.work());
    ensure(found.is_empty(), || format!("set-id bits were given: {}", found.join(", ")))?;
    let owners =
        ["tool", "more/f0"].map(|path| fs::metadata(world.env.path(path)).map(|it| it.uid()));
    let are_theirs = owners.into_iter().all(|it| it.is_ok_and(|it| it.to_string() == OTHER));
    ensure(are_theirs, || "restored files do not belong to the workspace's owner".to_owned())?;
    Ok(1)
}

/// The workspace's owner swaps the staging folder whenever there is one, while every call that changes an owner, a mode
/// or a name is held up.
fn race(ground: &Ground<'_>) -> Outcome {
    need_root()?;
    need("strace", "strace")?;
    need("setpriv", "util-linux")?;
    let mut n_tried = 0;
    for n in 0..ground.size(2, 40) {
        let world = scene(ground)?;
        give_away(&world.env.work())?;
        // How long the first file takes differs from machine to machine.
        let mut attacker = attacker(&world, ["0.02", "0.04", "0.005", "0"][n % 4])?;
        held_up(&world, "").sound()?;
        held_up(&world, GO_ON).sound()?;
        let _ended = attacker.kill();
        attacker.wait()?;
        let found = set_id_files(world.env.root());
        if let Some(bad) = found.iter().find(|it| it.contains(" of user 0 ")) {
            return Err(format!("a set-id program of root with their content: {bad}").into());
        }
        // What the attacker put in the place of ours must not be taken for ours.
        let tool = world.env.read("tool");
        ensure(!tool.contains("evil"), || "the attacker's bytes were restored".to_owned())?;
        n_tried += 1;
    }
    Ok(n_tried)
}

fn held_up(world: &World, with: &str) -> Ran {
    // Between making a file and giving it away, its bytes are written.
    let calls = "write,chown,fchown,lchown,fchownat,chmod,fchmod,fchmodat,renameat2";
    let trace = world.env.root().join("trace");
    let script = format!(
        "{with} exec strace -f -q -o '{}' -e trace={calls} -e 'inject={calls}:delay_enter=60ms' \"$0\" \"$@\"",
        trace.display()
    );
    world.biv_by(&script, &ROLLBACK)
}

fn attacker(world: &World, pause: &str) -> Result<Child, Stop> {
    let script = r#"
cd "$0" && echo ready
n=0
while :; do
    for it in .biv-staging-*; do
        [ -d "$it" ] || continue
        n=$((n + 1))
        sleep "$1"
        mv "$it" "loot-$n" && mkdir "$it" || continue
        for k in 0 1 2 3 4 5 6 7 8 9 10 11; do
            echo evil > "$it/$k.part"
            echo evil > "$it/$k.new"
        done
    done
done 2> /dev/null
"#;
    let ids = [format!("--reuid={OTHER}"), format!("--regid={OTHER}"), "--clear-groups".to_owned()];
    let mut attack = command("setpriv");
    attack.args(ids).args(["sh", "-c", script]).arg(world.env.work()).arg(pause);
    attack.current_dir(folder()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut attacker = attack.spawn()?;
    let mut ready = [0; 6];
    attacker.stdout.take().ok_or("it has no output")?.read_exact(&mut ready)?;
    Ok(attacker)
}

/// In a workspace of one's own all this is not in the way: bytes, modes and set-id bits come back.
fn own(ground: &Ground<'_>) -> Outcome {
    let world = scene(ground)?;
    let saved = world.restored("one")?;
    world.biv(&ROLLBACK).ok()?;
    let now = world.env.tree();
    let is_same = saved.iter().all(|(path, value)| now.get(path).is_some_and(|it| it.2 == value.2));
    ensure(is_same, || "the rollback is not exact".to_owned())?;
    Ok(1)
}
