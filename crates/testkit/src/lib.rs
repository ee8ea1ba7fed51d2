//! Dev only: hermetic runs of the real binary, in a folder of their own, with a clock that ticks a
//! minute per command. What differs from run to run (paths, random ids) is named by its first sight.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

pub mod agents;
mod bomb;
mod fuse;
mod mcp;
mod mounts;
mod normalize;
mod processes;
mod terminal;
mod tmux;
mod tree;

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

pub use bomb::index_bomb;
pub use fuse::FixedTimes;
pub use mcp::McpClient;
pub use mounts::{Mounted, erofs, make_ext4, make_old};
pub use normalize::{Normalizer, without_costs};
pub use processes::{hang_up, kill, terminate, until};
pub use tmux::TmuxServer;
pub use tree::{Tree, read_stats, read_tree, try_read_tree};

/// A workspace, a home and a store that nobody else knows.
pub struct TestEnv {
    root: TempDir,
    binary: PathBuf,
    minutes: Cell<u32>,
    variables: Vec<(OsString, OsString)>,
}

/// What a command did.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    root: PathBuf,
}

impl TestEnv {
    /// The binary is `env!("CARGO_BIN_EXE_biv")`, which only the crate that builds it knows.
    pub fn new(binary: &str) -> Self {
        Self::new_in(binary, &std::env::temp_dir())
    }

    /// The same, below a folder of choice.
    pub fn new_in(binary: &str, folder: &Path) -> Self {
        let root = tempfile::Builder::new().prefix("biv-test-").tempdir_in(folder).unwrap();
        for folder in ["home", "project"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root, binary: binary.into(), minutes: Cell::new(0), variables: Vec::new() }
    }

    /// The same, with a git repository in the workspace.
    pub fn with_git(binary: &str) -> Self {
        let env = Self::new(binary);
        env.git(&["init", "-q", "-b", "main"]);
        env
    }

