//! One agent, one workspace, one scripted model that writes down all it is asked.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::model::{Model, Script};
use super::{Agent, Installed, Request};
use crate::processes::kill_all_at;
use crate::{Tree, read_tree};

/// A workspace, a home and a store of its own; an agent, and the model it asks.
pub struct Lab {
    folder: Rc<TempDir>,
    agent: &'static Agent,
    biv: PathBuf,
    home: PathBuf,
    store: PathBuf,
    script: Script,
    model: Rc<Model>,
}

impl Lab {
    pub fn new(agent: Installed) -> Self {
        let lab = Self::bare(agent);
        lab.install_hooks();
        lab
    }

    /// An agent that has nothing of ours.
    pub fn bare(agent: Installed) -> Self {
        Self::playing(agent, Script::Scenes)
    }

    /// The same, with a model that plays this.
    pub fn playing(Installed { agent, binary, biv }: Installed, script: Script) -> Self {
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
        symlink(&biv, root.join("bin/biv")).unwrap();
        let model = Model::start(&root, script).into();
        let (home, store) = (root.join("home"), root.join("store"));
        let lab = Self { folder: folder.into(), agent, biv, home, store, script, model };
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
    pub fn with_empty_home(&self) -> Self {
        let lab = self.with_bare_home();
        lab.install_hooks();
        lab
    }

    /// The same, where nobody has heard of us.
    pub fn with_bare_home(&self) -> Self {
        let home = self.root().join("another-home");
        fs::create_dir(&home).unwrap();
        let lab = Self {
            folder: self.folder.clone(),
            agent: self.agent,
            biv: self.biv.clone(),
            home,
            store: self.store.clone(),
            script: self.script,
            model: self.model.clone(),
        };
        lab.set_up_agent();
        lab
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub fn home(&self) -> PathBuf {
        self.home.clone()
    }

    pub fn write(&self, path: &str, contents: &str) {
        fs::write(self.work().join(path), contents).unwrap();
    }

    pub fn has_program(&self, name: &str) -> bool {
        self.command(name, &["-V"], &self.root()).output().is_ok()
    }

    pub fn work(&self) -> PathBuf {
        self.root().join("project")
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.work().join(path)).unwrap_or_default()
    }

    pub fn tree(&self) -> Tree {
        read_tree(&self.work())
    }

    pub fn biv(&self, words: &[&str]) -> String {
        self.run(&self.biv, words, &self.work())
    }

    /// What a command says beside its answer.
    pub fn talk(&self, words: &[&str]) -> String {
        let output = self.command(&self.biv, words, &self.work()).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    }

    pub fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.biv(&words)).unwrap()
    }

    /// A prompt to a new conversation.
    pub fn agent(&self, prompt: &str) {
        self.agent_with(&[], prompt);
    }

    /// The same, with further arguments at the end.
    pub fn agent_with(&self, more: &[&str], prompt: &str) {
        let words = self.agent.headless.iter().copied().chain(more.iter().copied());
        self.run_agent(words, prompt);
    }

    /// The same, with further arguments right before the prompt.
    pub fn agent_before(&self, more: &[&str], prompt: &str) {
        let own = self.agent.headless;
        let at = own.iter().position(|it| *it == "PROMPT").unwrap();
        self.run_agent(own[..at].iter().chain(more).chain(&own[at..]).copied(), prompt);
    }

    fn run_agent<'w>(&self, words: impl Iterator<Item = &'w str>, prompt: &'w str) {
        let words: Vec<&str> = words.map(|it| if it == "PROMPT" { prompt } else { it }).collect();
        self.run(self.agent.program, &words, &self.work());
    }

    /// Goes on with the session, with another prompt.
    pub fn resume(&self, more: &[&str], prompt: &str) {
        let sessions = self.json(&["session", "list", "--all"]);
        let session = sessions[0]["handle"].as_str().unwrap().to_owned();
        let extra = filled(self.agent.resumed, prompt);
        let words: Vec<&str> = ["resume", &session, "--yes"]
            .into_iter()
            .chain(more.iter().copied())
            .chain(["--"])
            .chain(extra)
            .collect();
        self.biv(&words);
    }

    /// Starts a prompt, and kills the agent without warning once a file is there.
    pub fn kill_during(&self, prompt: &str, file: &str) {
        // In the same conversation: what was said before it belongs to it.
        let sessions = self.json(&["session", "list"]);
        let session = sessions[0]["handle"].as_str().unwrap().to_owned();
        let extra = filled(self.agent.resumed, prompt);
        let words: Vec<&str> =
            ["resume", &session, "--yes", "--"].into_iter().chain(extra).collect();
        let mut command = self.command(&self.biv, &words, &self.work());
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
    pub fn end_orphans(&self) {
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

    /// Starts a prompt to a new conversation, and lets it run.
    pub fn start(&self, prompt: &str) -> Child {
        self.start_silent(self.agent.program, &filled(self.agent.headless, prompt))
    }

    /// The same, in the newest conversation, by the agent's own means.
    pub fn start_continued(&self, prompt: &str) -> Child {
        self.start_silent(self.agent.program, &filled(self.agent.continued, prompt))
    }

    /// The same, by ours.
    pub fn start_resumed(&self, more: &[&str], prompt: &str) -> Child {
        let words = [&["resume", "--yes"], more, &["--"]].concat();
        self.start_silent(&self.biv, &[words, filled(self.agent.resumed, prompt)].concat())
    }

    /// What it says goes into a file, for whoever wonders.
    fn start_silent(&self, program: impl AsRef<OsStr>, words: &[&str]) -> Child {
        let mut command = self.command(program, words, &self.work());
        let said = fs::File::options().create(true).append(true).open(self.said()).unwrap();
        command.stdout(said.try_clone().unwrap()).stderr(said).spawn().unwrap()
    }

    /// The file with all that was said by what was started.
    pub fn said(&self) -> PathBuf {
        self.root().join("said.txt")
    }

    /// Ends the agent without warning, with all it started.
    pub fn kill_all(&self) {
        kill_all_at(&self.home);
    }

    /// All the model was asked and has answered.
    pub fn log(&self) -> Vec<Value> {
        self.model.log()
    }

    /// How often the model was asked for an answer of a script, or of those that begin so.
    pub fn n_asked(&self, script: &str) -> u64 {
        self.model.n_asked(script)
    }

    /// The newest request of the conversation itself, not one for a title or the like.
    pub fn last_request(&self) -> Request {
        Request(self.log().into_iter().rfind(|it| it["kind"] == "main").unwrap())
    }

    /// What a program says, whether or not it succeeds.
    pub fn try_run(&self, program: &str, words: &[&str]) -> String {
        let output = self.command(program, words, &self.work()).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// The agent's own program, with these words.
    pub fn program(&self, words: &[&str]) -> String {
        let output = self.command(self.agent.program, words, &self.work()).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{} {words:?}\n{said}", self.agent.program);
        said
    }

    fn run(&self, program: impl AsRef<OsStr>, words: &[&str], folder: &Path) -> String {
        let output = self.command(&program, words, folder).output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let program = program.as_ref().display();
        assert!(output.status.success(), "{program} {words:?}\n{out}\n{err}");
        out.into_owned()
    }

    fn command(&self, program: impl AsRef<OsStr>, words: &[&str], folder: &Path) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests start the real binary and the real agents"
        )]
        let mut command = Command::new(program);
        let system = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{system}", self.root().join("bin").display());
        command.args(words).current_dir(folder).stdin(Stdio::null()).env_clear();
        command.env("PATH", path).env("HOME", &self.home).env("BIV_STORE", &self.store);
        command
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("SHELL", "/bin/bash")
            .env("TMUX_TMPDIR", self.root())
            .env("USER", "tester");
        command.env("BIV_STORE_MIN_FREE", "0");
        if self.script == Script::Scenes {
            // A first checkpoint would be taken by a process of its own, which nobody there waits for.
            command.env("BIV_HOOK_WAITS", "1");
        }
        let url = self.model.url.clone();
        for (name, value) in self.agent.environment {
            command.env(name, value.replace("URL", &url));
        }
        command
    }

    /// What the agent would ask a person on its first start, and where its model is.
    fn set_up_agent(&self) {
        let url = self.model.url.clone();
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

    /// Lets the agent tell Bivouac what it does.
    pub fn install_hooks(&self) {
        self.biv(&["hooks", "install", "--agent", self.agent.name, "--yes"]);
    }
}

/// The words an agent is started with, and a prompt among them.
fn filled<'w>(words: &[&'w str], prompt: &'w str) -> Vec<&'w str> {
    words.iter().map(|it| if *it == "PROMPT" { prompt } else { it }).collect()
}
