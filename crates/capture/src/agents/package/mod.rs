//! The same things as packages that an agent installs itself, with `biv` wherever the `PATH` has it. `cargo xtask
//! packages` writes them; `biv setup` needs none of them.

use std::path::PathBuf;

use bivouac_core::agent::AgentKind;
use serde_json::{Map, Value, json};

use super::install::{Entry, Folders, SERVER, Server, document, pretty};
use super::{claude_code, codex, copilot, gemini, opencode};

const DESCRIPTION: &str = "Lets a coding agent stop anywhere and go on as if it had never left: checkpoints of files, \
                           conversation and progress";

/// Every file of every package, by its path in this project.
pub fn files() -> Vec<(String, String)> {
    let packages = AgentKind::ALL.into_iter().flat_map(|agent| {
        let files = of(agent).into_iter().chain([("README.md".to_owned(), readme(agent))]);
        files.map(move |(path, text)| (format!("packages/{agent}/{path}"), text))
    });
    packages.chain(markets()).collect()
}

fn of(agent: AgentKind) -> Vec<(String, String)> {
    let folders =
        &Folders { home: PathBuf::new(), workspace: PathBuf::new(), program: "biv".to_owned() };
    match agent {
        AgentKind::ClaudeCode => {
            let more = json!({ "author": { "name": "Bivouac" }, "keywords": ["checkpoint", "resume", "session"] });
            let own = [
                (".claude-plugin/plugin.json", manifest(&more)),
                ("hooks/hooks.json", document(&[claude_code::install::told(folders)])),
                (".mcp.json", asked(claude_code::install::asked(folders))),
            ];
            together(own, claude_code::install::words(folders))
        }
        AgentKind::Codex => {
            let more = json!({ "skills": "./skills/", "mcpServers": "./.mcp.json", "hooks": "./hooks/hooks.json" });
            let own = [
                (".codex-plugin/plugin.json", manifest(&more)),
                ("hooks/hooks.json", document(&[codex::install::told(folders)])),
                (".mcp.json", asked(codex::install::asked(folders))),
            ];
            together(own, codex::install::words(folders))
        }
        AgentKind::Gemini => {
            let server = gemini::install::asked(folders).entry;
            let more = json!({ "mcpServers": { SERVER: server } });
            let own = [
                ("gemini-extension.json", manifest(&more)),
                ("hooks/hooks.json", document(&[gemini::install::told(folders)])),
            ];
            together(own, gemini::install::words(folders))
        }
        AgentKind::Opencode => opencode::install::files(folders),
        AgentKind::Copilot => {
            let more =
                json!({ "skills": "skills/", "hooks": "hooks.json", "mcpServers": ".mcp.json" });
            let mut server = copilot::install::asked(folders);
            // A server of a plugin would be started in the plugin's own folder.
            server.entry["cwd"] = json!("${PWD}");
            let own = [
                ("plugin.json", manifest(&more)),
                ("hooks.json", copilot::install::told(folders)),
                (".mcp.json", asked(server)),
            ];
            together(own, copilot::install::words(folders))
        }
    }
}

fn together<const N: usize>(
    own: [(&str, String); N],
    words: Vec<(String, String)>,
) -> Vec<(String, String)> {
    own.into_iter().map(|(path, text)| (path.to_owned(), text)).chain(words).collect()
}

fn asked(server: Server) -> String {
    document(&[Entry::Server(server)])
}

fn manifest(more: &Value) -> String {
    let mut manifest = Map::from_iter([
        ("name".to_owned(), json!("bivouac")),
        ("version".to_owned(), json!(env!("CARGO_PKG_VERSION"))),
        ("description".to_owned(), json!(DESCRIPTION)),
        ("license".to_owned(), json!(env!("CARGO_PKG_LICENSE"))),
    ]);
    manifest.extend(more.as_object().cloned().unwrap_or_default());
    pretty(&manifest.into())
}

/// Where agents look for packages in a repository.
fn markets() -> [(String, String); 3] {
    let plain = |agent: AgentKind| {
        let plugin = json!({
            "name": "bivouac", "source": format!("./packages/{agent}"), "description": DESCRIPTION,
            "version": env!("CARGO_PKG_VERSION"),
        });
        json!({
            "name": "bivouac", "owner": { "name": "Bivouac" }, "metadata": { "description": DESCRIPTION },
            "plugins": [plugin],
        })
    };
    let codex = json!({
        "name": "bivouac",
        "plugins": [{
            "name": "bivouac", "source": { "source": "local", "path": "./packages/codex" },
            "policy": { "installation": "AVAILABLE", "authentication": "ON_INSTALL" },
            "category": "Productivity",
        }],
    });
    [
        (".claude-plugin/marketplace.json", plain(AgentKind::ClaudeCode)),
        (".github/plugin/marketplace.json", plain(AgentKind::Copilot)),
        (".agents/plugins/marketplace.json", codex),
    ]
    .map(|(path, market)| (path.to_owned(), pretty(&market)))
}

fn readme(agent: AgentKind) -> String {
    let own = match agent {
        AgentKind::ClaudeCode => include_str!("claude_code.md"),
        AgentKind::Codex => include_str!("codex.md"),
        AgentKind::Gemini => include_str!("gemini.md"),
        AgentKind::Opencode => include_str!("opencode.md"),
        AgentKind::Copilot => include_str!("copilot.md"),
    };
    let title = agent.title();
    include_str!("readme.md").replace("{{agent}}", title).replace("{{own}}", own.trim_end())
}
