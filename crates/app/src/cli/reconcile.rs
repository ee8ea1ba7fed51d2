//! `biv reconcile`: bring back what can be.

use bivouac_core::text::count;
use bivouac_engine::Engine;
use bivouac_engine::home::Wishes;
use serde_json::json;

use crate::cli::{Error, say_notices};
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Rebuild the tables from the events, and the journal from the packs
///
/// Finishes interrupted restores, rebuilds every table from the events and the object index from the
/// packs, and takes in checkpoints that are in packs but not in the journal. A damaged journal is
/// moved aside, never deleted.
#[derive(Debug, clap::Args)]
pub struct ReconcileArgs {}

pub fn run(_args: &ReconcileArgs, wishes: &Wishes, ui: &mut Ui) -> Result<Exit, Error> {
    let (mut engine, report) = Engine::reconcile(wishes, ui.progress())?;
    say_notices(&mut engine, ui);
    if let Some(path) = &report.moved_aside {
        ui.say(format_args!("The journal was damaged and is now at {}", path.display()))?;
        ui.say(format_args!("Read {} from it", count(report.n_salvaged, "event")))?;
    }
    for path in &report.packs_aside {
        ui.say(format_args!("A damaged pack is now at {}", path.display()))?;
    }
    ui.say(format_args!("Rebuilt all tables from {}", count(report.rebuilt.n_events, "event")))?;
    for (table, n_rows) in &report.rebuilt.mended {
        ui.say(format_args!("  mended {} of `{table}`", count(*n_rows, "row")))?;
    }
    if report.index_rebuilt {
        ui.say("Rebuilt the object index from the packs")?;
    }
    if report.n_adopted > 0 {
        ui.say(format_args!(
            "Took in {} from packs the journal did not know",
            count(report.n_adopted, "checkpoint")
        ))?;
    }
    for sequence in &report.rebuilt.unusable {
        ui.say(format_args!("Event {sequence} cannot be used"))?;
    }
    for line in &report.lost {
        ui.say(format_args!("Lost: {line}"))?;
    }
    ui.data(&json!({
        "events": report.rebuilt.n_events,
        "mended": report.rebuilt.mended.iter().map(|(table, rows)| json!({ "table": table, "rows": rows })).collect::<Vec<_>>(),
        "unusable_events": report.rebuilt.unusable,
        "moved_aside": report.moved_aside.as_ref().map(contract::path),
        "packs_moved_aside": report.packs_aside.iter().map(contract::path).collect::<Vec<_>>(),
        "salvaged_events": report.n_salvaged,
        "index_rebuilt": report.index_rebuilt,
        "adopted_checkpoints": report.n_adopted,
        "lost": report.lost,
    }))?;
    let is_whole = report.lost.is_empty() && report.rebuilt.unusable.is_empty();
    Ok(if is_whole { Exit::Done } else { Exit::DoneInPart })
}
