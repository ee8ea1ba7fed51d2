//! The whole command line as one document, made from the help itself.

use clap::{Command, CommandFactory};

use crate::cli::Cli;

/// `docs/cli.md`.
pub fn markdown() -> String {
    let mut text = String::from(
        "# The command line\n\nMade from `biv --help` by `cargo xtask docs`; a test holds it.\n",
    );
    let mut root = Cli::command().term_width(100);
    root.build();
    describe(&mut text, &mut root, "biv");
    text
}

fn describe(text: &mut String, command: &mut Command, name: &str) {
    let level = "#".repeat(1 + name.split(' ').count());
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    text.push_str(
        &["\n", &level, " ", name, "\n\n```text\n", &lines.join("\n"), "\n```\n"].concat(),
    );
    for inner in command.get_subcommands_mut().filter(|it| !it.is_hide_set()) {
        let name = [name, inner.get_name()].join(" ");
        describe(text, inner, &name);
    }
}
