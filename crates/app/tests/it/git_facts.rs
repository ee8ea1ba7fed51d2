//! What a checkpoint knows about git

use serde_json::Value;

use crate::git_env;

fn paths(list: &Value) -> Vec<String> {
    let text = |it: &Value| match it.as_str() {
        Some(path) => path.to_owned(),
        None => format!("{} {}", it["status"].as_str().unwrap(), it["path"].as_str().unwrap()),
    };
    list.as_array().unwrap().iter().map(text).collect()
}

#[test]
fn branch_head_and_changes_are_known() {
    let env = git_env();
    env.write("a", "1")
        .write("b", "1")
        .write("gone", "1")
        .write("to rename", "a longer text to recognise\n");
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    env.write("a", "2").git(&["add", "a"]);
    env.write("a", "3").write("b", "2").write("new file", "1").remove("gone");
    env.git(&["mv", "to rename", "renamed"]);
    env.biv(&["checkpoint", "create"]).ok();
    let git = env.json("checkpoint show latest")["git"].clone();
    assert_eq!(git["branch"], "main");
    assert_eq!(git["head"], env.git(&["rev-parse", "HEAD"]));
    assert_eq!(paths(&git["staged"]), ["M a", "R renamed"]);
    assert_eq!(git["staged"][1]["from"], "to rename");
    assert_eq!(paths(&git["unstaged"]), ["M a", "M b", "D gone"]);
    assert_eq!(paths(&git["untracked"]), ["new file"]);
    assert_eq!(env.json("checkpoint show latest")["git_uncommitted"], 5);
}

#[test]
fn what_is_asked_about_a_few_paths_equals_what_is_asked_about_all() {
    let env = git_env();
    for n in 0..20 {
        env.write(format!("f{n}"), "1");
    }
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    env.biv(&["checkpoint", "create"]).ok();
    // Each step only changes files, so the last answer is only brought up to date.
    let steps: [&dyn Fn(); 6] = [
        &|| {
            env.write("f1", "2").write("new", "1");
        },
        &|| {
            env.write("f2", "2").write("dir/new", "1");
        },
        &|| {
            env.write("f1", "1").remove("new");
        },
        &|| {
            env.remove("f3").write("f3/now-a-folder", "1");
        },
        &|| {
            env.remove("dir").remove("f4");
        },
        &|| {
            env.write("f4", "1").mode("f5", 0o755);
        },
    ];
    for (n, step) in steps.iter().enumerate() {
        step();
        env.biv(&["checkpoint", "create"]).ok();
        let quick = env.json("checkpoint show latest")["git"].clone();
        for cache in std::fs::read_dir(env.store().join("index")).unwrap() {
            let path = cache.unwrap().path();
            if path.to_string_lossy().ends_with(".git.json") {
                std::fs::remove_file(path).unwrap();
            }
        }
        env.biv(&["checkpoint", "create"]).ok();
        assert_eq!(quick, env.json("checkpoint show latest")["git"], "step {n}");
    }
}

#[test]
fn commits_and_staging_are_noticed_without_any_file_changing() {
    let env = git_env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let git = |env: &bivouac_testkit::TestEnv| {
        env.biv(&["checkpoint", "create"]).ok();
        env.json("checkpoint show latest")["git"].clone()
    };
    assert_eq!(paths(&git(&env)["untracked"]), ["a"]);
    env.git(&["add", "a"]);
    assert_eq!(paths(&git(&env)["staged"]), ["A a"]);
    env.git(&["commit", "-qm", "one"]);
    let clean = git(&env);
    assert_eq!((paths(&clean["staged"]), paths(&clean["untracked"])), (vec![], vec![]));
    env.git(&["checkout", "-q", "-b", "feature/x"]);
    assert_eq!(git(&env)["branch"], "feature/x");
    env.git(&["pack-refs", "--all"]);
    assert_eq!(git(&env)["head"], clean["head"]);
    env.git(&["checkout", "-q", "--detach"]);
    let detached = git(&env);
    assert_eq!(
        (detached["branch"].clone(), detached["head"].clone()),
        (Value::Null, clean["head"].clone())
    );
}

