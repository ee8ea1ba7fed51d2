//! `biv phase`: where the work is.

use bivouac_core::text::Note;
use bivouac_core::work::{Item, Phase, key_in};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Args, Subcommand};

use crate::cli::Error;
use crate::cli::saying::Saying;
use crate::report::Exit;
use crate::ui::Ui;

/// Say which phase the work is in
#[derive(Debug, Subcommand)]
pub enum PhaseCommand {
    /// Enter a phase
    Set(SetArgs),
}

#[derive(Debug, Args)]
pub struct SetArgs {
    /// Its name, such as planning, delegate or review
    #[arg(value_parser = key_in)]
    name: String,
    /// Which one it is
    #[arg(long, value_name = "N")]
    number: Option<u32>,
    /// How many there are
    #[arg(long, value_name = "M")]
    of: Option<u32>,
    /// What it does
    #[arg(long, value_name = "TEXT")]
    about: Option<Note>,
    #[command(flatten)]
    saying: Saying,
}

impl PhaseCommand {
    pub fn need(&self) -> Need {
        Need::Write
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        let Self::Set(args) = self;
        if let (Some(number), Some(total)) = (args.number, args.of)
            && number > total
        {
            return Err(Error::NoSuchPhase { number, total });
        }
        let phase = Phase {
            name: Some(args.name.clone()),
            number: args.number,
            total: args.of,
            // What an earlier phase was about says nothing about this one.
            about: Some(args.about.clone().unwrap_or_else(|| Note::cut(""))),
            ..Phase::default()
        };
        args.saying.say(Item::Phase(Box::new(phase)), engine, ui)
    }
}
