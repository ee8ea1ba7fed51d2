//! `biv fork-point`: several ways forward, and the one that was taken.

use bivouac_core::text::{Note, words_in};
use bivouac_core::work::{ForkOption, ForkPoint, Item, Noun, key_in, slug};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Args, Subcommand};

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
    /// A way forward, as `A: what it is`; what follows is about it, up to the next one
    #[arg(long = "option", value_name = "LETTER: TITLE", required = true)]
    options: Vec<ForkOption>,
    /// What speaks for the option before it
    #[arg(long = "pro", value_name = "TEXT")]
    pros: Vec<String>,
    /// What speaks against it
    #[arg(long = "con", value_name = "TEXT")]
    cons: Vec<String>,
    /// Files it would touch
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    files: Vec<String>,
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
        options: Some(in_order(args, &std::env::args().collect::<Vec<_>>())),
        needed_from: args.needed_from.clone(),
        ..ForkPoint::default()
    };
    args.saying.add(Item::ForkPoint(Box::new(fork_point)), engine, ui)
}

/// What is said behind an option is about that option, so the order of the words counts.
fn in_order(args: &OpenArgs, words: &[String]) -> Vec<ForkOption> {
    let mut options = args.options.clone();
    let (mut pros, mut cons) = (args.pros.iter(), args.cons.iter());
    let mut files = args.files.iter();
    let mut current = 0_usize;
    for (place, word) in words.iter().enumerate() {
        let flag = word.split('=').next().unwrap_or_default();
        let option = options.get_mut(current.saturating_sub(1));
        let Some(option) = option else { break };
        match flag {
            "--option" => current += 1,
            "--pro" => option.pros.extend(pros.next().cloned()),
            "--con" => option.cons.extend(cons.next().cloned()),
            "--files" => {
                let value = word
                    .split_once('=')
                    .map(|(_, it)| it)
                    .or(words.get(place + 1).map(String::as_str));
                let number = value.map_or(0, |value| value.split(',').count());
                option.files.extend(files.by_ref().take(number).cloned());
            }
            _ => {}
        }
    }
    options
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
