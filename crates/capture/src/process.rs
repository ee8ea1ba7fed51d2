//! Running other programs. None of ours is ever started with the caller's git or agent markers, and
//! none can keep us waiting for ever.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bivouac_core::sabotage::{self, Fault};

use crate::search_path::{find_program, is_path, search_path};
use crate::{Error, Result, running};

/// Set for every program of ours, so that hooks they may run do not lead back to us.
pub const WITHIN: &str = "BIV_WITHIN";

/// Set for a process of ours that takes in a hook for another one, and for nothing that it starts.
pub const HOOK_PART: &str = "BIV_HOOK_PART";

/// What a program said that failed without a word.
pub const NO_REASON: &str = "it gave no reason";

/// How long git may sleep without using the processor before it counts as stuck.
const STUCK: Duration = Duration::from_secs(3);

/// More than git takes for a million files.
const MOST_MEMORY: u64 = 2 << 30;

/// A program to run to its end.
pub struct Program {
    pub(crate) name: String,
    pub(crate) command: Command,
    pub(crate) within: Duration,
    input: Vec<u8>,
    /// Ended early if it sleeps this long: it has opened a FIFO that has no writer.
    stuck_after: Option<Duration>,
    /// The most memory it may take.
    most_memory: Option<u64>,
}

impl Program {
    /// A program by its name or path. A name is looked up in the absolute folders of the `PATH` alone, and the
    /// program gets a `PATH` of those: with `.` in it, a workspace could bring its own `git` or `node`.
    pub fn new(name: impl AsRef<OsStr>) -> Self {
        let name = name.as_ref();
        let mut command = command(name);
        command.env("LC_ALL", "C").env(WITHIN, "1").env("PATH", search_path());
        command.env_remove(HOOK_PART);
        for (variable, _) in std::env::vars_os() {
            if variable.as_encoded_bytes().starts_with(b"GIT_") {
                command.env_remove(variable);
            }
        }
        let (name, within) = (name.to_string_lossy().into_owned(), Duration::from_secs(30));
        Self { name, command, within, input: Vec::new(), stuck_after: None, most_memory: None }
    }

    /// Our own program, in the language and with the `PATH` of the caller.
    pub fn ours() -> Result<Self> {
        let own = std::env::current_exe().map_err(Error::io("biv"))?;
        Ok(Self::new(own).inherits("LC_ALL").inherits("PATH"))
    }

    /// git with every program off that a configuration can name, and without any connection: no hooks, no file
    /// system monitor, no fetching of missing objects. It takes no locks and asks no questions.
    ///
    /// Filters are still on. Whatever only reads goes through `git::View`, which has none.
    pub fn git(folder: &Path) -> Self {
        let mut git = Self::new("git");
        git.command.current_dir(folder);
        if !sabotage::is(Fault::GitRefreshed) {
            git.command.arg("--no-optional-locks");
        }
        git.command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
        for (name, value) in [
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_NO_LAZY_FETCH", "1"),
            // Versions before 2.44 do not know the line above. No transport has this name.
            ("GIT_ALLOW_PROTOCOL", "none"),
        ] {
            git.command.env(name, value);
        }
        git
    }

    /// tmux, which may start its server: what is only meant for us must not become part of that.
    pub fn tmux() -> Self {
        let mut tmux = Self::new("tmux").inherits("LC_ALL").inherits("PATH");
        tmux.command.env_remove(WITHIN).env_remove("BIV_SESSION");
        // It speaks UTF-8 whatever the locale is.
        tmux.command.arg("-u");
        tmux
    }

    /// With a variable as the caller has it.
    fn inherits(mut self, variable: &str) -> Self {
        match std::env::var_os(variable) {
            Some(value) => self.command.env(variable, value),
            None => self.command.env_remove(variable),
        };
        self
    }

    /// As an agent starts it: what that leads to may lead back to us.
    pub fn as_by_agent(mut self) -> Self {
        self.command.env_remove(WITHIN).env_remove("BIV_SESSION");
        self
    }

    /// For programs that only compute and read files of others: ended when it sleeps for seconds, and limited in the
    /// memory that a file of gigabytes would fill.
    pub(crate) fn only_reads(mut self) -> Self {
        (self.stuck_after, self.most_memory) = (Some(STUCK), Some(MOST_MEMORY));
        self
    }

    pub fn args<A: AsRef<std::ffi::OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    pub fn in_folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// With this variable set as well.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// What it reads.
    pub fn with_input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    /// Starts it and lets it go: it has no descriptor of ours, and nobody waits for it.
    pub fn start_detached(self) -> Result<()> {
        self.start_detached_in(Path::new("/"))
    }

