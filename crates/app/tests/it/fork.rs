//! `biv fork`

use insta::assert_snapshot;

use crate::git_env;

#[test]
fn a_fork_has_files_history_and_a_session_of_its_own() {
    let env = git_env();
    env.write("a", "1");
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "one"]);
    env.write("a", "dirty").write("new", "untracked");
    env.biv(&["checkpoint", "create"]).ok();
    let before = (env.tree(), env.git(&["rev-parse", "HEAD"]), env.git(&["status", "--short"]));
    env.write("a", "later");
    let into = env.root().join("try-b");
    assert_snapshot!(env.run("fork cp-001 --into ../try-b --name second"), @"
    Forked cp-20260121-001 into ../try-b: session task-00000001, 2 files, with the repository
    Go on there with `biv -C ../try-b resume task-00000001`
    ");
    assert_eq!(bivouac_testkit::read_tree(&into), before.0);
    let there = into.to_str().unwrap();
    assert_eq!(env.git(&["-C", there, "rev-parse", "HEAD"]), before.1);
    assert_eq!(env.git(&["-C", there, "status", "--short"]), before.2);
    assert_eq!(env.read("a"), "later");
    let sessions = env.biv(&["-C", there, "session", "list", "--json"]).ok().stdout;
    let sessions: serde_json::Value = serde_json::from_str(&sessions).unwrap();
    assert_eq!(sessions.as_array().unwrap().len(), 1);
    assert!(sessions[0]["metadata"]["forked_from"]["checkpoint"].is_string(), "{sessions}");
    assert_eq!(env.run("fork cp-001 --into ../try-b").lines().next(), Some("exit 1"));
}