#[test]
fn upstream_stash_and_work_trees_are_known() {
    let env = git_env();
    env.write("a", "1").git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    env.git(&["clone", "-q", "--bare", ".", "../remote.git"]);
    env.git(&["remote", "add", "origin", "../remote.git"]);
    env.git(&["fetch", "-q", "origin"]);
    env.git(&["branch", "-q", "-u", "origin/main"]);
    env.git(&["commit", "-q", "--allow-empty", "-m", "two"]);
    env.write("a", "2").git(&["stash", "push", "-q", "-m", "for later"]);
    env.git(&["worktree", "add", "-q", "../linked"]);
    env.biv(&["checkpoint", "create"]).ok();
    let git = env.json("checkpoint show latest")["git"].clone();
    assert_eq!(git["upstream"]["name"], "origin/main");
    assert_eq!(
        (git["upstream"]["ahead"].clone(), git["upstream"]["behind"].clone()),
        (1.into(), 0.into())
    );
    assert_eq!(git["upstream"]["head"], env.git(&["rev-parse", "origin/main"]));
    assert_eq!(git["stashes"][0]["message"], "On main: for later");
    assert_eq!(git["stashes"][0]["commit"], env.git(&["rev-parse", "stash"]));
    let worktrees: Vec<String> = git["worktrees"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["branch"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(worktrees, ["main", "linked"]);
    // Someone pushes: only the remote's branch moves.
    env.git(&["push", "-q", "origin", "main"]);
    env.biv(&["checkpoint", "create"]).ok();
    assert_eq!(env.json("checkpoint show latest")["git"]["upstream"]["ahead"], 0);
}

#[test]
fn what_is_in_progress_is_known() {
    let env = git_env();
    env.write("a", "base\n").git(&["add", "."]);
    env.git(&["commit", "-qm", "base"]);
    env.git(&["checkout", "-q", "-b", "other"]);
    env.write("a", "theirs\n").git(&["commit", "-qam", "theirs"]);
    env.git(&["checkout", "-q", "main"]);
    env.write("a", "ours\n").git(&["commit", "-qam", "ours"]);
    let try_git = |args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
        env.command("git", &env.work()).args(identity).args(args).output().unwrap()
    };
    let in_progress = || {
        env.biv(&["checkpoint", "create"]).ok();
        let git = env.json("checkpoint show latest")["git"].clone();
        (git["in_progress"].clone(), paths(&git["conflicted"]))
    };
    try_git(&["merge", "other"]);
    assert_eq!(in_progress(), ("merge".into(), vec!["a".to_owned()]));
    try_git(&["merge", "--abort"]);
    try_git(&["rebase", "other"]);
    assert_eq!(in_progress().0, "rebase");
    try_git(&["rebase", "--abort"]);
    try_git(&["cherry-pick", "other"]);
    assert_eq!(in_progress().0, "cherry-pick");
    try_git(&["cherry-pick", "--abort"]);
    try_git(&["bisect", "start"]);
    assert_eq!(in_progress().0, "bisect");
    try_git(&["bisect", "reset"]);
    assert_eq!(in_progress(), (Value::Null, vec![]));
}

#[test]
fn a_repository_without_commits_and_one_that_is_broken_are_no_obstacle() {
    let env = git_env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let git = env.json("checkpoint show latest")["git"].clone();
    assert_eq!((git["branch"].clone(), git["head"].clone()), ("main".into(), Value::Null));
    env.write(".git/HEAD", "nonsense");
    env.write("a", "2");
    env.biv(&["checkpoint", "create"]).ok();
    let git = env.json("checkpoint show latest")["git"].clone();
    assert!(git["unread"][0].as_str().unwrap().contains("git"), "{git}");
}

#[test]
fn inherited_git_variables_do_not_lead_astray() {
    let mut env = git_env();
    env.write("a", "1");
    env.set("GIT_DIR", "/nonexistent")
        .set("GIT_INDEX_FILE", "/nonexistent")
        .set("GIT_WORK_TREE", "/");
    env.biv(&["checkpoint", "create"]).ok();
    let git = env.json("checkpoint show latest")["git"].clone();
    assert_eq!(paths(&git["untracked"]), ["a"]);
    assert_eq!(git["unread"], Value::Null);
}