    /// The same, standing in a folder.
    pub fn start_detached_in(mut self, folder: &Path) -> Result<()> {
        use std::os::unix::process::CommandExt;
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        self.command.current_dir(folder);
        match self.command.spawn() {
            Ok(_lives_on) => Ok(()),
            Err(source) => Err(Error::NotStarted { program: self.name, source }),
        }
    }

    /// Starts it to run beside us. Whoever asked looks after it.
    pub fn start(mut self) -> Result<Started> {
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let spawned = self.command.spawn();
        let mut child =
            spawned.map_err(|source| Error::NotStarted { program: self.name.clone(), source })?;
        let words = read_in_background(child.stderr.take());
        Ok(Started { number: child.id(), words })
    }

    /// Runs it and answers what it wrote. A program that fails is an error with its last words.
    pub fn output(mut self) -> Result<Vec<u8>> {
        let stdin = if self.input.is_empty() { Stdio::null() } else { Stdio::piped() };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self
            .command
            .spawn()
            .map_err(|source| Error::NotStarted { program: self.name.clone(), source })?;
        if let Some(most) = self.most_memory {
            limit_memory(&child, most);
        }
        if let Some(mut pipe) = child.stdin.take() {
            let input = std::mem::take(&mut self.input);
            // A program that does not read all of it has read enough.
            thread::spawn(move || pipe.write_all(&input));
        }
        let stdout = read_in_background(child.stdout.take());
        let stderr = read_in_background(child.stderr.take());
        let output = match self.wait_for(&stdout, child.id()) {
            Ok(output) => output,
            Err(within) => {
                end(&mut child);
                return Err(Error::TooSlow { program: self.name, within });
            }
        };
        let status = child
            .wait()
            .map_err(|source| Error::NotStarted { program: self.name.clone(), source })?;
        if status.success() {
            return Ok(output);
        }
        let words = stderr.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        let message =
            String::from_utf8_lossy(&words).lines().next().unwrap_or(NO_REASON).to_owned();
        Err(Error::Failed { program: self.name, message })
    }

    /// What a started program wrote, or for how long it was waited for in vain.
    fn wait_for(&self, stdout: &mpsc::Receiver<Vec<u8>>, pid: u32) -> Result<Vec<u8>, Duration> {
        let Some(stuck_after) = self.stuck_after else {
            return stdout.recv_timeout(self.within).map_err(|_| self.within);
        };
        let deadline = Instant::now() + self.within;
        let mut awake_at = Instant::now();
        let mut used = None;
        while Instant::now() < deadline {
            if let Ok(output) = stdout.recv_timeout(stuck_after / 6) {
                return Ok(output);
            }
            let now = running::sleeping(pid);
            if now.is_none() || now != used {
                awake_at = Instant::now();
            } else if awake_at.elapsed() > stuck_after {
                return Err(stuck_after);
            }
            used = now;
        }
        Err(self.within)
    }
}

impl Program {
    /// The same as [`Program::output`] without a thread of ours, for when there may be none to have. The program has
    /// to read its input before it says anything.
    pub fn output_alone(mut self, input: &[u8]) -> Result<Vec<u8>> {
        let until = Instant::now() + self.within;
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |source| Error::NotStarted { program: self.name.clone(), source };
        let mut child = self.command.spawn().map_err(failed)?;
        if let Some(mut pipe) = child.stdin.take() {
            // A program that has ended does not read; how it ended says the rest.
            let _it_may_be_gone = pipe.write_all(input);
        }
        let output = child.stdout.take().map(|pipe| read_until(pipe, until));
        let Some(output) = output.flatten() else {
            end(&mut child);
            return Err(Error::TooSlow { program: self.name, within: self.within });
        };
        match child.wait() {
            Ok(status) if status.success() => Ok(output),
            Ok(status) => Err(Error::Failed { program: self.name, message: status.to_string() }),
            Err(source) => Err(Error::NotStarted { program: self.name, source }),
        }
    }
}

/// Limits the memory that a program allocates. What it maps from files, as git does with its packs, does not count.
#[cfg(target_os = "linux")]
fn limit_memory(child: &std::process::Child, most: u64) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    // One that has ended already needs no limit.
    let _may_be_gone = prlimit(Some(Pid::from_child(child)), Resource::Data, limit);
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_child: &std::process::Child, _most: u64) {}

