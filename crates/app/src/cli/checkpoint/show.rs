//! `biv checkpoint show`

use bivouac_core::environment::Environment;
use bivouac_core::git::GitFacts;
use bivouac_core::path::RelPath;
use bivouac_core::size::Bytes;
use bivouac_core::terminal::Terminal;
use bivouac_core::text::{count, printable};
use bivouac_engine::Engine;
use bivouac_journal::query::KeptCheckpoint;
use bivouac_snapshot::tree::Entry;
use owo_colors::OwoColorize;

use crate::cli::Error;
use crate::cli::checkpoint::Which;
use crate::cli::progress::say_tree;
use crate::cli::status::coverage_line;
use crate::contract::{self, CheckpointDetails, octal};
use crate::report::Exit;
use crate::ui::{Ui, looks};

/// Show one checkpoint
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    #[command(flatten)]
    which: Which,
    /// List every file it holds
    #[arg(long)]
    files: bool,
    /// List everything it does not hold, and why
    #[arg(long)]
    coverage: bool,
}

pub fn run(args: &ShowArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let kept = engine.checkpoint(&args.which.checkpoint, args.which.session.as_deref())?;
    let parts = Parts { files: args.files, coverage: args.coverage };
    let details = say(&kept, &parts, engine, ui)?;
    ui.data(&details)?;
    Ok(Exit::Done)
}

/// What is listed in full.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    pub files: bool,
    pub coverage: bool,
}

/// Says all about a checkpoint, and answers the same for programs.
pub fn say(
    kept: &KeptCheckpoint,
    args: &Parts,
    engine: &Engine,
    ui: &mut Ui,
) -> Result<CheckpointDetails, Error> {
    let session = engine.session(Some(&kept.taken.checkpoint.session_id.to_string()))?;
    let git = engine.git_facts(kept)?;
    let environment = engine.environment_of(&kept.taken.checkpoint)?;
    let terminal = engine.terminal_of(&kept.taken.checkpoint)?;
    let entries = if args.files || args.coverage { engine.files_of(kept)? } else { Vec::new() };
    let mut around = git.as_ref().map(git_lines).unwrap_or_default();
    let top = session.workspace.to_string();
    around.extend(environment.iter().flat_map(|it| environment_lines(it, &top)));
    around.extend(terminal.iter().map(terminal_line));
    say_facts(kept, &session, around, engine, ui)?;
    let work = engine.work_of(&kept.taken.checkpoint)?;
    if !work.is_empty() {
        ui.say("\nProgress:".style(looks::heading()))?;
        say_tree(&session, &work, ui)?;
    }
    if args.files {
        ui.say("\nFiles:".style(looks::heading()))?;
        for (path, entry) in entries.iter().filter(|(_, entry)| !entry.is_gap()) {
            ui.say(format_args!("  {}", file_line(path, entry)))?;
        }
    }
    if args.coverage {
        ui.say("\nNot covered:".style(looks::heading()))?;
        for (path, entry) in &entries {
            if let Entry::Gap { why, is_folder } = entry {
                ui.say(format_args!("  {path}{} ({why})", if *is_folder { "/" } else { "" }))?;
            }
        }
    }
    Ok(CheckpointDetails {
        checkpoint: contract::Checkpoint::from(kept),
        session: contract::Session::from(&session),
        git,
        environment,
        terminal,
        progress: contract::progress(&work),
        files: args
            .files
            .then(|| entries.iter().filter_map(|(path, entry)| file(path, entry)).collect()),
        not_covered: args
            .coverage
            .then(|| entries.iter().filter_map(|(path, entry)| not_covered(path, entry)).collect()),
    })
}

