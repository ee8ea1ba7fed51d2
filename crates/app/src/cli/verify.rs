//! `biv verify`: is everything as it was written?

use bivouac_core::text::count;
use bivouac_engine::Engine;
use bivouac_engine::verify::VerifyReport;
use serde_json::json;

use crate::cli::Error;
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Read every byte of the store and check it
///
/// Checks every event against its hash, every table against the events, every stored object against
/// its address, and that every checkpoint can be restored whole.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {}

pub fn run(_args: &VerifyArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let report = engine.verify()?;
    ui.say(format_args!(
        "Checked {}, {} with {}, {}",
        count(report.n_events, "event"),
        count(report.n_packs, "pack"),
        count(report.n_objects, "object"),
        count(report.n_checkpoints, "checkpoint"),
    ))?;
    for line in findings(&report) {
        ui.say(line)?;
    }
    if report.is_log_torn {
        ui.note("what was written to the journal last is torn and does not count; a power cut does that");
    }
    for pack in &report.unknown_packs {
        ui.note(format_args!(
            "pack {pack} is not in the index; `biv reconcile` takes in what it holds"
        ));
    }
    let affected: Vec<_> = report.affected.iter().map(|it| {
        let lost: Vec<_> = it.losses.iter().filter_map(|loss| loss.path.as_ref()).map(|path| contract::path_bytes(path.as_bytes())).collect();
        json!({ "checkpoint": it.checkpoint.handle, "id": it.checkpoint.id, "lost_objects": it.losses.len(), "lost_paths": lost })
    }).collect();
    ui.data(&json!({
        "sound": report.is_sound(),
        "events": report.n_events,
        "packs": report.n_packs,
        "objects": report.n_objects,
        "checkpoints": report.n_checkpoints,
        "broken_events": report.broken_events.iter().map(|it| it.sequence).collect::<Vec<_>>(),
        "drifted_tables": report.drifted_tables,
        "database_faults": report.database_faults,
        "damage": report.damage,
        "misplaced_objects": report.n_misplaced,
        "unknown_packs": report.unknown_packs,
        "affected_checkpoints": affected,
    }))?;
    if report.is_sound() {
        ui.say("All is as it was written")?;
        return Ok(Exit::Done);
    }
    ui.error("damage was found", &[], Error::Damaged.hint().as_deref());
    Ok(Exit::Failed)
}

fn findings(report: &VerifyReport) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(report.database_faults.iter().map(|fault| format!("  journal: {fault}")));
    lines.extend(
        report
            .broken_events
            .iter()
            .map(|it| format!("  event {} ({}) is not what was written", it.sequence, it.kind)),
    );
    lines.extend(
        report
            .drifted_tables
            .iter()
            .map(|table| format!("  table `{table}` is not what the events say")),
    );
    lines.extend(report.damage.iter().map(|line| format!("  {line}")));
    if report.n_misplaced > 0 {
        lines.push(format!(
            "  {} cannot be found where the index says",
            count(report.n_misplaced, "object")
        ));
    }
    for it in &report.affected {
        lines.push(format!(
            "  checkpoint {} has lost {} of its objects:",
            it.checkpoint.handle,
            it.losses.len()
        ));
        let paths = it
            .losses
            .iter()
            .map(|loss| loss.path.as_ref().map_or("(itself)".to_owned(), ToString::to_string));
        lines.extend(paths.take(5).map(|path| format!("    {path}")));
        if it.losses.len() > 5 {
            lines.push(format!("    … and {} more", it.losses.len() - 5));
        }
    }
    lines
}
