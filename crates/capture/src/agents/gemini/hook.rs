//! What Gemini CLI tells its hooks. The answers have Claude Code's shape.

use bivouac_core::agent::{AgentKind, Source};
use bivouac_core::observation::{Happening, Observation, ToolCall, ToolKind};
use bivouac_core::work::Task;

use crate::agents::Input;
use crate::agents::input::tasks;

pub(super) fn observe(event: &str, input: Input<'_>) -> Option<Observation> {
    Some(Observation {
        agent: AgentKind::Gemini,
        conversation: input.str("session_id")?.parse().ok()?,
        transcript: input.text("transcript_path"),
        cwd: input.text("cwd"),
        model: None,
        subagent: None,
        happening: happening(event, input),
    })
}

fn happening(event: &str, input: Input<'_>) -> Happening {
    match event {
        "SessionStart" => Happening::Started(match input.str("source") {
            Some("resume") => Source::Resume,
            Some("clear") => Source::Clear,
            _ => Source::Startup,
        }),
        "BeforeAgent" => Happening::Prompted { prompt: input.text("prompt").unwrap_or_default() },
        "BeforeTool" => Happening::ToolStarting(call(input)),
        "AfterTool" => {
            let error = input.at("tool_response").at("error");
            let error = error.text("message").or_else(|| input.at("tool_response").text("error"));
            Happening::ToolDone { call: call(input), duration_ms: None, error }
        }
        "AfterAgent" => Happening::TurnEnded { message: input.text("prompt_response") },
        // It is announced before every request, whether anything is compressed or not.
        "PreCompress" if input.str("trigger") == Some("manual") => {
            Happening::Compacting { by: Some("manual".to_owned()) }
        }
        "Notification" if input.str("notification_type") == Some("ToolPermission") => {
            let details = input.at("details");
            Happening::ApprovalAsked {
                tool: details.first(&["title", "type"]).unwrap_or("a tool").to_owned(),
                what: details.first(&["command", "filePath", "fileName"]).map(str::to_owned),
            }
        }
        "SessionEnd" => Happening::Ended { reason: input.text("reason") },
        _ => Happening::Nothing,
    }
}

fn call(input: Input<'_>) -> ToolCall {
    let tool = input.text("tool_name").unwrap_or_default();
    let arguments = input.at("tool_input");
    let kind = match tool.as_str() {
        "run_shell_command" => ToolKind::Shell,
        "write_file" | "replace" | "edit" => ToolKind::Edit,
        "delegate_to_agent" => ToolKind::Spawn,
        _ => ToolKind::Other,
    };
    let files = arguments.text("file_path").filter(|_| kind == ToolKind::Edit);
    let command = arguments.text("command").filter(|_| kind == ToolKind::Shell);
    ToolCall { tasks: todos(&tool, input), tool, kind, files: files.into_iter().collect(), command }
}

fn todos(tool: &str, input: Input<'_>) -> Vec<Task> {
    if tool != "write_todos" {
        return Vec::new();
    }
    tasks(input.at("tool_input").list("todos"), &["description", "content"])
}
