//! What our plugin tells from inside opencode.

use bivouac_core::agent::AgentKind;
use bivouac_core::observation::{Happening, Observation, ToolCall, ToolKind};
use bivouac_core::work::Task;

use crate::agents::Input;
use crate::agents::input::tasks;

pub(super) fn observe(event: &str, input: Input<'_>) -> Option<Observation> {
    Some(Observation {
        agent: AgentKind::Opencode,
        conversation: input.str("sessionID")?.parse().ok()?,
        transcript: None,
        cwd: input.text("cwd"),
        model: None,
        subagent: None,
        happening: happening(event, input),
    })
}

fn happening(event: &str, input: Input<'_>) -> Happening {
    match event {
        "chat.message" => Happening::Prompted {
            // `opencode run` puts quotes around its argument.
            prompt: input.str("prompt").unwrap_or_default().trim_matches('"').to_owned(),
        },
        "tool.execute.before" => Happening::ToolStarting(call(input)),
        "tool.execute.after" => {
            let exit = input.at("metadata").number("exit").filter(|code| *code != 0);
            let error = exit.map(|code| format!("exit code {code}"));
            Happening::ToolDone { call: call(input), duration_ms: None, error }
        }
        "session.idle" => Happening::TurnEnded { message: None },
        "session.error" => {
            let error = input.at("error");
            let words = error.at("data").text("message").or_else(|| error.text("name"));
            Happening::TurnFailed { error: words.unwrap_or_default(), message: None }
        }
        "permission.asked" => Happening::ApprovalAsked {
            tool: input.first(&["permission", "type"]).unwrap_or("a tool").to_owned(),
            what: input.text("title"),
        },
        "experimental.session.compacting" => Happening::Compacting { by: None },
        "session.compacted" => Happening::Compacted,
        _ => Happening::Nothing,
    }
}

fn call(input: Input<'_>) -> ToolCall {
    let tool = input.text("tool").unwrap_or_default();
    let arguments = input.at("args");
    let kind = match tool.as_str() {
        "bash" => ToolKind::Shell,
        "write" | "edit" | "patch" | "multiedit" => ToolKind::Edit,
        "task" => ToolKind::Spawn,
        _ => ToolKind::Other,
    };
    let files = arguments.text("filePath").filter(|_| kind == ToolKind::Edit);
    let command = arguments.text("command").filter(|_| kind == ToolKind::Shell);
    ToolCall {
        tasks: todos(&tool, arguments),
        tool,
        kind,
        files: files.into_iter().collect(),
        command,
    }
}

fn todos(tool: &str, arguments: Input<'_>) -> Vec<Task> {
    if tool != "todowrite" {
        return Vec::new();
    }
    tasks(arguments.list("todos"), &["content"])
}
