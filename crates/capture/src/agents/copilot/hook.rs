//! What Copilot CLI tells its hooks.

use bivouac_core::agent::{AgentKind, Source};
use bivouac_core::observation::{Happening, Observation, ToolCall, ToolKind};
use bivouac_core::text::Note;
use bivouac_core::work::{Task, TaskStatus};
use serde_json::Value;

use crate::agents::{Input, parse};

/// A skill that the person named is put into words: `The user explicitly invoked the "/checkpoint" skill …`.
fn skill_in(prompt: &str) -> Option<&str> {
    let rest = prompt.strip_prefix("The user explicitly invoked the \"")?;
    rest.split_once('"').map(|(skill, _)| skill).filter(|skill| skill.starts_with('/'))
}

pub(super) fn observe(event: &str, input: Input<'_>) -> Option<Observation> {
    Some(Observation {
        agent: AgentKind::Copilot,
        conversation: input.str("sessionId")?.parse().ok()?,
        transcript: input.text("transcriptPath"),
        cwd: input.text("cwd"),
        model: None,
        subagent: None,
        happening: happening(event, input),
    })
}

fn happening(event: &str, input: Input<'_>) -> Happening {
    match event {
        "sessionStart" => Happening::Started(match input.str("source") {
            Some("resume") => Source::Resume,
            _ => Source::Startup,
        }),
        "userPromptSubmitted" => {
            let prompt = input.text("prompt").unwrap_or_default();
            Happening::Prompted { prompt: skill_in(&prompt).map_or(prompt.clone(), str::to_owned) }
        }
        "preToolUse" => Happening::ToolStarting(call(input)),
        "postToolUse" => {
            let result = input.at("toolResult");
            let failed = result.str("resultType").is_some_and(|it| it != "success");
            let error = failed
                .then(|| result.text("textResultForLlm").unwrap_or_else(|| "it failed".to_owned()));
            Happening::ToolDone { call: call(input), duration_ms: None, error }
        }
        "postToolUseFailure" => Happening::ToolDone {
            call: ToolCall { tasks: Vec::new(), ..call(input) },
            duration_ms: None,
            error: Some(input.text("error").unwrap_or_else(|| "it failed".to_owned())),
        },
        "permissionRequest" => Happening::ApprovalAsked {
            tool: input.text("toolName").unwrap_or_default(),
            what: input.at("toolInput").first(&["command", "file_path"]).map(str::to_owned),
        },
        "agentStop" => Happening::TurnEnded { message: None },
        "errorOccurred" => Happening::TurnFailed {
            error: input
                .at("error")
                .text("message")
                .or_else(|| input.text("error"))
                .unwrap_or_default(),
            message: None,
        },
        "subagentStart" => match input.text("agentId") {
            Some(subagent) => {
                Happening::SubagentStarted { subagent, role: input.text("agentType") }
            }
            None => Happening::Nothing,
        },
        "subagentStop" => match input.text("agentId") {
            Some(subagent) => {
                Happening::SubagentStopped { subagent, message: input.text("response") }
            }
            None => Happening::Nothing,
        },
        "preCompact" => Happening::Compacting { by: input.text("trigger") },
        "sessionEnd" => Happening::Ended { reason: input.text("reason") },
        _ => Happening::Nothing,
    }
}

fn call(input: Input<'_>) -> ToolCall {
    let tool = input.text("toolName").unwrap_or_default();
    // Some releases hand the arguments over as text.
    let parsed: Option<Value> = input.str("toolArgs").and_then(|text| parse(text.as_bytes()).ok());
    let arguments = parsed.as_ref().map_or(input.at("toolArgs"), Input::new);
    let kind = match tool.as_str() {
        "bash" | "powershell" | "shell" => ToolKind::Shell,
        "create" | "edit" | "str_replace_editor" | "apply_patch" => ToolKind::Edit,
        "task" => ToolKind::Spawn,
        _ => ToolKind::Other,
    };
    let files =
        arguments.first(&["path", "file_path", "filePath"]).filter(|_| kind == ToolKind::Edit);
    let files = files.map(str::to_owned).into_iter().collect();
    let command = arguments.text("command").filter(|_| kind == ToolKind::Shell);
    ToolCall { tasks: todos(&tool, arguments), tool, kind, files, command }
}

/// Its to-do list is Markdown: `- [x] done`, `- [ ] open`.
fn todos(tool: &str, arguments: Input<'_>) -> Vec<Task> {
    if tool != "update_todo" {
        return Vec::new();
    }
    let lines = arguments.str("todos").unwrap_or_default().lines();
    let items = lines.filter_map(|line| {
        let line = line.trim_start().trim_start_matches(['-', '*']).trim_start();
        let (mark, subject) = line.strip_prefix('[')?.split_once(']')?;
        let status =
            if mark.trim().is_empty() { TaskStatus::Pending } else { TaskStatus::Completed };
        Some((subject.trim().to_owned(), status))
    });
    items
        .map(|(subject, status)| Task {
            listed: Some(true),
            subject: Some(Note::cut(&subject)),
            status: Some(status),
            ..Task::default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_in_words_is_what_was_typed() {
        assert_eq!(
            skill_in("The user explicitly invoked the \"/checkpoint\" skill with: x"),
            Some("/checkpoint")
        );
        assert_eq!(skill_in("The user explicitly invoked the \"other\" thing"), None);
        assert_eq!(skill_in("Build it"), None);
    }
}
