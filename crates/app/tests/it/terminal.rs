//! On a terminal: colours, questions, bars

use crate::env;

#[test]
fn colours_are_for_terminals_only() {
    let mut env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let (_, shown) = env.on_terminal(&["checkpoint", "list"], "");
    assert!(shown.contains("\u{1b}[36mcp-20260121-001"), "{shown:?}");
    assert!(!env.run("checkpoint list").contains('\u{1b}'));
    env.set("NO_COLOR", "1");
    let (_, shown) = env.on_terminal(&["checkpoint", "list"], "");
    assert!(!shown.contains("\u{1b}["), "{shown:?}");
}

#[test]
fn a_rollback_asks_and_takes_no_for_an_answer() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    for answer in ["n\n", "\n", "what?\n"] {
        let (code, shown) = env.on_terminal(&["checkpoint", "rollback", "cp-001"], answer);
        assert!(shown.contains("Go ahead? [y/N]"), "{shown}");
        assert!(
            shown.contains("the rollback was not confirmed, so nothing was changed"),
            "{shown}"
        );
        assert_eq!((code, env.read("a")), (1, "2".to_owned()));
    }
    let (code, shown) = env.on_terminal(&["checkpoint", "rollback", "cp-001"], "y\n");
    assert_eq!((code, env.read("a")), (0, "1".to_owned()), "{shown}");
    let (code, _) = env.on_terminal(&["undo"], "yes\n");
    assert_eq!((code, env.read("a")), (0, "2".to_owned()));
}

#[test]
fn long_work_shows_how_far_it_is() {
    let env = env();
    for n in 0..1_500 {
        env.write(format!("d{}/f{n}", n % 20), n.to_string());
    }
    let (_, shown) = env.on_terminal(&["checkpoint", "create"], "");
    assert!(shown.contains("Reading files") && shown.contains("of 1,500"), "{shown:?}");
    let piped = env.biv(&["checkpoint", "create"]).ok();
    assert_eq!(piped.stderr, "");
}

#[test]
fn a_patch_cannot_command_the_terminal() {
    let env = env();
    env.write("a", "harmless\n");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "\u{1b}]0;evil\u{7}\n");
    let (_, shown) = env.on_terminal(&["checkpoint", "diff", "latest", "-p"], "");
    assert!(shown.contains("+\\u{1b}]0;evil\\u{7}"), "{shown:?}");
    assert!(
        env.biv(&["checkpoint", "diff", "latest", "-p"]).stdout.contains('\u{1b}'),
        "a pipe gets the true bytes"
    );
}
