//! Running other programs. None of ours is ever started with the caller's git or agent markers, and
//! none can keep us waiting for ever.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bivouac_core::sabotage::{self, Fault};

use crate::{Error, Result};

/// Set for every program of ours, so that hooks they may run do not lead back to us.
pub const WITHIN: &str = "BIV_WITHIN";

/// What a program said that failed without a word.
pub const NO_REASON: &str = "it gave no reason";

/// A program to run to its end.
pub struct Program {
    name: String,
    command: Command,
    within: Duration,
    input: Vec<u8>,
}

impl Program {
    pub fn new(name: &str) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the one place where programs are started"
        )]
        let mut command = Command::new(name);
        command.env("LC_ALL", "C").env(WITHIN, "1");
        for (variable, _) in std::env::vars_os() {
            if variable.as_encoded_bytes().starts_with(b"GIT_") {
                command.env_remove(variable);
            }
        }
        Self { name: name.to_owned(), command, within: Duration::from_secs(30), input: Vec::new() }
    }

    /// Our own program, in the language of whoever started us.
    pub fn ours() -> Result<Self> {
        let own = std::env::current_exe().map_err(Error::io("biv"))?;
        let mut program = Self::new(&own.to_string_lossy());
        match std::env::var_os("LC_ALL") {
            Some(language) => program.command.env("LC_ALL", language),
            None => program.command.env_remove("LC_ALL"),
        };
        Ok(program)
    }

    /// git, reading only: it takes no locks, refreshes no index, asks no questions.
    pub fn git(folder: &Path) -> Self {
        let mut git = Self::new("git");
        git.command.current_dir(folder);
        if !sabotage::is(Fault::GitRefreshed) {
            git.command.arg("--no-optional-locks");
        }
        git.command.args(["-c", "core.fsmonitor=false"]);
        git.command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_LITERAL_PATHSPECS", "1");
        git
    }

    /// tmux, which may start its server: what is only meant for us must not become part of that.
    pub fn tmux() -> Self {
        let mut tmux = Self::new("tmux");
        tmux.command.env_remove(WITHIN).env_remove("BIV_SESSION").env_remove("LC_ALL");
        if let Some(own) = std::env::var_os("LC_ALL") {
            tmux.command.env("LC_ALL", own);
        }
        // It speaks UTF-8 whatever the locale is.
        tmux.command.arg("-u");
        tmux
    }

    /// As an agent starts it: what that leads to may lead back to us.
    pub fn as_by_agent(mut self) -> Self {
        self.command.env_remove(WITHIN).env_remove("BIV_SESSION");
        self
    }

    pub fn args<A: AsRef<std::ffi::OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    /// With this variable set as well.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn in_folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
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
        if let Some(mut pipe) = child.stdin.take() {
            let input = std::mem::take(&mut self.input);
            // A program that does not read all of it has read enough.
            thread::spawn(move || pipe.write_all(&input));
        }
        let stdout = read_in_background(child.stdout.take());
        let stderr = read_in_background(child.stderr.take());
        let Ok(output) = stdout.recv_timeout(self.within) else {
            end(&mut child);
            return Err(Error::TooSlow { program: self.name, within: self.within });
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

/// Where a program is that people call by its name.
pub fn find_program(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(is_program);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(is_program)
}

/// A program that is told lines and answers lines. It is given up at a deadline, and ends with us.
pub struct Talk {
    name: String,
    child: Child,
    /// What it is still to be told; gone once there is nothing more to say.
    words: Option<mpsc::Sender<Vec<u8>>>,
    answers: mpsc::Receiver<Vec<u8>>,
    within: Duration,
    deadline: Instant,
}

/// No answer is longer than this.
const LONGEST_LINE: u64 = 4 << 20;
/// So many answers may wait to be looked at.
const WAITING_LINES: usize = 16;
/// How long a program may take to end by itself.
const FAREWELL: Duration = Duration::from_millis(500);

impl Program {
    /// Starts it, in a group of its own, to talk with it. What it says on the side is nobody's concern.
    pub fn talk(mut self) -> Result<Talk> {
        use std::os::unix::process::CommandExt;
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        self.command.process_group(0);
        let mut child = self
            .command
            .spawn()
            .map_err(|source| Error::NotStarted { program: self.name.clone(), source })?;
        let (words, to_say) = mpsc::channel::<Vec<u8>>();
        if let Some(mut pipe) = child.stdin.take() {
            // A program that does not read must not keep us from giving up.
            thread::spawn(move || to_say.iter().try_for_each(|line| pipe.write_all(&line)));
        }
        let (answer, answers) = mpsc::sync_channel(WAITING_LINES);
        if let Some(pipe) = child.stdout.take() {
            thread::spawn(move || read_lines(pipe, &answer));
        }
        let deadline = Instant::now() + self.within;
        Ok(Talk {
            name: self.name,
            child,
            words: Some(words),
            answers,
            within: self.within,
            deadline,
        })
    }
}

impl Talk {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Says a line. Whether it was heard shows in what is answered.
    pub fn say(&self, line: &str) {
        if let Some(words) = &self.words {
            let _shows_later = words.send(format!("{line}\n").into_bytes());
        }
    }

    /// The next line it says.
    pub fn hear(&self) -> Result<Vec<u8>> {
        let rest = self.deadline.saturating_duration_since(Instant::now());
        let program = self.name.clone();
        match self.answers.recv_timeout(rest) {
            // A program that never stops talking is given up, too.
            Ok(_) if rest.is_zero() => Err(Error::TooSlow { program, within: self.within }),
            Ok(line) if line.len() as u64 > LONGEST_LINE => {
                Err(Error::Unexpected { program, what: "a line of more than 4 MiB" })
            }
            Ok(line) => Ok(line),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                Err(Error::TooSlow { program, within: self.within })
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(Error::Failed { program, message: "it ended without an answer".to_owned() })
            }
        }
    }
}

