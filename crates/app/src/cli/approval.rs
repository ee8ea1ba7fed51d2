//! `biv approval`: questions that were put to a person.

use bivouac_core::text::{Note, words_in};
use bivouac_core::work::{Approval, Item, Noun, key_in};
use bivouac_engine::Engine;
use bivouac_engine::open::Need;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::saying::{self, Listing, Saying, key_of};
use crate::cli::{Error, complete};
use crate::report::Exit;
use crate::ui::Ui;

/// Keep track of questions that wait for a person
#[derive(Debug, Subcommand)]
pub enum ApprovalCommand {
    /// Record a question that was asked
    Request(RequestArgs),
    /// Record the answer
    Resolve(ResolveArgs),
    /// Ask the configured command for replies
    Check(CheckArgs),
    /// List the questions
    List(Listing),
}

#[derive(Debug, Args)]
pub struct RequestArgs {
    /// The question
    #[arg(value_parser = words_in)]
    question: Note,
    /// What to call it by; the next number if left out
    #[arg(long, value_parser = key_in)]
    id: Option<String>,
    /// Where it was posted, such as slack
    #[arg(long)]
    provider: Option<String>,
    /// The channel there
    #[arg(long)]
    channel: Option<String>,
    /// The thread there
    #[arg(long)]
    thread: Option<String>,
    /// When, such as `2026-03-01 14:30`; now if left out
    #[arg(long, value_name = "TIME")]
    posted_at: Option<String>,
    #[command(flatten)]
    saying: Saying,
}

#[derive(Debug, Args)]
pub struct ResolveArgs {
    /// Its id or the question
    approval: String,
    /// What was answered
    #[arg(long, value_name = "TEXT", default_value = "approved")]
    answer: Note,
    #[command(flatten)]
    saying: Saying,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The session; the one at hand if left out
    #[arg(long, add = complete::sessions())]
    session: Option<String>,
}

impl ApprovalCommand {
    pub fn need(&self) -> Need {
        match self {
            Self::List(_) => Need::Read,
            _ => Need::Write,
        }
    }

    pub fn run(&self, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
        match self {
            Self::Request(args) => {
                let posted_at = match args.posted_at.as_deref() {
                    Some(text) => engine
                        .clock
                        .read(text)
                        .ok_or_else(|| Error::BadTime { text: text.to_owned() })?,
                    None => engine.clock.now(),
                };
                let approval = Approval {
                    approval: args.id.clone().unwrap_or_default(),
                    question: Some(args.question.clone()),
                    provider: args.provider.clone(),
                    channel: args.channel.clone(),
                    thread: args.thread.clone(),
                    posted_at: Some(posted_at),
                    ..Approval::default()
                };
                args.saying.add(Item::Approval(Box::new(approval)), engine, ui)
            }
            Self::Resolve(args) => args.saying.say_of(Noun::Approval, engine, ui, |work| {
                let approval = Approval {
                    approval: key_of(&work.approvals, Noun::Approval, &args.approval)?,
                    answer: Some(args.answer.clone()),
                    ..Approval::default()
                };
                Ok(Item::Approval(Box::new(approval)))
            }),
            Self::Check(args) => check(args, engine, ui),
            Self::List(args) => saying::list(args, Noun::Approval, engine, ui),
        }
    }
}

fn check(args: &CheckArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let session = engine.session(args.session.as_deref())?;
    let report = engine.check_approvals(&session)?;
    for (_, told) in &report.answered {
        ui.say(format_args!("Recorded {told}"))?;
    }
    ui.say(format_args!(
        "{} answered, {} pending",
        report.answered.len(),
        report.n_pending - report.answered.len() as u64
    ))?;
    ui.data(&json!({
        "answered": report.answered.iter().map(|(key, _)| key).collect::<Vec<_>>(),
        "pending": report.n_pending - report.answered.len() as u64,
    }))?;
    Ok(Exit::Done)
}
