//! The command line: one file per command. A command is its help and one function.

pub mod approval;
pub mod artifact;
pub mod attach;
pub mod blocker;
pub mod checkpoint;
pub mod complete;
pub mod completions;
pub mod config;
pub mod confirm;
pub mod context;
pub mod decision;
pub mod delegation;
pub mod detach;
pub mod doctor;
pub mod du;
pub mod environment;
pub mod export;
pub mod fork;
pub mod fork_point;
pub mod gate;
pub mod gc;
pub mod hook;
pub mod hooks;
pub mod import;
pub mod init;
pub mod log;
pub mod mcp;
pub mod note;
pub mod partition;
pub mod pause;
pub mod phase;
pub mod progress;
pub mod reconcile;
pub mod reference;
pub mod rehydrate;
pub mod replay;
pub mod restoring;
pub mod resume;
pub mod run;
pub mod saying;
pub mod search;
pub mod session;
pub mod setup;
pub mod slash;
pub mod status;
pub mod step;
pub mod submit;
pub mod task;
pub mod undo;
pub mod verify;
pub mod watch;
pub mod withheld;
pub mod worktree;

use std::io;
use std::path::PathBuf;

use bivouac_core::work::Author;
use bivouac_engine::Engine;
use bivouac_engine::home::Wishes;
use bivouac_engine::moved::MovedFrom;
use bivouac_engine::open::Need;
use bivouac_engine::select::Reach;
use clap::{Args, Parser, Subcommand};

use crate::report::Exit;
use crate::ui::{Form, Ui, quote_bytes};

/// Let any AI coding agent stop anywhere and go on as if it had never left
///
/// Bivouac checkpoints a session as a whole, shows what changed between two checkpoints, rolls back
/// and takes that back again. Nothing is ever lost: before it changes a file, it saves it.
#[derive(Debug, Parser)]
#[command(
    name = "biv",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Global {
    /// Print one JSON document on stdout
    #[arg(long, global = true)]
    json: bool,
    /// Run as if started in this folder
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    folder: Option<PathBuf>,
    /// Take this folder as the workspace, whatever it is in
    #[arg(long, value_name = "DIR", global = true)]
    root: Option<PathBuf>,
    /// Keep checkpoints in this folder
    #[arg(long, value_name = "DIR", global = true)]
    store: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::InitArgs),
    Setup(setup::SetupArgs),
    Doctor(doctor::DoctorArgs),
    #[command(subcommand)]
    Session(session::SessionCommand),
    #[command(subcommand, visible_alias = "cp")]
    Checkpoint(checkpoint::CheckpointCommand),
    Run(run::RunArgs),
    Submit(submit::SubmitArgs),
    Watch(watch::WatchArgs),
    Pause(pause::PauseArgs),
    Resume(resume::ResumeArgs),
    Attach(attach::AttachArgs),
    Detach(detach::DetachArgs),
    Fork(fork::ForkArgs),
    Rehydrate(rehydrate::RehydrateArgs),
    Progress(progress::ProgressArgs),
    #[command(subcommand)]
    Task(task::TaskCommand),
    #[command(subcommand)]
    Phase(phase::PhaseCommand),
    #[command(subcommand)]
    Gate(gate::GateCommand),
    #[command(subcommand)]
    Decision(decision::DecisionCommand),
    #[command(subcommand)]
    Blocker(blocker::BlockerCommand),
    #[command(subcommand)]
    Artifact(artifact::ArtifactCommand),
    #[command(subcommand)]
    Approval(approval::ApprovalCommand),
    #[command(subcommand)]
    Step(step::StepCommand),
    Replay(replay::ReplayArgs),
    #[command(subcommand)]
    Delegation(delegation::DelegationCommand),
    #[command(subcommand)]
    ForkPoint(fork_point::ForkPointCommand),
    #[command(subcommand)]
    Partition(partition::PartitionCommand),
    #[command(subcommand)]
    Worktree(worktree::WorktreeCommand),
    Note(note::NoteArgs),
    Context(context::ContextArgs),
    #[command(subcommand)]
    Export(export::ExportCommand),
    #[command(subcommand)]
    Import(import::ImportCommand),
    Search(search::SearchArgs),
    Log(log::LogArgs),
    #[command(subcommand)]
    Hooks(hooks::HooksCommand),
    #[command(hide = true)]
    Hook(hook::HookArgs),
    #[command(hide = true)]
    Slash(slash::SlashArgs),
    #[command(hide = true)]
    Environment(environment::EnvironmentArgs),
    Mcp(mcp::McpArgs),
    Confirm(confirm::ConfirmArgs),
    Undo(undo::UndoArgs),
    Redo(undo::RedoArgs),
    Status(status::StatusArgs),
    Verify(verify::VerifyArgs),
    Reconcile(reconcile::ReconcileArgs),
    Gc(gc::GcArgs),
    Du(du::DuArgs),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    Completions(completions::CompletionsArgs),
}