/// Its input ends, so that it can end by itself; then it is ended, with all it started.
impl Drop for Talk {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
        self.words = None;
        let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else {
            return end(&mut self.child);
        };
        let until = (Instant::now() + FAREWELL).min(self.deadline);
        // As long as it is not reaped, its number is nobody else's.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while Instant::now() < until && matches!(waitid(WaitId::Pid(pid), look), Ok(None)) {
            thread::sleep(Duration::from_millis(5));
        }
        let _gone = kill_process_group(pid, Signal::KILL);
        end(&mut self.child);
    }
}

/// Hands out lines. One that is too long comes cut, and is the last.
fn read_lines(pipe: impl Read, answer: &mpsc::SyncSender<Vec<u8>>) {
    let mut pipe = BufReader::new(pipe);
    loop {
        let mut line = Vec::new();
        let read = pipe.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut line);
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        let is_last = line.len() as u64 > LONGEST_LINE;
        if !matches!(read, Ok(1..)) || answer.send(line).is_err() || is_last {
            return;
        }
    }
}

/// Runs what has to come first, then becomes the agent: same process, same terminal.
pub fn become_program(
    launch: &crate::agents::restore::Launch,
    folder: &Path,
    environment: &[(&str, String)],
) -> Result<std::convert::Infallible> {
    use std::os::unix::process::CommandExt;
    run_before(launch, folder)?;
    let (program, args) = launch.command.split_first().ok_or(Error::NotText)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place where programs are started"
    )]
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).envs(environment.iter().cloned()).env_remove(WITHIN);
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
    words: &[String],
    folder: &Path,
    environment: &[(&str, String)],
    (group, says): (Group, Says),
) -> Result<u32> {
    use std::os::unix::process::CommandExt;
    let (program, args) = words.split_first().ok_or(Error::NotText)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place where programs are started"
    )]
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).envs(environment.iter().cloned()).env_remove(WITHIN);
    if group == Group::Own {
        command.process_group(0);
    }
    if says == Says::Aside {
        command.stdout(std::io::stderr());
    }
    match command.spawn() {
        Ok(child) => Ok(child.id()),
        Err(source) => Err(Error::NotStarted { program: program.clone(), source }),
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

fn end(child: &mut Child) {
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
    fn a_talk_ends_with_all_that_was_started_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let script = "read line; echo \"you said $line\"; sleep 60 & echo $! > child; wait";
        let program = Program::new("sh").args(["-c", script]).in_folder(folder.path());
        let talk = program.within(Duration::from_secs(20)).talk().unwrap();
        talk.say("hello");
        assert_eq!(talk.hear().unwrap(), b"you said hello");
        let started = Instant::now();
        let child = loop {
            let text = std::fs::read_to_string(folder.path().join("child")).unwrap_or_default();
            if text.ends_with('\n') || started.elapsed() > Duration::from_secs(10) {
                break text.trim_end().to_owned();
            }
            thread::yield_now();
        };
        drop(talk);
        // A killed process takes a moment to go.
        let stat = || std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let is_there = || !stat().is_empty() && !stat().contains(") Z ");
        while is_there() && started.elapsed() < Duration::from_secs(10) {
            thread::yield_now();
        }
        assert!(!child.is_empty() && !is_there(), "{}", stat());
    }

    #[test]
    fn a_talk_is_given_up() {
        let check = |script: &str, expected: &str| {
            let program = Program::new("sh").args(["-c", script]);
            let talk = program.within(Duration::from_millis(300)).talk().unwrap();
            let error = (0..).find_map(|_| talk.hear().err()).unwrap();
            assert_eq!(error.to_string(), expected);
        };
        check("exit 0", "`sh` failed: it ended without an answer");
        check("sleep 60", "`sh` did not answer within 0 seconds");
        check("while :; do echo again; done", "`sh` did not answer within 0 seconds");
        let long = "head -c 5000000 /dev/zero | tr '\\0' x; sleep 60";
        check(long, "`sh` answered something unexpected: a line of more than 4 MiB");
    }

    #[test]
    fn long_output_does_not_block() {
        let output = Program::new("sh").args(["-c", "head -c 3000000 /dev/zero"]).output().unwrap();
        assert_eq!(output.len(), 3_000_000);
    }
}
