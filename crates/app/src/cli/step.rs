//! `biv step`: the steps of a plan, and what each produced.

use bivouac_core::text::Note;
use bivouac_core::time::Age;
use bivouac_core::work::{Check, Item, Noun, Output, Step, TaskStatus, key_in};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Args, Subcommand};

use crate::cli::Error;
use crate::cli::saying::{self, Listing, Saying, some};
use crate::report::Exit;
use crate::ui::Ui;

/// Log the steps of a plan, so that one that failed can be tried again alone
#[derive(Debug, Subcommand)]
pub enum StepCommand {
    /// Begin a step
    Start(StartArgs),
    /// Say that a step is done, and what it produced
    Finish(FinishArgs),
    /// Say that a step failed, and why
    Fail(FailArgs),
    /// List the steps
    List(Listing),
}

#[derive(Debug, Args)]
pub struct StartArgs {
    /// What it does, or the number of one that is tried again
    step: String,
    /// Its number; the next one if left out
    #[arg(long, value_parser = key_in)]
    id: Option<String>,
    /// Who does it
    #[arg(long)]
    agent: Option<String>,
    /// The issue it is about
    #[arg(long)]
    issue: Option<String>,
    /// What is asked for, word for word, for a later retry
    #[arg(long, value_name = "TEXT")]
    objective: Option<Note>,
    #[command(flatten)]
    saying: Saying,
}

#[derive(Debug, Args)]
pub struct FinishArgs {
    /// Its number or title
    step: String,
    /// What it produced, as `created src/a.rs: the parser`; can be given several times
    #[arg(long = "output", value_name = "TEXT")]
    outputs: Vec<Output>,
    /// What its checks said, as `lint=pass,tests=pass`
    #[arg(long, value_name = "CHECKS", value_delimiter = ',')]
    verify: Vec<Check>,
    /// What later steps have to know of it, in one to three sentences
    #[arg(long, value_name = "TEXT")]
    cached: Option<Note>,
    /// How long it took, such as 8m; since it began if left out
    #[arg(long, value_name = "TIME")]
    took: Option<Age>,
    #[command(flatten)]
    saying: Saying,
}

#[derive(Debug, Args)]
pub struct FailArgs {
    /// Its number or title
    step: String,
    /// What went wrong
    #[arg(long, value_name = "TEXT")]
    error: Note,
    #[command(flatten)]
    saying: Saying,
}

impl StepCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::List(_) => Need::Read,
            _ => Need::Write,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::Start(args) => start(args, engine, ui),
            Self::Finish(args) => finish(args, engine, ui),
            Self::Fail(args) => fail(args, engine, ui),
            Self::List(args) => saying::list(args, Noun::Step, engine, ui),
        }
    }
}

fn start(args: &StartArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let base = engine.head();
    args.saying.say_of(Noun::Step, engine, ui, |work| {
        // A step that is there is begun again; anything else is the title of a new one.
        let known = bivouac_engine::progress::find(&work.steps, Noun::Step, &args.step).ok();
        let known = known.filter(|_| args.id.is_none());
        let attempt = known.map_or(1, |it| match it.status() {
            TaskStatus::Failed | TaskStatus::Completed => it.attempt.unwrap_or(1) + 1,
            _ => it.attempt.unwrap_or(1),
        });
        let key = known.map(|it| it.step.clone()).or_else(|| args.id.clone());
        let step = Step {
            step: key.unwrap_or_default(),
            title: if known.is_some() { None } else { Some(Note::cut(&args.step)) },
            status: Some(TaskStatus::InProgress),
            agent: args.agent.clone(),
            issue: args.issue.clone(),
            objective: args.objective.clone(),
            attempt: Some(attempt),
            base,
            ..Step::default()
        };
        Ok(Item::Step(Box::new(step)))
    })
}

fn finish(args: &FinishArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let (head, now) = (engine.head(), engine.clock.now());
    args.saying.say_of(Noun::Step, engine, ui, |work| {
        let known = bivouac_engine::progress::find(&work.steps, Noun::Step, &args.step)?;
        let took = args.took.map_or_else(|| now.since(known.changed_at), Age::duration);
        let step = Step {
            step: known.step.clone(),
            status: Some(TaskStatus::Completed),
            outputs: some(&args.outputs),
            checks: some(&args.verify),
            cached: args.cached.clone(),
            // What went wrong before was put right.
            error: Some(Note::cut("")),
            seconds: Some(took.as_secs()),
            head,
            ..Step::default()
        };
        Ok(Item::Step(Box::new(step)))
    })
}

fn fail(args: &FailArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    args.saying.say_of(Noun::Step, engine, ui, |work| {
        let known = bivouac_engine::progress::find(&work.steps, Noun::Step, &args.step)?;
        let step = Step {
            step: known.step.clone(),
            status: Some(TaskStatus::Failed),
            attempt: Some(known.attempt.unwrap_or(1)),
            error: Some(args.error.clone()),
            ..Step::default()
        };
        Ok(Item::Step(Box::new(step)))
    })
}
