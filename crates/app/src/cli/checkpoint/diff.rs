//! `biv checkpoint diff`

use std::path::PathBuf;

use bivouac_core::checkpoint::Checkpoint;
use bivouac_core::size::Bytes;
use bivouac_core::text::printable;
use bivouac_engine::Engine;
use bivouac_engine::compare::{ChangeKind, Comparison, Detail, FileChange};
use owo_colors::{OwoColorize, Style};

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Show what changed between two checkpoints, or since one
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// The earlier checkpoint
    #[arg(add = complete::checkpoints())]
    from: String,
    /// The later checkpoint (the workspace now if left out), then paths to look at
    #[arg(value_name = "TO|PATH", add = complete::checkpoints())]
    rest: Vec<PathBuf>,
    /// Look for the checkpoints in this session first
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
    /// Show the changed lines
    #[arg(long, short)]
    patch: bool,
}

pub fn run(args: &DiffArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = args.session.as_deref();
    let from = engine.checkpoint(&args.from, session)?;
    // What stands second is a checkpoint if there is such a one, else it must be a path.
    let second = args.rest.first().and_then(|word| word.to_str());
    let (to, paths) = match second.map(|word| engine.checkpoint(word, session)) {
        Some(Ok(to)) => (Some(to), &args.rest[1..]),
        Some(Err(error)) if !is_unknown(&error) || looks_like_checkpoint(&args.rest[0]) => {
            return Err(error.into());
        }
        _ => (None, args.rest.as_slice()),
    };
    let paths = engine.paths_in_workspace(paths)?;
    let detail = if args.patch { Detail::Patch } else { Detail::Lines };
    let comparison = engine.compare(&from, to.as_ref(), paths, detail)?;
    ui.data(&contract::Diff::from(&comparison))?;
    if args.patch {
        for file in &comparison.files {
            match &file.patch {
                Some(patch) => ui.raw(patch)?,
                // No lines can tell it. Programs that apply patches pass over this.
                None => {
                    ui.say(format_args!("# {} {}{}", sign(file.kind).0, file.path, about(file)))?;
                }
            }
        }
        return Ok(Exit::Done);
    }
    say(&comparison, engine, ui)?;
    Ok(Exit::Done)
}

fn is_unknown(error: &bivouac_engine::Error) -> bool {
    matches!(error, bivouac_engine::Error::NotFound { .. })
}

fn looks_like_checkpoint(word: &std::path::Path) -> bool {
    word.to_str().is_some_and(|word| word.starts_with("cp-") || word == "latest")
}

fn say(comparison: &Comparison, engine: &Engine, ui: &mut Ui) -> Result<(), Error> {
    let title = "Checkpoint Comparison";
    ui.say(title.style(looks::heading()))?;
    ui.say("=".repeat(title.len()))?;
    let side = |it: &Checkpoint| {
        format!("{} ({})", it.handle, engine.clock.local(it.taken_at).strftime("%Y-%m-%d %H:%M"))
    };
    ui.say(format_args!("From: {}", side(&comparison.from)))?;
    let now = || {
        format!("workspace ({})", engine.clock.local(engine.clock.now()).strftime("%Y-%m-%d %H:%M"))
    };
    ui.say(format_args!("To:   {}", comparison.to.as_ref().map_or_else(now, side)))?;
    ui.say("")?;
    match comparison.files.is_empty() {
        true => ui.say("No files changed")?,
        false => ui.say("Files Changed:".style(looks::heading()))?,
    }
    for file in &comparison.files {
        let (sign, style) = sign(file.kind);
        ui.say(format_args!("  {} {}{}", sign.style(style), file.path, about(file)))?;
    }
    say_conversation(comparison, ui)?;
    say_environment(comparison, ui)?;
    say_progress(comparison, ui)
}

/// What is different about where the agent worked.
fn say_environment(comparison: &Comparison, ui: &mut Ui) -> Result<(), Error> {
    if comparison.environment.is_empty() {
        return Ok(());
    }
    ui.say("")?;
    ui.say("Environment:".style(looks::heading()))?;
    for it in &comparison.environment {
        ui.say(format_args!("  {}", printable(&it.to_string())))?;
    }
    Ok(())
}

