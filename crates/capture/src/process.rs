//! Running other programs. None of ours is ever started with the caller's git or agent markers, and
//! none can keep us waiting for ever.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

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

    /// git, reading only: it takes no locks, refreshes no index, asks no questions.
    pub fn git(folder: &Path) -> Self {
        let mut git = Self::new("git");
        git.command.current_dir(folder);
        git.command.args(["--no-optional-locks", "-c", "core.fsmonitor=false"]);
        git.command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_LITERAL_PATHSPECS", "1");
        git
    }

    pub fn args<A: AsRef<std::ffi::OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    pub fn in_folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
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
    pub fn start_detached(mut self) -> Result<()> {
        use std::os::unix::process::CommandExt;
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        self.command.current_dir("/");
        match self.command.spawn() {
            Ok(_lives_on) => Ok(()),
            Err(source) => Err(Error::NotStarted { program: self.name, source }),
        }
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

/// Runs what has to come first, then becomes the agent: same process, same terminal.
pub fn become_program(
    launch: &crate::agents::restore::Launch,
    folder: &Path,
    environment: &[(&str, String)],
) -> Result<std::convert::Infallible> {
    use std::os::unix::process::CommandExt;
    for words in &launch.before {
        let (program, args) = words.split_first().ok_or(Error::NotText)?;
        Program::new(program)
            .args(args)
            .in_folder(folder)
            .within(Duration::from_secs(120))
            .output()?;
    }
    let (program, args) = launch.command.split_first().ok_or(Error::NotText)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place where programs are started"
    )]
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).envs(environment.iter().cloned()).env_remove(WITHIN);
    Err(Error::NotStarted { program: program.clone(), source: command.exec() })
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
    fn long_output_does_not_block() {
        let output = Program::new("sh").args(["-c", "head -c 3000000 /dev/zero"]).output().unwrap();
        assert_eq!(output.len(), 3_000_000);
    }
}
