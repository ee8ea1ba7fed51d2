//! "Nothing is written in `.git`, and nothing of the repository runs": filters, monitors, helpers, partial clones, LFS,
//! submodules, sparse checkouts, worktrees, repositories of other users.

use std::fs;
use std::path::{Path, PathBuf};

use bivouac_testkit::{TestEnv, read_stats};
use serde_json::json;

use super::ground::{Ground, Outcome, Stop, World, ensure, need, need_root, quietly, run};
use super::{Case, case};

pub(super) fn cases() -> Vec<Case> {
    let programs = [
        ("clean", "filter.evil.clean"),
        ("smudge", "filter.evil.smudge"),
        ("process", "filter.evil.process"),
        ("fsmonitor", "core.fsmonitor"),
        ("external", "diff.external"),
        ("driver", "diff.evil.command"),
        ("textconv", "diff.evil.textconv"),
        ("merge", "merge.evil.driver"),
        ("pager", "core.pager"),
        ("editor", "core.editor"),
        ("ssh", "core.sshCommand"),
        ("askpass", "core.askPass"),
        ("credential", "credential.helper"),
        ("gpg", "gpg.program"),
        ("alternates", "core.alternateRefsCommand"),
    ];
    let mut cases =
        vec![case("plain", plain), case("hooks", hooks), case("uploadpack", uploadpack)];
    cases.extend(
        programs.map(|(name, key)| case(format!("runs {name}"), move |ground| runs(ground, key))),
    );
    cases.extend([
        case("partial", partial),
        case("lfs", lfs),
        case("submodule", submodule),
        case("submodule hostile", submodule_hostile),
        case("sparse", sparse),
        case("worktree", worktree),
        case("safe-directory", safe_directory),
        case("bare inside", bare_inside),
        case("git-file", git_file),
        case("stash submodule", stash_submodule),
        case("stash log", stash_log),
        case("variables", variables),
    ]);
    cases
}

/// Saves, looks, goes back and takes that back, beside hooks; then `.git`, and whatever else is named, is bit-identical.
fn holds(world: &World, also: &[PathBuf], marks: &[&Path]) -> Result<(), Stop> {
    let mut places = vec![world.env.path(".git")];
    places.extend_from_slice(also);
    // Same size, another time: git would look again, and write down what it saw.
    touch(&world.env)?;
    let before: Vec<_> = places.iter().map(|place| read_stats(place)).collect();
    world.save("one")?;
    world.prompt("hello")?;
    world.env.write("a.txt", "second\n");
    world.hook("Stop", &json!({})).ok()?;
    for words in [
        &["status"][..],
        &["context"],
        &["checkpoint", "diff", "one"],
        &["checkpoint", "rollback", "one", "--yes"],
        &["undo", "--yes"],
        &["redo", "--yes"],
        &["rehydrate"],
    ] {
        world.biv(words).sound()?;
    }
    world.biv(&["fork", "one", "--into", "../fork"]).sound()?;
    for (place, before) in places.iter().zip(before) {
        let now = read_stats(place);
        let other = now.iter().find(|(path, facts)| before.get(*path) != Some(*facts));
        let lost = before.keys().find(|path| !now.contains_key(*path));
        if let Some(path) = other.map(|it| it.0).or(lost) {
            return Err(format!("I5: {} was changed", String::from_utf8_lossy(path)).into());
        }
    }
    let ran = marks.iter().find(|mark| mark.exists());
    ensure(ran.is_none(), || {
        format!("a program of the repository ran: {:?}", ran.map(|it| it.file_name()))
    })
}

fn touch(env: &TestEnv) -> Result<(), Stop> {
    quietly("touch", &["-d", "2021-01-01", &env.path("a.txt").to_string_lossy()]).map(drop)
}

fn plain(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    holds(&world, &[], &[])?;
    Ok(1)
}

/// A key of the repository's configuration names a program, and attributes ask for it.
fn runs(ground: &Ground<'_>, key: &str) -> Outcome {
    let world = ground.repository()?;
    let (program, mark) = world.trap("trap")?;
    world.env.write(".gitattributes", "* filter=evil diff=evil merge=evil\n");
    world.commit();
    world.env.git(&["config", key, &program.to_string_lossy()]);
    world.env.git(&["config", "log.showSignature", "true"]);
    world.env.git(&["config", "filter.evil.required", "false"]);
    let _ran_already = fs::remove_file(&mark);
    holds(&world, &[], &[&mark])?;
    Ok(1)
}

