//! `biv session describe`

use bivouac_core::text::Note;
use bivouac_core::work::{Item, Outline};
use bivouac_engine::Engine;

use crate::cli::Error;
use crate::cli::saying::{Saying, some};
use crate::report::Exit;
use crate::ui::Ui;

/// Say what a session is about
#[derive(Debug, clap::Args)]
pub struct DescribeArgs {
    /// What kind of work it is: feature, bugfix, refactor or any other word
    #[arg(long = "type", value_name = "WORD")]
    kind: Option<String>,
    /// The feature, in a few words
    #[arg(long, value_name = "TEXT")]
    feature: Option<Note>,
    /// An issue it is about, such as TAS-12, PROJ-123 or #174; can be given several times
    #[arg(long = "issue", value_name = "KEY")]
    issues: Vec<String>,
    /// How it is done, and why so
    #[arg(long, value_name = "TEXT")]
    approach: Option<Note>,
    /// What to do next
    #[arg(long, value_name = "TEXT")]
    next: Option<Note>,
    /// What a new session has to do to go on; can be given several times
    #[arg(long = "instruction", value_name = "TEXT")]
    instructions: Vec<Note>,
    #[command(flatten)]
    saying: Saying,
}

pub fn run(args: &DescribeArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let outline = Outline {
        kind: args.kind.clone(),
        feature: args.feature.clone(),
        issues: some(&args.issues),
        approach: args.approach.clone(),
        next: args.next.clone(),
        instructions: some(&args.instructions),
        ..Outline::default()
    };
    args.saying.say(Item::Outline(Box::new(outline)), engine, ui)
}
