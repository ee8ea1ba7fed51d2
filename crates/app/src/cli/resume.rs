//! `biv resume`: go on with a session in its agent.

use std::path::{Path, PathBuf};

use bivouac_core::checkpoint::{Checkpoint, Trigger};
use bivouac_core::id::SessionId;
use bivouac_core::session::{Session, Status};
use bivouac_core::text::{count, printable};
use bivouac_core::time::in_words;
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use bivouac_engine::resume::{
    Drift, Launch, Mode, ResumePlan, Says, check_agent, checkpoint_of, run_before, start,
    workspace_of,
};
use bivouac_engine::save::SaveRequest;
use bivouac_engine::supervise::RunOrder;
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::cli::restoring::{self, Consent};
use crate::cli::run::tell_where;
use crate::cli::{Error, attach, complete};
use crate::contract;
use crate::report::{self, Exit};
use crate::ui::{Ui, looks, quote, quote_bytes};

/// Go on with a session in its agent
///
/// Says which checkpoint it takes, what is no longer as it was then and what it will cost, gives the
/// conversation back to the agent under a new id, and starts the agent. With `--json`, what the agent prints
/// goes to stderr: stdout has the one document.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag on the command line")]
pub struct ResumeArgs {
    /// Its id, handle, name or `latest`; the one at hand if left out
    #[arg(add = complete::sessions())]
    session: Option<String>,
    /// Go on from this checkpoint instead of the newest
    #[arg(long, value_name = "CHECKPOINT", add = complete::checkpoints())]
    checkpoint_id: Option<String>,
    /// Bring the files back to the checkpoint, too
    #[arg(long)]
    workspace: bool,
    /// Write the files of the checkpoint into this folder, and go on there, as a session of its own
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Give the agent its own conversation back, or fail
    #[arg(long, conflicts_with = "brief")]
    native: bool,
    /// Start a new conversation from what is known about the work
    #[arg(long)]
    brief: bool,
    /// Start it in tmux, with the windows and panes of the checkpoint
    #[arg(long)]
    tmux: bool,
    /// Do not wait for it: it goes on in tmux, or where there is none, out of sight
    #[arg(long, conflicts_with_all = ["tmux", "print"])]
    detach: bool,
    /// Print the command instead of running it
    #[arg(long, conflicts_with = "tmux")]
    print: bool,
    /// Only tell what would be gone on from, what drifted and what it costs; leave everything as it is
    #[arg(long, short = 'n', conflicts_with_all = ["into", "workspace", "tmux", "detach", "print"])]
    dry_run: bool,
    /// Even if the session's agent still runs
    #[arg(long)]
    force: bool,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
    /// Further arguments for the agent, such as `-p "go on"`
    #[arg(last = true, value_name = "ARGS")]
    extra: Vec<String>,
}

impl ResumeArgs {
    pub fn need(&self) -> Need {
        if self.dry_run { Need::Read } else { Need::Write }
    }

    /// Nothing but a session, and a checkpoint of it where it is not to be the newest.
    pub fn of(session: &Session, checkpoint: Option<&Checkpoint>) -> Self {
        Self {
            session: Some(session.id.to_string()),
            checkpoint_id: checkpoint.map(|it| it.id.to_string()),
            workspace: false,
            into: None,
            native: false,
            brief: false,
            tmux: false,
            detach: false,
            print: false,
            dry_run: false,
            force: false,
            yes: false,
            extra: Vec::new(),
        }
    }
}

pub fn run(args: &ResumeArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    run_as(args, engine, ui, |document| document)
}

