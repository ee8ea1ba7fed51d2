//! What belongs to a checkpoint, and what is left out

use bivouac_testkit::TestEnv;

use crate::{env, git_env};

/// The paths a checkpoint of the workspace holds, and those it leaves out with the reason.
fn covered(env: &TestEnv) -> (Vec<String>, Vec<String>) {
    env.biv(&["checkpoint", "create"]).ok();
    let shown = env.json("checkpoint show latest --files --coverage");
    let list = |key: &str| shown[key].as_array().unwrap().clone();
    let files = list("files")
        .iter()
        .filter(|it| it["kind"] != "folder")
        .map(|it| it["path"].as_str().unwrap().to_owned())
        .collect();
    let gaps = list("not_covered")
        .into_iter()
        .map(|it| format!("{} {}", it["path"].as_str().unwrap(), it["reason"].as_str().unwrap()));
    (files, gaps.collect())
}

#[test]
fn ignore_rules_of_all_levels_are_read() {
    let env = git_env();
    std::fs::create_dir_all(env.home().join(".config/git")).unwrap();
    std::fs::write(env.home().join(".config/git/ignore"), "*.swp\n").unwrap();
    env.write(".git/info/exclude", "/private\n");
    env.write(".gitignore", "*.log\nbuild/\n").write("sub/.gitignore", "!keep.log\nlocal\n");
    env.write("a.log", "")
        .write("sub/keep.log", "")
        .write("sub/other.log", "")
        .write("sub/local", "");
    env.write("build/out", "").write("private", "").write("x.swp", "").write("src/main.rs", "");
    let (files, gaps) = covered(&env);
    assert_eq!(files, [".gitignore", "src/main.rs", "sub/.gitignore", "sub/keep.log"]);
    assert_eq!(
        gaps,
        [
            "a.log ignored",
            "build ignored",
            "private ignored",
            "sub/local ignored",
            "sub/other.log ignored",
            "x.swp ignored"
        ]
    );
}

#[test]
fn a_global_ignore_file_named_in_the_configuration_is_read() {
    let env = git_env();
    std::fs::write(env.home().join("my-ignores"), "*.cache\n").unwrap();
    std::fs::write(env.home().join(".gitconfig"), "[core]\n\texcludesFile = ~/my-ignores\n")
        .unwrap();
    env.write("x.cache", "").write("y", "");
    assert_eq!(covered(&env), (vec!["y".to_owned()], vec!["x.cache ignored".to_owned()]));
}

#[test]
fn tracked_files_are_captured_whatever_the_rules_say() {
    let env = git_env();
    env.write("dist/app.js", "1").write("dist/other.js", "1").write("x.log", "1");
    env.git(&["add", "dist/app.js", "x.log"]);
    env.write(".gitignore", "dist/\n*.log\n");
    let (files, gaps) = covered(&env);
    assert_eq!(files, [".gitignore", "dist/app.js", "x.log"]);
    assert_eq!(gaps, ["dist/other.js ignored"]);
    // The index changes and nothing else does.
    env.git(&["add", "-f", "dist/other.js"]);
    assert_eq!(covered(&env).0, [".gitignore", "dist/app.js", "dist/other.js", "x.log"]);
    env.git(&["rm", "-q", "--cached", "dist/app.js", "dist/other.js"]);
    let (files, gaps) = covered(&env);
    assert_eq!(files, [".gitignore", "x.log"]);
    assert_eq!(gaps, ["dist ignored"]);
}

#[test]
fn every_form_of_the_index_is_read() {
    for version in ["2", "3", "4"] {
        let env = git_env();
        env.git(&["config", "index.version", version]);
        env.write(".gitignore", "*.log\n");
        for name in ["a.log", "deep/er/b.log", "deep/er/bb.log", "été.log"] {
            env.write(name, "1").git(&["add", "-f", name]);
        }
        env.git(&["add", "-N", "."]);
        env.git(&["update-index", "--force-write-index"]);
        env.write("untracked.log", "1");
        let (files, gaps) = covered(&env);
        assert_eq!(
            files,
            [".gitignore", "a.log", "deep/er/b.log", "deep/er/bb.log", "été.log"],
            "version {version}"
        );
        assert_eq!(gaps, ["untracked.log ignored"]);
    }
    let env = git_env();
    env.write(".gitignore", "*.log\n").write("a.log", "1").git(&["add", "-f", "a.log"]);
    env.git(&["update-index", "--split-index"]);
    assert_eq!(covered(&env).0, [".gitignore", "a.log"], "a split index");
}

