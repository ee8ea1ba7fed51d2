//! What an agent was seen to do, in our words, and what follows from it.

use crate::agent::{
    AgentKind, ApprovalAsked, ConversationCompacted, ConversationEnded, PromptGiven, Source,
    SubagentStarted, SubagentStopped, ToolUsed, TurnEnded,
};
use crate::checkpoint::Trigger;
use crate::conversation::NativeId;
use crate::event::Event;
use crate::risk;
use crate::text::Note;
use crate::work::{Task, TaskStatus};

/// One thing an agent told us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub agent: AgentKind,
    pub conversation: NativeId,
    /// Where the agent says its record is.
    pub transcript: Option<String>,
    pub cwd: Option<String>,
    pub model: Option<String>,
    /// The sub-agent it happened in.
    pub subagent: Option<String>,
    pub happening: Happening,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    Started(Source),
    Prompted {
        prompt: String,
    },
    ToolStarting(ToolCall),
    ToolDone {
        call: ToolCall,
        duration_ms: Option<u64>,
        error: Option<String>,
    },
    ApprovalAsked {
        tool: String,
        what: Option<String>,
    },
    TurnEnded {
        message: Option<String>,
    },
    /// The turn ended against the agent's will.
    TurnFailed {
        error: String,
        message: Option<String>,
    },
    SubagentStarted {
        subagent: String,
        role: Option<String>,
    },
    SubagentStopped {
        subagent: String,
        message: Option<String>,
    },
    Compacting {
        by: Option<String>,
    },
    Compacted,
    TaskChanged(Task),
    Ended {
        reason: Option<String>,
    },
    /// Nothing that we keep.
    Nothing,
}

/// A use of a tool, as far as its name and arguments tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    pub tool: String,
    pub kind: ToolKind,
    pub files: Vec<String>,
    pub command: Option<String>,
    pub tasks: Vec<Task>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolKind {
    /// It says which files it changes.
    Edit,
    /// It can change anything.
    Shell,
    /// It starts a sub-agent.
    Spawn,
    /// It changes no files.
    #[default]
    Other,
}

/// What to do about an observation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    pub events: Vec<Event>,
    pub save: Option<Trigger>,
    /// Find out which files changed, and write them into the tool's event.
    pub look: bool,
    pub tell: Tell,
}

/// What the model is to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tell {
    #[default]
    Nothing,
    /// That there is unfinished work here, if there is.
    Notice,
    /// All it needs to go on.
    Briefing,
}

/// Decides. Pure: the same observation always asks for the same things.
pub fn respond(observation: &Observation, risks: &risk::Policy) -> Response {
    match &observation.happening {
        Happening::Started(source) => Response { tell: tell(*source), ..Response::default() },
        Happening::ToolStarting(call) => {
            Response { save: before_tool(call, risks), ..Response::default() }
        }
        Happening::ToolDone { call, duration_ms, error } => {
            tool_done(observation, call, *duration_ms, error.as_deref())
        }
        Happening::TaskChanged(change) => task_changed(std::slice::from_ref(change)),
        Happening::Compacted | Happening::Nothing => Response::default(),
        happening => Response {
            events: fact(&observation.conversation, happening).into_iter().collect(),
            save: match happening {
                Happening::TurnEnded { .. } => Some(Trigger::Turn),
                Happening::TurnFailed { .. } => Some(Trigger::Error),
                Happening::Compacting { .. } => Some(Trigger::Compact),
                Happening::Ended { .. } => Some(Trigger::End),
                _ => None,
            },
            ..Response::default()
        },
    }
}

/// What goes on record as it was told.
fn fact(conversation: &NativeId, happening: &Happening) -> Option<Event> {
    let conversation = conversation.clone();
    let note = |words: &Option<String>| words.as_deref().map(Note::cut);
    Some(match happening {
        Happening::Prompted { prompt } => {
            Event::PromptGiven(PromptGiven { conversation, prompt: Note::cut(prompt) })
        }
        Happening::ApprovalAsked { tool, what } => Event::ApprovalAsked(ApprovalAsked {
            conversation,
            tool: tool.clone(),
            what: note(what),
        }),
        Happening::TurnEnded { message } => {
            Event::TurnEnded(TurnEnded { conversation, message: note(message), error: None })
        }
        Happening::TurnFailed { error, message } => Event::TurnEnded(TurnEnded {
            conversation,
            message: note(message),
            error: Some(Note::cut(error)),
        }),
        Happening::SubagentStarted { subagent, role } => Event::SubagentStarted(SubagentStarted {
            conversation,
            subagent: subagent.clone(),
            role: role.clone(),
        }),
        Happening::SubagentStopped { subagent, message } => {
            Event::SubagentStopped(SubagentStopped {
                conversation,
                subagent: subagent.clone(),
                message: note(message),
            })
        }
        Happening::Compacting { by } => {
            Event::ConversationCompacted(ConversationCompacted { conversation, by: by.clone() })
        }
        Happening::Ended { reason } => {
            Event::ConversationEnded(ConversationEnded { conversation, reason: reason.clone() })
        }
        _ => return None,
    })
}

