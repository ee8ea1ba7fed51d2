//! `biv checkpoint list`

use std::collections::HashMap;

use bivouac_core::checkpoint::Trigger;
use bivouac_core::id::SessionId;
use bivouac_core::text::{count, printable};
use bivouac_core::time::{Age, Timestamp};
use bivouac_engine::Engine;
use bivouac_journal::query::{CheckpointFilter, KeptCheckpoint, SessionFilter};

use crate::cli::{Error, complete};
use crate::contract;
use crate::report::Exit;
use crate::ui::{Cell, Table, Ui, looks};

/// List the checkpoints of this workspace, oldest first
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only those of this session
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
    /// Only those older than this, such as 7d or 12h
    #[arg(long, value_name = "AGE")]
    older_than: Option<Age>,
    /// Only those with this cause
    #[arg(long)]
    trigger: Option<Trigger>,
    /// Those of all workspaces
    #[arg(long, short)]
    all: bool,
    /// Newest first
    #[arg(long)]
    reverse: bool,
    /// In which form
    #[arg(long, value_enum, default_value = "table")]
    format: Form,
    /// No more than this many.
    #[arg(skip)]
    most: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Table,
    /// The newest first, as a table that agents show
    Markdown,
    Json,
}

impl ListArgs {
    /// The newest as a table, and how many more there are.
    pub fn for_model() -> Self {
        Self {
            session: None,
            older_than: None,
            trigger: None,
            all: false,
            reverse: false,
            format: Form::Markdown,
            most: Some(20),
        }
    }
}

pub fn run(args: &ListArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = args.session.as_deref().map(|word| engine.session(Some(word))).transpose()?;
    let is_everywhere = args.all || session.is_some();
    let filter = CheckpointFilter {
        session: session.map(|session| session.id),
        workspace: if is_everywhere { None } else { Some(engine.home.workspace_path()) },
        taken_before: args
            .older_than
            .map(|age| Timestamp::new(engine.clock.now().jiff() - age.duration())),
        trigger: args.trigger,
    };
    let mut checkpoints = engine.checkpoints(&filter)?;
    if args.reverse || args.format == Form::Markdown {
        checkpoints.reverse();
    }
    if args.format == Form::Json {
        ui.as_json();
    }
    ui.data(&checkpoints.iter().map(contract::Checkpoint::from).collect::<Vec<_>>())?;
    if checkpoints.is_empty() {
        let is_filtered =
            args.session.is_some() || args.older_than.is_some() || args.trigger.is_some();
        ui.say(match is_filtered {
            true => "No checkpoints found.",
            false if args.format == Form::Markdown => {
                "No checkpoints found. Run `/checkpoint` to create one."
            }
            false => "No checkpoints found. Run `biv checkpoint create` to create one.",
        })?;
        return Ok(Exit::Done);
    }
    if args.format == Form::Markdown {
        let n_shown = checkpoints.len().min(args.most.unwrap_or(usize::MAX));
        say_markdown(&checkpoints[..n_shown], engine, ui)?;
        if n_shown < checkpoints.len() {
            let n_older = checkpoints.len() - n_shown;
            ui.say(format_args!("\n{n_older} older ones are in `biv checkpoint list`."))?;
        }
        return Ok(Exit::Done);
    }
    let sessions = engine.sessions(&SessionFilter::default())?;
    let handles =
        sessions.into_iter().map(|session| (session.id, session.handle.to_string())).collect();
    ui.say(table(&checkpoints, &handles, engine))?;
    Ok(Exit::Done)
}

fn say_markdown(checkpoints: &[KeptCheckpoint], engine: &Engine, ui: &mut Ui) -> Result<(), Error> {
    ui.say("| # | Date | Label | Branch |\n|---|------|-------|--------|")?;
    for (place, kept) in checkpoints.iter().enumerate() {
        let checkpoint = &kept.taken.checkpoint;
        let label = checkpoint.name.as_ref().map(ToString::to_string);
        let label = label.unwrap_or_else(|| checkpoint.handle.to_string()).replace('|', "\\|");
        let branch = checkpoint.git.as_ref().and_then(|git| git.branch.as_deref()).unwrap_or("-");
        let at = engine.clock.local(checkpoint.taken_at).strftime("%Y-%m-%d %H:%M").to_string();
        ui.say(format_args!("| {} | {at} | {label} | {} |", place + 1, printable(branch)))?;
    }
    Ok(())
}

fn table(
    checkpoints: &[KeptCheckpoint],
    sessions: &HashMap<SessionId, String>,
    engine: &Engine,
) -> Table {
    let mut table =
        Table::new([("ID", 15), ("Session", 19), ("Trigger", 9), ("Created", 16), ("Message", 0)]);
    for kept in checkpoints {
        let checkpoint = &kept.taken.checkpoint;
        table.row([
            Cell::styled(&checkpoint.handle, looks::handle()),
            Cell::new(sessions.get(&checkpoint.session_id).map_or("", String::as_str)),
            Cell::new(checkpoint.trigger),
            Cell::new(engine.clock.local(checkpoint.taken_at).strftime("%Y-%m-%d %H:%M")),
            Cell::new(about(kept)),
        ]);
    }
    table
}

/// The name and the first line of the message.
fn about(kept: &KeptCheckpoint) -> String {
    let checkpoint = &kept.taken.checkpoint;
    let pinned = if kept.is_pinned { Some("(pinned)".to_owned()) } else { None };
    let name = checkpoint.name.as_ref().map(|name| format!("[{name}]"));
    let message = checkpoint.message.as_ref().map(|message| message.headline());
    let said = checkpoint.conversation.as_ref().map(|it| {
        let cost = it.cost_usd.map(|cost| format!(", ${cost:.2}")).unwrap_or_default();
        let tokens = contract::thousands(it.usage.total());
        format!("({}, {tokens} tokens{cost})", count(it.usage.n_turns, "turn"))
    });
    [pinned, name, message, said].into_iter().flatten().collect::<Vec<_>>().join(" ")
}
