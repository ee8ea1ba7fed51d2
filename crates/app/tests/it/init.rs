//! `biv init`

use insta::assert_snapshot;

use crate::env;

#[test]
fn a_folder_becomes_a_workspace_of_its_own() {
    let env = env();
    assert_snapshot!(env.run("init"), @"
    Wrote bivouac.toml, with every setting of a workspace commented out
    Workspace [root]/project
    Store     [root]/home/.local/share/bivouac
    ");
    assert_snapshot!(env.run("init"), @"
    Workspace [root]/project
    Store     [root]/home/.local/share/bivouac
    ");
    // Everything in it is a comment, and from below the workspace is found.
    assert!(
        env.read("bivouac.toml")
            .lines()
            .all(|line| line.is_empty() || line.starts_with(['#', '[']))
    );
    env.write("deep/er/a", "1");
    let saved = env.biv_in(&env.path("deep/er"), &["checkpoint", "create", "--json"]).ok();
    assert!(saved.stdout.contains("\"files\": 2"), "{}", saved.stdout);
}

#[test]
fn a_project_can_keep_its_own_store() {
    let env = env();
    assert_snapshot!(env.run("init --local"), @"
    Wrote bivouac.toml, with every setting of a workspace commented out
    Workspace [root]/project
    Store     [root]/project/.agents
    ");
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    assert!(env.exists(".agents/sessions.db") && !env.store().exists());
    // Neither git nor the next checkpoint sees it.
    env.git(&["init", "-q"]);
    assert_eq!(env.git(&["status", "--porcelain", "-uall"]), "?? a\n?? bivouac.toml");
    let shown = env.json("checkpoint show latest --files --coverage");
    assert!(!shown["files"].to_string().contains(".agents/"), "{}", shown["files"]);
    assert!(shown["not_covered"].to_string().contains("own_state"), "{}", shown["not_covered"]);
}