fn before_tool(call: &ToolCall, risks: &risk::Policy) -> Option<Trigger> {
    let is_risky = || call.command.as_deref().is_some_and(|line| risk::find(line, risks).is_some());
    match call.kind {
        ToolKind::Spawn => Some(Trigger::Spawn),
        ToolKind::Shell if is_risky() => Some(Trigger::Risk),
        ToolKind::Shell | ToolKind::Edit | ToolKind::Other => None,
    }
}

fn tool_done(
    observation: &Observation,
    call: &ToolCall,
    duration_ms: Option<u64>,
    error: Option<&str>,
) -> Response {
    let mut response = task_changed(&call.tasks);
    response.events.insert(
        0,
        Event::ToolUsed(Box::new(ToolUsed {
            conversation: observation.conversation.clone(),
            tool: call.tool.clone(),
            files: call.files.clone(),
            n_more_files: 0,
            command: call.command.as_deref().map(Note::cut),
            duration_ms,
            error: error.map(Note::cut),
            subagent: observation.subagent.clone(),
        })),
    );
    response.look = call.kind == ToolKind::Shell;
    // The ceiling between two saves, as long as things change.
    if response.save.is_none() && matches!(call.kind, ToolKind::Shell | ToolKind::Edit) {
        response.save = Some(Trigger::Periodic);
    }
    response
}

fn task_changed(changes: &[Task]) -> Response {
    let is_done = changes.iter().any(|change| change.status == Some(TaskStatus::Completed));
    Response {
        events: changes.iter().cloned().map(|it| Event::TaskChanged(Box::new(it))).collect(),
        save: is_done.then_some(Trigger::Task),
        ..Response::default()
    }
}

/// What a model is told when a conversation begins this way.
pub const fn tell(source: Source) -> Tell {
    match source {
        Source::Startup | Source::Seen => Tell::Notice,
        Source::Resume | Source::Clear | Source::Compact | Source::Fork => Tell::Briefing,
    }
}

/// Did the person ask us something, rather than the agent? Then it is no request that work can go on with.
pub fn is_own_command(prompt: &str) -> bool {
    let word = prompt.split_whitespace().next().unwrap_or_default();
    let name = word.strip_prefix(['/', '$']).unwrap_or_default();
    matches!(name.strip_prefix("bivouac:").unwrap_or(name), "checkpoint" | "rehydrate")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn respond_to(happening: Happening) -> Response {
        let observation = Observation {
            agent: AgentKind::ClaudeCode,
            conversation: "c1".parse().unwrap(),
            transcript: None,
            cwd: None,
            model: None,
            subagent: None,
            happening,
        };
        let patterns = risk::Pattern::parse("rm -rf").into_iter().collect();
        respond(&observation, &risk::Policy { patterns, build_folders: Vec::new() })
    }

    fn call(kind: ToolKind, command: Option<&str>) -> ToolCall {
        ToolCall {
            tool: "T".to_owned(),
            kind,
            command: command.map(str::to_owned),
            ..ToolCall::default()
        }
    }

    #[test]
    fn a_checkpoint_is_asked_for_at_the_moments_that_matter() {
        let check = |happening: Happening, expected: Option<Trigger>| {
            assert_eq!(respond_to(happening.clone()).save, expected, "{happening:?}");
        };
        check(Happening::Prompted { prompt: "go".to_owned() }, None);
        check(Happening::ToolStarting(call(ToolKind::Shell, Some("ls"))), None);
        check(
            Happening::ToolStarting(call(ToolKind::Shell, Some("rm -rf src"))),
            Some(Trigger::Risk),
        );
        check(Happening::ToolStarting(call(ToolKind::Spawn, None)), Some(Trigger::Spawn));
        let done = |call| Happening::ToolDone { call, duration_ms: None, error: None };
        check(done(call(ToolKind::Edit, None)), Some(Trigger::Periodic));
        check(done(call(ToolKind::Other, None)), None);
        let finished = Task {
            task: "1".to_owned(),
            subject: None,
            status: Some(TaskStatus::Completed),
            ..Task::default()
        };
        check(
            done(ToolCall { tasks: vec![finished], ..call(ToolKind::Other, None) }),
            Some(Trigger::Task),
        );
        check(Happening::TurnEnded { message: None }, Some(Trigger::Turn));
        check(
            Happening::TurnFailed { error: "limit".to_owned(), message: None },
            Some(Trigger::Error),
        );
        check(Happening::Compacting { by: None }, Some(Trigger::Compact));
        check(Happening::Ended { reason: None }, Some(Trigger::End));
    }

    #[test]
    fn only_the_shell_makes_us_look_for_changes() {
        let looks = |kind| {
            respond_to(Happening::ToolDone {
                call: call(kind, None),
                duration_ms: None,
                error: None,
            })
            .look
        };
        assert!(looks(ToolKind::Shell));
        assert!(!looks(ToolKind::Edit) && !looks(ToolKind::Other) && !looks(ToolKind::Spawn));
    }

    #[test]
    fn what_is_asked_of_us_is_no_request() {
        for prompt in
            ["/checkpoint", " /checkpoint save x", "$rehydrate", "/bivouac:checkpoint list"]
        {
            assert!(is_own_command(prompt), "{prompt}");
        }
        for prompt in ["checkpoint the work", "/checkpoints", "Run /checkpoint", "", "/"] {
            assert!(!is_own_command(prompt), "{prompt}");
        }
    }
}
