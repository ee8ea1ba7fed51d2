//! The ground that every hostile case stands on: a small world of its own, commands that must end in time, and what a
//! case has to say.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bivouac_testkit::{TestEnv, Tree, read_tree};
use serde_json::{Value, json};

use crate::prove::stage::folder;
use crate::tools::command;

/// A command that takes longer waits for something that never comes. Nothing here takes more than a second or two, so
/// the limit does not depend on how busy the machine is.
const HANGS_AFTER: Duration = Duration::from_secs(40);

/// Why a case did not hold.
#[derive(Debug)]
pub(super) enum Stop {
    /// A promise was broken.
    Broken(String),
    /// The machine lacks what the case needs.
    LeftOut(String),
}

/// How often a case was tried, or why it ended early.
pub(super) type Outcome = Result<u64, Stop>;

impl From<String> for Stop {
    fn from(what: String) -> Self {
        Self::Broken(what)
    }
}

impl From<&str> for Stop {
    fn from(what: &str) -> Self {
        Self::Broken(what.to_owned())
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Broken(format!("the stage could not be set: {error}"))
    }
}

/// Ends a case unless something is so.
pub(super) fn ensure(is_so: bool, otherwise: impl FnOnce() -> String) -> Result<(), Stop> {
    if is_so { Ok(()) } else { Err(Stop::Broken(otherwise())) }
}

/// What every case is told.
pub(super) struct Ground<'p> {
    pub(super) binary: &'p Path,
    pub(super) is_full: bool,
}

impl Ground<'_> {
    /// One of two sizes: for every run of the tests, and for a release.
    pub(super) fn size<T>(&self, quick: T, full: T) -> T {
        if self.is_full { full } else { quick }
    }

    /// A workspace without git, a home, and a folder outside of both that nothing may touch.
    pub(super) fn world(&self) -> Result<World, Stop> {
        self.world_in(&folder())
    }

    /// The same on the disk of temporary files: not all file systems in memory do what disks do.
    pub(super) fn world_on_disk(&self) -> Result<World, Stop> {
        self.world_in(&std::env::temp_dir())
    }

    fn world_in(&self, folder: &Path) -> Result<World, Stop> {
        let env = TestEnv::new_in(&self.binary.to_string_lossy(), folder);
        fs::create_dir(env.root().join("outside"))?;
        fs::write(env.root().join("outside/mine"), "not yours")?;
        Ok(World { env })
    }

    /// A workspace that is a git repository with one commit.
    pub(super) fn repository(&self) -> Result<World, Stop> {
        let world = self.world()?;
        world.env.git(&["init", "-q", "-b", "main"]);
        world.env.write("a.txt", "first\n").write("src/b.txt", "first\n");
        world.commit();
        Ok(world)
    }
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(super) struct Ran {
    /// `None` if a signal ended it, or it had to be ended.
    pub(super) code: Option<i32>,
    signal: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ran {
    /// Everything it said.
    pub(super) fn said(&self) -> String {
        [self.stdout.as_str(), self.stderr.as_str()].concat()
    }

    /// How it ended and what it said, for a finding.
    pub(super) fn text(&self) -> String {
        let end = match (self.code, self.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => format!("still running after {HANGS_AFTER:?}"),
        };
        let said = self.said();
        let short: String = said.chars().take(1_500).collect();
        format!("{end}: {}", short.trim_end())
    }

    /// It ended by itself: not by a signal, not by a panic, and in time.
    pub(super) fn sound(self) -> Result<Self, Stop> {
        let has_panicked = self.code == Some(101) || self.stderr.contains("panicked at");
        ensure(self.code.is_some() && !has_panicked, || format!("it broke: {}", self.text()))?;
        Ok(self)
    }

    /// It ended by itself and was successful.
    pub(super) fn ok(self) -> Result<Self, Stop> {
        let ran = self.sound()?;
        ensure(ran.code == Some(0), || format!("it failed: {}", ran.text()))?;
        Ok(ran)
    }

    /// It ended by itself and did what it could: all of it, or a part (exit 3).
    pub(super) fn done(self) -> Result<Self, Stop> {
        let ran = self.sound()?;
        ensure(matches!(ran.code, Some(0 | 3)), || format!("it failed: {}", ran.text()))?;
        Ok(ran)
    }

    /// Its output as exactly one JSON document.
    pub(super) fn json(&self) -> Result<Value, Stop> {
        serde_json::from_str(&self.stdout).map_err(|error| {
            Stop::Broken(format!("not one JSON document ({error}): {}", self.text()))
        })
    }
}

/// Runs a command to its end. One that hangs is ended with all it started.
pub(super) fn run(mut command: Command, input: &[u8]) -> Ran {
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let stderr = format!("it could not be started: {error}");
            return Ran { code: Some(127), signal: None, stdout: String::new(), stderr };
        }
    };
    let group = child.id();
    let stdin = child.stdin.take();
    let (sender, receiver) = mpsc::channel();
    let input = input.to_vec();
    thread::spawn(move || {
        // A command may have seen enough before it has read all.
        let _seen_enough = stdin.map(|mut it| it.write_all(&input));
        let _nobody_waits = sender.send(child.wait_with_output());
    });
    match receiver.recv_timeout(HANGS_AFTER) {
        Ok(Ok(output)) => ran(&output),
        Ok(Err(_)) | Err(_) => {
            let _gone = quietly("kill", &["-KILL", "--", &format!("-{group}")]);
            Ran { code: None, signal: None, stdout: String::new(), stderr: String::new() }
        }
    }
}

