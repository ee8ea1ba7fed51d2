//! One agent, one workspace, one scripted model that writes down all it is asked.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bivouac_testkit::{Tree, left_out, read_tree};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::request::Request;

/// How one agent is run without a network and without a person.
pub(crate) struct Agent {
    pub(crate) name: &'static str,
    program: &'static str,
    /// Below the folder the agents are installed in.
    binary: &'static str,
    /// What a prompt is passed with, and what has to come with it.
    headless: &'static [&'static str],
    resumed: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const AGENTS: [Agent; 5] = [
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
        environment: &[("FAKE_KEY", "test-key")],
    },
    Agent {
        name: "gemini",
        program: "gemini",
        binary: "@google/gemini-cli/bundle/gemini.js",
        headless: &["-p", "PROMPT", "-y", "-m", "gemini-2.5-pro"],
        resumed: &["-p", "PROMPT", "-y", "-m", "gemini-2.5-pro"],
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
        environment: &[
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_AUTO_UPDATE", "false"),
            ("COPILOT_MODEL", "gpt-5"),
            ("COPILOT_PROVIDER_BASE_URL", "URL/v1"),
            ("COPILOT_PROVIDER_API_KEY", "test-key"),
        ],
    },
];

/// The agent, if `cargo xtask check` could install it.
pub(crate) fn agent(name: &str) -> Option<(&'static Agent, PathBuf)> {
    let agent = AGENTS.iter().find(|it| it.name == name).unwrap();
    let folder = std::env::var_os("BIV_AGENTS").map(PathBuf::from);
    let binary =
        folder.map(|it| it.join("node_modules").join(agent.binary)).filter(|it| it.exists());
    if binary.is_none() {
        left_out(&format!(
            "{name}: the released agent is not installed (`cargo xtask check` does that)"
        ));
    }
    binary.map(|binary| (agent, binary))
}

pub(crate) struct Lab {
    folder: std::rc::Rc<TempDir>,
    agent: &'static Agent,
    home: PathBuf,
    store: PathBuf,
    model: std::rc::Rc<RefCell<Model>>,
}

struct Model {
    server: Child,
    url: String,
    log: PathBuf,
}

impl Drop for Model {
    fn drop(&mut self) {
        let _gone = self.server.kill();
        let _reaped = self.server.wait();
    }
}

