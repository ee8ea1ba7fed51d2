//! A repository that somebody else made: nothing that it configures is run, and nothing is written in it or
//! fetched

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use bivouac_testkit::{TestEnv, left_out, read_stats};
use serde_json::Value;

use crate::git_env;

/// Every hook that an operation of git could run.
const HOOKS: [&str; 6] = [
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "pre-auto-gc",
    "post-rewrite",
    "fsmonitor-watchman",
];

/// What was run, by the marks it left.
pub(crate) fn marks(env: &TestEnv) -> Vec<String> {
    let names = fs::read_dir(env.root()).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let mut marks: Vec<String> = names.filter(|name| name.starts_with("RAN-")).collect();
    marks.sort();
    marks
}

/// Fails if anything below a folder is not as it was, and says what.
fn assert_same(before: &BTreeMap<Vec<u8>, String>, now: &BTreeMap<Vec<u8>, String>, line: &str) {
    let paths = before.keys().chain(now.keys()).filter(|path| before.get(*path) != now.get(*path));
    let paths: Vec<_> = paths.map(|path| String::from_utf8_lossy(path)).collect();
    assert!(paths.is_empty(), "{line} changed {paths:?}");
}

/// A command that leaves a mark.
pub(crate) fn trap(env: &TestEnv, name: &str) -> String {
    format!("touch {}/RAN-{name}; cat", env.root().display())
}

pub(crate) fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Every setting that names a program, each with a trap.
fn set_traps(env: &TestEnv, folder: &Path, name: &str) {
    let trap = |what: &str| trap(env, &format!("{name}-{what}"));
    let hooks = env.root().join(format!("hooks-{name}"));
    HOOKS.iter().for_each(|hook| script(&hooks.join(hook), &trap(hook)));
    let included = env.root().join(format!("included-{name}"));
    let include = format!("[filter \"included\"]\n\tclean = \"{}\"\n", trap("included"));
    fs::write(&included, include).unwrap();
    let monitor = env.root().join(format!("monitor-{name}"));
    script(&monitor, &trap("fsmonitor"));
    let git = |key: &str, value: &str| {
        env.git(&["-C", folder.to_str().unwrap(), "config", "--add", key, value]);
    };
    for key in [
        "filter.x.clean",
        "filter.x.smudge",
        "filter.p.process",
        "diff.external",
        "diff.x.textconv",
        "diff.x.command",
        "core.sshCommand",
        "core.gitProxy",
        "core.pager",
        "pager.status",
        "pager.log",
        "core.editor",
        "core.askPass",
        "core.alternateRefsCommand",
        "gpg.program",
        "uploadpack.packObjectsHook",
        "remote.origin.uploadpack",
        "remote.origin.vcs",
    ] {
        git(key, &trap(key));
    }
    for key in ["credential.helper", "alias.status", "alias.config", "alias.log"] {
        git(key, &format!("!{}", trap(key)));
    }
    git("filter.x.required", "true");
    git("filter.p.required", "true");
    git("log.showSignature", "true");
    git("core.fsmonitor", monitor.to_str().unwrap());
    git("core.hooksPath", hooks.to_str().unwrap());
    git("include.path", included.to_str().unwrap());
}

/// A repository with files that go through filters, all of which git would have to read again.
fn with_filtered_files(env: &TestEnv) {
    env.write(".gitattributes", "*.x filter=x diff=x\n*.p filter=p\n*.i filter=included\n");
    for name in ["a.x", "b.p", "c.i", "plain"] {
        env.write(name, "one\n");
    }
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
}

fn touch_all(env: &TestEnv, text: &str) {
    ["a.x", "b.p", "c.i", "plain"].iter().for_each(|name| {
        env.write(name, text);
    });
}

