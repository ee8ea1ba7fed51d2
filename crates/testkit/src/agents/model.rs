//! The scripted model: a server of its own on this machine, and the log of all it was asked.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// What the model plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Short scenes, one for each thing that is tested.
    Scenes,
    /// One job of three prompts and eleven answers, with time to kill the agent anywhere in it.
    Job,
}

pub(crate) struct Model {
    server: Child,
    pub(crate) url: String,
    log: PathBuf,
    /// How far the log was read, and the scripts that were asked for up to there.
    heads: RefCell<(u64, Vec<String>)>,
}

impl Drop for Model {
    fn drop(&mut self) {
        let _gone = self.server.kill();
        let _reaped = self.server.wait();
    }
}

impl Model {
    pub(crate) fn start(root: &Path, script: Script) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/agents");
        let log = root.join("requests.jsonl");
        fs::write(&log, "").unwrap();
        #[expect(clippy::disallowed_methods, reason = "the scripted model is a program of its own")]
        let mut command = Command::new("python3");
        command.arg(folder.join("fake_model.py")).args(["--port", "0"]);
        let scenario = match script {
            Script::Scenes => "scenario.json",
            Script::Job => "job.json",
        };
        command.arg("--scenario").arg(folder.join(scenario)).arg("--log").arg(&log);
        command.arg("--var").arg(format!("WORKDIR={}", root.join("project").display()));
        let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let at = line.find("http://").unwrap();
        let url = line[at..].split_whitespace().next().unwrap().trim_end_matches('/').to_owned();
        Self { server, url, log, heads: RefCell::default() }
    }

    /// All it was asked and has answered. A line that is still being written is not there yet.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Asked many times a second, and requests are long: only what is new is read, and only as text.
    pub(crate) fn n_asked(&self, script: &str) -> u64 {
        let mut heads = self.heads.borrow_mut();
        let mut file = fs::File::open(&self.log).unwrap();
        file.seek(SeekFrom::Start(heads.0)).unwrap();
        let mut new = String::new();
        file.read_to_string(&mut new).unwrap();
        let whole = new.rfind('\n').map_or(0, |at| at + 1);
        heads.0 += whole as u64;
        let scripts = new[..whole].split("\"reply\": {\"script\": \"").skip(1);
        heads.1.extend(scripts.filter_map(|it| Some(it.split_once('"')?.0.to_owned())));
        heads.1.iter().filter(|it| it.starts_with(script)).count() as u64
    }
}
