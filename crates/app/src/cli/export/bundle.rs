//! `biv export bundle`

use std::io;
use std::path::{Path, PathBuf};

use bivouac_core::size::Bytes;
use bivouac_core::text::count;
use bivouac_engine::Engine;
use bivouac_engine::bundle::{Care, ExportReport, Target};
use bivouac_journal::query::KeptCheckpoint;
use serde_json::json;

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Write a checkpoint as a bundle that can be kept, shared or imported elsewhere
///
/// It holds the files, the conversation, the progress and what git said. Secrets are blotted out
/// of all but the files, and `.env` files and what `workspace.include` names are left out, unless `--raw`
/// is given.
#[derive(Debug, clap::Args)]
pub struct BundleArgs {
    /// The checkpoint; the session's newest if left out
    #[arg(add = complete::checkpoints())]
    checkpoint: Option<String>,
    /// The session; the one at hand if left out
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
    /// One file, or a directory of plain files
    #[arg(long, value_enum, default_value = "file")]
    layout: Layout,
    /// Where to; `-` is stdout. Nothing is overwritten
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Keep everything byte for byte, secrets included
    #[arg(long)]
    raw: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Layout {
    File,
    Directory,
}

pub fn run(args: &BundleArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let kept = find(args, engine)?;
    let checkpoint = &kept.taken.checkpoint;
    let session = engine.session(Some(&checkpoint.session_id.to_string()))?;
    let care = if args.raw { Care::Raw } else { Care::Redacted };
    let end = if args.layout == Layout::File { ".tar.gz" } else { "" };
    let usual = format!("{}-{}{end}", session.handle, checkpoint.handle);
    let path = args.file.clone().unwrap_or_else(|| usual.into());
    let is_stream = path == Path::new("-") && args.layout == Layout::File;
    let mut stdout = io::stdout().lock();
    let target = match args.layout {
        Layout::Directory => Target::Directory(&path),
        Layout::File if is_stream => Target::Stream(&mut stdout),
        Layout::File => Target::File(&path),
    };
    let report = engine.export_bundle(&kept, care, target)?;
    drop(stdout);
    if args.checkpoint.is_none() && engine.work(&session)? != engine.work_of(checkpoint)? {
        let handle = &checkpoint.handle;
        ui.note(format_args!(
            "what was recorded since {handle} is not in it; `biv checkpoint create` holds it"
        ));
    }
    if args.raw {
        ui.note("it holds everything as it was, secrets included: for another machine of yours");
    } else if !report.private.is_empty() {
        let n_private = report.private.len() as u64;
        ui.note(format_args!(
            "left out: {} that may hold secrets; the manifest lists them, `--raw` keeps them",
            count(n_private, "file")
        ));
    }
    if is_stream {
        return Ok(Exit::Done);
    }
    tell(&report, &kept, &path, ui)?;
    Ok(Exit::Done)
}

fn find(args: &BundleArgs, engine: &Engine) -> Result<KeptCheckpoint, Error> {
    if let Some(word) = &args.checkpoint {
        return Ok(engine.checkpoint(word, args.session.as_deref())?);
    }
    let session = engine.session(args.session.as_deref())?;
    let none = bivouac_engine::Error::NoCheckpoint { handle: session.handle.clone() };
    Ok(engine.last_checkpoint(&session)?.ok_or(none)?)
}

fn tell(
    report: &ExportReport,
    kept: &KeptCheckpoint,
    path: &Path,
    ui: &mut Ui,
) -> Result<(), Error> {
    let handle = &kept.taken.checkpoint.handle;
    let talk = if report.has_conversation { " and the conversation" } else { "" };
    ui.say(format_args!(
        "Wrote {} of {handle} ({}){talk} into {}",
        count(report.n_files, "file"),
        Bytes(report.size_bytes),
        path.display()
    ))?;
    let left_out: Vec<_> = report.private.iter().map(|it| contract::path(it.as_bytes())).collect();
    ui.data(&json!({
        "checkpoint": contract::Checkpoint::from(kept),
        "path": path,
        "files": report.n_files,
        "size_bytes": report.size_bytes,
        "conversation": report.has_conversation,
        "left_out": left_out,
    }))?;
    Ok(())
}