impl Cli {
    pub fn ui(&self) -> Ui {
        Ui::new(if self.global.json { Form::Json } else { Form::Text })
    }

    /// The same, somewhere else.
    pub fn at(mut self, place: &Wishes) -> Self {
        let Wishes { folder, workspace, store } = place.clone();
        self.global = Global { json: self.global.json, folder, root: workspace, store };
        self
    }

    pub fn run(self, ui: &mut Ui) -> Result<Exit, Error> {
        let Global { folder, root, store, .. } = self.global;
        let wishes = Wishes { folder, workspace: root, store };
        // These two have a protocol of their own, and no document.
        if matches!(self.command, Command::Hook(_) | Command::Mcp(_)) {
            ui.streams();
        }
        match &self.command {
            // These look after their own store, or need none.
            Command::Init(args) => init::run(args, &wishes, ui),
            Command::Reconcile(args) => reconcile::run(args, &wishes, ui),
            Command::Config(command) => config::run(command, &wishes, ui),
            Command::Completions(args) => completions::run(args, ui),
            Command::Hooks(command) => command.run(&wishes, ui),
            Command::Hook(args) => Ok(hook::run(args, &wishes)),
            Command::Setup(args) => setup::run(args, &wishes, ui),
            Command::Doctor(args) => doctor::run(args, &wishes, ui),
            Command::Slash(args) => slash::run(args, &wishes, ui),
            Command::Run(args) => run::run(args, &wishes, ui),
            Command::Submit(args) => submit::run(args, &wishes, ui),
            Command::Watch(args) => watch::run(args, &wishes, ui),
            Command::Mcp(args) => mcp::run(args, &wishes),
            command => {
                let mut engine = match command.is_automatic() {
                    true => Engine::open(&wishes, command.need(), ui.progress())?,
                    // What is damaged is to be seen as it is, before anything else is written.
                    false if matches!(command, Command::Verify(_)) => {
                        look(&wishes, command.need(), ui)?
                    }
                    false => open(&wishes, command.need(), ui)?,
                };
                let result = command.run(&mut engine, ui);
                say_notices(&mut engine, ui);
                result
            }
        }
    }
}

impl Command {
    fn need(&self) -> Need {
        match self {
            Self::Session(command) => command.need(),
            Self::Checkpoint(command) => command.need(),
            Self::Undo(args) => args.consent.need(),
            Self::Redo(args) => args.consent.need(),
            Self::Task(command) => command.need(),
            Self::Phase(command) => command.need(),
            Self::Gate(command) => command.need(),
            Self::Decision(command) => command.need(),
            Self::Blocker(command) => command.need(),
            Self::Artifact(command) => command.need(),
            Self::Approval(command) => command.need(),
            Self::Step(command) => command.need(),
            Self::Replay(args) => args.need(),
            Self::Delegation(command) => command.need(),
            Self::ForkPoint(command) => command.need(),
            Self::Partition(command) => command.need(),
            Self::Worktree(command) => command.need(),
            Self::Export(command) => command.need(),
            Self::Import(command) => command.need(),
            Self::Resume(args) => args.need(),
            Self::Gc(_) | Self::Pause(_) | Self::Fork(_) | Self::Note(_) => Need::Write,
            Self::Status(_)
            | Self::Verify(_)
            | Self::Du(_)
            | Self::Rehydrate(_)
            | Self::Progress(_)
            | Self::Context(_)
            | Self::Search(_)
            | Self::Attach(_)
            | Self::Detach(_)
            | Self::Environment(_)
            | Self::Confirm(_)
            | Self::Log(_) => Need::Read,
            Self::Init(_)
            | Self::Reconcile(_)
            | Self::Config(_)
            | Self::Completions(_)
            | Self::Hooks(_)
            | Self::Run(_)
            | Self::Submit(_)
            | Self::Watch(_)
            | Self::Mcp(_)
            | Self::Setup(_)
            | Self::Doctor(_)
            | Self::Slash(_)
            | Self::Hook(_) => Need::Read,
        }
    }

    /// Does nobody look at what it says? Then secrets that lie deep in the workspace need not be known, which
    /// would cost more than the rest of it.
    fn is_automatic(&self) -> bool {
        matches!(self, Self::Checkpoint(command) if command.is_automatic())
    }

    fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::Session(command) => command.run(engine, ui),
            Self::Checkpoint(command) => command.run(engine, ui),
            Self::Pause(args) => pause::run(args, engine, ui),
            Self::Resume(args) => resume::run(args, engine, ui),
            Self::Attach(args) => attach::run(args, engine, ui),
            Self::Detach(args) => detach::run(args, engine, ui),
            Self::Environment(args) => environment::run(args, engine, ui),
            Self::Fork(args) => fork::run(args, engine, ui),
            Self::Rehydrate(args) => rehydrate::run(args, engine, ui),
            Self::Progress(args) => progress::run(args, engine, ui),
            Self::Task(command) => command.run(engine, ui),
            Self::Phase(command) => command.run(engine, ui),
            Self::Gate(command) => command.run(engine, ui),
            Self::Decision(command) => command.run(engine, ui),
            Self::Blocker(command) => command.run(engine, ui),
            Self::Artifact(command) => command.run(engine, ui),
            Self::Approval(command) => command.run(engine, ui),
            Self::Step(command) => command.run(engine, ui),
            Self::Replay(args) => replay::run(args, engine, ui),
            Self::Delegation(command) => command.run(engine, ui),
            Self::ForkPoint(command) => command.run(engine, ui),
            Self::Partition(command) => command.run(engine, ui),
            Self::Worktree(command) => command.run(engine, ui),
            Self::Note(args) => note::run(args, engine, ui),
            Self::Context(args) => context::run(args, engine, ui),
            Self::Export(command) => command.run(engine, ui),
            Self::Import(command) => command.run(engine, ui),
            Self::Search(args) => search::run(args, engine, ui),
            Self::Log(args) => log::run(args, engine, ui),
            Self::Confirm(args) => confirm::run(args, engine, ui),
            Self::Undo(args) => undo::run_undo(args, engine, ui),
            Self::Redo(args) => undo::run_redo(args, engine, ui),
            Self::Status(args) => status::run(args, engine, ui),
            Self::Verify(args) => verify::run(args, engine, ui),
            Self::Gc(args) => gc::run(args, engine, ui),
            Self::Du(args) => du::run(args, engine, ui),
            Self::Init(_)
            | Self::Reconcile(_)
            | Self::Config(_)
            | Self::Completions(_)
            | Self::Hooks(_)
            | Self::Run(_)
            | Self::Submit(_)
            | Self::Watch(_)
            | Self::Mcp(_)
            | Self::Setup(_)
            | Self::Doctor(_)
            | Self::Slash(_)
            | Self::Hook(_) => {
                unreachable!("these were run without an engine")
            }
        }
    }
}

fn open(wishes: &Wishes, need: Need, ui: &mut Ui) -> Result<Engine, Error> {
    let mut engine = look(wishes, need, ui)?;
    engine.find_interrupted();
    say_notices(&mut engine, ui);
    note_move(engine.moved_from().as_ref(), ui);
    Ok(engine)
}

/// Says where the sessions of a folder are that was moved here.
fn note_move(from: Option<&MovedFrom>, ui: &mut Ui) {
    if let Some(from) = from {
        let command = format!("biv init --moved-from {}", quote_bytes(from.workspace.as_bytes()));
        ui.note(format_args!("{from}; `{command}` brings its sessions and checkpoints here"));
    }
}

fn look(wishes: &Wishes, need: Need, ui: &mut Ui) -> Result<Engine, Error> {
    let mut engine = Engine::open(wishes, need, ui.progress())?;
    engine.know_all_secrets();
    if ui.is_kept() {
        engine.author = Author::Model;
        engine.reach = Reach::Here;
    }
    ui.redact_with(engine.redactor().clone());
    say_notices(&mut engine, ui);
    Ok(engine)
}

fn say_notices(engine: &mut Engine, ui: &mut Ui) {
    for notice in engine.take_notices() {
        ui.note(notice);
    }
}