/// The same as a part of something larger, whose document `within` makes.
pub fn run_as(
    args: &ResumeArgs,
    engine: &mut Engine,
    ui: &mut Ui,
    within: impl FnOnce(Value) -> Value,
) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let id = session.id.to_string();
    let from = args.checkpoint_id.as_deref().map(|word| engine.checkpoint(word, Some(&id)));
    let mode = match (args.native, args.brief) {
        (true, _) => Some(Mode::Native),
        (_, true) => Some(Mode::Brief),
        (false, false) => None,
    };
    if args.dry_run {
        let plan = engine.plan_resume(&session, from.transpose()?, mode)?;
        tell(&plan, engine, ui);
        let command = command_for(&plan, args.checkpoint_id.as_deref());
        ui.say(format_args!("Go on with `{}`", command.join(" ")))?;
        let document = document(&plan, &session, &engine.home.workspace);
        ui.data(&within(merged(document, json!({ "command": command }))))?;
        return Ok(Exit::Done);
    }
    if args.tmux {
        engine.check_free_in_tmux(&session)?;
    }
    if !args.force {
        engine.check_alone(&session)?;
    }
    let mut from = from.transpose()?;
    // The files that are wanted back are those of now only if nobody wants others.
    if args.workspace && from.is_none() {
        from = engine.last_resumable(&session)?.checkpoint;
    }
    // What the agent wrote after it was last saved belongs to the session, however it ended.
    if args.checkpoint_id.is_none() && session.workspace == engine.home.workspace_path() {
        engine.save(Some(&id), SaveRequest::new(Trigger::Detach))?;
    }
    let plan = engine.plan_resume(&session, from, mode)?;
    if !args.print {
        check_agent(plan.agent, plan.mode)?;
    }
    tell(&plan, engine, ui);
    tell_remembered(engine, ui);
    let (session, folder) = bring_files(args, &plan, engine, ui)?;
    let id = session.id.to_string();
    let launch = engine.prepare_resume(&plan, &folder, &args.extra)?;
    let environment = format!("BIV_SESSION={id}");
    let launched = json!({
        "before": launch.before,
        "command": launch.command,
        "environment": { "BIV_SESSION": id },
        "tmux": args.tmux.then_some(&session.handle),
    });
    ui.data(&within(merged(document(&plan, &session, &folder), launched)))?;
    if args.print {
        ui.say(command_line(&launch, &folder, &environment))?;
        return Ok(Exit::Done);
    }
    engine.reopen(&session)?;
    if args.tmux || args.detach {
        return start_apart(args, &plan, (&launch, &folder), (&session, engine), ui);
    }
    Err(become_agent(&launch, &folder, session.id, ui))
}

/// Becomes the agent; comes back only if that fails. With `--json`, stdout is for the one document, so what the agent
/// prints goes to stderr.
pub fn become_agent(launch: &Launch, folder: &Path, session: SessionId, ui: &mut Ui) -> Error {
    let says = if ui.is_json() { Says::Aside } else { Says::Out };
    match ui.finish() {
        Ok(()) => start(launch, folder, session, says).into(),
        Err(error) => error.into(),
    }
}

/// What is gone on from, for programs.
fn document(plan: &ResumePlan, session: &Session, folder: &Path) -> Value {
    json!({
        "session": contract::Session::from(session),
        "checkpoint": plan.checkpoint.as_ref().map(contract::Checkpoint::from),
        "mode": if plan.mode == Mode::Native { "native" } else { "brief" },
        "native_tokens": plan.native_tokens,
        "brief_tokens": plan.brief_tokens,
        "changed_files": plan.drift.changed,
        "environment_changes": plan.drift.environment,
        "folder": contract::path(folder),
    })
}

fn merged(mut document: Value, more: Value) -> Value {
    if let (Value::Object(document), Value::Object(more)) = (&mut document, more) {
        document.extend(more);
    }
    document
}

/// What a person types to do it.
fn command_for(plan: &ResumePlan, checkpoint: Option<&str>) -> Vec<String> {
    let mut command = vec!["biv".to_owned(), "resume".to_owned(), plan.session.handle.to_string()];
    command.extend(checkpoint.map(|word| format!("--checkpoint-id={}", quote(word))));
    command
}

/// Where nobody's shell waits for the agent, it is supervised.
fn start_apart(
    args: &ResumeArgs,
    plan: &ResumePlan,
    (launch, folder): (&Launch, &Path),
    (session, engine): (&Session, &Engine),
    ui: &mut Ui,
) -> Result<Exit, Error> {
    run_before(launch, folder)?;
    let order = RunOrder {
        command: launch.command.clone(),
        folder: Some(folder.to_owned()),
        ..RunOrder::default()
    };
    if args.detach {
        let apart = engine.start_apart(&order, session, checkpoint_of(plan))?;
        tell_where(&apart, session, ui)?;
        return Ok(Exit::Done);
    }
    let started = engine.start_run_in_tmux(&order, session, checkpoint_of(plan))?;
    started.notes.iter().for_each(|note| ui.note(printable(note)));
    let later = format!("Started in tmux; look at it with `biv attach {}`", session.handle);
    attach::look(&started.attach, later, ui)
}

