//! What Codex tells its hooks. The answers have Claude Code's shape.

use bivouac_core::agent::{AgentKind, Source};
use bivouac_core::observation::{Happening, Observation, ToolCall, ToolKind};
use bivouac_core::work::Task;

use crate::agents::Input;
use crate::agents::input::tasks;

pub(super) fn observe(event: &str, input: Input<'_>) -> Option<Observation> {
    Some(Observation {
        agent: AgentKind::Codex,
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
        "SessionStart" => Happening::Started(match input.str("source") {
            Some("resume") => Source::Resume,
            Some("fork") => Source::Fork,
            Some("compact") => Source::Compact,
            Some("clear") => Source::Clear,
            _ => Source::Startup,
        }),
        "UserPromptSubmit" => {
            Happening::Prompted { prompt: input.text("prompt").unwrap_or_default() }
        }
        "PreToolUse" => Happening::ToolStarting(call(input)),
        "PostToolUse" => {
            Happening::ToolDone { call: call(input), duration_ms: None, error: failure(input) }
        }
        "PermissionRequest" => Happening::ApprovalAsked {
            tool: input.text("tool_name").unwrap_or_default(),
            what: input.at("tool_input").text("command"),
        },
        // Inside a sub-agent, its own end is told by SubagentStop.
        "Stop" => Happening::TurnEnded { message: input.text("last_assistant_message") },
        "Interrupt" => {
            Happening::TurnFailed { error: "the person interrupted it".to_owned(), message: None }
        }
        "SubagentStart" => match input.text("agent_id") {
            Some(subagent) => {
                Happening::SubagentStarted { subagent, role: input.text("agent_type") }
            }
            None => Happening::Nothing,
        },
        "SubagentStop" => match input.text("agent_id") {
            Some(subagent) => Happening::SubagentStopped {
                subagent,
                message: input.text("last_assistant_message"),
            },
            None => Happening::Nothing,
        },
        "PreCompact" => Happening::Compacting { by: input.text("trigger") },
        "PostCompact" => Happening::Compacted,
        "SessionEnd" => Happening::Ended { reason: input.text("reason") },
        _ => Happening::Nothing,
    }
}

fn call(input: Input<'_>) -> ToolCall {
    let tool = input.text("tool_name").unwrap_or_default();
    let command = input.at("tool_input").text("command");
    let kind = match tool.as_str() {
        "Bash" => ToolKind::Shell,
        "apply_patch" => ToolKind::Edit,
        "spawn_agent" => ToolKind::Spawn,
        _ => ToolKind::Other,
    };
    let files = match (kind, &command) {
        (ToolKind::Edit, Some(patch)) => patched_files(patch),
        _ => Vec::new(),
    };
    let command = command.filter(|_| kind == ToolKind::Shell);
    ToolCall { tasks: plan(&tool, input), tool, kind, files, command }
}

/// The files a patch names: `*** Add File: PATH` and the like.
fn patched_files(patch: &str) -> Vec<String> {
    let starts = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let path =
        |line: &str| starts.iter().find_map(|start| line.strip_prefix(start).map(str::to_owned));
    patch.lines().filter_map(path).collect()
}

/// What a tool answers when a program it ran did not end well.
fn failure(input: Input<'_>) -> Option<String> {
    let answer = input.str("tool_response")?;
    let code = answer.lines().find_map(|line| {
        line.strip_prefix("Process exited with code ").or_else(|| line.strip_prefix("Exit code: "))
    })?;
    (code.trim() != "0").then(|| format!("exit code {}", code.trim()))
}

fn plan(tool: &str, input: Input<'_>) -> Vec<Task> {
    if tool != "update_plan" {
        return Vec::new();
    }
    tasks(input.at("tool_input").list("plan"), &["step"])
}
