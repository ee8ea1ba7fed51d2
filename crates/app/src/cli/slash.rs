//! `biv slash`: what commands in agents call. All it says goes to stdout, and it never fails, because that is what
//! agents show.

use bivouac_core::agent::AgentKind;
use bivouac_core::text::Name;
use bivouac_engine::home::Wishes;
use bivouac_engine::open::Need;
use serde_json::json;

use crate::cli::checkpoint::create::{self, SaveArgs};
use crate::cli::checkpoint::list::{self, ListArgs};
use crate::cli::hook::{read_input, text};
use crate::cli::rehydrate::{self, RehydrateArgs};
use crate::cli::{Error, open, say_notices};
use crate::report::{self, Exit};
use crate::ui::Ui;

/// Answer what a person typed in an agent (agents call this; see `biv setup`)
#[derive(Debug, clap::Args)]
pub struct SlashArgs {
    /// The agent
    agent: AgentKind,
    /// The command: checkpoint or rehydrate
    command: SlashCommand,
    /// What followed it; read from stdin if left out
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    words: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SlashCommand {
    Checkpoint,
    Rehydrate,
}

/// Nobody types more.
const MAX_WORDS: usize = 64 << 10;

const FORMS: &str = "\
- `/checkpoint` or `/checkpoint save`: save now, under a label made of what is being worked on
- `/checkpoint save LABEL`: save now, under this label
- `/checkpoint resume`: tell what is needed to go on from the last checkpoint
- `/checkpoint list`: show the checkpoints there are";

#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Save(Option<String>),
    Resume,
    List,
}

pub fn run(args: &SlashArgs, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    match answer(args, wishes, ui) {
        Err(error) if !error.is_closed_pipe() => report::as_answer(&error, ui)?,
        _ => {}
    }
    Ok(Exit::Done)
}

fn answer(args: &SlashArgs, wishes: &Wishes, ui: &mut Ui) -> Result<(), Error> {
    // What follows this one says nothing, so nobody has to wait for it.
    if args.command == SlashCommand::Rehydrate {
        return carry_out(args.agent, Wish::Resume, wishes, ui);
    }
    let typed = match args.words.is_empty() {
        true => read_input(MAX_WORDS + 1).map_or_else(|_| String::new(), text),
        false => args.words.join(" "),
    };
    if typed.len() > MAX_WORDS {
        return Ok(tell_nothing_done("that is too long for a label", ui)?);
    }
    match Wish::read(&typed) {
        Some(wish) => carry_out(args.agent, wish, wishes, ui),
        None => Ok(tell_nothing_done(&format!("these are the forms:\n\n{FORMS}"), ui)?),
    }
}

fn tell_nothing_done(why: &str, ui: &mut Ui) -> std::io::Result<()> {
    ui.data(&json!({ "done": false, "reason": why }))?;
    ui.say(format_args!("Nothing was done: {why}"))
}

fn carry_out(agent: AgentKind, wish: Wish, wishes: &Wishes, ui: &mut Ui) -> Result<(), Error> {
    let need = if matches!(wish, Wish::Save(_)) { Need::Write } else { Need::Read };
    let mut engine = open(wishes, need, ui)?;
    let done = match wish {
        Wish::Save(label) => {
            let label = label.map(|label| named(&label, ui)).transpose()?;
            let session = engine.session_for_agent(agent)?;
            create::run_save(&SaveArgs::of(session.id, label), &mut engine, ui)
        }
        Wish::Resume => rehydrate::run(&RehydrateArgs::for_model(), &mut engine, ui),
        Wish::List => list::run(&ListArgs::for_model(), &mut engine, ui),
    };
    say_notices(&mut engine, ui);
    done.map(|_| ())
}

impl Wish {
    fn read(typed: &str) -> Option<Self> {
        let typed = unquoted(typed.trim());
        let (verb, rest) =
            typed.trim().split_once(char::is_whitespace).unwrap_or((typed.trim(), ""));
        let rest = rest.trim();
        match (verb, rest) {
            ("" | "save", "") => Some(Self::Save(None)),
            ("save", label) => Some(Self::Save(Some(label.to_owned()))),
            ("resume", "") => Some(Self::Resume),
            ("list", "") => Some(Self::List),
            _ => None,
        }
    }
}

/// Some agents put quotes around all of it where nobody looks at a screen.
fn unquoted(typed: &str) -> String {
    let is_quoted = typed.len() > 1 && typed.starts_with('"') && typed.ends_with('"');
    let inner = is_quoted.then(|| serde_json::from_str(typed).ok()).flatten();
    inner.unwrap_or_else(|| typed.to_owned())
}

/// A label as it can be kept. What had to be changed about it is said.
fn named(label: &str, ui: &mut Ui) -> Result<Name, Error> {
    let kebab = bivouac_core::export::checkpoint_md::kebab(label);
    let name = kebab.parse::<Name>().or_else(|_| format!("label-{kebab}").parse());
    let name = name.map_err(bivouac_engine::Error::from)?;
    if name.as_str() != label {
        ui.say(format_args!("The label is kept as `{name}`."))?;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_wishes() {
        let save = |label: &str| Some(Wish::Save(Some(label.to_owned())));
        for (typed, wish) in [
            ("", Some(Wish::Save(None))),
            (" save \n", Some(Wish::Save(None))),
            ("save it's \"me\"", save("it's \"me\"")),
            ("\"save it's \\\"me\\\"\"", save("it's \"me\"")),
            ("save\t$(rm -rf ~)", save("$(rm -rf ~)")),
            ("save a\nb", save("a\nb")),
            ("resume", Some(Wish::Resume)),
            ("list", Some(Wish::List)),
            ("list all", None),
            ("rollback cp-001", None),
            ("\"", None),
        ] {
            assert_eq!(Wish::read(typed), wish, "{typed}");
        }
    }
}