/// Everything that reads a repository, with what each needs before it. Answers what git's folders are like after
/// each.
fn use_all_commands(env: &TestEnv, mut after_each: impl FnMut(&str)) {
    let mut run = |line: &str| {
        let run = env.run(line);
        assert!(!run.starts_with("exit") && !run.contains("panicked"), "{line}: {run}");
        after_each(line);
    };
    run("status");
    run("session new --agent codex --name work");
    run("checkpoint create -m one");
    touch_all(env, "two\n");
    run("checkpoint create -m two");
    touch_all(env, "six\n");
    run("checkpoint diff cp-001 cp-002 --patch");
    run("checkpoint diff cp-001");
    run("checkpoint show latest");
    run("rehydrate");
    run("resume work --print");
    run("checkpoint rollback cp-001 --yes");
    run("undo --yes");
    run("fork cp-001 --into ../forked");
    run("environment");
    run("verify");
    let input = serde_json::json!({ "session_id": "11111111-0000-4000-8000-000000000001",
        "cwd": env.work(), "prompt": "go on", "hook_event_name": "UserPromptSubmit" });
    env.hook("claude-code", "UserPromptSubmit", input.to_string()).ok();
    after_each("hook");
}

#[test]
fn nothing_that_a_repository_configures_is_run() {
    let env = git_env();
    with_filtered_files(&env);
    set_traps(&env, &env.work(), "repository");
    touch_all(&env, "two\n");
    let git_dir = env.path(".git");
    let before = read_stats(&git_dir);
    use_all_commands(&env, |line| {
        assert_eq!(marks(&env), Vec::<String>::new(), "{line}");
        assert_same(&before, &read_stats(&git_dir), line);
    });
    let git = env.json("checkpoint show latest")["git"].clone();
    assert_eq!(git["branch"], "main", "{git}");
    assert_eq!(fs::read_dir(env.store().join("index/views")).unwrap().count(), 0);
    // The traps are good ones.
    let mut status = env.command("git", &env.work());
    status.args(["status", "--short"]).stdout(Stdio::null()).output().unwrap();
    assert!(marks(&env).iter().any(|it| it.ends_with("filter.x.clean")), "{:?}", marks(&env));
}

#[test]
fn a_file_that_a_filter_may_have_made_is_said_to_be_uncertain() {
    let env = git_env();
    with_filtered_files(&env);
    env.git(&["config", "filter.x.clean", "cat"]);
    touch_all(&env, "two\n");
    env.biv(&["checkpoint", "create"]).ok();
    let git = env.json("checkpoint show latest")["git"].clone();
    let unstaged: Vec<&str> =
        git["unstaged"].as_array().unwrap().iter().filter_map(|it| it["path"].as_str()).collect();
    assert_eq!(unstaged, ["a.x", "b.p", "c.i", "plain"]);
    let said = "status: filters are not run, so these may be unchanged: a.x";
    assert_eq!(git["unread"], serde_json::json!([said]));
    // The last answer is used again, whether or not other files change.
    env.biv(&["checkpoint", "create"]).ok();
    assert_eq!(env.json("checkpoint show latest")["git"], git);
    env.write("other", "new").biv(&["checkpoint", "create"]).ok();
    let later = env.json("checkpoint show latest")["git"].clone();
    assert_eq!((&later["unread"], &later["untracked"][0]), (&git["unread"], &"other".into()));
}

#[test]
fn git_lfs_in_the_users_own_configuration_adds_nothing() {
    let mut env = git_env();
    let adds = "mkdir -p .git/lfs/objects && cat > .git/lfs/objects/new";
    env.program("git-lfs", &format!("touch {}/RAN-lfs; {adds}", env.root().display()));
    let config = "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge\n\
        \tprocess = git-lfs filter-process\n\trequired = true\n";
    env.write(".gitattributes", "*.bin filter=lfs -text\n").write("a.bin", "large");
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    fs::write(env.home().join(".gitconfig"), config).unwrap();
    env.write("a.bin", "other");
    let before = read_stats(&env.path(".git"));
    for line in ["checkpoint create", "checkpoint rollback cp-001 --yes", "rehydrate", "status"] {
        env.write("a.bin", "third");
        env.run(line);
        assert_eq!(marks(&env), Vec::<String>::new(), "{line}");
        assert_same(&before, &read_stats(&env.path(".git")), line);
    }
}

