//! What Claude Code tells its hooks, and how it takes an answer.

use bivouac_core::agent::{AgentKind, Source};
use bivouac_core::observation::{Happening, Observation, ToolCall, ToolKind};
use bivouac_core::text::Note;
use bivouac_core::work::{Task, TaskStatus};
use serde_json::json;

use crate::agents::Input;
use crate::agents::input::tasks as tasks_in;

pub(super) fn observe(event: &str, input: Input<'_>) -> Option<Observation> {
    Some(Observation {
        agent: AgentKind::ClaudeCode,
        conversation: input.str("session_id")?.parse().ok()?,
        transcript: input.text("transcript_path"),
        cwd: input.text("cwd"),
        model: input.text("model"),
        subagent: input.text("agent_id"),
        happening: happening(event, input),
    })
}

fn happening(event: &str, input: Input<'_>) -> Happening {
    match event {
        "SessionStart" => Happening::Started(source(input.str("source"))),
        // The report of a sub-agent comes as a prompt that nobody typed.
        "UserPromptSubmit"
            if input.str("prompt").is_some_and(|it| it.starts_with("<task-notification>")) =>
        {
            Happening::Nothing
        }
        "UserPromptSubmit" => {
            Happening::Prompted { prompt: input.text("prompt").unwrap_or_default() }
        }
        "PreToolUse" => Happening::ToolStarting(call(input)),
        "PostToolUse" => Happening::ToolDone {
            call: call(input),
            duration_ms: input.number("duration_ms"),
            error: None,
        },
        "PostToolUseFailure" => Happening::ToolDone {
            call: ToolCall { tasks: Vec::new(), ..call(input) },
            duration_ms: input.number("duration_ms"),
            error: Some(input.text("error").unwrap_or_else(|| "it failed".to_owned())),
        },
        "PermissionRequest" => Happening::ApprovalAsked {
            tool: input.text("tool_name").unwrap_or_default(),
            what: subject(input),
        },
        "Stop" => Happening::TurnEnded { message: input.text("last_assistant_message") },
        "StopFailure" => Happening::TurnFailed {
            error: input
                .first(&["last_assistant_message", "error"])
                .unwrap_or("it did not say why")
                .to_owned(),
            message: None,
        },
        "SubagentStart" | "SubagentStop" => subagent(event, input),
        "PreCompact" => Happening::Compacting { by: input.text("trigger") },
        "PostCompact" => Happening::Compacted,
        "TaskCompleted" => Happening::TaskChanged(Task {
            task: input.text("task_id").unwrap_or_default(),
            subject: input.str("task_subject").map(Note::cut),
            status: Some(TaskStatus::Completed),
            ..Task::default()
        }),
        "SessionEnd" => Happening::Ended { reason: input.text("reason") },
        _ => Happening::Nothing,
    }
}

fn source(word: Option<&str>) -> Source {
    match word {
        Some("resume") => Source::Resume,
        Some("clear") => Source::Clear,
        Some("compact") => Source::Compact,
        Some("fork") => Source::Fork,
        _ => Source::Startup,
    }
}

/// Compaction is done by a sub-agent without a type, which is none of the person's.
fn subagent(event: &str, input: Input<'_>) -> Happening {
    let (Some(subagent), Some(role)) = (input.text("agent_id"), input.text("agent_type")) else {
        return Happening::Nothing;
    };
    match event {
        "SubagentStart" => Happening::SubagentStarted { subagent, role: Some(role) },
        _ => Happening::SubagentStopped { subagent, message: input.text("last_assistant_message") },
    }
}

fn call(input: Input<'_>) -> ToolCall {
    let tool = input.text("tool_name").unwrap_or_default();
    let arguments = input.at("tool_input");
    let kind = match tool.as_str() {
        "Bash" | "PowerShell" => ToolKind::Shell,
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => ToolKind::Edit,
        "Agent" | "Task" => ToolKind::Spawn,
        _ => ToolKind::Other,
    };
    let files = match kind {
        ToolKind::Edit => arguments.first(&["file_path", "notebook_path"]).map(str::to_owned),
        ToolKind::Shell | ToolKind::Spawn | ToolKind::Other => None,
    };
    let command = (kind == ToolKind::Shell).then(|| arguments.text("command")).flatten();
    ToolCall { tasks: tasks(&tool, input), tool, kind, files: files.into_iter().collect(), command }
}

/// What a permission is asked for, in a line.
fn subject(input: Input<'_>) -> Option<String> {
    input.at("tool_input").first(&["command", "file_path", "url", "prompt"]).map(str::to_owned)
}

fn tasks(tool: &str, input: Input<'_>) -> Vec<Task> {
    let arguments = input.at("tool_input");
    match tool {
        "TaskCreate" => {
            let task = input.at("tool_response").at("task");
            let key = task.text("id");
            key.map(|task| Task {
                task,
                subject: arguments.str("subject").map(Note::cut),
                status: Some(TaskStatus::Pending),
                ..Task::default()
            })
            .into_iter()
            .collect()
        }
        "TaskUpdate" => {
            let key = arguments.text("taskId");
            key.map(|task| Task {
                task,
                subject: arguments.str("subject").map(Note::cut),
                status: arguments.str("status").and_then(TaskStatus::from_word),
                ..Task::default()
            })
            .into_iter()
            .collect()
        }
        "TodoWrite" => tasks_in(arguments.list("todos"), &["content"]),
        _ => Vec::new(),
    }
}

pub(super) fn answer(event: &str, words: &str) -> String {
    json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": words } })
        .to_string()
}
