//! `biv progress`: how far the work is.

use bivouac_core::session::Session;
use bivouac_core::text::{Note, printable};
use bivouac_core::work::{Item, Noun, Thing, Work, details, progress, standing};
use bivouac_engine::Engine;
use owo_colors::OwoColorize;

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Show how far the work is
#[derive(Debug, clap::Args)]
pub struct ProgressArgs {
    /// Its id, handle, name or `latest`; the one at hand if left out
    #[arg(add = complete::sessions())]
    session: Option<String>,
    /// In which form
    #[arg(long, value_enum, default_value = "summary")]
    format: Form,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    Summary,
    Tree,
    Json,
}

pub fn run(args: &ProgressArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let work = engine.work(&session)?;
    match args.format {
        Form::Json => ui.as_json(),
        Form::Summary => say_summary(&session, &work, ui)?,
        Form::Tree => say_tree(&session, &work, ui)?,
    }
    ui.data(&contract::progress(&work))?;
    Ok(Exit::Done)
}

/// A few lines, as they are shown after a checkpoint.
pub fn say_summary(session: &Session, work: &Work, ui: &mut Ui) -> Result<(), Error> {
    ui.say(format_args!("Session: {}", name(session, work)))?;
    if let Some(phase) = work.phase() {
        ui.say(format_args!("Phase: {}", phase_line(phase)))?;
    }
    if !work.tasks.is_empty() {
        let line = progress(&work.tasks).replacen(" tasks completed", " completed", 1);
        ui.say(format_args!("Tasks: {}", line.replacen(" task completed", " completed", 1)))?;
    }
    let artifacts: Vec<_> = work.artifacts.iter().filter(|it| !it.is_over()).collect();
    if !artifacts.is_empty() || !work.worktrees.is_empty() {
        ui.say("Artifacts:")?;
    }
    for artifact in artifacts {
        let kind = artifact.kind.clone().unwrap_or_default();
        ui.say(format_args!("  {}: {}", capitalised(&kind), printable(&artifact.place)))?;
    }
    if !work.worktrees.is_empty() {
        let branches = work.worktrees.iter().map(|it| {
            let status = it.status.map_or("active", |status| status.as_str());
            format!("{} ({status})", printable(&it.branch))
        });
        ui.say(format_args!("  Branches: {}", branches.collect::<Vec<_>>().join(", ")))?;
    }
    let numbers = [
        (work.open_blockers().count(), "open blocker"),
        (work.pending_approvals().count(), "pending approval"),
        (work.decisions.len(), "decision"),
    ];
    let numbers = numbers.iter().filter(|(number, _)| *number > 0);
    let words: Vec<String> =
        numbers.map(|(number, noun)| bivouac_core::text::count(*number as u64, noun)).collect();
    if !words.is_empty() {
        ui.say(format_args!("Also: {}", words.join(", ")))?;
    }
    Ok(())
}

/// Everything there is, noun by noun.
pub fn say_tree(session: &Session, work: &Work, ui: &mut Ui) -> Result<(), Error> {
    ui.say(name(session, work))?;
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    groups.extend(work.phase().map(|it| (format!("Phase: {}", phase_line(it)), Vec::new())));
    let items = work.items();
    for noun in Noun::ALL.iter().filter(|noun| !matches!(noun, Noun::Outline | Noun::Phase)) {
        let lines: Vec<String> = items.iter().filter(|it| it.noun() == *noun).map(line).collect();
        if !lines.is_empty() {
            let title = capitalised(&format!("{}s", noun.as_str()));
            let title = title.style(looks::heading()).to_string();
            groups.push((format!("{title} ({})", lines.len()), lines));
        }
    }
    for (place, (title, lines)) in groups.iter().enumerate() {
        let (fork, trunk) =
            if place + 1 == groups.len() { ("└─", "  ") } else { ("├─", "│ ") };
        ui.say(format_args!("{fork} {title}"))?;
        for (place, line) in lines.iter().enumerate() {
            let twig = if place + 1 == lines.len() { "└─" } else { "├─" };
            ui.say(format_args!("{trunk} {twig} {line}"))?;
        }
    }
    Ok(())
}

fn line(item: &Item) -> String {
    let title = item.title().map(|title| format!(" {title}")).unwrap_or_default();
    let standing = match standing(item).as_str() {
        "" => String::new(),
        word => format!(": {word}"),
    };
    let details = match details(item).as_str() {
        "" => String::new(),
        words => format!(" ({})", printable(words)),
    };
    format!("{}{title}{standing}{details}", printable(item.key()))
}

/// `notification-system (feature)`.
fn name(session: &Session, work: &Work) -> String {
    let title = session.title().unwrap_or_else(|| session.handle.to_string());
    let kind = work.outline().kind.map(|kind| format!(" ({})", printable(&kind)));
    format!("{title}{}", kind.unwrap_or_default())
}

fn phase_line(phase: &bivouac_core::work::Phase) -> String {
    let name = phase.name.clone().unwrap_or_default();
    let place = phase.number.map(|number| {
        let total = phase.total.map(|total| format!(" of {total}")).unwrap_or_default();
        format!(" ({number}{total})")
    });
    let about = phase.about.as_ref().map(Note::headline).filter(|it| !it.is_empty());
    let about = about.map(|about| format!(" — {about}")).unwrap_or_default();
    format!("{}{}{about}", printable(&name), place.unwrap_or_default())
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
    printable(&(first + letters.as_str()))
}
