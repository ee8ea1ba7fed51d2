//! `biv fork-point`: several ways forward, and the one that was taken.

use std::str::FromStr;

use bivouac_core::text::{Note, words_in};
use bivouac_core::work::{ForkOption, ForkPoint, Item, Noun, key_in, slug};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, Subcommand};

use crate::cli::Error;
use crate::cli::saying::{self, Listing, Saying, key_of};
use crate::report::Exit;
use crate::ui::Ui;

/// Write down several ways forward, and which one was taken
#[derive(Debug, Subcommand)]
pub enum ForkPointCommand {
    /// Open a question with several answers
    Open(OpenArgs),
    /// Choose one
    Decide(DecideArgs),
    /// List them
    List(Listing),
}

#[derive(Debug, Args)]
pub struct OpenArgs {
    /// What it is about
    #[arg(value_parser = words_in)]
    title: Note,
    /// What to call it by; made of the title if left out
    #[arg(long, value_parser = key_in)]
    id: Option<String>,
    #[command(flatten)]
    ways: Ways,
    /// Who has to decide
    #[arg(long, value_name = "WHO")]
    needed_from: Option<String>,
    #[command(flatten)]
    saying: Saying,
}

#[derive(Debug, Args)]
pub struct DecideArgs {
    /// Its id or title
    fork_point: String,
    /// The letter of the option
    #[arg(long, value_name = "LETTER")]
    option: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    why: Option<Note>,
    #[command(flatten)]
    saying: Saying,
}

impl ForkPointCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::List(_) => Need::Read,
            _ => Need::Write,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::Open(args) => open(args, engine, ui),
            Self::Decide(args) => decide(args, engine, ui),
            Self::List(args) => saying::list(args, Noun::ForkPoint, engine, ui),
        }
    }
}

fn open(args: &OpenArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let key = args.id.clone().unwrap_or_else(|| slug(args.title.as_str()));
    let fork_point = ForkPoint {
        fork_point: key,
        title: Some(args.title.clone()),
        options: Some(args.ways.0.clone()),
        needed_from: args.needed_from.clone(),
        ..ForkPoint::default()
    };
    args.saying.add(Item::ForkPoint(Box::new(fork_point)), engine, ui)
}

fn decide(args: &DecideArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    args.saying.say_of(Noun::ForkPoint, engine, ui, |work| {
        let key = key_of(&work.fork_points, Noun::ForkPoint, &args.fork_point)?;
        let known = work.fork_points.iter().find(|it| it.fork_point == key);
        let options = known.and_then(|it| it.options.clone()).unwrap_or_default();
        let chosen = options.iter().find(|it| it.letter.eq_ignore_ascii_case(&args.option));
        let Some(chosen) = chosen else {
            let letters: Vec<&str> = options.iter().map(|it| it.letter.as_str()).collect();
            let known = letters.join(", ");
            return Err(Error::NoOption { option: args.option.clone(), known });
        };
        let fork_point = ForkPoint {
            fork_point: key,
            chosen: Some(chosen.letter.clone()),
            // Why another one was chosen before says nothing about this one.
            why: Some(args.why.clone().unwrap_or_else(|| Note::cut(""))),
            ..ForkPoint::default()
        };
        Ok(Item::ForkPoint(Box::new(fork_point)))
    })
}

/// Options with what was said about each: what stands behind an option is about that one, so the order of the
/// words counts.
#[derive(Debug)]
struct Ways(Vec<ForkOption>);

impl Ways {
    fn args() -> [Arg; 4] {
        let many =
            |name, value| Arg::new(name).long(name).value_name(value).action(ArgAction::Append);
        [
            many("option", "LETTER: TITLE").required(true).value_parser(ForkOption::from_str).help(
                "A way forward, as `A: what it is`; what follows is about it, up to the next one",
            ),
            many("pro", "TEXT").help("What speaks for the option before it"),
            many("con", "TEXT").help("What speaks against it"),
            many("files", "PATHS").value_delimiter(',').help("Files it would touch"),
        ]
    }
}

impl Args for Ways {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(Self::args())
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Ways {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let places: Vec<usize> = matches.indices_of("option").into_iter().flatten().collect();
        let options = matches.get_many::<ForkOption>("option").into_iter().flatten();
        let mut options: Vec<ForkOption> = options.cloned().collect();
        for name in ["pro", "con", "files"] {
            let words = matches.get_many::<String>(name).into_iter().flatten();
            for (word, place) in words.zip(matches.indices_of(name).into_iter().flatten()) {
                let number = places.iter().filter(|option| **option < place).count();
                let Some(option) = options.get_mut(number.saturating_sub(1)) else { continue };
                let list = match name {
                    "pro" => &mut option.pros,
                    "con" => &mut option.cons,
                    _ => &mut option.files,
                };
                list.push(word.clone());
            }
        }
        Ok(Self(options))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
