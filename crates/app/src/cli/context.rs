//! `biv context`: what the branch says about the work.

use bivouac_core::context::{Context, context, is_issue, of_issue, slug_of_branch, without_issue};
use bivouac_engine::Engine;
use serde_json::json;

use crate::cli::Error;
use crate::report::Exit;
use crate::ui::{Ui, quote};

/// Show the issue and the project folder that the branch's name stands for
///
/// Exits with 2 when the name does not say, as in `PROJ-123_description`.
#[derive(Debug, clap::Args)]
pub struct ContextArgs {
    /// The issue, where the branch does not say; `none` if there is none
    #[arg(long, value_name = "KEY|none")]
    issue: Option<String>,
}

pub fn run(args: &ContextArgs, engine: &mut Engine, ui: &mut Ui) -> Result<Exit, Error> {
    let branch = engine.branch().ok_or(Error::NoBranch)?;
    let found = match args.issue.as_deref() {
        Some("none") => Some(without_issue(&branch)),
        Some(issue) if is_issue(issue) => Some(of_issue(&branch, issue, &slug_of_branch(&branch))),
        Some(issue) => return Err(Error::BadIssue { issue: issue.to_owned() }),
        None => context(&branch),
    };
    let Some(found) = found else {
        return Err(Error::NoIssue { branch });
    };
    tell(&found, ui)?;
    Ok(Exit::Done)
}

fn tell(found: &Context, ui: &mut Ui) -> Result<(), Error> {
    let issue = found.issue.as_deref().unwrap_or("none");
    ui.say(format_args!("JIRA_ISSUE={}", quote(issue)))?;
    ui.say(format_args!("BRANCH_NAME={}", quote(&found.branch_name)))?;
    ui.say(format_args!("BRANCH={}", quote(&found.branch)))?;
    ui.say(format_args!("PROJECT_DIR={}", quote(&found.project_dir)))?;
    ui.data(&json!({
        "JIRA_ISSUE": found.issue,
        "BRANCH_NAME": found.branch_name,
        "BRANCH": found.branch,
        "PROJECT_DIR": found.project_dir,
    }))?;
    Ok(())
}
