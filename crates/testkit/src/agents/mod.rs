//! The released agents, each run without a network and without a person, against a scripted model.

mod lab;
mod model;
mod request;

use std::path::{Path, PathBuf};

pub use lab::Lab;
pub use model::Script;
pub use request::Request;

/// How one agent is run without a network and without a person.
pub struct Agent {
    pub name: &'static str,
    pub program: &'static str,
    /// Below the folder the agents are installed in.
    binary: &'static str,
    /// What a prompt is passed with, and what has to come with it.
    headless: &'static [&'static str],
    /// What comes with it when Bivouac starts the agent.
    resumed: &'static [&'static str],
    /// The agent's own way to go on with its newest conversation.
    continued: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

pub const AGENTS: [Agent; 5] = [
    Agent {
        name: "claude-code",
        program: "claude",
        binary: "@anthropic-ai/claude-code-linux-x64/claude",
        headless: &[
            "-p",
            "PROMPT",
            "--model",
            "claude-sonnet-4-5",
            "--permission-mode",
            "bypassPermissions",
        ],
        resumed: &[
            "-p",
            "PROMPT",
            "--model",
            "claude-sonnet-4-5",
            "--permission-mode",
            "bypassPermissions",
        ],
        continued: &[
            "-p",
            "PROMPT",
            "--continue",
            "--model",
            "claude-sonnet-4-5",
            "--permission-mode",
            "bypassPermissions",
        ],
        environment: &[
            ("ANTHROPIC_BASE_URL", "URL"),
            ("ANTHROPIC_API_KEY", "test-key"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("IS_SANDBOX", "1"),
        ],
    },
    Agent {
        name: "codex",
        program: "codex",
        binary: "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        headless: &[
            "exec",
            "--json",
            "--dangerously-bypass-hook-trust",
            "--skip-git-repo-check",
            "PROMPT",
        ],
        resumed: &[
            "-p",
            "PROMPT",
            "--json",
            "--dangerously-bypass-hook-trust",
            "--skip-git-repo-check",
        ],
        continued: &[
            "exec",
            "--json",
            "--dangerously-bypass-hook-trust",
            "--skip-git-repo-check",
            "resume",
            "--last",
            "PROMPT",
        ],
        environment: &[("FAKE_KEY", "test-key")],
    },
    Agent {
        name: "gemini",
        program: "gemini",
        binary: "@google/gemini-cli/bundle/gemini.js",
        headless: &["-p", "PROMPT", "-y", "-m", "gemini-2.5-pro"],
        resumed: &["-p", "PROMPT", "-y", "-m", "gemini-2.5-pro"],
        continued: &["-p", "PROMPT", "-y", "-m", "gemini-2.5-pro", "--resume", "latest"],
        environment: &[
            ("GEMINI_API_KEY", "test-key"),
            ("GOOGLE_GEMINI_BASE_URL", "URL"),
            ("GEMINI_CLI_NO_RELAUNCH", "true"),
        ],
    },
    Agent {
        name: "opencode",
        program: "opencode",
        binary: "opencode-linux-x64/bin/opencode",
        headless: &["run", "PROMPT"],
        resumed: &["-p", "PROMPT"],
        continued: &["run", "--continue", "PROMPT"],
        environment: &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
        ],
    },
    Agent {
        name: "copilot",
        program: "copilot",
        binary: "@github/copilot-linux-x64/copilot",
        headless: &["-p", "PROMPT", "--allow-all-tools", "--allow-all-paths"],
        resumed: &["-p", "PROMPT", "--allow-all-tools", "--allow-all-paths"],
        continued: &["-p", "PROMPT", "--allow-all-tools", "--allow-all-paths", "--continue"],
        environment: &[
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_AUTO_UPDATE", "false"),
            ("COPILOT_MODEL", "gpt-5"),
            ("COPILOT_PROVIDER_BASE_URL", "URL/v1"),
            ("COPILOT_PROVIDER_API_KEY", "test-key"),
        ],
    },
];

/// An agent that is there, and the `biv` that is tried with it.
pub struct Installed {
    pub agent: &'static Agent,
    binary: PathBuf,
    biv: PathBuf,
}

impl Installed {
    /// The agent of this name, if it is below the folder that agents are installed in.
    pub fn find(folder: &Path, name: &str, biv: &Path) -> Option<Self> {
        let agent = AGENTS.iter().find(|it| it.name == name).unwrap();
        let binary = folder.join("node_modules").join(agent.binary);
        binary.exists().then(|| Self { agent, binary, biv: biv.to_owned() })
    }
}