fn ran(output: &Output) -> Ran {
    Ran {
        code: output.status.code(),
        signal: output.status.signal(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A workspace, a home and the outside, known to one case only.
pub(super) struct World {
    pub(super) env: TestEnv,
}

impl World {
    pub(super) fn biv<W: AsRef<OsStr>>(&self, words: &[W]) -> Ran {
        run(self.env.biv_command(&self.env.work(), words), b"")
    }

    pub(super) fn biv_in<W: AsRef<OsStr>>(&self, place: &Path, words: &[W]) -> Ran {
        run(self.env.biv_command(place, words), b"")
    }

    /// Runs a command line of a shell in which `"$@"` is our command.
    pub(super) fn biv_by(&self, script: &str, words: &[&str]) -> Ran {
        run(self.env.biv_under(&shell(script), words), b"")
    }

    /// What an agent does: calls a hook with what happened.
    pub(super) fn hook(&self, event: &str, more: &Value) -> Ran {
        self.hook_by("exec \"$0\" \"$@\"", event, more)
    }

    /// The same, started by a command line of a shell.
    pub(super) fn hook_by(&self, script: &str, event: &str, more: &Value) -> Ran {
        let mut command = self.env.biv_under(&shell(script), &["hook", "claude-code", event]);
        command.env("BIV_HOOK_WAITS", "1");
        run(command, self.hook_input(more).as_bytes())
    }

    /// What an agent hands to its hooks.
    pub(super) fn hook_input(&self, more: &Value) -> String {
        let mut input = json!({
            "session_id": "22222222-0000-4000-8000-000000000002",
            "transcript_path": self.env.home().join(".claude/projects/-w/none.jsonl"),
            "cwd": self.env.work(),
        });
        if let (Some(input), Some(more)) = (input.as_object_mut(), more.as_object()) {
            input.extend(more.clone());
        }
        input.to_string()
    }

    /// Tells a prompt to the hook, which has to exit 0.
    pub(super) fn prompt(&self, words: &str) -> Result<Ran, Stop> {
        self.hook("UserPromptSubmit", &json!({ "prompt": words })).ok()
    }

    /// Are these words in the events of any session here?
    pub(super) fn has_event_with(&self, words: &str) -> Result<bool, Stop> {
        // What a hook put aside is taken in by the next command that writes.
        self.biv(&["note", "looking"]).ok()?;
        let sessions = self.biv(&["session", "list", "--all", "--json"]).ok()?.json()?;
        for session in sessions.as_array().into_iter().flatten() {
            let handle = session["handle"].as_str().unwrap_or_default();
            if self.biv(&["log", "--session", handle, "--json"]).said().contains(words)
                || self.biv(&["export", "events", "--session", handle]).said().contains(words)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Saves a checkpoint under a name.
    pub(super) fn save(&self, name: &str) -> Result<Ran, Stop> {
        self.biv(&["checkpoint", "create", "--name", name]).done()
    }

    /// What a checkpoint gives back, in a folder that is read and removed.
    pub(super) fn restored(&self, checkpoint: &str) -> Result<Tree, Stop> {
        let out = self.env.root().join("out");
        self.biv(&["checkpoint", "restore", checkpoint, "--into", &out.to_string_lossy()])
            .done()?;
        let tree = read_tree(&out);
        fs::remove_dir_all(&out)?;
        Ok(tree)
    }

    /// Does the checkpoint say that it does not hold this path?
    pub(super) fn has_gap(&self, checkpoint: &str, path: &str) -> Result<bool, Stop> {
        let shown = self.biv(&["checkpoint", "show", checkpoint, "--coverage", "--json"]).ok()?;
        let shown = shown.json()?;
        let mut gaps = shown["not_covered"].as_array().into_iter().flatten();
        Ok(gaps.any(|gap| {
            let place = gap["path"].as_str().unwrap_or_default();
            path == place || path.starts_with(&format!("{place}/"))
        }))
    }

    /// The ids of all checkpoints of the workspace, the oldest first.
    pub(super) fn checkpoints(&self) -> Result<Vec<String>, Stop> {
        let list = self.biv(&["checkpoint", "list", "--json"]).ok()?.json()?;
        let ids = list.as_array().into_iter().flatten();
        Ok(ids.filter_map(|it| Some(it["id"].as_str()?.to_owned())).collect())
    }

    /// Commits all that is in the workspace.
    pub(super) fn commit(&self) {
        self.env.git(&["add", "-A"]);
        self.env.git(&["commit", "-q", "--allow-empty", "-m", "all"]);
    }

    pub(super) fn outside(&self) -> PathBuf {
        self.env.root().join("outside")
    }

    /// A program that leaves a mark when it runs. Whatever it is given, it hands on.
    pub(super) fn trap(&self, name: &str) -> Result<(PathBuf, PathBuf), Stop> {
        let (program, mark) =
            (self.env.root().join(name), self.env.root().join(format!("{name}-ran")));
        fs::write(&program, format!("#!/bin/sh\necho ran >> '{}'\ncat\n", mark.display()))?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        Ok((program, mark))
    }
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// Gives a file or folder, and all below it, a time long past.
pub(super) fn age(path: &Path) -> Result<(), Stop> {
    let words = [path.as_os_str(), OsStr::new("-exec")];
    let rest = ["touch", "-h", "-d", "2020-01-01", "{}", "+"];
    let output = command("find").args(words).args(rest).output()?;
    ensure(output.status.success(), || String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs a tool of the machine that has to succeed.
pub(super) fn quietly(program: &str, words: &[&str]) -> Result<String, Stop> {
    let output = command(program).args(words).output()?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    ensure(output.status.success(), || format!("{program}: {}", said(&output.stderr)))?;
    Ok(said(&output.stdout))
}

/// Are we root? Much of what is tried here, nobody else can set up.
pub(super) fn need_root() -> Result<(), Stop> {
    let own = fs::metadata("/proc/self").map(|meta| meta.uid());
    match own {
        Ok(0) => Ok(()),
        _ => Err(Stop::LeftOut("only root can set this up".to_owned())),
    }
}

/// Is there such a program, by the name of its package where that is another?
pub(super) fn need(program: &str, package: &str) -> Result<(), Stop> {
    // One at a time: two cases may need the same package.
    static INSTALLING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = INSTALLING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match crate::tools::package_with(program, package) {
        true => Ok(()),
        false => Err(Stop::LeftOut(format!("there is no {program}"))),
    }
}

/// Is this in any file below a folder, as it is? Answers the first file that has it.
pub(super) fn holds(folder: &Path, bytes: &[u8]) -> Option<String> {
    let tree = read_tree(folder);
    let has = |content: &[u8]| content.windows(bytes.len()).any(|window| window == bytes);
    let found = tree.iter().find(|(path, (_, _, content))| has(content) || has(path));
    found.map(|(path, _)| String::from_utf8_lossy(path).into_owned())
}

/// A path that need not be text.
pub(super) fn below(folder: &Path, name: &[u8]) -> PathBuf {
    folder.join(OsStr::from_bytes(name))
}
