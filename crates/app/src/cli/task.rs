//! `biv task`: pieces of work.

use bivouac_core::text::{Note, words_in};
use bivouac_core::work::{Item, Noun, Task, TaskStatus, key_in};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Args, Subcommand};

use crate::cli::Error;
use crate::cli::saying::{self, Listing, Saying, key_of, some};
use crate::report::Exit;
use crate::ui::Ui;

/// Keep track of tasks
#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Add a task
    Add(AddArgs),
    /// Say that a task is being worked on
    Start(ChangeArgs),
    /// Say that a task is done
    Done(ChangeArgs),
    /// Say that a task failed
    Fail(ChangeArgs),
    /// Say that a task cannot go on
    Block(ChangeArgs),
    /// Say that a task will not be done
    Drop(ChangeArgs),
    /// Change what is known about a task
    Update(UpdateArgs),
    /// List the tasks
    List(Listing),
}

#[derive(Debug, Args)]
pub struct AddArgs {
    /// What is to be done
    #[arg(value_parser = words_in)]
    title: Note,
    /// What to call it by; the next number if left out
    #[arg(long, value_parser = key_in)]
    id: Option<String>,
    /// How far it is, in anybody's words
    #[arg(long)]
    status: Option<TaskStatus>,
    #[command(flatten)]
    facts: Facts,
    #[command(flatten)]
    saying: Saying,
}

#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// Its id, title or issue
    task: String,
    /// Why, or what it waits for
    #[arg(long, value_name = "TEXT")]
    reason: Option<Note>,
    #[command(flatten)]
    facts: Facts,
    #[command(flatten)]
    saying: Saying,
}

#[derive(Debug, Args)]
pub struct UpdateArgs {
    /// Its id, title or issue
    task: String,
    /// What is to be done
    #[arg(long, value_name = "TEXT")]
    title: Option<Note>,
    /// How far it is, in anybody's words
    #[arg(long)]
    status: Option<TaskStatus>,
    #[command(flatten)]
    facts: Facts,
    #[command(flatten)]
    saying: Saying,
}

#[derive(Debug, Args)]
struct Facts {
    /// The issue it is written down in, such as TAS-12, PROJ-123 or #174
    #[arg(long)]
    issue: Option<String>,
    /// Who does it
    #[arg(long)]
    agent: Option<String>,
    /// A file it is about; can be given several times
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<String>,
    /// A task or issue that has to be done first; can be given several times
    #[arg(long = "after", value_name = "TASK")]
    depends_on: Vec<String>,
    /// What else there is to say
    #[arg(long, value_name = "TEXT")]
    note: Option<Note>,
}

impl Facts {
    fn task(&self, key: String) -> Task {
        Task {
            task: key,
            issue: self.issue.clone(),
            agent: self.agent.clone(),
            files: some(&self.files),
            depends_on: some(&self.depends_on),
            note: self.note.clone(),
            ..Task::default()
        }
    }
}

impl TaskCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::List(_) => Need::Read,
            _ => Need::Write,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::Add(args) => add(args, engine, ui),
            Self::Start(args) => change(args, TaskStatus::InProgress, engine, ui),
            Self::Done(args) => change(args, TaskStatus::Completed, engine, ui),
            Self::Fail(args) => change(args, TaskStatus::Failed, engine, ui),
            Self::Block(args) => change(args, TaskStatus::Blocked, engine, ui),
            Self::Drop(args) => change(args, TaskStatus::Dropped, engine, ui),
            Self::Update(args) => update(args, engine, ui),
            Self::List(args) => saying::list(args, Noun::Task, engine, ui),
        }
    }
}

fn add(args: &AddArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let task = Task {
        subject: Some(args.title.clone()),
        status: Some(args.status.unwrap_or_default()),
        ..args.facts.task(args.id.clone().unwrap_or_default())
    };
    args.saying.add(Item::Task(Box::new(task)), engine, ui)
}

fn change(
    args: &ChangeArgs,
    status: TaskStatus,
    engine: &mut Engine,
    ui: &mut Ui,
) -> Result<Exit, Error> {
    args.saying.say_of(Noun::Task, engine, ui, |work| {
        let key = key_of(&work.tasks, Noun::Task, &args.task)?;
        // Why it was failed or blocked before no longer holds.
        let failure = Some(args.reason.clone().unwrap_or_else(|| Note::cut("")));
        let task = Task { status: Some(status), failure, ..args.facts.task(key) };
        Ok(Item::Task(Box::new(task)))
    })
}

fn update(args: &UpdateArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    args.saying.say_of(Noun::Task, engine, ui, |work| {
        let key = key_of(&work.tasks, Noun::Task, &args.task)?;
        let task =
            Task { subject: args.title.clone(), status: args.status, ..args.facts.task(key) };
        Ok(Item::Task(Box::new(task)))
    })
}