fn hooks(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    let (program, mark) = world.trap("trap")?;
    for name in [
        "post-index-change",
        "post-checkout",
        "reference-transaction",
        "pre-auto-gc",
        "fsmonitor-watchman",
    ] {
        fs::create_dir_all(world.env.path(".git/hooks"))?;
        fs::copy(&program, world.env.path(format!(".git/hooks/{name}")))?;
    }
    world.env.git(&["config", "core.hooksPath", ".git/hooks"]);
    let _ran_already = fs::remove_file(&mark);
    holds(&world, &[], &[&mark])?;
    Ok(1)
}

/// A repository that lacks an object, and whose configuration says by which program it is fetched.
fn uploadpack(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    let (program, mark) = world.trap("trap")?;
    let blob = world.env.git(&["rev-parse", "HEAD:a.txt"]);
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", &world.env.work().to_string_lossy()),
        ("remote.origin.promisor", "true"),
        ("remote.origin.partialclonefilter", "blob:none"),
        ("remote.origin.uploadpack", &program.to_string_lossy()),
    ] {
        world.env.git(&["config", key, value]);
    }
    // Whether it was renamed can only be seen from what it was.
    rename_staged(&world);
    fs::remove_file(world.env.path(format!(".git/objects/{}/{}", &blob[..2], &blob[2..])))?;
    holds(&world, &[], &[&mark])?;
    Ok(1)
}

/// One file is staged as deleted and another, much like it, as new.
fn rename_staged(world: &World) {
    world.env.git(&["rm", "-q", "--cached", "a.txt"]);
    world.env.write("renamed.txt", "first and then\n");
    world.env.git(&["add", "renamed.txt"]);
}

fn partial(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    for n in 0..3 {
        world.env.write("a.txt", format!("history {n}\n"));
        world.commit();
    }
    world.env.git(&["config", "uploadpack.allowFilter", "true"]);
    world.env.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let origin = world.env.root().join("origin");
    fs::rename(world.env.work(), &origin)?;
    let url = format!("file://{}", origin.display());
    let mut clone = world.env.command("git", world.env.root());
    clone.args(["clone", "-q", "--filter=blob:none", "--no-checkout", &url]).arg(world.env.work());
    run(clone, b"").ok()?;
    // The branch is where nothing of its files has been fetched.
    world.env.git(&["reset", "-q", "--soft", "HEAD~1"]);
    world.env.git(&["reset", "-q", "HEAD"]);
    world.env.write("a.txt", "mine\n").write("src/b.txt", "mine\n");
    rename_staged(&world);
    let before = read_stats(&origin);
    holds(&world, &[], &[])?;
    ensure(read_stats(&origin) == before, || "the remote was written to".to_owned())?;
    Ok(1)
}

fn lfs(ground: &Ground<'_>) -> Outcome {
    need("git-lfs", "git-lfs")?;
    let world = ground.repository()?;
    world.env.git(&["lfs", "install", "--local"]);
    world.env.git(&["lfs", "track", "*.bin"]);
    world.env.write("big.bin", vec![7; 100_000]);
    world.commit();
    world.env.write("big.bin", vec![8; 100_000]);
    holds(&world, &[], &[])?;
    let tree = world.restored("one")?;
    let kept = tree.get(b"big.bin".as_slice()).map(|it| it.2.clone()).unwrap_or_default();
    ensure(kept == vec![8; 100_000], || {
        "the checkpoint does not hold what was in the file".to_owned()
    })?;
    Ok(1)
}

/// A repository with another one in it, at `sub`.
fn with_submodule(ground: &Ground<'_>) -> Result<World, Stop> {
    let world = ground.repository()?;
    let library = world.env.root().join("library");
    quietly("cp", &["-a", &world.env.work().to_string_lossy(), &library.to_string_lossy()])?;
    let url = library.to_string_lossy();
    world.env.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        &url,
        "sub",
    ]);
    world.commit();
    Ok(world)
}

