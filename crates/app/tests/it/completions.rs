//! `biv completions`, and what Tab offers

use insta::assert_snapshot;

use crate::env;

#[test]
fn every_shell_gets_its_script() {
    let env = env();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = env.biv(&["completions", shell]).ok().stdout;
        assert!(script.contains("biv"), "{shell}");
    }
    assert_snapshot!(env.run("completions tcsh"), @"
    exit 2
    error: `tcsh` is not a shell we know
    hint: the shells are bash, elvish, fish, powershell, zsh
    ");
}

#[test]
fn tab_offers_ids_that_are_there() {
    let env = env();
    env.write("a", "1");
    env.biv(&["session", "new", "--name", "work"]).ok();
    env.biv(&["checkpoint", "create", "-m", "first light"]).ok();
    let offer = |words: &[&str]| {
        let mut all = vec!["--", "biv"];
        all.extend(words);
        let mut command = env.biv_command(&env.work(), &all);
        command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", (all.len() - 2).to_string());
        command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_IFS", "\n");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(offer(&["checkpoint", "show", "cp-"]).contains("cp-20260121-001"));
    assert!(offer(&["session", "show", "task-"]).contains("task-"));
    assert!(offer(&["checkpoint", "roll"]).contains("rollback"));
}
