//! A `.git` that is not what it seems: a save goes on, says what it could not learn, and is not led astray

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use bivouac_testkit::index_bomb;

use crate::untrusted_git::{marks, trap};
use crate::{env, git_env};

#[test]
fn a_git_file_cannot_keep_a_folder_out_of_checkpoints() {
    let env = env();
    env.write(".git", "gitdir: src\n").write("src/HEAD", "ref: refs/heads/main\n");
    env.write("src/main.rs", "fn main() {}\n").biv(&["checkpoint", "create"]).ok();
    fs::remove_file(env.path("src/main.rs")).unwrap();
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(fs::read_to_string(env.path("src/main.rs")).unwrap(), "fn main() {}\n");
}

#[test]
fn an_index_that_is_none_stops_no_save() {
    let env = git_env();
    env.write(".gitignore", "ignored/\n").write("ignored/x", "1").write("a", "1");
    env.biv(&["checkpoint", "create", "--name", "one"]).ok();
    let bomb = index_bomb();
    let indexes: [&[u8]; 3] = [b"something else", b"DIRC\0\0\0\x02\xff\xff\xff\xff", &bomb];
    for bytes in indexes {
        env.write(".git/index", bytes).write("a", bytes);
        let saved = env.biv(&["checkpoint", "create"]).ok();
        let said = "note: ignored files are left out even if git tracks them, because `";
        assert!(saved.stderr.contains(said), "{}", saved.stderr);
        env.biv(&["checkpoint", "rollback", "one", "--yes"]).ok();
        assert_eq!((env.read("a"), env.read("ignored/x")), ("1".to_owned(), "1".to_owned()));
        env.biv(&["status"]).ok();
    }
}

#[test]
fn half_an_index_stops_no_save() {
    let env = git_env();
    env.write(".gitignore", "ignored/\n").write("ignored/x", "1").write("a", "1");
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    env.git(&["update-index", "--split-index"]);
    let names = fs::read_dir(env.path(".git")).unwrap().map(|it| it.unwrap().path());
    let is_half = |path: &PathBuf| path.to_string_lossy().contains("sharedindex.");
    let halves: Vec<PathBuf> = names.filter(is_half).collect();
    assert_eq!(halves.len(), 1);
    fs::remove_file(&halves[0]).unwrap();
    let saved = env.biv(&["checkpoint", "create"]).ok();
    let said = "note: ignored files are left out even if git tracks them, because `";
    assert!(saved.stderr.contains(said), "{}", saved.stderr);
}

#[test]
fn a_stash_runs_no_program_of_a_submodule() {
    let env = git_env();
    env.write("nest/s", "1").write("a", "1");
    let nest = env.path("nest");
    let git = |args: &[&str]| {
        let mut git = env.command("git", &nest);
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        assert!(git.args(args).stdout(Stdio::null()).status().unwrap().success(), "{args:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    git(&["config", "filter.x.clean", &trap(&env, "nest")]);
    env.write("nest/.git/info/attributes", "* filter=x\n");
    env.git(&["-c", "advice.addEmbeddedRepo=false", "add", "-A"]);
    env.git(&["commit", "-qm", "two"]);
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2").write("nest/s", "2");
    let run = env.biv(&["checkpoint", "rollback", "cp-001", "--stash", "--yes"]);
    assert!(run.stderr.contains("`nest` is a submodule"), "{}", run.stderr);
    assert_eq!(marks(&env), Vec::<String>::new());
    assert_eq!(env.read("a"), "2");
}

#[test]
fn a_log_of_stashes_that_leads_elsewhere_is_not_read() {
    let env = git_env();
    let outside = env.root().join("outside");
    fs::write(&outside, "0 1\tprivate line\n").unwrap();
    env.write("a", "1").folder(".git/logs/refs").link(".git/logs/refs/stash", &outside);
    env.biv(&["checkpoint", "create"]).ok();
    let git = env.json("checkpoint show latest")["git"].clone();
    assert_eq!(git["stashes"].as_array().map_or(0, Vec::len), 0);
    assert!(git["unread"].to_string().contains("logs/refs/stash: it is a link"), "{git}");
}
