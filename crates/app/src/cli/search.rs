//! `biv search`: find prompts, answers, decisions, notes, events and files again.

use bivouac_core::text::printable;
use bivouac_engine::Engine;
use bivouac_journal::search::{Hit, MARKS, SearchFilter};
use owo_colors::OwoColorize;
use serde_json::json;

use crate::cli::{Error, complete};
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Search prompts, answers, decisions, notes, events and file paths of all sessions
///
/// All words have to be there; words in quotes, in this order. The last word may be the beginning of one.
#[derive(Debug, clap::Args)]
pub struct SearchArgs {
    /// What to look for
    #[arg(required = true, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    words: Vec<String>,
    /// Only in this session
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
    /// Only in this workspace
    #[arg(long)]
    here: bool,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    most: u32,
}

pub fn run(args: &SearchArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = args.session.as_deref().map(|word| engine.session(Some(word))).transpose()?;
    let filter = SearchFilter {
        session: session.map(|session| session.id),
        workspace: args.here.then(|| engine.home.workspace_path()),
        most: args.most,
    };
    let hits = engine.search(&args.words.join(" "), &filter)?;
    ui.data(&hits.iter().map(|(hit, session)| document(hit, session)).collect::<Vec<_>>())?;
    if hits.is_empty() {
        ui.say("Nothing found.")?;
        return Ok(Exit::Done);
    }
    for (hit, session) in &hits {
        let at = engine.clock.local(hit.recorded_at).strftime("%Y-%m-%d %H:%M").to_string();
        let checkpoint = hit.checkpoint.as_ref().map(ToString::to_string).unwrap_or_default();
        ui.say(format_args!(
            "{}  {at}  {}  {}",
            session.style(looks::handle()),
            hit.kind,
            checkpoint.style(looks::handle())
        ))?;
        ui.say(format_args!("    {}", shown(&hit.excerpt)))?;
    }
    Ok(Exit::Done)
}

/// The excerpt on one line, with what was found in bold.
fn shown(excerpt: &str) -> String {
    let line = excerpt.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = String::new();
    for (place, part) in line.split(MARKS).enumerate() {
        match place % 2 {
            0 => text.push_str(&printable(part)),
            _ => text.push_str(&printable(part).style(looks::heading()).to_string()),
        }
    }
    text
}

fn document(hit: &Hit, session: &str) -> serde_json::Value {
    json!({
        "session": session,
        "session_id": hit.session_id.to_string(),
        "sequence": hit.sequence,
        "kind": hit.kind,
        "excerpt": hit.excerpt.replace(MARKS, ""),
        "recorded_at": hit.recorded_at.to_string(),
        "checkpoint": hit.checkpoint.as_ref().map(ToString::to_string),
    })
}
