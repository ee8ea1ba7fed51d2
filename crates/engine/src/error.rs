//! What can go wrong when something is done, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bivouac_capture::agents::install::BadSettings;
use bivouac_core::checkpoint::{BadState, Gap};
use bivouac_core::id::{CheckpointHandle, SessionHandle};
use bivouac_core::operation::OperationKind;
use bivouac_core::path::RelPath;
use bivouac_core::session::{AlreadyThere, Status};
use bivouac_core::size::Bytes;
use bivouac_core::text::{BadName, BadNote};
use bivouac_core::time::in_words;
use bivouac_core::work::Noun;
use bivouac_snapshot::ownership::Sharing;

use crate::config::BadConfig;
use crate::local_store::UnusedStore;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Journal(#[from] bivouac_journal::Error),
    #[error(transparent)]
    Snapshot(#[from] bivouac_snapshot::Error),
    #[error(transparent)]
    Capture(#[from] bivouac_capture::Error),
    #[error(transparent)]
    Config(#[from] BadConfig),
    #[error(transparent)]
    State(#[from] BadState),
    #[error(transparent)]
    Name(#[from] BadName),
    #[error(transparent)]
    Note(#[from] BadNote),
    #[error(transparent)]
    AlreadyThere(#[from] AlreadyThere),
    #[error("`{}` still exists and has files in it", path.display())]
    StillThere { path: PathBuf },
    #[error("no session belongs to `{}`", path.display())]
    NothingThere { path: PathBuf },
    #[error("that is this folder, and its sessions already belong to it")]
    MovedToItself,
    #[error("`{}` is a link, or behind one, so it is not used as a setting of this project", path.display())]
    ProjectLink { path: PathBuf },
    #[error("an agent cannot {what}")]
    OnlyPeople { what: &'static str },
    #[error("could not use `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` is {what}, which cannot be a workspace", path.display())]
    WorkspaceRefused { path: PathBuf, what: &'static str },
    #[error("{}", shared(path, *sharing))]
    SharedWorkspace { path: PathBuf, sharing: Sharing, user_config: PathBuf },
    #[error("there is no {kind} `{word}`")]
    NotFound { kind: Kind, word: String },
    #[error("`{word}` can be several {kind}s:\n{}", candidates.join("\n"))]
    Ambiguous { kind: Kind, word: String, candidates: Vec<String> },
    #[error("there is no session in this workspace yet")]
    NoSession,
    #[error("`{path}` is neither in the checkpoint nor in the workspace")]
    NoSuchPath { path: RelPath },
    #[error("`{path}` is not covered: {why}")]
    NotCovered { path: RelPath, why: Gap },
    #[error("`{}` is {what}, where nothing of ours may be written", path.display())]
    Forbidden { path: PathBuf, what: &'static str },
    #[error("`{}` is outside the workspace", path.display())]
    OutsideWorkspace { path: PathBuf },
    #[error("checkpoint {handle} was taken in another workspace, `{workspace}`")]
    OtherWorkspace { handle: CheckpointHandle, workspace: String },
    #[error("session {handle} belongs to another workspace, `{workspace}`")]
    SessionElsewhere { handle: SessionHandle, workspace: String },
    #[error("checkpoint {handle} is pinned")]
    Pinned { handle: CheckpointHandle },
    #[error("there is nothing to {what} in this workspace")]
    NothingTo { what: &'static str },
    #[error("the checkpoint that holds the state before was deleted, so this cannot be undone")]
    SafetyGone,
    #[error("no model asked leave for this, or what it would do has changed since")]
    NotAsked,
    #[error("nobody has confirmed this yet, or it was too long ago")]
    NotConfirmed,
    #[error("this is not the code that was shown")]
    WrongCode,
    #[error("only {free} are free on the disk of the store, and `store.min_free` is {floor}")]
    DiskFloor { free: Bytes, floor: Bytes },
    #[error("the store has {used}, and `store.budget` is {budget}")]
    OverBudget { used: Bytes, budget: Bytes },
    #[error("another biv has been {what} for {}", in_words(*waited))]
    Locked { what: &'static str, waited: Duration, owner: Option<String> },
    #[error("the store has packs but no journal")]
    JournalGone { store: PathBuf },
    #[error("the store in `{}` cannot be used: {}", .0.store.display(), .0.why)]
    LocalStore(UnusedStore),
    #[error("`{}` is not a regular file, so it is not used as the journal", path.display())]
    NotStoreFile { path: PathBuf },
    #[error("checkpoint {handle} holds no conversation")]
    NoConversation { handle: CheckpointHandle },
    #[error("{agent} is still running in session {handle} (process {pid})")]
    Twin { agent: &'static str, handle: SessionHandle, pid: u32 },
    #[error("{what} still runs in session {handle} (process {pid})")]
    StillRuns { what: &'static str, handle: SessionHandle, pid: u32 },
    #[error("nobody wrote down what session {handle} was to do")]
    NoPrompt { handle: SessionHandle },
    #[error("the agent of session {handle} spoke of no limit")]
    NoLimit { handle: SessionHandle },
    #[error(transparent)]
    Until(#[from] bivouac_core::limit::BadUntil),
    #[error("`{program}` is not on the `PATH`")]
    NoAgent { program: &'static str },
    #[error("`{program}` {found} is too old: conversations come back from {oldest} on")]
    OldAgent { program: &'static str, found: String, oldest: String },
    #[error("there is no tmux, 3.0 or newer, on the `PATH`")]
    NoTmux,
    #[error("session {handle} is not in tmux")]
    NotInTmux { handle: SessionHandle },
    #[error("session {handle} is {status}, and no longer in tmux")]
    Ended { handle: SessionHandle, status: Status },
    #[error("session {handle} goes on out of sight, not in tmux")]
    OutOfSight { handle: SessionHandle, log: PathBuf },
    #[error("session {handle} is already in tmux")]
    InTmux { handle: SessionHandle },
    #[error("could not change `{}`: {source}", path.display())]
    Settings { path: PathBuf, source: BadSettings },
    #[error("`{}` changed in this moment, so it was left as it is", path.display())]
    SettingsMoved { path: PathBuf },
    #[error("checkpoint {handle} is no longer whole, so it cannot be told what may go")]
    NotWhole { handle: CheckpointHandle, source: bivouac_snapshot::Error },
    #[error(
        "an interrupted restore had to be finished first, so the plan for this {what} no longer holds"
    )]
    PlanOutdated { what: OperationKind },
    #[error("the restore failed and everything was put back as it was{}", but_for(left))]
    PutBack { source: Box<Self>, left: Vec<RelPath> },
    #[error("session {handle} has no checkpoint yet")]
    NoCheckpoint { handle: SessionHandle },
    #[error("this workspace is not in a git repository, so nothing can be stashed")]
    NotGit,
    #[error("`{}`, line {line}: {reason}", path.display())]
    ForeignFile { path: PathBuf, line: usize, reason: String },
    #[error("`{}` was changed since it was written", path.display())]
    ChangedByOthers { path: PathBuf },
    #[error("`{}` is or leads through a link, is a folder or far too large, so it is left alone", path.display())]
    NoDocument { path: PathBuf },
    #[error("`{}` is the memory of another project, `{}`", folder.display(), owner.display())]
    OthersMemory { folder: PathBuf, owner: PathBuf },
    #[error(transparent)]
    Replay(#[from] bivouac_core::replay::BadReplay),
    #[error("{}", cautions.join("\n"))]
    ReplayRefused { cautions: Vec<String> },
    #[error("`{command}` did not answer as it should: {what}")]
    BadAnswer { command: String, what: String },
    #[error("no command is configured that could be asked for replies")]
    NoApprovalCommand,
    #[error(transparent)]
    Bundle(#[from] crate::bundle::BadBundle),
    #[error("`{}` is already there", path.display())]
    InTheWay { path: PathBuf },
    #[error("the memory server could not be used")]
    Memory(#[source] bivouac_capture::Error),
    #[error(transparent)]
    TooSmall(#[from] bivouac_core::briefing::TooSmall),
    #[error("`{program}` is {what}, so it cannot be run")]
    NotAProgram { program: String, what: &'static str },
    #[error("there is no program `{program}`")]
    NoProgram { program: String },
    #[error("session {handle} is already supervised by {owner}")]
    AlreadySupervised { handle: SessionHandle, owner: String },
    #[error("could not make a terminal for the command")]
    NoTerminal { source: io::Error },
    #[error("this workspace is already watched by {owner}")]
    AlreadyWatched { owner: String },
    #[error("`BIV_CLOCK` is not a time: `{0}`")]
    BadClock(String),
    #[error("there is no home folder to keep the store in")]
    NoHome,
}

/// What a word on the command line was meant to name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Session,
    Checkpoint,
    /// Something that progress is made of.
    Thing(Noun),
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Session => "session",
            Self::Checkpoint => "checkpoint",
            Self::Thing(noun) => noun.as_str(),
        })
    }
}

const STILL_THERE: &str =
    "pass `--yes` to bring its sessions here all the same; that folder then has none";
const NOTHING_THERE: &str = "`biv session list --all --json` shows the paths of all sessions; a store in `.agents/` has \
     to be adopted first (`biv init --local --adopt`)";

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Is it only that the store no longer has something as it was written?
    pub(crate) fn is_unreadable(&self) -> bool {
        match self {
            Self::Snapshot(bivouac_snapshot::Error::Read { .. }) => true,
            Self::Snapshot(error) => error.is_damage(),
            _ => false,
        }
    }

    /// What the person can do about it, when we know.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Journal(cause) => cause.hint()?,
            Self::Snapshot(cause) => cause.hint()?,
            Self::Capture(cause) => cause.hint()?,
            Self::Config(cause) => return cause.hint(),
            Self::Io { source, .. } => bivouac_snapshot::hint_for(source)?,
            Self::PutBack { source, .. } => return source.hint(),
            Self::SharedWorkspace { sharing, user_config, .. } => {
                return Some(shared_hint(*sharing, user_config));
            }
            Self::WorkspaceRefused { .. } => "change to a project folder, or name one with `-C`",
            Self::NotFound { kind: Kind::Session, .. } => {
                "`biv session list --all` shows all sessions"
            }
            Self::NotFound { kind: Kind::Checkpoint, .. } => {
                "`biv checkpoint list --all` shows all checkpoints"
            }
            Self::Ambiguous { .. } => "write more of it, or its full id",
            Self::NoSession => "`biv checkpoint create` makes one, or `biv session new`",
            Self::NoSuchPath { .. } => "paths are given relative to the current folder",
            Self::NotCovered { why: Gap::Excluded, .. } => {
                "`biv config show` says where `workspace.exclude` leaves it out"
            }
            Self::NotCovered { .. } => "`workspace.include` can make ignored files precious",
            Self::Forbidden { .. } => "name a folder of its own",
            Self::OutsideWorkspace { .. } => "name a path inside the workspace",
            Self::OtherWorkspace { .. } => {
                "go there to roll it back, or write it elsewhere with `biv checkpoint restore … --into DIR`"
            }
            Self::SessionElsewhere { .. } => "go there, or leave the session out",
            Self::Pinned { .. } => "`biv checkpoint unpin` it first",
            Self::StillThere { .. } => STILL_THERE,
            Self::NothingThere { .. } => NOTHING_THERE,
            Self::MovedToItself => "name the path that this folder had before",
            Self::ProjectLink { .. } => {
                "put a file in the link's place, or leave out `--scope project`: your own settings may be links"
            }
            Self::OnlyPeople { .. } => "run it in a terminal of your own, outside the agent",
            Self::NothingTo { .. } => {
                "`biv checkpoint rollback CHECKPOINT` goes back to a checkpoint"
            }
            Self::NotAsked => "ask for the plan again, without a code",
            Self::NotConfirmed => "the person runs `biv confirm` in a terminal, and gets a code",
            Self::WrongCode => "after three wrong ones the plan has to be asked for again",
            Self::SafetyGone => "`biv checkpoint list` shows what is still there to go back to",
            Self::NoConversation { .. } => {
                "`biv resume --brief` starts a new conversation from what is known"
            }
            Self::Settings { .. } => "nothing was changed; mend the file and try again",
            Self::SettingsMoved { .. } => "nothing was changed; try again",
            Self::PlanOutdated { .. } => "look at the workspace, then say it again",
            Self::NoCheckpoint { .. } => "`biv checkpoint create` takes one",
            Self::State(_) => "pass JSON such as '{\"key\": 1}', or `@FILE`",
            Self::BadClock(_) => "write it as `2026-01-21T14:30:00Z`, or unset it",
            about_store => return about_store.hint_about_store(),
        };
        Some(hint.to_owned())
    }

    /// The same, for the store and the room it needs.
    fn hint_about_store(&self) -> Option<String> {
        let hint = match self {
            Self::DiskFloor { .. } => "free some disk space, or lower `store.min_free`",
            Self::OverBudget { .. } => {
                "delete checkpoints and run `biv gc`, or raise `store.budget`"
            }
            Self::Locked { owner, .. } => return Some(locked_hint(owner.as_deref())),
            Self::JournalGone { .. } => "run `biv reconcile` to rebuild the journal from the packs",
            Self::LocalStore(found) => return Some(found.why.remedy()),
            Self::NotStoreFile { .. } => {
                "look at who put it there; remove it, or name another store with `--store`"
            }
            Self::NotWhole { .. } => {
                "run `biv reconcile`; if it cannot be mended, `biv checkpoint delete` it"
            }
            Self::NoHome => "set `HOME`, or `BIV_STORE` to a folder for the store",
            about_work => return about_work.hint_about_work(),
        };
        Some(hint.to_owned())
    }

    /// The same, for what is said about the work and the files it goes to.
    fn hint_about_work(&self) -> Option<String> {
        let hint = match self {
            Self::NotFound { kind: Kind::Thing(noun), .. } => {
                return Some(format!("`biv {} list` shows all there are", command_of(*noun)));
            }
            Self::ForeignFile { .. } => "nothing was changed; mend the file, or use another",
            Self::ChangedByOthers { .. } => {
                "`biv import` takes in what it says; `--force` keeps it under another name; `--file` writes elsewhere"
            }
            Self::NoDocument { .. } => "name another file with `--file`",
            Self::OthersMemory { .. } => "name a file with `--file`",
            Self::Replay(_) => "`biv step list` shows all there are",
            Self::ReplayRefused { .. } => {
                "look at it with `--print`, or pass `--force` to start it anyway"
            }
            Self::BadAnswer { .. } => {
                "it has to print a list such as [{\"id\": \"a1\", \"answer\": \"yes\"}]"
            }
            Self::Bundle(cause) => cause.hint(),
            Self::InTheWay { .. } => "nothing is overwritten; choose another place",
            Self::Memory(_) => {
                "`memory.command` in your own configuration says what is started; `[]` is nothing"
            }
            Self::NoPrompt { .. } => "`biv resume` goes on from what is known",
            Self::NoLimit { .. } => "name the time: `--until 14:30`",
            Self::Until(cause) => cause.hint(),
            Self::NoApprovalCommand => "set `approvals.command` in your own configuration",
            Self::TooSmall(_) => "raise `--budget`",
            about_running => return about_running.hint_about_running(),
        };
        Some(hint.to_owned())
    }

    /// The same, for agents and other programs that run, or do not.
    fn hint_about_running(&self) -> Option<String> {
        let hint = match self {
            Self::Twin { .. } => "end it first, or pass `--force` to start another beside it",
            Self::StillRuns { .. } => "end it first; `biv resume --force` starts another beside it",
            Self::NoAgent { .. } => "install it, or see the command with `--print`",
            Self::OldAgent { .. } => {
                "upgrade it, or start a new conversation from what is known with `--brief`"
            }
            Self::NoTmux => "install it; only `--tmux` and `biv attach` need it",
            Self::NotInTmux { handle } | Self::Ended { handle, .. } => {
                return Some(format!("`biv resume {handle} --tmux` goes on with it there"));
            }
            Self::OutOfSight { log, .. } => {
                return Some(format!("what it says is in `{}`", log.display()));
            }
            Self::InTmux { handle } => return Some(format!("`biv attach {handle}` shows it")),
            Self::NoProgram { .. } => "check its name, and that it is installed and on the `PATH`",
            Self::NotAProgram { .. } => "name a program, or make it one with `chmod +x`",
            Self::AlreadySupervised { .. } => "`biv attach` it, or leave `--session` out",
            Self::NoTerminal { .. } => {
                "without a terminal it runs with plain input and output: `biv run … < /dev/null`"
            }
            Self::AlreadyWatched { .. } => "`biv watch --status` tells how it is doing",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// An error with its causes, for a log.
pub(crate) fn in_one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Paths that someone changed while they were being put back.
fn but_for(left: &[RelPath]) -> String {
    let names: Vec<String> = left.iter().map(|path| format!("`{path}`")).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(", but for what was changed meanwhile: {}", names.join(", "))
}

/// Who can write to a workspace, and what follows from that.
fn shared(path: &Path, sharing: Sharing) -> String {
    let path = path.display();
    let (fact, who) = match sharing {
        Sharing::OwnedBy { user, caller: 0 } => {
            (format!("`{path}` belongs to user {user}, and you are root"), "that user")
        }
        Sharing::OwnedBy { user, caller } => {
            (format!("`{path}` belongs to user {user}, and you are user {caller}"), "that user")
        }
        Sharing::WritableByAll | Sharing::Private => {
            (format!("every user can write to `{path}`"), "another user")
        }
    };
    format!(
        "{fact}; {who} could replace files while they are being restored, so nothing was restored"
    )
}

fn shared_hint(sharing: Sharing, user_config: &Path) -> String {
    let (first, whom) = match sharing {
        Sharing::OwnedBy { user, .. } => (format!("run biv as user {user}"), "that user"),
        Sharing::WritableByAll | Sharing::Private => {
            ("take the permission away with `chmod o-w`".to_owned(), "all users of this machine")
        }
    };
    format!(
        "{first}; or, if you trust {whom}, set the variable `BIV_WORKSPACE_ALLOW_SHARED=true`, or write \
         `allow_shared = true` under `[workspace]` in `{}`",
        user_config.display()
    )
}

/// The command that is about things of a noun.
fn command_of(noun: Noun) -> String {
    noun.as_str().replace(' ', "-")
}

fn locked_hint(owner: Option<&str>) -> String {
    match owner {
        Some(owner) => format!("wait for it to end, or look at what it does: {owner}"),
        None => "wait for it to end and try again".to_owned(),
    }
}
