//! What the branch says.

use insta::assert_snapshot;

use crate::git_env;

#[test]
fn the_branch_names_the_issue_and_the_folder() {
    let env = git_env();
    env.git(&["checkout", "-q", "-b", "PROJ-123_add-auth"]);
    assert_snapshot!(env.run("context"), @"
    JIRA_ISSUE=PROJ-123
    BRANCH_NAME=add-auth
    BRANCH=PROJ-123_add-auth
    PROJECT_DIR=docs/implementation_plans/PROJ-123/add-auth/
    ");
    assert_eq!(env.json("context")["JIRA_ISSUE"], "PROJ-123");
}

#[test]
fn a_branch_that_does_not_say_is_asked_about() {
    let env = git_env();
    assert_snapshot!(env.run("context"), @"
    exit 2
    error: Branch 'main' doesn't match PROJ-123_description convention. Enter JIRA issue key or 'none':
    hint: answer with `biv context --issue KEY`, or `--issue none`
    ");
    assert_snapshot!(env.run("context --issue PROJ-9"), @"
    JIRA_ISSUE=PROJ-9
    BRANCH_NAME=main
    BRANCH=main
    PROJECT_DIR=docs/implementation_plans/PROJ-9/main/
    ");
    assert_snapshot!(env.run("context --issue none"), @"
    JIRA_ISSUE=none
    BRANCH_NAME=main
    BRANCH=main
    PROJECT_DIR=docs/implementation_plans/_adhoc/main/
    ");
    assert_snapshot!(env.run("context --issue whatever"), @"
    exit 2
    error: `whatever` is no key of an issue
    hint: write it as PROJ-123 or #174, or `none`
    ");
    assert_snapshot!(crate::env().run("context"), @"
    exit 2
    error: there is no branch here
    hint: it is a git branch that says what the work is about
    ");
}