#[test]
fn precious_files_are_captured() {
    let env = env();
    env.write(".gitignore", ".env*\ndata/\n*.db\n/.envs/\n");
    env.write(".env", "S=1")
        .write(".env.local", "S=2")
        .write("app/.env", "S=3")
        .write(".envs/lib", "a virtual environment");
    env.write("data/keep/a.csv", "1")
        .write("data/skip/b.csv", "1")
        .write("local.db", "1")
        .write("node/x.db", "1");
    env.write("bivouac.toml", "[workspace]\ninclude = [\"data/keep/\", \"local.db\"]\n");
    let (files, gaps) = covered(&env);
    assert_eq!(
        files,
        [
            ".env",
            ".env.local",
            ".gitignore",
            "app/.env",
            "bivouac.toml",
            "data/keep/a.csv",
            "local.db"
        ]
    );
    assert_eq!(gaps, [".envs ignored", "data/skip ignored", "node/x.db ignored"]);
}

#[test]
fn what_a_person_excludes_is_left_out() {
    let env = env();
    env.write("bivouac.toml", "[workspace]\nexclude = [\"*.mp4\", \"/vendor/\"]\n");
    env.biv(&["config", "trust", "--yes"]).ok();
    env.write("a.mp4", "1").write("vendor/x", "1").write("src/vendor/y", "1");
    let (files, gaps) = covered(&env);
    assert_eq!(files, ["bivouac.toml", "src/vendor/y"]);
    assert_eq!(gaps, ["a.mp4 excluded", "vendor excluded"]);
}

#[test]
fn files_that_are_too_large_are_told() {
    let env = env();
    env.write("bivouac.toml", "[checkpoint]\nmax_file_size = \"1KB\"\n")
        .write("big", vec![1; 1001])
        .write("fits", vec![1; 1000]);
    env.biv(&["config", "trust", "--yes"]).ok();
    let run = env.biv(&["checkpoint", "create"]).ok();
    assert_eq!(
        run.stderr,
        "note: not covered: 1 too large; `biv checkpoint show cp-20260121-001 --coverage` lists them\n"
    );
    assert_eq!(
        covered(&env),
        (vec!["bivouac.toml".to_owned(), "fits".to_owned()], vec!["big too_large".to_owned()])
    );
    // It shrinks, and is covered.
    env.write("big", vec![1; 10]);
    assert_eq!(covered(&env).0, ["big", "bivouac.toml", "fits"]);
}

#[test]
fn rules_work_without_git_and_change_with_their_file() {
    let env = env();
    env.write("a.log", "1").write("b.txt", "1");
    assert_eq!(covered(&env).0, ["a.log", "b.txt"]);
    env.write(".gitignore", "*.log\n");
    assert_eq!(covered(&env).0, [".gitignore", "b.txt"]);
    env.write(".gitignore", "*.txt\n");
    assert_eq!(covered(&env).0, [".gitignore", "a.log"]);
    env.remove(".gitignore");
    assert_eq!(covered(&env).0, ["a.log", "b.txt"]);
}

#[test]
fn a_subfolder_obeys_the_rules_above_it() {
    let env = git_env();
    env.write(".gitignore", "*.log\n/pkg/out\n").write("pkg/.gitignore", "tmp/\n");
    env.write("pkg/a.log", "")
        .write("pkg/out/x", "")
        .write("pkg/tmp/x", "")
        .write("pkg/src.rs", "")
        .write("pkg/kept.log", "");
    env.git(&["add", "-f", "pkg/kept.log"]);
    env.biv(&["checkpoint", "create", "--root", "pkg"]).ok();
    let shown = env.biv(&["checkpoint", "show", "latest", "--files", "--json", "--root", "pkg"]);
    let shown = shown.ok().stdout;
    let value: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let files: Vec<&str> =
        value["files"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(files, [".gitignore", "kept.log", "src.rs"]);
}

#[test]
fn from_a_subfolder_the_whole_repository_is_saved() {
    let env = git_env();
    env.write("top.txt", "1").write("deep/er/x.txt", "1");
    env.biv_in(&env.path("deep/er"), &["checkpoint", "create"]).ok();
    assert_eq!(covered(&env).0, ["deep/er/x.txt", "top.txt"]);
}

#[test]
fn nested_repositories_are_captured_by_their_own_rules() {
    let env = git_env();
    env.write(".gitignore", "*.tmp\n").write("a.tmp", "");
    env.write("lib/.gitignore", "*.o\n")
        .write("lib/x.o", "")
        .write("lib/x.c", "")
        .write("lib/a.tmp", "theirs");
    let init = env.command("git", &env.path("lib")).args(["init", "-q"]).status();
    assert!(init.unwrap().success());
    env.write("ignored/inner.txt", "").write(".gitignore", "*.tmp\nignored/\n");
    let (files, gaps) = covered(&env);
    assert_eq!(files, [".gitignore", "lib/.gitignore", "lib/a.tmp", "lib/x.c"]);
    assert_eq!(gaps, ["a.tmp ignored", "ignored ignored", "lib/x.o ignored"]);
    // The inner repository's own `.git` is none of our business.
    let before = bivouac_testkit::read_stats(&env.path("lib/.git"));
    env.write("lib/x.c", "changed");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.read("lib/x.c"), "");
    assert_eq!(bivouac_testkit::read_stats(&env.path("lib/.git")), before);
}