fn submodule(ground: &Ground<'_>) -> Outcome {
    let world = with_submodule(ground)?;
    world.env.write("sub/a.txt", "in the submodule\n");
    holds(&world, &[world.env.root().join("library")], &[])?;
    Ok(1)
}

fn submodule_hostile(ground: &Ground<'_>) -> Outcome {
    let world = with_submodule(ground)?;
    let (program, mark) = world.trap("trap")?;
    let inside = |words: &[&str]| world.env.git(&[&["-C", "sub"], words].concat());
    world.env.write("sub/.gitattributes", "* filter=evil diff=evil\n");
    inside(&["add", "-A"]);
    inside(&["commit", "-qm", "all"]);
    for key in ["filter.evil.clean", "filter.evil.process", "core.fsmonitor", "diff.external"] {
        inside(&["config", key, &program.to_string_lossy()]);
    }
    let _ran_already = fs::remove_file(&mark);
    quietly("touch", &["-d", "2021-01-01", &world.env.path("sub/a.txt").to_string_lossy()])?;
    world.env.write("sub/src/b.txt", "first!\n");
    holds(&world, &[], &[&mark])?;
    Ok(1)
}

fn sparse(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    world.env.write("far/c.txt", "1\n").write("near/d.txt", "1\n");
    world.commit();
    world.env.git(&["sparse-checkout", "set", "--cone", "near"]);
    ensure(!world.env.exists("far"), || "the checkout is not sparse".to_owned())?;
    holds(&world, &[], &[])?;
    ensure(!world.env.exists("far"), || "a file that is not checked out appeared".to_owned())?;
    Ok(1)
}

/// The workspace is a linked worktree; the repository is elsewhere.
fn worktree(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    let main = world.env.root().join("main");
    fs::rename(world.env.work(), &main)?;
    let mut add = world.env.command("git", &main);
    add.args(["worktree", "add", "-q", "-b", "side"]).arg(world.env.work());
    run(add, b"").ok()?;
    touch(&world.env)?;
    let before = read_stats(&main);
    world.save("one")?;
    world.env.write("a.txt", "second\n");
    world.prompt("hello")?;
    world.biv(&["checkpoint", "rollback", "one", "--yes"]).ok()?;
    world.biv(&["undo", "--yes"]).ok()?;
    ensure(read_stats(&main) == before, || "I5: the repository was changed".to_owned())?;
    ensure(world.env.read("a.txt") == "second\n", || "the undo is not exact".to_owned())?;
    Ok(1)
}

/// Git refuses a repository of another user. We still save, run nothing of it, and write nothing in it.
fn safe_directory(ground: &Ground<'_>) -> Outcome {
    need_root()?;
    let world = ground.repository()?;
    let (program, mark) = world.trap("trap")?;
    for key in ["core.fsmonitor", "filter.evil.clean", "diff.external"] {
        world.env.git(&["config", key, &program.to_string_lossy()]);
    }
    world.env.write(".gitattributes", "* filter=evil\n");
    quietly("chown", &["-R", "65534:65534", &world.env.path(".git").to_string_lossy()])?;
    touch(&world.env)?;
    let before = read_stats(&world.env.path(".git"));
    world.save("one")?;
    world.prompt("hello")?;
    world.biv(&["status"]).ok()?;
    let tree = world.restored("one")?;
    ensure(tree.contains_key(b"a.txt".as_slice()), || "nothing was saved".to_owned())?;
    ensure(read_stats(&world.env.path(".git")) == before, || "I5: `.git` was changed".to_owned())?;
    ensure(!mark.exists(), || "a program of the repository ran".to_owned())?;
    Ok(1)
}

/// A folder of the workspace looks like a bare repository, with a configuration of its own.
/// A `.git` file, or a `commondir`, that names a folder of the workspace does not keep it out of checkpoints.
fn git_file(ground: &Ground<'_>) -> Outcome {
    for (name, text) in [(".git", "gitdir: src\n"), (".git/commondir", "../src\n")] {
        let world = ground.world()?;
        world.env.write("src/HEAD", "ref: refs/heads/main\n").write("src/a.txt", "first\n");
        world.env.write(name, text);
        if name != ".git" {
            world.env.write(".git/HEAD", "ref: refs/heads/main\n");
        }
        world.save("one")?;
        world.env.write("src/a.txt", "second\n");
        world.biv(&["checkpoint", "rollback", "one", "--yes"]).ok()?;
        let now = fs::read_to_string(world.env.path("src/a.txt"))?;
        ensure(now == "first\n", || format!("{name}: src/a.txt holds {now:?} after a rollback"))?;
    }
    Ok(2)
}