    pub fn set(&mut self, variable: &str, value: impl AsRef<OsStr>) -> &mut Self {
        self.variables.push((variable.into(), value.as_ref().to_owned()));
        self
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn work(&self) -> PathBuf {
        self.root().join("project")
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub fn store(&self) -> PathBuf {
        self.home().join(".local/share/bivouac")
    }

    /// A path in the workspace. Names need not be text.
    pub fn path(&self, path: impl AsRef<OsStr>) -> PathBuf {
        self.work().join(path.as_ref())
    }

    pub fn write(&self, path: impl AsRef<OsStr>, contents: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
        self
    }

    pub fn read(&self, path: impl AsRef<OsStr>) -> String {
        let path = self.path(path);
        fs::read_to_string(&path).unwrap_or_else(|error| format!("({error})"))
    }

    pub fn exists(&self, path: impl AsRef<OsStr>) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    pub fn remove(&self, path: impl AsRef<OsStr>) -> &Self {
        let path = self.path(path);
        match path.symlink_metadata().unwrap().is_dir() {
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
        self
    }

    pub fn folder(&self, path: impl AsRef<OsStr>) -> &Self {
        fs::create_dir_all(self.path(path)).unwrap();
        self
    }

    pub fn link(&self, path: impl AsRef<OsStr>, target: impl AsRef<Path>) -> &Self {
        symlink(target, self.path(path)).unwrap();
        self
    }

    pub fn mode(&self, path: impl AsRef<OsStr>, mode: u32) -> &Self {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// Runs git in the workspace and answers what it wrote.
    pub fn git(&self, args: &[&str]) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"];
        let mut command = self.command("git", &self.work());
        for variable in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            command.env(variable, "2026-01-21T12:00:00Z");
        }
        let output = command.args(identity).args(args).output().unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Everything in the workspace but `.git`: bytes, modes, links.
    pub fn tree(&self) -> Tree {
        read_tree(&self.work())
    }

    /// Runs a command line, split at blanks; quotes keep words together. The answer is made for
    /// snapshots: the exit code where it is not 0, then stdout, then stderr.
    pub fn run(&self, line: &str) -> String {
        self.biv(&words(line)).text()
    }

    /// Runs a command and expects it to succeed with one JSON document.
    pub fn json(&self, line: &str) -> serde_json::Value {
        let mut words = words(line);
        words.push("--json".to_owned());
        let run = self.biv(&words);
        assert!(run.code == 0, "{line}: {}{}", run.stdout, run.stderr);
        serde_json::from_str(&run.stdout)
            .unwrap_or_else(|error| panic!("{line}: {error}: {}", run.stdout))
    }

    pub fn biv<W: AsRef<OsStr>>(&self, words: &[W]) -> Run {
        self.biv_in(&self.work(), words)
    }

    /// Runs a command in another folder.
    pub fn biv_in<W: AsRef<OsStr>>(&self, folder: &Path, words: &[W]) -> Run {
        self.finished(&self.biv_command(folder, words).output().unwrap())
    }

    /// What an agent does: calls a hook and hands it JSON.
    pub fn hook(&self, agent: &str, event: &str, input: impl AsRef<[u8]>) -> Run {
        let mut command = self.biv_command(&self.work(), &["hook", agent, event]);
        // A first checkpoint would be taken by a process of its own, which nobody here waits for.
        command.env("BIV_HOOK_WAITS", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may have seen enough before it has read all.
        let _seen_enough = child.stdin.take().unwrap().write_all(input.as_ref());
        self.finish(child)
    }

    /// Starts a command and lets it run.
    pub fn start<W: AsRef<OsStr>>(&self, words: &[W]) -> Child {
        let mut command = self.biv_command(&self.work(), words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The same with the clock on the wall, for what has to wait for it. In a group of its own, so that it can
    /// be ended with all it started.
    pub fn start_live<W: AsRef<OsStr>>(&self, words: &[W]) -> Child {
        let mut command = self.biv_command(&self.work(), words);
        command.env_remove("BIV_CLOCK").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a command by the clock on the wall.
    pub fn live<W: AsRef<OsStr>>(&self, words: &[W]) -> Run {
        self.finish(self.start_live(words))
    }

    /// Runs a command as it was put together.
    pub fn run_command(&self, command: &mut Command) -> Run {
        self.finished(&command.output().unwrap())
    }

    pub fn finish(&self, child: Child) -> Run {
        self.finished(&child.wait_with_output().unwrap())
    }

    /// The command as it would be run, one minute later than the last.
    pub fn biv_command<W: AsRef<OsStr>>(&self, folder: &Path, words: &[W]) -> Command {
        let mut command = self.command(self.binary.to_str().unwrap(), folder);
        self.set_scene(&mut command);
        command.args(words);
        command
    }

    /// The same, started by another program: a tracer, or a shell.
    pub fn biv_under<W: AsRef<OsStr>>(&self, before: &[String], words: &[W]) -> Command {
        let mut command = self.command(&before[0], &self.work());
        self.set_scene(&mut command);
        command.args(&before[1..]).arg(&self.binary).args(words);
        command
    }

    /// A minute later than the last command, in the same circumstances.
    fn set_scene(&self, command: &mut Command) {
        let minute = self.minutes.get();
        self.minutes.set(minute + 1);
        let (hour, day) = (14 + (30 + minute) / 60 % 10, 21 + (minute + 30) / 600);
        command
            .env("BIV_CLOCK", format!("2026-01-{day:02}T{hour:02}:{:02}:00Z", (30 + minute) % 60));
        command.env("BIV_STORE_AUTO_GC", "false").env("BIV_STORE_MIN_FREE", "0");
        // A mistake that is made on purpose is made by all that run for us.
        if let Some(fault) = std::env::var_os("BIV_SABOTAGE") {
            command.env("BIV_SABOTAGE", fault);
        }
        for (variable, value) in &self.variables {
            command.env(variable, value);
        }
    }

    /// The next command runs at this minute of the story.
    pub fn set_minute(&self, minute: u32) {
        self.minutes.set(minute);
    }

    /// Runs SQL against the store, behind the back of whoever it belongs to.
    pub fn sql(&self, sql: &str) -> Result<(), String> {
        let connection = rusqlite::Connection::open(self.store().join("sessions.db")).unwrap();
        connection.execute_batch(sql).map_err(|error| error.to_string())
    }

    /// The first value a question to the journal has for an answer.
    pub fn sql_text(&self, sql: &str) -> String {
        let connection = rusqlite::Connection::open(self.store().join("sessions.db")).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Does something while somebody else reads the journal: what is written meanwhile stays in the log beside it.
    pub fn while_read<T>(&self, act: impl FnOnce() -> T) -> T {
        let reader = rusqlite::Connection::open(self.store().join("sessions.db")).unwrap();
        let reading = reader.unchecked_transaction().unwrap();
        reading.query_row("SELECT count(*) FROM events", [], |_| Ok(())).unwrap();
        act()
    }

    /// Puts a shell script before everything else on the `PATH`.
    pub fn program(&mut self, name: &str, script: &str) -> &mut Self {
        let folder = self.root().join("bin");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let others = std::env::var("PATH").unwrap_or_default();
        self.set("PATH", format!("{}:{others}", folder.display()))
    }

    /// Any program, in the same small world.
    pub fn command(&self, program: &str, folder: &Path) -> Command {
        #[expect(clippy::disallowed_methods, reason = "tests start the real binary and its peers")]
        let mut command = Command::new(program);
        command.current_dir(folder).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("HOME", self.home())
            .env("TZ", "UTC")
            .env("TMUX_TMPDIR", self.root())
            .env("USER", "tester")
            .env("LC_ALL", "C.UTF-8");
        command
    }

    fn finished(&self, output: &Output) -> Run {
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            root: self.root().canonicalize().unwrap(),
        }
    }
}

impl Run {
    /// Made for snapshots.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.code != 0 {
            text.push_str("exit ");
            text.push_str(&self.code.to_string());
            text.push('\n');
        }
        text.push_str(&self.stdout);
        text.push_str(&self.stderr);
        Normalizer::new(&self.root).apply(&text).trim_end().to_owned()
    }

    /// Fails the test unless the command succeeded.
    pub fn ok(self) -> Self {
        assert!(self.code == 0, "exit {}\n{}{}", self.code, self.stdout, self.stderr);
        self
    }
}

/// Says that a test could not do what it is for on this machine.
pub fn left_out(why: &str) {
    #[expect(clippy::print_stderr, reason = "the person who runs the tests has to know")]
    {
        eprintln!("left out: {why}");
    }
}

/// A name that is not text.
pub fn bytes(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (n, part) in line.split('"').enumerate() {
        match n % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}
