//! `biv log`: events as they were recorded.

use std::time::Duration;

use bivouac_core::event::Event;
use bivouac_core::text::printable;
use bivouac_core::work::{Work, is_progress, searchable};
use bivouac_engine::Engine;
use bivouac_journal::stored::StoredEvent;
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::cli::{Error, complete};
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Show the events of a session, oldest first
#[derive(Debug, clap::Args)]
pub struct LogArgs {
    /// Its id, handle, name or `latest`; the one at hand if left out
    #[arg(add = complete::sessions())]
    session: Option<String>,
    /// Wait for more, until interrupted; with `--json`, one document per line
    #[arg(long, short)]
    follow: bool,
    /// Only the last so many
    #[arg(long, short = 'n', value_name = "N")]
    last: Option<u32>,
    /// Only those of this kind, such as `task.changed`
    #[arg(long)]
    kind: Option<String>,
}

/// How often to look for more.
const BEAT: Duration = Duration::from_millis(200);

pub fn run(args: &LogArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let is_wanted = |it: &StoredEvent| args.kind.as_ref().is_none_or(|kind| *kind == it.kind);
    let mut events = match (args.last, &args.kind) {
        (Some(most), None) => engine.last_events(&session, most)?,
        _ => engine.events_after(&session, 0)?,
    };
    let mut last = events.last().map_or(0, |it| it.session_sequence);
    events.retain(is_wanted);
    let first = args.last.map_or(0, |most| events.len().saturating_sub(most as usize));
    let events = &events[first..];
    if !args.follow {
        ui.data(&events.iter().map(document).collect::<Vec<_>>())?;
    }
    let work = engine.work(&session)?;
    for event in events {
        tell(event, (args, &work), engine, ui)?;
    }
    if !args.follow {
        return Ok(Exit::Done);
    }
    loop {
        std::thread::sleep(BEAT);
        let news = engine.events_after(&session, last)?;
        let Some(newest) = news.last() else { continue };
        last = newest.session_sequence;
        let work = engine.work(&session)?;
        for event in news.iter().filter(|it| is_wanted(it)) {
            tell(event, (args, &work), engine, ui)?;
        }
    }
}

fn tell(
    event: &StoredEvent,
    (args, work): (&LogArgs, &Work),
    engine: &Engine,
    ui: &mut Ui,
) -> Result<(), Error> {
    if args.follow {
        ui.line(&document(event))?;
    }
    let at = engine.clock.local(event.recorded_at).strftime("%Y-%m-%d %H:%M:%S").to_string();
    let number = event.session_sequence;
    let line = format!("{number:>5}  {at}  {}", about(event, work));
    ui.say(line.trim_end())?;
    Ok(())
}

/// What happened, in a line.
fn about(event: &StoredEvent, work: &Work) -> String {
    let words = match Event::parse(&event.kind, &event.data) {
        Ok(parsed) if is_progress(&parsed) => return work.told(&parsed).unwrap_or_default(),
        Ok(Event::ToolUsed(used)) => {
            let failed = if used.error.is_some() { " failed" } else { "" };
            let rest = searchable(&Event::ToolUsed(used.clone())).unwrap_or_default();
            format!("{}{failed} {rest}", used.tool)
        }
        Ok(parsed) => searchable(&parsed).unwrap_or_default(),
        Err(_) => String::new(),
    };
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let words: String = words.chars().take(100).collect();
    format!("{}  {}", event.kind.style(looks::handle()), printable(&words))
}

/// An event for programs.
pub fn document(event: &StoredEvent) -> Value {
    json!({
        "sequence": event.session_sequence,
        "id": event.id.to_string(),
        "session_id": event.session_id.to_string(),
        "kind": event.kind,
        "recorded_at": event.recorded_at.to_string(),
        "data": serde_json::from_str::<Value>(&event.data).unwrap_or_default(),
    })
}