/// What came, went or changed about the work.
fn say_progress(comparison: &Comparison, ui: &mut Ui) -> Result<(), Error> {
    if comparison.progress.is_empty() {
        return Ok(());
    }
    ui.say("")?;
    ui.say("Progress:".style(looks::heading()))?;
    for it in &comparison.progress {
        let name = [Some(it.key.clone()), it.title.clone()].into_iter().flatten();
        let name = name.filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ");
        let (sign, style, how) = match (it.from.as_deref(), it.to.as_deref()) {
            (None, to) => ("+", looks::new(), to.unwrap_or_default().to_owned()),
            (_, None) => ("D", looks::gone(), String::new()),
            (Some(from), Some(to)) if from == to => ("M", looks::changed(), String::new()),
            (Some(from), Some(to)) => ("M", looks::changed(), format!("{from} → {to}")),
        };
        let how = if how.is_empty() { how } else { format!(": {how}") };
        ui.say(
            format_args!(
                "  {} {} {}{}",
                sign.style(style),
                it.noun,
                printable(&name),
                printable(&how)
            )
            .to_string()
            .trim_end(),
        )?;
    }
    Ok(())
}

/// How far the conversation went, and what that cost, as far as both sides know.
fn say_conversation(comparison: &Comparison, ui: &mut Ui) -> Result<(), Error> {
    let to = comparison.to.as_ref().and_then(|to| to.conversation.as_ref());
    let (Some(from), Some(to)) = (&comparison.from.conversation, to) else {
        return Ok(());
    };
    let step = |from: u64, to: u64| {
        let sign = if to < from { "-" } else { "+" };
        let words = [from, to, to.abs_diff(from)].map(contract::thousands);
        format!("{} → {} ({sign}{})", words[0], words[1], words[2])
    };
    ui.say("")?;
    ui.say("Conversation:".style(looks::heading()))?;
    ui.say(format_args!("  Turns: {}", step(from.usage.n_turns, to.usage.n_turns)))?;
    ui.say(format_args!("  Tokens: {}", step(from.usage.total(), to.usage.total())))?;
    if let (Some(from), Some(to)) = (from.cost_usd, to.cost_usd) {
        let sign = if to < from { "-" } else { "+" };
        ui.say("")?;
        ui.say("Cost:".style(looks::heading()))?;
        ui.say(format_args!("  ${from:.2} → ${to:.2} ({sign}${:.2})", (to - from).abs()))?;
    }
    Ok(())
}

fn sign(kind: ChangeKind) -> (&'static str, Style) {
    match kind {
        ChangeKind::New | ChangeKind::NewFolder | ChangeKind::Covered(_) => ("+", looks::new()),
        ChangeKind::Deleted | ChangeKind::DeletedFolder => ("D", looks::gone()),
        ChangeKind::Modified | ChangeKind::Mode | ChangeKind::Type => ("M", looks::changed()),
        ChangeKind::Uncovered(_) => ("?", looks::gone()),
    }
}

fn about(file: &FileChange) -> String {
    let mode = file.modes.map(|(before, after)| format!("mode {before:o} → {after:o}"));
    let size = || match (file.size_before, file.size_after) {
        (Some(before), Some(after)) => {
            Some(format!("binary, {} → {}", Bytes(before), Bytes(after)))
        }
        _ => None,
    };
    let lines = file.lines.map(|lines| format!("+{}, -{}", lines.added, lines.removed));
    let words = match file.kind {
        ChangeKind::New => Some("new".to_owned()),
        ChangeKind::NewFolder => return "/ (new)".to_owned(),
        ChangeKind::Deleted => None,
        ChangeKind::DeletedFolder => return "/".to_owned(),
        ChangeKind::Mode => mode,
        ChangeKind::Type => Some("became something else".to_owned()),
        ChangeKind::Uncovered(why) => Some(format!("no longer covered: {why}")),
        ChangeKind::Covered(why) => Some(format!("was not covered: {why}")),
        ChangeKind::Modified => {
            let words: Vec<String> = lines.or_else(size).into_iter().chain(mode).collect();
            (!words.is_empty()).then(|| words.join(", "))
        }
    };
    words.map(|words| format!(" ({words})")).unwrap_or_default()
}
