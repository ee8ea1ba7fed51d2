//! Talking with a program line by line, within a deadline.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Program, end};
use crate::{Error, Result};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
