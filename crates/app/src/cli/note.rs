//! `biv note`: anything worth remembering.

use bivouac_core::text::{Note, words_in};
use bivouac_core::work::{Item, Remark};
use bivouac_engine::Engine;

use crate::cli::Error;
use crate::cli::saying::Saying;
use crate::report::Exit;
use crate::ui::Ui;

/// Note something worth remembering
#[derive(Debug, clap::Args)]
pub struct NoteArgs {
    /// What it is
    #[arg(value_parser = words_in)]
    text: Note,
    #[command(flatten)]
    saying: Saying,
}

pub fn run(args: &NoteArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let remark = Remark { text: Some(args.text.clone()), ..Remark::default() };
    args.saying.say(Item::Remark(Box::new(remark)), engine, ui)
}