#[test]
fn a_partial_clone_is_not_completed() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_biv"));
    let source = env.root().join("source");
    let text = |n: usize| format!("a text that is long enough to be recognised, number {n}\n");
    fs::create_dir(&source).unwrap();
    let at = source.to_str().unwrap();
    env.git(&["init", "-q", "-b", "main", at]);
    (0..4).for_each(|n| fs::write(source.join(format!("f{n}")), text(n)).unwrap());
    env.git(&["-C", at, "add", "."]);
    env.git(&["-C", at, "commit", "-qm", "one"]);
    env.git(&["-C", at, "config", "uploadpack.allowFilter", "true"]);
    env.git(&["-C", at, "config", "uploadpack.allowAnySHA1InWant", "true"]);
    let url = format!("file://{at}");
    env.git(&["clone", "-q", "--filter=blob:none", "--no-checkout", &url, "."]);
    let uploadpack = format!("touch {}/RAN-uploadpack; git-upload-pack", env.root().display());
    env.git(&["config", "remote.origin.uploadpack", &uploadpack]);
    env.git(&["read-tree", "HEAD"]);
    // To tell a renamed file from a new one, git wants to read what is not there.
    env.git(&["update-index", "--force-remove", "f1"]);
    env.write("moved", text(1).replace("long", "very long"));
    env.git(&["add", "moved"]);
    env.write("f2", "changed");
    let before = read_stats(&env.path(".git"));
    for line in ["checkpoint create", "checkpoint rollback cp-001 --yes", "rehydrate", "status"] {
        let run = env.run(line);
        assert!(!run.starts_with("exit"), "{line}: {run}");
        assert_eq!(marks(&env), Vec::<String>::new(), "{line}");
        assert_same(&before, &read_stats(&env.path(".git")), line);
    }
    let git = env.json("checkpoint show latest")["git"].clone();
    assert_eq!(git["unread"], Value::Null, "{git}");
    let paths = |list: &Value| -> Vec<String> {
        let text = |it: &Value| {
            format!("{} {}", it["status"].as_str().unwrap(), it["path"].as_str().unwrap())
        };
        list.as_array().unwrap().iter().map(text).collect()
    };
    assert_eq!(paths(&git["staged"]), ["D f1", "A moved"]);
    assert_eq!(paths(&git["unstaged"]), ["D f0", "M f2", "D f3"]);
}

#[test]
fn submodules_and_work_trees_are_read_and_not_run() {
    let env = git_env();
    let library = env.root().join("library");
    fs::create_dir(&library).unwrap();
    let at = library.to_str().unwrap();
    env.git(&["init", "-q", "-b", "main", at]);
    fs::write(library.join(".gitattributes"), "*.x filter=x\n").unwrap();
    fs::write(library.join("lib.x"), "1\n").unwrap();
    env.git(&["-C", at, "add", "."]);
    env.git(&["-C", at, "commit", "-qm", "library"]);
    env.write("a", "1");
    env.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", at, "lib"]);
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    env.git(&["worktree", "add", "-q", "../linked"]);
    let head = env.git(&["-C", "lib", "rev-parse", "HEAD"]);
    set_traps(&env, &env.path("lib"), "submodule");
    set_traps(&env, &env.root().join("linked"), "linked");
    env.write("lib/lib.x", "2\n");
    let git_dirs = || {
        let mut stats: BTreeMap<Vec<u8>, String> = read_stats(&env.path(".git"));
        stats.extend(read_stats(&env.path("lib/.git")));
        stats.extend(read_stats(&env.root().join("linked/.git")));
        stats
    };
    let before = git_dirs();
    for folder in [env.work(), env.root().join("linked")] {
        for line in ["checkpoint create", "rehydrate", "status"] {
            let words: Vec<&str> = line.split(' ').collect();
            env.biv_in(&folder, &words).ok();
            assert_eq!(marks(&env), Vec::<String>::new(), "{line}");
            assert_same(&before, &git_dirs(), line);
        }
    }
    let there = |folder: &Path| {
        let shown = env.biv_in(folder, &["checkpoint", "show", "latest", "--json"]).ok().stdout;
        serde_json::from_str::<Value>(&shown).unwrap()["git"].clone()
    };
    let git = there(&env.work());
    assert_eq!(
        (git["submodules"][0]["head"].as_str(), &git["unread"]),
        (Some(&*head), &Value::Null)
    );
    assert_eq!(there(&env.root().join("linked"))["branch"], "linked");
}

