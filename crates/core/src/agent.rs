//! The coding agents we know, and what they do that is worth remembering. `capture::agents` turns
//! their own words into these.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::conversation::NativeId;
use crate::text::Note;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentKind {
    ClaudeCode,
    Codex,
    Gemini,
    Opencode,
    Copilot,
}

impl AgentKind {
    pub const ALL: [Self; 5] =
        [Self::ClaudeCode, Self::Codex, Self::Gemini, Self::Opencode, Self::Copilot];

    /// What people type, and what a session's `agent_type` says.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
        }
    }

    /// What it is called.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Copilot => "Copilot CLI",
        }
    }
}

impl fmt::Display for AgentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no agent `{0}` here; the agents are {list}", list = AgentKind::ALL.map(AgentKind::as_str).join(", "))]
pub struct BadAgent(String);

impl FromStr for AgentKind {
    type Err = BadAgent;

    fn from_str(text: &str) -> Result<Self, BadAgent> {
        match text {
            "claude" => Ok(Self::ClaudeCode),
            "gemini-cli" => Ok(Self::Gemini),
            "copilot-cli" => Ok(Self::Copilot),
            _ => {
                let found = Self::ALL.into_iter().find(|agent| agent.as_str() == text);
                found.ok_or_else(|| BadAgent(text.to_owned()))
            }
        }
    }
}

/// How a conversation came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Startup,
    Resume,
    /// The person cleared the context: the work goes on, the conversation is new.
    Clear,
    Compact,
    Fork,
    /// We learned of it in the middle.
    Seen,
}

/// A process that can be told from a later one with the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: u32,
    /// In clock ticks since the machine started.
    pub started: u64,
    pub boot: String,
}

/// Recorded when an agent begins, or goes on with, a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationStarted {
    pub agent: AgentKind,
    pub conversation: NativeId,
    pub source: Source,
    /// Where the agent keeps its record.
    pub transcript: Option<String>,
    pub model: Option<String>,
    pub cwd: String,
    pub process: Option<ProcessId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationEnded {
    pub conversation: NativeId,
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationCompacted {
    pub conversation: NativeId,
    /// `manual` or `auto`, where the agent says.
    pub by: Option<String>,
}

/// The person went back in the conversation, and what came after is no longer part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationRewound {
    pub conversation: NativeId,
    pub n_turns_before: u64,
    pub n_turns_after: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptGiven {
    pub conversation: NativeId,
    pub prompt: Note,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnded {
    pub conversation: NativeId,
    /// The agent's last words.
    pub message: Option<Note>,
    /// Why it stopped, when it did not mean to: a limit, an error of the API, a person.
    pub error: Option<Note>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUsed {
    pub conversation: NativeId,
    pub tool: String,
    /// The files it names or changed, as far as we know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// How many more there are than `files` names.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_more_files: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Note>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Note>,
    /// The sub-agent that used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentStarted {
    pub conversation: NativeId,
    pub subagent: String,
    pub role: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentStopped {
    pub conversation: NativeId,
    pub subagent: String,
    pub message: Option<Note>,
}

/// The agent waits for a person's leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAsked {
    pub conversation: NativeId,
    pub tool: String,
    pub what: Option<Note>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_known_by_their_names() {
        for agent in AgentKind::ALL {
            assert_eq!(agent.as_str().parse(), Ok(agent));
            assert_eq!(serde_json::to_string(&agent).unwrap(), format!("\"{agent}\""));
        }
        assert_eq!("claude".parse(), Ok(AgentKind::ClaudeCode));
        assert_eq!(
            "cursor".parse::<AgentKind>().unwrap_err().to_string(),
            "there is no agent `cursor` here; the agents are claude-code, codex, gemini, opencode, copilot"
        );
    }
}