/// All that a pipe has until it is closed; `None` if that takes too long.
fn read_until(mut pipe: impl Read + std::os::fd::AsFd, until: Instant) -> Option<Vec<u8>> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return None,
            Err(rustix::io::Errno::INTR) => continue,
            _ => {}
        }
        match pipe.read(&mut chunk).ok()? {
            0 => return Some(bytes),
            n => bytes.extend_from_slice(&chunk[..n]),
        }
    }
}

/// A program that runs beside us.
pub struct Started {
    pub number: u32,
    words: mpsc::Receiver<Vec<u8>>,
}

impl Started {
    /// What it complained about, in one line, once it has ended.
    pub fn complaint(&self) -> String {
        let words = self.words.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        let text = String::from_utf8_lossy(&words);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
        if lines.is_empty() { NO_REASON.to_owned() } else { lines.join("; ") }
    }
}

/// Runs what has to come first, then becomes the agent: same process, same terminal.
pub fn become_program(
    launch: &crate::agents::restore::Launch,
    folder: &Path,
    environment: &[(&str, String)],
    says: Says,
) -> Result<std::convert::Infallible> {
    use std::os::unix::process::CommandExt;
    run_before(launch, folder)?;
    let (program, args) = launch.command.split_first().ok_or(Error::NotText)?;
    let mut command = command(program);
    command.args(args).current_dir(folder).envs(environment.iter().cloned()).env_remove(WITHIN);
    if says == Says::Aside {
        command.stdout(std::io::stderr());
    }
    Err(Error::NotStarted { program: program.clone(), source: command.exec() })
}

/// Whose group of processes a program belongs to: the terminal's signals go to groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Ours,
    Own,
}

/// Where a program says what it has to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Says {
    #[default]
    Out,
    /// On stderr: what we say on stdout is for a program.
    Aside,
}

/// Starts a program with our own input and output. Answers its number; whoever asked looks after it.
pub(crate) fn start_child(
    words: &[impl AsRef<OsStr>],
    folder: &Path,
    environment: &[(OsString, OsString)],
    (group, says): (Group, Says),
) -> Result<u32> {
    use std::os::unix::process::CommandExt;
    let (program, args) = words.split_first().ok_or(Error::NotText)?;
    let mut command = command(program);
    command.args(args).current_dir(folder).envs(environment.iter().cloned()).env_remove(WITHIN);
    if group == Group::Own {
        command.process_group(0);
    }
    if says == Says::Aside {
        command.stdout(std::io::stderr());
    }
    match command.spawn() {
        Ok(child) => Ok(child.id()),
        Err(source) => {
            let program = program.as_ref().to_string_lossy().into_owned();
            Err(Error::NotStarted { program, source })
        }
    }
}

/// Runs what has to come before an agent.
pub fn run_before(launch: &crate::agents::restore::Launch, folder: &Path) -> Result<()> {
    for words in &launch.before {
        let (program, args) = words.split_first().ok_or(Error::NotText)?;
        let program = Program::new(program).args(args).in_folder(folder);
        program.within(Duration::from_secs(120)).output()?;
    }
    Ok(())
}

/// A command for a program by its name or path. One that is not found fails to start.
fn command(name: impl AsRef<OsStr>) -> Command {
    use std::os::unix::process::CommandExt;
    let name = name.as_ref();
    // An absolute path that cannot be: a bare name would be looked up in the whole `PATH`.
    let path = find_program(name).unwrap_or_else(|| match is_path(name) {
        true => name.into(),
        false => Path::new("/nowhere-on-the-path").join(name),
    });
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place where programs are started"
    )]
    let mut command = Command::new(path);
    command.arg0(name);
    command
}

fn read_in_background(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _cut_short = pipe.read_to_end(&mut bytes);
        }
        let _nobody_waits = sender.send(bytes);
    });
    receiver
}

pub(crate) fn end(child: &mut Child) {
    let _gone = child.kill();
    let _reaped = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_ended() {
        let slow = Program::new("sleep").args(["60"]).within(Duration::from_millis(50)).output();
        assert_eq!(slow.unwrap_err().to_string(), "`sleep` did not answer within 0 seconds");
    }

    #[test]
    fn a_program_that_fails_says_why() {
        let failed = Program::new("sh").args(["-c", "echo no such luck >&2; exit 3"]).output();
        assert_eq!(failed.unwrap_err().to_string(), "`sh` failed: no such luck");
        let missing = Program::new("no-such-program").output();
        assert_eq!(missing.unwrap_err().to_string(), "could not start `no-such-program`");
    }

    #[test]
    fn long_output_does_not_block() {
        let output = Program::new("sh").args(["-c", "head -c 3000000 /dev/zero"]).output().unwrap();
        assert_eq!(output.len(), 3_000_000);
    }
}