#[test]
fn every_form_of_an_index_is_read_and_left_as_it_is() {
    let check = |prepare: &dyn Fn(&TestEnv), expected: &[&str]| {
        let env = git_env();
        env.write("a", "1").write("kept/b", "1").write("out/c", "1");
        env.git(&["add", "."]);
        env.git(&["commit", "-qm", "one"]);
        prepare(&env);
        env.write("a", "2");
        let before = read_stats(&env.path(".git"));
        for line in ["checkpoint create", "rehydrate", "status"] {
            env.biv(&line.split(' ').collect::<Vec<_>>()).ok();
            assert_same(&before, &read_stats(&env.path(".git")), line);
        }
        let git = env.json("checkpoint show latest")["git"].clone();
        assert_eq!(git["unread"], Value::Null);
        let changes = git["unstaged"].as_array().unwrap().iter();
        let changes: Vec<&str> = changes.filter_map(|it| it["path"].as_str()).collect();
        assert_eq!(changes, expected, "{git}");
    };
    check(&|env| drop(env.git(&["update-index", "--split-index"])), &["a"]);
    check(&|env| drop(env.git(&["update-index", "--index-version", "4"])), &["a"]);
    check(&|env| drop(env.git(&["sparse-checkout", "set", "kept"])), &["a"]);
    check(&|env| drop(env.git(&["sparse-checkout", "set", "--sparse-index", "kept"])), &["a"]);
    check(&|env| drop(env.git(&["config", "core.fileMode", "false"])), &["a"]);
    check(
        &|env| {
            env.write("crlf", "1\r\n").git(&["-c", "core.autocrlf=input", "add", "crlf"]);
            env.git(&["commit", "-qm", "two"]);
            env.git(&["config", "core.autocrlf", "input"]);
            env.write("crlf", "1\r\n");
        },
        &["a"],
    );
}

#[test]
fn refs_in_tables_and_longer_hashes_are_read() {
    for form in ["--ref-format=reftable", "--object-format=sha256"] {
        let env = TestEnv::new(env!("CARGO_BIN_EXE_biv"));
        let made =
            env.command("git", &env.work()).args(["init", "-q", "-b", "main", form]).output();
        if !made.unwrap().status.success() {
            left_out(&format!("this git does not know {form}"));
            continue;
        }
        env.write("a", "1").git(&["add", "."]);
        env.git(&["commit", "-qm", "one"]);
        env.git(&["worktree", "add", "-q", "../linked"]);
        env.write("a", "2");
        let before = read_stats(&env.path(".git"));
        env.biv(&["checkpoint", "create"]).ok();
        assert_same(&before, &read_stats(&env.path(".git")), form);
        let git = env.json("checkpoint show latest")["git"].clone();
        assert_eq!((git["branch"].as_str(), &git["unread"]), (Some("main"), &Value::Null), "{git}");
        assert_eq!(git["head"], env.git(&["rev-parse", "HEAD"]));
        assert_eq!(git["worktrees"][1]["branch"], "linked");
        assert_eq!(
            (&git["worktrees"][1]["head"], &git["unstaged"][0]["path"]),
            (&git["head"], &"a".into())
        );
    }
}