/// What a command can fail with, beyond what the engine says.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Engine(#[from] bivouac_engine::Error),
    #[error("could not write the answer")]
    Output(#[from] io::Error),
    #[error("{what} needs a confirmation, and there is no terminal to ask on")]
    NeedsYes { what: &'static str },
    #[error("only a person at a terminal can confirm what an agent asks for")]
    NeedsPerson,
    #[error("an agent may not export secrets")]
    SecretsByModel,
    #[error("{what} was not confirmed, so nothing was changed")]
    Declined { what: &'static str },
    #[error("{what} would no longer do what was shown, so nothing was changed")]
    OtherPlan { what: &'static str },
    #[error("could not read `{}`", path.display())]
    BadFile { path: PathBuf, source: io::Error },
    #[error("could not write `{}`", path.display())]
    NotWritten { path: PathBuf, source: io::Error },
    #[error("a bundle and a JSON document cannot both be written to stdout")]
    StdoutTaken,
    #[error("damage was found")]
    Damaged,
    #[error("`{shell}` is not a shell we know")]
    UnknownShell { shell: String, known: String },
    #[error("`{}` is already there", path.display())]
    AlreadyThere { path: PathBuf },
    #[error(
        "Branch '{branch}' doesn't match PROJ-123_description convention. Enter JIRA issue key or 'none':"
    )]
    NoIssue { branch: String },
    #[error("`{issue}` is no key of an issue")]
    BadIssue { issue: String },
    #[error("there is no phase {number} of {total}")]
    NoSuchPhase { number: u32, total: u32 },
    #[error("`{text}` is no time")]
    BadTime { text: String },
    #[error("there is no branch here")]
    NoBranch,
    #[error("an empty prompt leaves nothing to do")]
    NothingToDo,
    #[error("nobody watches this workspace")]
    NoWatcher,
    #[error(
        "this workspace is watched by a supervisor (process {process}), as long as its command runs"
    )]
    MayNotStop { process: u32 },
    #[error("what to do about session {handle} was not said, and there is no terminal to ask on")]
    NeedsAction { handle: String },
    #[error("there is no option `{option}`")]
    NoOption { option: String, known: String },
}

impl Error {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Engine(cause) => cause.hint(),
            Self::NeedsYes { .. } => Some("look at what it would do, then pass `--yes`".to_owned()),
            Self::NeedsPerson => Some("open a terminal of your own in this folder, and run `biv confirm` there".to_owned()),
            Self::SecretsByModel => Some("leave `--raw` out, or run the command in a terminal of your own".to_owned()),
            Self::OtherPlan { .. } => Some("look at it again with `--dry-run`; an agent has to ask again".to_owned()),
            Self::Damaged => {
                Some("`biv reconcile` brings back what can be; damaged files are kept aside, never deleted".to_owned())
            }
            Self::StdoutTaken => Some("name a file with `--file`, or leave `--json` out".to_owned()),
            Self::UnknownShell { known, .. } => Some(format!("the shells are {known}")),
            Self::NoIssue { .. } => Some("answer with `biv context --issue KEY`, or `--issue none`".to_owned()),
            Self::BadIssue { .. } => Some("write it as PROJ-123 or #174, or `none`".to_owned()),
            Self::BadTime { .. } => Some("write it as `2026-03-01 14:30` or `2026-03-01T14:30:00Z`".to_owned()),
            Self::NoBranch => Some("it is a git branch that says what the work is about".to_owned()),
            Self::NothingToDo => Some("say what is to be done: `biv submit \"…\"`".to_owned()),
            Self::NoWatcher => Some("`biv watch` starts one".to_owned()),
            Self::MayNotStop { .. } => Some("end the command, or leave it watched".to_owned()),
            Self::NeedsAction { .. } => Some("pass `--action resume`, `fresh`, `view` or `cancel`".to_owned()),
            Self::NoOption { known, .. } => Some(format!("the options are {known}")),
            Self::Output(_) | Self::NoSuchPhase { .. } | Self::NotWritten { .. } | Self::Declined { .. } | Self::BadFile { .. } | Self::AlreadyThere { .. } => None,
        }
    }

    /// Whoever read our output has seen enough.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    pub fn exit(&self) -> Exit {
        match self {
            Self::NeedsYes { .. }
            | Self::NeedsPerson
            | Self::SecretsByModel
            | Self::NeedsAction { .. }
            | Self::UnknownShell { .. }
            | Self::NoIssue { .. }
            | Self::BadIssue { .. }
            | Self::BadTime { .. }
            | Self::NoSuchPhase { .. }
            | Self::NothingToDo
            | Self::StdoutTaken
            | Self::NoBranch => Exit::Usage,
            // As shells answer.
            Self::Engine(bivouac_engine::Error::NoProgram { .. }) => Exit::Code(127),
            Self::Engine(bivouac_engine::Error::NotAProgram { .. }) => Exit::Code(126),
            Self::Engine(bivouac_engine::Error::State(_) | bivouac_engine::Error::Until(_)) => {
                Exit::Usage
            }
            _ => Exit::Failed,
        }
    }
}
