//! `biv du`: what the store takes on disk.

use bivouac_core::size::Bytes;
use bivouac_engine::Engine;
use serde_json::json;

use crate::cli::Error;
use crate::contract;
use crate::report::Exit;
use crate::ui::{Cell, Table, Ui, looks};

/// Show what the store takes on disk
#[derive(Debug, clap::Args)]
pub struct DuArgs {}

pub fn run(_args: &DuArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let usage = engine.disk_use()?;
    let total = usage.database + usage.packs + usage.index;
    ui.say(format_args!("Store {}: {}", engine.home.store.display(), Bytes(total)))?;
    ui.say(format_args!("  packs     {} in {} files", Bytes(usage.packs), usage.n_packs))?;
    ui.say(format_args!("  journal   {}", Bytes(usage.database)))?;
    ui.say(format_args!("  caches    {}", Bytes(usage.index)))?;
    ui.say(format_args!("  `biv gc` would give back about {}", Bytes(usage.reclaimable)))?;
    if !usage.sessions.is_empty() {
        let mut table =
            Table::new([("Session", 19), ("Checkpoints", 0), ("Own bytes", 9), ("Task", 0)]);
        for it in &usage.sessions {
            table.row([
                Cell::styled(&it.session.handle, looks::handle()),
                Cell::new(it.n_checkpoints),
                Cell::new(Bytes(it.own_bytes)),
                Cell::new(it.session.title().unwrap_or_default()),
            ]);
        }
        ui.say(format_args!("\n{table}"))?;
    }
    let sessions: Vec<_> = usage
        .sessions
        .iter()
        .map(|it| {
            json!({
                "session": contract::Session::from(&it.session),
                "checkpoints": it.n_checkpoints,
                "own_bytes": it.own_bytes,
            })
        })
        .collect();
    ui.data(&json!({
        "store": contract::path(&engine.home.store),
        "total_bytes": total,
        "pack_bytes": usage.packs,
        "packs": usage.n_packs,
        "journal_bytes": usage.database,
        "cache_bytes": usage.index,
        "reclaimable_bytes": usage.reclaimable,
        "sessions": sessions,
    }))?;
    Ok(Exit::Done)
}