#[test]
fn a_view_that_a_killed_process_left_behind_is_removed() {
    let env = git_env();
    env.write("a", "1").biv(&["checkpoint", "create"]).ok();
    let views = env.store().join("index/views");
    let [old, new] = ["biv-git-0123456789abcdef", "biv-git-fedcba9876543210"];
    for name in [old, new, "biv-git-mine", "other"] {
        fs::create_dir(views.join(name)).unwrap();
        fs::write(views.join(name).join("HEAD"), "ref: refs/heads/biv\n").unwrap();
    }
    let touch = ["-d", "2001-01-01", old, "biv-git-mine", "other"];
    assert!(env.command("touch", &views).args(touch).status().unwrap().success());
    env.write("a", "2").biv(&["checkpoint", "create"]).ok();
    let left = fs::read_dir(&views).unwrap().map(|it| it.unwrap().file_name());
    let mut left: Vec<_> = left.collect();
    left.sort();
    assert_eq!(left, [new, "biv-git-mine", "other"]);
}

#[test]
fn files_outside_of_a_sparse_checkout_are_kept_and_their_status_is_unknown() {
    let env = git_env();
    env.write("a", "1").write("out/c", "1").write("out/deep/d", "1");
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    env.git(&["sparse-checkout", "set", "--sparse-index", "kept"]);
    env.write(".gitignore", "out\n").write("out/deep/d", "2").write("out/other", "2");
    let before = read_stats(&env.path(".git"));
    env.biv(&["checkpoint", "create"]).ok();
    assert_same(&before, &read_stats(&env.path(".git")), "checkpoint create");
    let shown = env.json("checkpoint show latest");
    let said = "status: could not use `out/`: it is outside of the sparse checkout";
    assert_eq!(shown["git"]["unread"], serde_json::json!([said]));
    // A tracked file is kept although it is ignored; one that is only ignored is not.
    let into = env.root().join("out");
    env.biv(&["checkpoint", "restore", "cp-001", "--into", into.to_str().unwrap()]).ok();
    assert!(into.join("out/deep/d").exists() && !into.join("out/other").exists());
}

#[test]
fn another_users_repository_is_read_without_its_configuration() {
    if !rustix::process::geteuid().is_root() {
        return left_out("only root can give a repository to another user");
    }
    let env = git_env();
    with_filtered_files(&env);
    set_traps(&env, &env.work(), "foreign");
    touch_all(&env, "two\n");
    give_away(&env.work());
    let before = read_stats(&env.path(".git"));
    for line in ["checkpoint create", "rehydrate", "fork cp-001 --into ../forked"] {
        let run = env.run(line);
        assert!(!run.starts_with("exit"), "{line}: {run}");
        assert_eq!(marks(&env), Vec::<String>::new(), "{line}");
        assert_same(&before, &read_stats(&env.path(".git")), line);
    }
    assert_eq!(env.json("checkpoint show cp-001")["git"]["branch"], "main");
    assert!(!env.root().join("forked/.git").exists());
    assert!(
        env.run("log").contains("forked without the repository's history"),
        "{}",
        env.run("log")
    );
}

/// To a user that nobody is.
fn give_away(folder: &Path) {
    let mut waiting: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        std::os::unix::fs::lchown(&path, Some(54_321), Some(54_321)).unwrap();
        if path.symlink_metadata().unwrap().is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
}

#[test]
fn a_stash_runs_no_program_of_the_repository() {
    let env = git_env();
    with_filtered_files(&env);
    touch_all(&env, "two\n");
    env.biv(&["checkpoint", "create"]).ok();
    set_traps(&env, &env.work(), "repository");
    touch_all(&env, "three\n");
    let run = env.run("checkpoint rollback cp-001 --yes --stash");
    assert!(run.starts_with("exit 1\nerror: the repository's own configuration defines"), "{run}");
    assert_eq!((marks(&env), env.read("plain")), (vec![], "three\n".to_owned()));
    // Hooks stay off where there is nothing else that could run.
    for name in ["filter.x", "filter.p", "include"] {
        env.git(&["config", "--remove-section", name]);
    }
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes", "--stash"]).ok();
    assert_eq!(marks(&env), Vec::<String>::new());
    assert_eq!(env.read("plain"), "two\n");
}