fn say_facts(
    kept: &KeptCheckpoint,
    session: &bivouac_core::session::Session,
    around: Vec<(&'static str, String)>,
    engine: &Engine,
    ui: &mut Ui,
) -> Result<(), Error> {
    let checkpoint = &kept.taken.checkpoint;
    let pinned = if kept.is_pinned { " (pinned)" } else { "" };
    ui.say(format_args!("Checkpoint {}{pinned}", checkpoint.handle.style(looks::handle())))?;
    let mut line = |title: &str, text: String| ui.say(format_args!("  {title:10} {text}"));
    line("Id", checkpoint.id.to_string())?;
    let title = session.title().map(|title| format!(" ({title})")).unwrap_or_default();
    line("Session", format!("{}{title}", session.handle))?;
    line("Trigger", checkpoint.trigger.to_string())?;
    line(
        "Created",
        engine.clock.local(checkpoint.taken_at).strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )?;
    if let Some(name) = &checkpoint.name {
        line("Name", name.to_string())?;
    }
    if let Some(message) = &checkpoint.message {
        line("Message", message.to_string().replace('\n', "\n             "))?;
    }
    if let Some(it) = &checkpoint.conversation {
        let cost = it.cost_usd.map(|cost| format!(", ${cost:.2}")).unwrap_or_default();
        let turns = count(it.usage.n_turns, "turn");
        let tokens = contract::thousands(it.usage.total());
        line("Talk", format!("{} {}: {turns}, {tokens} tokens{cost}", it.agent.title(), it.id))?;
    }
    line("By", printable(&checkpoint.by))?;
    line("Coverage", coverage_line(&checkpoint.coverage))?;
    for (title, text) in around {
        line(title, text)?;
    }
    if let Some(state) = &checkpoint.state {
        line("State", printable(state.as_json()))?;
    }
    Ok(())
}

fn git_lines(git: &GitFacts) -> Vec<(&'static str, String)> {
    let head = git.head.as_deref().map_or("no commit yet", |head| &head[..head.len().min(12)]);
    let branch = git.branch.as_deref().map_or("(detached)".to_owned(), printable);
    let mut lines = vec![("Git", format!("{branch} at {head}"))];
    if let Some(upstream) = &git.upstream {
        let number = |it: Option<u64>| it.map_or("?".to_owned(), |it| it.to_string());
        let (ahead, behind) = (number(upstream.ahead), number(upstream.behind));
        lines.push((
            "",
            format!("upstream {}: {ahead} ahead, {behind} behind", printable(&upstream.name)),
        ));
    }
    let (staged, unstaged, untracked) = (git.staged.len(), git.unstaged.len(), git.untracked.len());
    lines.push(("", format!("{staged} staged, {unstaged} unstaged, {untracked} untracked")));
    if !git.conflicted.is_empty() {
        lines.push(("", format!("{} in conflict", git.conflicted.len())));
    }
    if let Some(what) = git.in_progress {
        let what = serde_json::to_string(&what).unwrap_or_default();
        lines.push(("", format!("a {} is in progress", what.trim_matches('"'))));
    }
    if !git.stashes.is_empty() {
        lines.push(("", format!("{} stashed", git.stashes.len())));
    }
    if git.worktrees.len() > 1 {
        lines.push(("", format!("{} work trees", git.worktrees.len())));
    }
    if !git.submodules.is_empty() {
        lines.push(("", format!("{} submodules", git.submodules.len())));
    }
    lines.extend(git.unread.iter().map(|line| ("", format!("not read: {line}"))));
    lines
}

fn environment_lines(environment: &Environment, top: &str) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if environment.cwd != top {
        lines.push(("Folder", printable(&environment.cwd)));
    }
    let tools = environment.tools_there();
    if !tools.is_empty() {
        lines.push(("Tools", printable(&tools.join(", "))));
    }
    let others = match environment.other_names.len() {
        0 => String::new(),
        n_others => format!(", {n_others} by name"),
    };
    lines.push(("Variables", format!("{} kept{others}", environment.variables.len())));
    lines
}

fn terminal_line(terminal: &Terminal) -> (&'static str, String) {
    let windows = count(terminal.windows.len() as u64, "window");
    let panes = count(terminal.n_panes() as u64, "pane");
    ("Terminal", format!("tmux {}, {windows}, {panes}", printable(&terminal.session)))
}

fn file_line(path: &RelPath, entry: &Entry) -> String {
    match entry {
        Entry::File(file) => format!("{:o} {:>8} {path}", file.mode, Bytes(file.size).to_string()),
        Entry::Link(_) => format!("link         {path}"),
        Entry::Folder { mode, .. } => format!("{mode:o}          {path}/"),
        Entry::Gap { .. } => String::new(),
    }
}

fn file(path: &RelPath, entry: &Entry) -> Option<contract::File> {
    let (kind, mode, size_bytes) = match entry {
        Entry::File(file) => ("file", Some(octal(file.mode)), Some(file.size)),
        Entry::Link(_) => ("link", None, None),
        Entry::Folder { mode, .. } => ("folder", Some(octal(*mode)), None),
        Entry::Gap { .. } => return None,
    };
    Some(contract::File { path: contract::path_bytes(path.as_bytes()), kind, mode, size_bytes })
}

fn not_covered(path: &RelPath, entry: &Entry) -> Option<contract::NotCovered> {
    match entry {
        Entry::Gap { why, .. } => {
            Some(contract::NotCovered { path: contract::path_bytes(path.as_bytes()), reason: *why })
        }
        Entry::File(_) | Entry::Link(_) | Entry::Folder { .. } => None,
    }
}
