//! Every command in the README and the tour, run in order, with the answers they show.

use bivouac_testkit::{Normalizer, TestEnv, without_costs};

use crate::env;

#[test]
fn the_readme_is_true() {
    walk_through(include_str!("../../../../README.md"));
}

#[test]
fn the_first_steps_are_true() {
    walk_through(include_str!("../tour/first-steps.md"));
}

/// Runs the `console` blocks of a document: a line with `$` is a command, the lines below it the answer.
fn walk_through(document: &str) {
    let env = env();
    env.write("session.py", "class Session: ...\n").write("auth.py", "import session\n");
    let blocks = document.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut n_commands = 0;
    for block in blocks {
        for story in block.split("\n$ ") {
            let story = story.trim_start_matches("$ ");
            let (command, expected) = story.split_once('\n').unwrap_or((story, ""));
            let expected = without_costs(expected.trim_end());
            assert_eq!(run(&env, command), expected, "after `{command}`");
            n_commands += 1;
        }
    }
    assert!(n_commands > 5, "only {n_commands} commands were found");
}

fn run(env: &TestEnv, line: &str) -> String {
    if let Some(words) = line.strip_prefix("biv ") {
        return env.run(words);
    }
    let output = env.command("sh", &env.work()).args(["-c", line]).output().unwrap();
    assert!(output.status.success(), "{line}");
    Normalizer::new(env.root())
        .apply(&String::from_utf8_lossy(&output.stdout))
        .trim_end()
        .to_owned()
}
