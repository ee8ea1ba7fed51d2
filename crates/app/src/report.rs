//! Errors, printed here and nowhere else: the fact, its causes, the remedy.

use std::error::Error as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::cli::Error;
use crate::ui::{Form, Ui};

/// How a command ended, as the shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    /// The command line makes no sense.
    Usage,
    DoneInPart,
    /// As the command did that we ran.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::DoneInPart => 3,
            Exit::Code(code) => code,
        })
    }
}

/// A command line that makes no sense, or asks for help. With `--json` the answer to the former is a
/// document, too.
pub fn usage(error: &clap::Error) -> Exit {
    let _nowhere_left_to_say_it = error.print();
    if !error.use_stderr() {
        return Exit::Done;
    }
    if std::env::args_os().any(|arg| arg == "--json") {
        let text = error.render().to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let mut ui = Ui::new(Form::Json);
        let document = json!({
            "error": { "message": message, "causes": [], "hint": "see `biv --help`" }
        });
        let _nowhere_left_to_say_it = ui.data(&document).and_then(|()| ui.finish());
    }
    Exit::Usage
}

/// What went wrong beside the matter at hand: a note, not an error.
pub fn note(what: &str, error: &bivouac_engine::Error, ui: &mut Ui) {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |it| (*it).source());
    let told: Vec<String> = causes.map(ToString::to_string).collect();
    let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
    ui.note(format_args!("{what}: {}{hint}", told.join(": ")));
}

/// The same as the answer itself, for whoever sees nothing else.
pub fn as_answer(error: &Error, ui: &mut Ui) -> std::io::Result<()> {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |it| (*it).source());
    let told: Vec<String> = causes.map(ToString::to_string).collect();
    let hint = error.hint();
    ui.say(format_args!("Problem: {}", told.join(": ")))?;
    if let Some(hint) = &hint {
        ui.say(format_args!("What helps: {hint}"))?;
    }
    ui.data(&json!({
        "error": { "message": error.to_string(), "causes": told[1..], "hint": hint }
    }))
}

/// Says what went wrong. With `--json` the answer is still one document on stdout.
pub fn error(error: &Error, ui: &mut Ui) -> Exit {
    if error.is_closed_pipe() {
        return Exit::Done;
    }
    ui.error(&error.to_string(), &causes(error), error.hint().as_deref());
    let _nowhere_left_to_say_it = ui.data(&document(error));
    error.exit()
}

/// The same, for programs.
pub fn document(error: &Error) -> Value {
    json!({
        "error": { "message": error.to_string(), "causes": causes(error), "hint": error.hint() }
    })
}

fn causes(error: &Error) -> Vec<String> {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.map(ToString::to_string).collect()
}
