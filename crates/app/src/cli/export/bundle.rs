//! `biv export bundle`

use std::io;
use std::path::{Path, PathBuf};

use bivouac_core::size::Bytes;
use bivouac_core::text::count;
use bivouac_core::work::Author;
use bivouac_engine::Engine;
use bivouac_engine::bundle::{Care, ExportReport, Target};
use bivouac_journal::query::KeptCheckpoint;
use serde_json::json;

use crate::cli::{Error, complete, withheld};
use crate::contract;
use crate::report::Exit;
use crate::ui::Ui;

/// Write a checkpoint as a bundle that can be kept, shared or imported elsewhere
///
/// It holds the files, the conversation, the progress and what git said. Secrets are blotted out of the
/// conversation and the progress. Files that hold secrets are withheld: by name (`.env`, `id_rsa`, `.npmrc`,
/// `*.tfstate` and the like), because the redactor finds a secret in them, or because `workspace.include`
/// names them. The manifest lists them. `--raw` keeps everything, for another machine of yours.
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
    /// Keep everything byte for byte, secrets included; asks first, and agents may not use it
    #[arg(long)]
    raw: bool,
    /// With `--raw`, do not ask
    #[arg(long, short, requires = "raw")]
    yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Layout {
    File,
    Directory,
}

pub fn run(args: &BundleArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let kept = find(args, engine)?;
    if args.raw {
        check_raw(args, engine, ui)?;
    }
    let checkpoint = &kept.taken.checkpoint;
    let session = engine.session(Some(&checkpoint.session_id.to_string()))?;
    let care = if args.raw { Care::Raw } else { Care::Redacted };
    let end = if args.layout == Layout::File { ".tar.gz" } else { "" };
    let usual = format!("{}-{}{end}", session.handle, checkpoint.handle);
    let path = args.file.clone().unwrap_or_else(|| usual.into());
    let is_stream = path == Path::new("-") && args.layout == Layout::File;
    if is_stream && ui.is_json() {
        return Err(Error::StdoutTaken);
    }
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
    } else if !report.withheld.is_empty() {
        let withheld = withheld::sentence(&report.withheld);
        ui.note(format_args!(
            "withheld {withheld}; `--raw` keeps them, for another machine of yours"
        ));
    }
    if is_stream {
        return Ok(Exit::Done);
    }
    tell(&report, &kept, &path, ui)?;
    Ok(Exit::Done)
}

/// Secrets leave only if a person says so.
fn check_raw(args: &BundleArgs, engine: &Engine, ui: &mut Ui) -> Result<(), Error> {
    const WHAT: &str = "exporting secrets";
    if engine.author == Author::Model {
        return Err(Error::SecretsByModel);
    }
    if args.yes {
        return Ok(());
    }
    if !ui.can_ask() {
        return Err(Error::NeedsYes { what: WHAT });
    }
    let question =
        "The bundle will hold every file and every word as it is, secrets included. Go ahead?";
    match ui.ask(question)? {
        true => Ok(()),
        false => Err(Error::Declined { what: WHAT }),
    }
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
    let left_out = report.withheld.iter().map(|it| contract::path_bytes(it.path.as_bytes()));
    ui.data(&json!({
        "checkpoint": contract::Checkpoint::from(kept),
        "path": contract::path(path),
        "files": report.n_files,
        "size_bytes": report.size_bytes,
        "conversation": report.has_conversation,
        "left_out": left_out.collect::<Vec<_>>(),
        "withheld": withheld::documents(&report.withheld),
    }))?;
    Ok(())
}
