//! `biv rehydrate`: all a fresh agent needs to know.

use bivouac_core::briefing::{self, BRIEFING_TOKENS, Format};
use bivouac_engine::Engine;
use serde_json::json;

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::{self, Exit};
use crate::ui::Ui;

/// Tell all that a fresh agent needs to go on with a session, in few tokens
///
/// Checked against the workspace as it is now. The same facts give the same words, and no model is asked.
#[derive(Debug, clap::Args)]
pub struct RehydrateArgs {
    /// Its id, handle, name or `latest`; the one at hand if left out
    #[arg(add = complete::sessions())]
    session: Option<String>,
    /// The most it may cost, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = BRIEFING_TOKENS)]
    budget: usize,
    /// In which form
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    Text,
    Markdown,
    Json,
}

impl RehydrateArgs {
    pub fn for_model() -> Self {
        Self { session: None, budget: BRIEFING_TOKENS, format: Form::Markdown }
    }
}

pub fn run(args: &RehydrateArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let mut facts = engine.facts(&session)?;
    match engine.ask_memory() {
        Ok(lines) => facts.remembered = lines,
        Err(error) => report::note("the memory server was not asked", &error, ui),
    }
    let budget = args.budget;
    let brief = |facts| briefing::brief(facts, budget).map_err(bivouac_engine::Error::from);
    let told =
        |format| briefing::briefing(&facts, format, budget).map_err(bivouac_engine::Error::from);
    match args.format {
        Form::Json => ui.as_json(),
        Form::Text => ui.say(told(Format::Text)?.trim_end())?,
        Form::Markdown => ui.say(told(Format::Markdown)?.trim_end())?,
    }
    if ui.is_json() {
        ui.data(&json!({
            "session": contract::Session::from(&session),
            "briefing": brief(&facts)?,
            "text": told(if matches!(args.format, Form::Markdown) { Format::Markdown } else { Format::Text })?,
        }))?;
    }
    Ok(Exit::Done)
}
