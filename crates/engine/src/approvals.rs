//! Asking for replies: a command of the person's own is told which questions are open, and says which have
//! been answered.

use std::time::Duration;

use bivouac_capture::process::Program;
use bivouac_core::session::Session;
use bivouac_core::text::Note;
use bivouac_core::work::{Approval, Item};
use serde::Deserialize;

use crate::progress::Saying;
use crate::{Engine, Error, Result};

/// How long the command may think.
const PATIENCE: Duration = Duration::from_secs(30);

/// What asking came to.
#[derive(Debug, Default)]
pub struct Replies {
    pub n_pending: u64,
    /// The keys of those that were answered, and what is to be said of it.
    pub answered: Vec<(String, String)>,
}

/// One reply, as the command prints it.
#[derive(Deserialize)]
struct WireReply {
    id: String,
    answer: String,
}

impl Engine {
    /// Asks the configured command for replies to what is pending, and records them.
    pub fn check_approvals(&mut self, session: &Session) -> Result<Replies> {
        let command = self.config.approval_command.clone();
        let Some((program, args)) = command.split_first() else {
            return Err(Error::NoApprovalCommand);
        };
        let work = self.journal.work(session.id)?;
        let pending: Vec<&Approval> = work.pending_approvals().map(|it| &it.item).collect();
        if pending.is_empty() {
            return Ok(Replies::default());
        }
        let question = serde_json::to_string(&pending).unwrap_or_default();
        let output = Program::new(program)
            .args(args)
            .in_folder(&self.home.workspace)
            .within(PATIENCE)
            .with_input(question.into_bytes())
            .output()?;
        let bad = |what: String| Error::BadAnswer { command: command.join(" "), what };
        let text = String::from_utf8(output).map_err(|error| bad(error.to_string()))?;
        let replies: Vec<WireReply> = match text.trim() {
            "" => Vec::new(),
            text => serde_json::from_str(text).map_err(|error| bad(error.to_string()))?,
        };
        let is_asked = |it: &WireReply| pending.iter().any(|asked| asked.approval == it.id);
        let items: Vec<Item> = replies.into_iter().filter(is_asked).map(answered).collect();
        let n_pending = pending.len() as u64;
        let said = self.say(session, items, &Saying::default())?;
        let keys = said.things.iter().map(|it| it.key().to_owned());
        Ok(Replies { n_pending, answered: keys.zip(said.told).collect() })
    }

    /// Lets a process of its own ask, where there is something to ask and someone to ask it.
    pub(crate) fn check_approvals_soon(&self, session: &Session) -> Result<()> {
        if self.config.approval_command.is_empty()
            || self.journal.work(session.id)?.pending_approvals().next().is_none()
        {
            return Ok(());
        }
        let words = ["approval", "check", "--session", &session.id.to_string()];
        self.start_own(words.map(Into::into))
    }
}

fn answered(reply: WireReply) -> Item {
    Item::Approval(Box::new(Approval {
        approval: reply.id,
        answer: Some(Note::cut(&reply.answer)),
        ..Approval::default()
    }))
}
