//! `biv import session-checkpoint`, `handoff` and `checkpoint-md`

use std::io::Read;
use std::path::{Path, PathBuf};

use bivouac_core::text::printable;
use bivouac_engine::Engine;
use bivouac_engine::export::{Document, parse};
use serde_json::json;

use crate::cli::{Error, complete};
use crate::report::Exit;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub struct DocumentArgs {
    /// The file; `-` is stdin
    file: PathBuf,
    /// The session it is about; the one at hand if left out
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
}

pub fn run(
    args: &DocumentArgs,
    kind: Document,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    let path = engine.home.folder.join(&args.file);
    let bytes = read(&args.file, &path)
        .map_err(|source| Error::BadFile { path: args.file.clone(), source })?;
    let parsed = parse(kind, &args.file, &bytes)?;
    let session = engine.session_for_work(args.session.as_deref())?;
    let said = engine.import(&session, kind, &parsed)?;
    for told in &said.told {
        ui.say(format_args!("Recorded {told}"))?;
    }
    if said.told.is_empty() {
        ui.say("Nothing in it is new.")?;
    }
    for ignored in &parsed.ignored {
        ui.note(format_args!("not understood, and left out: {}", printable(ignored)));
    }
    ui.data(&json!({
        "session": session.handle.as_str(),
        "sequence": said.sequence,
        "recorded": said.told,
        "ignored": parsed.ignored,
    }))?;
    Ok(Exit::Done)
}

fn read(named: &Path, path: &Path) -> std::io::Result<Vec<u8>> {
    const MAX_BYTES: u64 = 4 << 20;
    let mut bytes = Vec::new();
    if named == Path::new("-") {
        std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    }
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(std::io::Error::other("it is larger than 4 MB")),
        false => Ok(bytes),
    }
}
