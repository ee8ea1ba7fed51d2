//! What all commands that speak of the work have in common: where their words go, and how they are shown.

use bivouac_core::session::Session;
use bivouac_core::work::{Item, Noun, Thing, Work, details, standing};
use bivouac_engine::Engine;
use bivouac_engine::progress;
use bivouac_engine::save::Saved;
use bivouac_journal::append::Terms;
use serde_json::{Value, json};

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Cell, Table, Ui, looks};

/// Where and how it is recorded.
#[derive(Debug, Default, clap::Args)]
pub struct Saying {
    /// The session it belongs to; the one at hand if left out
    #[arg(long, add = complete::sessions())]
    pub session: Option<String>,
    /// A word that makes saying it twice do nothing the second time
    #[arg(long, value_name = "WORD")]
    idempotency_key: Option<String>,
    /// Record it only if the session's last event has this number
    #[arg(long, value_name = "N")]
    expected_sequence: Option<i64>,
}

/// Which session's things to list.
#[derive(Debug, clap::Args)]
pub struct Listing {
    /// The session; the one at hand if left out
    #[arg(long, add = complete::sessions())]
    pub session: Option<String>,
    /// Only those there is still something to do about
    #[arg(long)]
    open: bool,
}

impl Saying {
    /// Puts on record what is said about a thing, whether it is known or not.
    pub fn say(&self, item: Item, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        let session = engine.session_for_work(self.session.as_deref())?;
        self.record(&session, (item, Terms::default()), engine, ui)
    }

    /// Puts on record a thing that nobody spoke of before.
    pub fn add(&self, item: Item, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        let session = engine.session_for_work(self.session.as_deref())?;
        let terms = Terms { is_new: true, ..Terms::default() };
        self.record(&session, (item, terms), engine, ui)
    }

    /// Puts on record what `item` makes of the things of a noun as they are.
    pub fn say_of(
        &self,
        noun: Noun,
        engine: &mut Engine,
        ui: &mut Ui,
        item: impl FnOnce(&Work) -> Result<Item, Error>,
    ) -> Result<Exit, Error> {
        let session = engine.session_for_work(self.session.as_deref())?;
        let item = item(&engine.things(&session, noun)?)?;
        self.record(&session, (item, Terms::default()), engine, ui)
    }

    fn record(
        &self,
        session: &Session,
        (item, terms): (Item, Terms),
        engine: &mut Engine,
        ui: &mut Ui,
    ) -> Result<Exit, Error> {
        let how = progress::Saying {
            key: self.idempotency_key.clone(),
            terms: Terms { expected: self.expected_sequence, ..terms },
        };
        let said = engine.say(session, vec![item], &how)?;
        for told in &said.told {
            ui.say(format_args!("Recorded {told}"))?;
        }
        let saved = match &said.saved {
            Some(Saved::Taken(report)) => Some(report.checkpoint.handle.to_string()),
            _ => None,
        };
        if let Some(handle) = &saved {
            ui.note(format_args!("saved {handle}"));
        }
        ui.data(&json!({
            "session": contract::Session::from(session),
            "sequence": said.sequence,
            "recorded": said.things.iter().map(document).collect::<Vec<_>>(),
            "checkpoint": saved,
        }))?;
        Ok(Exit::Done)
    }
}

/// A thing with its noun.
fn document(item: &Item) -> Value {
    let mut document: Value =
        serde_json::from_str(&item.clone().into_event().data()).unwrap_or_default();
    document["noun"] = item.noun().as_str().into();
    document
}

/// Lists the things of one noun.
pub fn list(args: &Listing, noun: Noun, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let work = engine.things(&session, noun)?;
    let work = if args.open { work.open() } else { work };
    let items = work.items();
    let document = serde_json::to_value(&work).unwrap_or_default();
    ui.data(document.get(noun.list()).unwrap_or(&json!([])))?;
    if items.is_empty() {
        ui.say(format_args!("No {} on record.", plural(noun)))?;
        return Ok(Exit::Done);
    }
    ui.say(table(&items))?;
    Ok(Exit::Done)
}

/// Things of one noun, in columns.
pub fn table(items: &[Item]) -> Table {
    let mut table = Table::new([("ID", 3), ("What", 0), ("Status", 0), ("About", 0)]);
    for item in items {
        table.row([
            Cell::styled(bivouac_core::text::printable(item.key()), looks::handle()),
            Cell::new(item.title().unwrap_or_default()),
            Cell::new(standing(item)),
            Cell::styled(bivouac_core::text::printable(&details(item)), looks::faint()),
        ]);
    }
    table
}

fn plural(noun: Noun) -> String {
    format!("{}s", noun.as_str())
}

/// Many words as a list, unless none were given.
pub fn some<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}

/// The key of the thing a word means.
pub fn key_of<T: Thing>(
    list: &[bivouac_core::work::Entry<T>],
    noun: Noun,
    word: &str,
) -> Result<String, Error> {
    Ok(progress::find(list, noun, word)?.key().to_owned())
}
