//! `biv slash`: what a person typed in an agent, answered for its model

use std::io::Write;
use std::process::Stdio;

use bivouac_testkit::{Run, TestEnv};
use insta::assert_snapshot;

use crate::{env, git_env};

fn slash(env: &TestEnv, command: &str, typed: impl AsRef<[u8]>) -> Run {
    let mut command = env.biv_command(&env.work(), &["slash", "claude-code", command]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _seen_enough = child.stdin.take().unwrap().write_all(typed.as_ref());
    env.finish(child)
}

#[test]
fn a_checkpoint_is_saved_listed_and_resumed() {
    let env = git_env();
    env.write("a.txt", "1");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "first"]);
    env.run("session new --name work --task \"Build it\"");
    assert_snapshot!(slash(&env, "checkpoint", "save auth-middleware").text(), @"
    Saved checkpoint cp-20260121-001 of task-00000001: 1 file
    Label: auth-middleware
    To resume later: `biv resume task-00000001`
    ");
    assert_snapshot!(slash(&env, "checkpoint", "").text(), @"
    Saved checkpoint cp-20260121-002 of task-00000001: 1 file, nothing changed
    Label: work
    To resume later: `biv resume task-00000001`
    ");
    assert_snapshot!(slash(&env, "checkpoint", "list\n").text(), @"
    | # | Date | Label | Branch |
    |---|------|-------|--------|
    | 1 | 2026-01-21 14:32 | work | main |
    | 2 | 2026-01-21 14:31 | auth-middleware | main |
    ");
    let resumed = slash(&env, "checkpoint", "resume").text();
    assert!(
        resumed.starts_with("## Session Resumed") && resumed.contains("**Task**: Build it"),
        "{resumed}"
    );
    assert!(slash(&env, "rehydrate", "whatever").text().starts_with("## Session Resumed"));
}

#[test]
fn a_label_is_made_a_name_and_means_nothing_to_a_shell() {
    let env = env();
    env.write("a.txt", "1");
    let told =
        slash(&env, "checkpoint", "save it's \"done\" $(touch pwned) `touch pwned`; touch pwned")
            .text();
    assert!(told.starts_with("The label is kept as `it-s-done-touch-pwned"), "{told}");
    assert!(!env.exists("pwned"));
    assert!(slash(&env, "checkpoint", "save task-1").text().contains("Label: label-task-1"));
    assert!(slash(&env, "checkpoint", "save \u{1b}[31m\nred").text().contains("Label: 31m-red"));
    // As Gemini hands it over, and as `opencode run` does.
    env.run("slash gemini checkpoint \"save by argument\"");
    slash(&env, "checkpoint", "\"save in quotes\"");
    let list = env.run("checkpoint list");
    assert!(list.contains("[by-argument]") && list.contains("[in-quotes]"), "{list}");
}

#[test]
fn what_goes_wrong_is_an_answer_too() {
    let env = env();
    assert_snapshot!(slash(&env, "checkpoint", "rollback").text(), @"
    Nothing was done: these are the forms:

    - `/checkpoint` or `/checkpoint save`: save now, under a label made of what is being worked on
    - `/checkpoint save LABEL`: save now, under this label
    - `/checkpoint resume`: tell what is needed to go on from the last checkpoint
    - `/checkpoint list`: show the checkpoints there are
    ");
    assert_snapshot!(slash(&env, "checkpoint", "x".repeat(70_000)).text(), @"Nothing was done: that is too long for a label");
    assert_snapshot!(slash(&env, "checkpoint", "resume").text(), @"
    Problem: there is no session in this workspace yet
    What helps: `biv checkpoint create` makes one, or `biv session new`
    ");
    env.write("a.txt", "1");
    slash(&env, "checkpoint", "save one").ok();
    let again = slash(&env, "checkpoint", "save one").ok();
    assert_snapshot!(again.text(), @"
    Problem: the name `one` is already taken in this session
    What helps: choose another name, or leave it out
    ");
    assert_eq!(slash(&env, "checkpoint", [0xff, 0xfe]).code, 0);
    assert_eq!(env.biv(&["slash", "codex", "reboot"]).code, 2);
}

#[test]
fn a_long_list_is_cut() {
    let env = env();
    for n in 0..22 {
        env.write("a.txt", format!("{n}"));
        env.run("checkpoint create");
    }
    let told = slash(&env, "checkpoint", "list").text();
    assert_eq!(told.lines().filter(|line| line.starts_with("| ")).count(), 21, "{told}");
    assert!(told.ends_with("2 older ones are in `biv checkpoint list`."), "{told}");
}