impl Lab {
    pub(crate) fn new(agent: (&'static Agent, PathBuf)) -> Self {
        let lab = Self::bare(agent);
        lab.install_hooks();
        lab
    }

    /// An agent that has nothing of ours.
    pub(crate) fn bare((agent, binary): (&'static Agent, PathBuf)) -> Self {
        let folder = tempfile::Builder::new().prefix("biv-agent-").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home", "project", "bin"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let program = root.join("bin").join(agent.program);
        let start =
            if binary.extension().is_some_and(|it| it == "js") { "exec node" } else { "exec" };
        fs::write(&program, format!("#!/bin/sh\n{start} '{}' \"$@\"\n", binary.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let model = Model::start(&root);
        let (home, store) = (root.join("home"), root.join("store"));
        let lab =
            Self { folder: folder.into(), agent, home, store, model: RefCell::new(model).into() };
        lab.run("git", &["init", "-q", "-b", "main"], &lab.work());
        let commit = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "start",
        ];
        lab.run("git", &commit, &lab.work());
        lab.set_up_agent();
        lab
    }

    /// The same store and model, and a home that knows nothing.
    pub(crate) fn with_empty_home(&self) -> Self {
        let home = self.root().join("another-home");
        fs::create_dir(&home).unwrap();
        let lab = Self {
            folder: self.folder.clone(),
            agent: self.agent,
            home,
            store: self.store.clone(),
            model: self.model.clone(),
        };
        lab.set_up_agent();
        lab.install_hooks();
        lab
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.home.clone()
    }

    pub(crate) fn write(&self, path: &str, contents: &str) {
        fs::write(self.work().join(path), contents).unwrap();
    }

    pub(crate) fn has_program(&self, name: &str) -> bool {
        self.command(name, &["-V"], &self.root()).output().is_ok()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root().join("project")
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.work().join(path)).unwrap_or_default()
    }

    pub(crate) fn tree(&self) -> Tree {
        read_tree(&self.work())
    }

    pub(crate) fn biv(&self, words: &[&str]) -> String {
        self.run(env!("CARGO_BIN_EXE_biv"), words, &self.work())
    }

    /// What a command says beside its answer.
    pub(crate) fn talk(&self, words: &[&str]) -> String {
        let output = self.command(env!("CARGO_BIN_EXE_biv"), words, &self.work()).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.biv(&words)).unwrap()
    }

    /// A prompt to a new conversation.
    pub(crate) fn agent(&self, prompt: &str) {
        self.agent_with(&[], prompt);
    }

    /// The same, with further arguments at the end.
    pub(crate) fn agent_with(&self, more: &[&str], prompt: &str) {
        let words = self.agent.headless.iter().copied().chain(more.iter().copied());
        self.run_agent(words, prompt);
    }

    /// The same, with further arguments right before the prompt.
    pub(crate) fn agent_before(&self, more: &[&str], prompt: &str) {
        let own = self.agent.headless;
        let at = own.iter().position(|it| *it == "PROMPT").unwrap();
        self.run_agent(own[..at].iter().chain(more).chain(&own[at..]).copied(), prompt);
    }

    fn run_agent<'w>(&self, words: impl Iterator<Item = &'w str>, prompt: &'w str) {
        let words: Vec<&str> = words.map(|it| if it == "PROMPT" { prompt } else { it }).collect();
        self.run(self.agent.program, &words, &self.work());
    }

    /// Goes on with the session, with another prompt.
    pub(crate) fn resume(&self, more: &[&str], prompt: &str) {
        let sessions = self.json(&["session", "list", "--all"]);
        let session = sessions[0]["handle"].as_str().unwrap().to_owned();
        let extra = self.agent.resumed.iter().map(|it| if *it == "PROMPT" { prompt } else { it });
        let words: Vec<&str> = ["resume", &session, "--yes"]
            .into_iter()
            .chain(more.iter().copied())
            .chain(["--"])
            .chain(extra)
            .collect();
        self.biv(&words);
    }

    /// Starts a prompt, and kills the agent without warning once a file is there.
    pub(crate) fn kill_during(&self, prompt: &str, file: &str) {
        // In the same conversation: what was said before it belongs to it.
        let sessions = self.json(&["session", "list"]);
        let session = sessions[0]["handle"].as_str().unwrap().to_owned();
        let extra = self.agent.resumed.iter().map(|it| if *it == "PROMPT" { prompt } else { it });
        let words: Vec<&str> =
            ["resume", &session, "--yes", "--"].into_iter().chain(extra).collect();
        let mut command = self.command(env!("CARGO_BIN_EXE_biv"), &words, &self.work());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        while !self.work().join(file).exists() {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "{} never wrote {file}",
                self.agent.name
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(300));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// The shell command of a killed agent goes on; it must not write while we compare.
    pub(crate) fn end_orphans(&self) {
        let work = self.work();
        let numbers = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
        for pid in numbers {
            let is_here =
                fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|it| it.starts_with(&work));
            if is_here {
                let mut kill = self.command("kill", &["-9", &pid.to_string()], &self.root());
                let _gone_already = kill.stderr(Stdio::null()).status();
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }

    /// The newest request of the conversation itself, not one for a title or the like.
    pub(crate) fn last_request(&self) -> Request {
        let log = fs::read_to_string(&self.model.borrow().log).unwrap();
        let mut requests = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        Request(requests.rfind(|it| it["kind"] == "main").unwrap())
    }

    /// What a program says, whether or not it succeeds.
    pub(crate) fn try_run(&self, program: &str, words: &[&str]) -> String {
        let output = self.command(program, words, &self.work()).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// The agent's own program, with these words.
    pub(crate) fn program(&self, words: &[&str]) -> String {
        let output = self.command(self.agent.program, words, &self.work()).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{} {words:?}\n{said}", self.agent.program);
        said
    }

    fn run(&self, program: &str, words: &[&str], folder: &Path) -> String {
        let output = self.command(program, words, folder).output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{program} {words:?}\n{out}\n{err}");
        out.into_owned()
    }

    fn command(&self, program: &str, words: &[&str], folder: &Path) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests start the real binary and the real agents"
        )]
        let mut command = Command::new(program);
        let biv = Path::new(env!("CARGO_BIN_EXE_biv")).parent().unwrap();
        let system = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{}:{system}", self.root().join("bin").display(), biv.display());
        command.args(words).current_dir(folder).stdin(Stdio::null()).env_clear();
        command.env("PATH", path).env("HOME", &self.home).env("BIV_STORE", &self.store);
        command
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("SHELL", "/bin/bash")
            .env("TMUX_TMPDIR", self.root())
            .env("USER", "tester");
        command.env("BIV_STORE_MIN_FREE", "0").env("BIV_HOOK_WAITS", "1");
        let url = self.model.borrow().url.clone();
        for (name, value) in self.agent.environment {
            command.env(name, value.replace("URL", &url));
        }
        command
    }