#[test]
fn submodules_and_linked_work_trees_are_captured() {
    let env = git_env();
    let inner = env.root().join("inner");
    std::fs::create_dir(&inner).unwrap();
    for args in [
        vec!["init", "-q", "-b", "main"],
        vec![
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
    ] {
        assert!(env.command("git", &inner).args(args).status().unwrap().success());
    }
    env.write("a", "1");
    env.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        inner.to_str().unwrap(),
        "sub",
    ]);
    env.git(&["commit", "-qam", "one"]);
    env.write("sub/file", "in the submodule");
    assert_eq!(covered(&env).0, [".gitmodules", "a", "sub/file"]);
    let facts = env.json("checkpoint show latest")["git"].clone();
    assert_eq!(facts["submodules"][0]["path"], "sub");
    assert_eq!(facts["submodules"][0]["head"].as_str().unwrap().len(), 40);

    env.git(&["worktree", "add", "-q", "../linked"]);
    let linked = env.root().join("linked");
    std::fs::write(linked.join("b"), "2").unwrap();
    env.biv_in(&linked, &["checkpoint", "create"]).ok();
    let shown =
        env.biv_in(&linked, &["checkpoint", "show", "latest", "--json", "--files"]).ok().stdout;
    assert!(shown.contains("\"b\"") && shown.contains("\"branch\": \"linked\""), "{shown}");
    let facts = env.json("checkpoint create");
    assert_eq!(facts["git_branch"], "main");
}

#[test]
fn our_own_store_is_never_captured() {
    let mut env = env();
    env.set("BIV_STORE", "deep/store");
    env.write("a", "1");
    let (files, gaps) = covered(&env);
    assert_eq!(files, ["a"]);
    assert_eq!(gaps, ["deep/store own_state"]);
}

#[test]
fn what_git_tracks_is_captured_as_soon_as_it_is_known() {
    let env = git_env();
    env.write(".gitignore", "*.log\n").write("kept.log", "tracked");
    env.git(&["add", "-f", "."]);
    env.git(&["commit", "-qm", "one"]);
    std::fs::write(env.path(".git/index"), "DIRC no index at all").unwrap();
    let run = env.biv(&["checkpoint", "create"]).ok();
    let said = "ignored files are left out even if git tracks them, because `";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    assert!(!covered(&env).0.contains(&"kept.log".to_owned()));
    env.remove(".git/index");
    env.git(&["reset", "-q"]);
    env.biv(&["checkpoint", "create"]).ok();
    assert!(covered(&env).0.contains(&"kept.log".to_owned()));
}

#[test]
fn a_name_that_begins_like_a_staging_folder_is_the_projects() {
    let env = env();
    env.write(".biv-staging-src/main.c", "int main;").write(".biv-staging-notes", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let (covered, _) = covered(&env);
    assert!(covered.contains(&".biv-staging-src/main.c".to_owned()), "{covered:?}");
    assert!(covered.contains(&".biv-staging-notes".to_owned()), "{covered:?}");
}

#[test]
fn a_repository_under_another_name_is_left_to_git() {
    let env = env();
    env.git(&["init", "-q", "-b", "main", "--separate-git-dir=.repo", "."]);
    env.write("a", "1");
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    let saved = env.biv(&["checkpoint", "create"]).ok();
    assert!(saved.stderr.contains("`.repo/` is left out, because `.git` says"), "{}", saved.stderr);
    env.write("a", "2");
    env.git(&["commit", "-qam", "two"]);
    let head = env.git(&["rev-parse", "HEAD"]);
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!((env.read("a"), env.git(&["rev-parse", "HEAD"])), ("1".to_owned(), head));
}

#[test]
fn a_repository_behind_a_link_is_found() {
    let env = env();
    env.git(&["init", "-q", "-b", "main", "."]);
    std::fs::rename(env.path(".git"), env.root().join("repo")).unwrap();
    env.link(".git", env.root().join("repo"));
    env.write(".gitignore", "*.log\n").write("kept.log", "tracked");
    env.git(&["add", "-f", "."]);
    env.biv(&["checkpoint", "create"]).ok();
    assert!(covered(&env).0.contains(&"kept.log".to_owned()));
}

#[test]
fn what_a_project_keeps_beside_its_own_store_is_the_projects() {
    let env = git_env();
    env.write(".agents/HANDOFF.md", "one").write("a", "1");
    env.git(&["add", "."]);
    env.biv(&["init", "--local"]).ok();
    env.biv(&["checkpoint", "create"]).ok();
    let (files, _) = covered(&env);
    assert!(files.contains(&".agents/HANDOFF.md".to_owned()), "{files:?}");
    assert!(!files.iter().any(|path| path.contains("sessions.db")), "{files:?}");
    env.write(".agents/HANDOFF.md", "two");
    env.biv(&["checkpoint", "rollback", "latest", "--yes"]).ok();
    assert_eq!(env.read(".agents/HANDOFF.md"), "one");
    assert_eq!(env.git(&["status", "--short", ".agents"]), "A  .agents/HANDOFF.md");
}
