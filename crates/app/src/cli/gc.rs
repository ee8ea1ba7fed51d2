//! `biv gc`: give back what is no longer needed.

use bivouac_core::size::Bytes;
use bivouac_core::text::count;
use bivouac_engine::Engine;
use serde_json::json;

use crate::cli::Error;
use crate::report::Exit;
use crate::ui::Ui;

/// Give back disk space that no checkpoint needs any more
///
/// Applies the retention settings to all sessions, then removes what nothing refers to and merges
/// small packs. Safe while other commands save and restore.
#[derive(Debug, clap::Args)]
pub struct GcArgs {
    /// Only show what would be given back
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Started by another command, in the background
    #[arg(long, hide = true)]
    auto: bool,
}

pub fn run(args: &GcArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let report = match (args.dry_run, args.auto) {
        (true, _) => engine.gc_preview()?,
        (false, true) => engine.gc_if_idle()?,
        (false, false) => engine.gc()?,
    };
    let freed = report.bytes_before.saturating_sub(report.bytes_after);
    let (verb, became) = match args.dry_run {
        true => ("Would give back about", "would become"),
        false => ("Gave back", "became"),
    };
    if freed == 0 && report.n_expired == 0 && report.n_packs_before == report.n_packs_after {
        ui.say("Nothing to give back")?;
    } else {
        if report.n_expired > 0 {
            ui.say(format_args!("Let go of {}", count(report.n_expired, "automatic checkpoint")))?;
        }
        let (before, after) = (report.n_packs_before, report.n_packs_after);
        ui.say(format_args!(
            "{verb} {}: {} {became} {after}",
            Bytes(freed),
            count(before, "pack")
        ))?;
    }
    ui.data(&json!({
        "dry_run": args.dry_run,
        "checkpoints_let_go": report.n_expired,
        "packs_before": report.n_packs_before,
        "packs_after": report.n_packs_after,
        "bytes_before": report.bytes_before,
        "bytes_after": report.bytes_after,
        "bytes_freed": freed,
    }))?;
    Ok(Exit::Done)
}