    /// What the agent would ask a person on its first start, and where its model is.
    fn set_up_agent(&self) {
        let url = self.model.borrow().url.clone();
        let write = |path: &str, text: String| {
            let path = self.home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        match self.agent.name {
            "codex" => write(
                ".codex/config.toml",
                format!(
                    "model = \"gpt-5-codex\"\nmodel_provider = \"fake\"\napproval_policy = \"never\"\n\
                     sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\
                     [model_providers.fake]\nname = \"Fake\"\nbase_url = \"{url}/v1\"\nenv_key = \"FAKE_KEY\"\n\
                     wire_api = \"responses\"\n[analytics]\nenabled = false\n"
                ),
            ),
            "gemini" => write(
                ".gemini/settings.json",
                json!({
                    "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
                    "privacy": { "usageStatisticsEnabled": false }, "telemetry": { "enabled": false },
                    "general": { "enableAutoUpdate": false, "sessionRetention": { "enabled": false } },
                })
                .to_string(),
            ),
            "opencode" => write(
                ".config/opencode/opencode.json",
                json!({
                    "autoupdate": false, "share": "disabled", "model": "fake/fake-model", "small_model": "fake/fake-model",
                    "permission": { "*": "allow" },
                    "provider": { "fake": { "npm": "@ai-sdk/openai-compatible", "name": "Fake",
                        "options": { "baseURL": format!("{url}/v1"), "apiKey": "test-key" },
                        "models": { "fake-model": { "name": "Fake", "tool_call": true,
                            "limit": { "context": 200_000, "output": 8192 }, "cost": { "input": 3, "output": 15 } } } } },
                })
                .to_string(),
            ),
            _ => {}
        }
    }

    fn install_hooks(&self) {
        self.biv(&["hooks", "install", "--agent", self.agent.name, "--yes"]);
    }
}

impl Model {
    fn start(root: &Path) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents");
        let log = root.join("requests.jsonl");
        fs::write(&log, "").unwrap();
        #[expect(clippy::disallowed_methods, reason = "the scripted model is a program of its own")]
        let mut command = Command::new("python3");
        command.arg(folder.join("fake_model.py")).args(["--port", "0"]);
        command.arg("--scenario").arg(folder.join("scenario.json")).arg("--log").arg(&log);
        command.arg("--var").arg(format!("WORKDIR={}", root.join("project").display()));
        let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let at = line.find("http://").unwrap();
        let url = line[at..].split_whitespace().next().unwrap().trim_end_matches('/').to_owned();
        Self { server, url, log }
    }
}
