//! What a pull can do to a store that lies in the project: git overwrites and removes what is ignored without asking. And
//! what a project can prepare before anybody makes a store in it.

use std::fs;

use super::ground::{Ground, Outcome, Stop, World, ensure};
use super::{Case, case};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        case("ignore-file", ignore_file),
        case("journal", journal),
        case("everything", everything),
    ];
    for name in ["spool", "packs", "hooks", "index", "local.id"] {
        cases.push(case(format!("prepared {name}"), move |ground| prepared(ground, name)));
    }
    cases.push(case("submodule", submodule));
    cases
}

/// A project with a store of its own, and a checkpoint in it.
fn local(ground: &Ground<'_>) -> Result<World, Stop> {
    let world = ground.repository()?;
    world.biv(&["init", "--local"]).ok()?;
    world.save("one")?;
    world.biv(&["status"]).ok()?;
    Ok(world)
}

/// The store stays out of what git adds, whatever ignore file a pull brings.
fn ignore_file(ground: &Ground<'_>) -> Outcome {
    let world = local(ground)?;
    for text in ["", "!*\n", "!/packs\n!/sessions.db\n", "skills"] {
        world.env.write(".agents/.gitignore", text);
        world.biv(&["status"]).ok()?;
        let added = world.env.git(&["add", "-A", "--dry-run"]);
        let is_store = |line: &&str| line.contains(".agents/") && !line.contains(".gitignore");
        let found: Vec<&str> = added.lines().filter(is_store).collect();
        ensure(found.is_empty(), || format!("git would add {}", found.join(", ")))?;
    }
    Ok(4)
}

/// A journal that is not the one on record is not used, and that is said.
fn journal(ground: &Ground<'_>) -> Outcome {
    let world = local(ground)?;
    let journal = world.env.path(".agents/sessions.db");
    let theirs = fs::read(&journal)?;
    fs::remove_file(&journal)?;
    fs::write(&journal, theirs)?;
    not_used(&world)
}

/// Neither is what is left when nothing is left.
fn everything(ground: &Ground<'_>) -> Outcome {
    let world = local(ground)?;
    fs::remove_file(world.env.path(".agents/sessions.db"))?;
    fs::remove_dir_all(world.env.path(".agents/packs"))?;
    not_used(&world)
}

fn not_used(world: &World) -> Outcome {
    let ran = world.biv(&["checkpoint", "list"]).ok()?;
    ensure(ran.said().contains("is not used"), || format!("it was used: {}", ran.text()))?;
    Ok(1)
}

/// What a clone or an archive has in the store's place is not taken for ours.
fn prepared(ground: &Ground<'_>, name: &str) -> Outcome {
    let world = ground.repository()?;
    world.env.folder(format!(".agents/{name}"));
    refused(&world)
}

fn submodule(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    let module = "160000,0123456789012345678901234567890123456789,.agents";
    world.env.git(&["update-index", "--add", "--cacheinfo", module]);
    world.env.folder(".agents/skills");
    refused(&world)
}

fn refused(world: &World) -> Outcome {
    let ran = world.biv(&["init", "--local"]).sound()?;
    ensure(ran.code == Some(1), || format!("it was taken for ours: {}", ran.text()))?;
    Ok(1)
}