/// A stash would ask for a status in a submodule, by that repository's configuration.
fn stash_submodule(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    let (program, mark) = world.trap("trap")?;
    world.env.write("nest/s", "first\n");
    let nest = world.env.path("nest");
    let nest = nest.to_string_lossy();
    let name = ["-c", "user.name=a", "-c", "user.email=a@b"];
    for words in [
        &["init", "-q"][..],
        &["add", "."],
        &["commit", "-qm", "one"],
        &["config", "filter.x.clean", &program.to_string_lossy()],
    ] {
        quietly("git", &[&["-C", &nest], &name[..], words].concat())?;
    }
    world.env.write("nest/.git/info/attributes", "* filter=x\n");
    world.commit();
    world.save("one")?;
    let _of_the_set_up = fs::remove_file(&mark);
    // The same size, so that git has to look at the contents.
    world.env.write("a.txt", "second\n").write("nest/s", "other\n");
    world.biv(&["checkpoint", "rollback", "one", "--stash", "--yes"]).sound()?;
    ensure(!mark.exists(), || "a program of the submodule ran".to_owned())?;
    Ok(1)
}

/// Lines of a file outside do not come in as messages of stashes.
fn stash_log(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    let outside = world.env.root().join("outside.txt");
    fs::write(&outside, "word word\tprivate line\n")?;
    world.env.folder(".git/logs/refs").link(".git/logs/refs/stash", &outside);
    world.save("one")?;
    let ran = world.biv(&["checkpoint", "show", "one", "--json"]).ok()?;
    ensure(!ran.text().contains("private line"), || "the line is in the checkpoint".to_owned())?;
    Ok(1)
}

fn bare_inside(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    let (program, mark) = world.trap("trap")?;
    let program = program.to_string_lossy();
    world
        .env
        .write("docs/HEAD", "ref: refs/heads/main\n")
        .folder("docs/objects")
        .folder("docs/refs/heads");
    let text = format!(
        "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = ..\nfsmonitor = {program}\n[diff]\nexternal = {program}\n"
    );
    world.env.write("docs/config", text).write("docs/index", "");
    fs::remove_file(world.env.path("docs/index"))?;
    for words in [
        &["checkpoint", "create", "--name", "one"][..],
        &["status"],
        &["context"],
        &["checkpoint", "diff", "one"],
    ] {
        world.biv_in(&world.env.path("docs"), words).sound()?;
    }
    ensure(!mark.exists(), || "a program of the folder ran".to_owned())?;
    Ok(1)
}

/// Variables that an agent or a shell left behind tell git to look elsewhere and to run something.
fn variables(ground: &Ground<'_>) -> Outcome {
    let mut world = ground.repository()?;
    let (program, mark) = world.trap("trap")?;
    let elsewhere = world.env.root().join("elsewhere");
    quietly("git", &["init", "-q", &elsewhere.to_string_lossy()])?;
    let program = program.to_string_lossy().into_owned();
    for name in [
        "GIT_EXTERNAL_DIFF",
        "GIT_SSH_COMMAND",
        "GIT_ASKPASS",
        "GIT_PAGER",
        "GIT_EDITOR",
        "GIT_PROXY_COMMAND",
    ] {
        world.env.set(name, &program);
    }
    world
        .env
        .set("GIT_DIR", elsewhere.join(".git"))
        .set("GIT_INDEX_FILE", elsewhere.join(".git/index"));
    world
        .env
        .set("GIT_CONFIG_COUNT", "1")
        .set("GIT_CONFIG_KEY_0", "core.fsmonitor")
        .set("GIT_CONFIG_VALUE_0", &program);
    let before = read_stats(&elsewhere);
    holds(&world, &[], &[&mark])?;
    ensure(read_stats(&elsewhere) == before, || "another repository was written to".to_owned())?;
    Ok(1)
}