/// What the person should know first. It goes to stderr: stdout may be the agent's.
fn tell(plan: &ResumePlan, engine: &Engine, ui: &mut Ui) {
    let from = checkpoint_of(plan).map_or_else(
        || "no checkpoint yet".to_owned(),
        |it| {
            format!(
                "{} ({}), {} ago",
                it.handle.style(looks::handle()),
                it.trigger,
                in_words(engine.clock.now().since(it.taken_at))
            )
        },
    );
    ui.note(format_args!("resuming {} from {from}", plan.session.handle.style(looks::handle())));
    if let Some(damaged) = &plan.damaged {
        ui.note(format_args!(
            "the conversation of {damaged} is damaged, so an earlier one is taken"
        ));
    }
    let until = plan.session.until.filter(|_| plan.session.status == Status::Paused);
    if let Some(until) = until.filter(|until| *until > engine.clock.now()) {
        let at = engine.clock.in_short(until);
        ui.note(format_args!("it is paused until {at}; the agent's limit may not be over"));
    }
    drift_lines(&plan.drift).iter().for_each(|line| ui.note(line));
    let native = plan
        .native_tokens
        .map_or("unknown".to_owned(), |tokens| format!("~{} tokens", contract::thousands(tokens)));
    let mode = if plan.mode == Mode::Native {
        "native: the conversation itself"
    } else {
        "brief: a new conversation"
    };
    ui.note(format_args!(
        "{mode}; native costs {native}, brief ~{} tokens",
        contract::thousands(plan.brief_tokens)
    ));
    if let Some(loss) = &plan.loss {
        ui.note(loss);
    }
    for (command, processes) in &plan.orphans {
        let line = printable(command.lines().next().unwrap_or_default());
        match processes[..] {
            [] => ui.note(format_args!("the agent was running `{line}` when it went")),
            [first, ..] => ui.note(format_args!(
                "`{line}` still runs (process {first}) and may still write files"
            )),
        }
    }
}

/// What is not as it was at the checkpoint.
pub fn drift_lines(drift: &Drift) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some((then, now)) = &drift.branch {
        lines.push(format!("branch: {} → {}", printable(then), printable(now)));
    }
    if let Some((then, now)) = &drift.head {
        let since = drift
            .n_commits_since
            .map(|n| format!(" ({} since)", count(n, "commit")))
            .unwrap_or_default();
        lines.push(format!("HEAD: {then} → {now}{since}"));
    }
    if !drift.changed.is_empty() {
        lines.push(format!("{} changed since", count(drift.changed.len() as u64, "file")));
    }
    lines.extend(drift.environment.iter().map(|it| printable(&it.to_string())));
    lines
}

/// What a memory server knows, where there is one.
fn tell_remembered(engine: &Engine, ui: &mut Ui) {
    match engine.ask_memory() {
        Ok(lines) => lines.iter().for_each(|line| ui.note(format_args!("remembered: {line}"))),
        Err(error) => report::note("the memory server was not asked", &error, ui),
    }
}

/// Where the agent is to work, with the files of the checkpoint if they were asked for, and as part of
/// which session: in another folder that is a new one.
fn bring_files(
    args: &ResumeArgs,
    plan: &ResumePlan,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<(Session, PathBuf), Error> {
    let here = (plan.session.clone(), workspace_of(plan, &engine.home.workspace));
    let Some(kept) = &plan.checkpoint else {
        return Ok(here);
    };
    if let Some(into) = &args.into {
        let fork = engine.fork(kept, into, None)?;
        ui.note(format_args!("it goes on there as {}", fork.session.handle.style(looks::handle())));
        return Ok((fork.session, into.canonicalize()?));
    }
    if args.workspace {
        let rollback = engine.plan_rollback(kept, Vec::new())?;
        match rollback.plan.is_empty() {
            true => restoring::note_excluded(&rollback, ui),
            false => {
                restoring::run(rollback, &Consent::given(args.yes), engine, &mut ui.quiet())?;
            }
        }
    }
    Ok(here)
}

fn command_line(launch: &Launch, folder: &Path, environment: &str) -> String {
    let quoted =
        |words: &[String]| words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let folder = quote_bytes(folder.as_os_str().as_encoded_bytes());
    let before: String =
        launch.before.iter().map(|words| format!("{} && ", quoted(words))).collect();
    format!("cd {folder} && {before}{environment} {}", quoted(&launch.command))
}
