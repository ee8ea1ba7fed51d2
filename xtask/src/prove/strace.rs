//! Which system calls a command makes, and what becomes of it when one of them is its last, or fails.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Calls that change something on disk, make it durable, or tell someone; and [`LOOK`].
const CALLS: [&str; 30] = [
    LOOK,
    "openat",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "fsync",
    "fdatasync",
    "syncfs",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "ftruncate",
    "fallocate",
    "chmod",
    "fchmod",
    "fchmodat",
    "utimensat",
    "copy_file_range",
    "sendfile",
];

/// How the workspace is looked at. That changes nothing, but what depends on it does.
const LOOK: &str = "openat2";

/// One call, as strace counts: the n-th of its name in its thread, whichever thread comes there first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) nth: u32,
    /// Does it write into a pack?
    pub(super) is_into_pack: bool,
}

/// What happens at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Killed,
    Fails(&'static str),
    /// It says that it wrote, and did not.
    Lies,
    /// It takes so long that others can do something meanwhile.
    Waits,
}

impl Call {
    pub(super) fn is_look(&self) -> bool {
        self.name == LOOK
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.nth)
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed => write!(f, "killed"),
            Self::Fails(error) => write!(f, "{error}"),
            Self::Lies => write!(f, "lies"),
            Self::Waits => write!(f, "waits"),
        }
    }
}

/// Lets the kernel pass over calls that nobody asked for, which takes half the time. Signals and delays get lost so.
const UNSTOPPED: &str = "--seccomp-bpf";

/// How long a call is held up.
pub(super) const WAIT_MS: u64 = 400;

/// One run under strace; the words that go before the command, and what is in its log afterwards.
pub(super) struct Traced {
    log: PathBuf,
    /// How a line ends that tells of a fate.
    mark: &'static str,
    pub(super) words: Vec<String>,
}

impl Traced {
    /// Writes down every call that changes something.
    pub(super) fn recording(log: &Path) -> Self {
        Self::new(log, &CALLS.join(","), (&[UNSTOPPED], ""))
    }

    /// Lets one call meet its fate.
    pub(super) fn fated(log: &Path, call: &Call, fate: Fate) -> Self {
        let (fate, more, mark) = match fate {
            Fate::Killed => ("signal=KILL".to_owned(), None, "+++ killed by SIGKILL +++"),
            Fate::Waits => (format!("delay_enter={WAIT_MS}ms"), None, "(DELAYED)"),
            Fate::Fails(error) => (format!("error={error}"), Some(UNSTOPPED), "(INJECTED)"),
            // No piece of a pack is shorter, and no kernel says that it wrote more than it was given.
            Fate::Lies => ("retval=16".to_owned(), Some(UNSTOPPED), "(INJECTED)"),
        };
        let inject = format!("inject={}:{fate}:when={}", call.name, call.nth);
        let more: Vec<&str> = ["-e", &inject].into_iter().chain(more).collect();
        Self::new(log, &call.name, (&more, mark))
    }

    /// No file may grow beyond so many blocks of 512 bytes: what crosses the border is written in part.
    pub(super) fn limited(log: &Path, blocks: u32) -> Self {
        let mut traced = Self::new(log, &CALLS.join(","), (&[UNSTOPPED], "EFBIG (File too large)"));
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        traced.words.extend(["sh".to_owned(), "-c".to_owned(), script]);
        traced
    }

    fn new(log: &Path, calls: &str, (more, mark): (&[&str], &'static str)) -> Self {
        let (trace, place) = (format!("trace={calls}"), log.to_string_lossy());
        let usual = [
            "strace",
            "-f",
            "-q",
            "-y",
            "-s",
            "0",
            "-e",
            "signal=KILL",
            "-e",
            &trace,
            "-o",
            &place,
        ];
        let words = usual.iter().chain(more).map(|word| (*word).to_owned()).collect();
        Self { log: log.to_owned(), mark, words }
    }

    /// Did the call come, and was it met? Threads take turns as they like, so not every run has it. Each of them has
    /// its n-th call: where one of those was to tell what went wrong, nobody can be asked to have told.
    pub(super) fn was_met(&self) -> bool {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let is_mute = |line: &str| line.contains(" write(2<") && line.ends_with("(INJECTED)");
        let is_met = |line: &str| line.ends_with(self.mark);
        log.lines().any(is_met) && !log.lines().any(is_mute)
    }

    /// Did it come in one thread only? Two faults at once are more than anybody promised about looks.
    pub(super) fn was_met_once(&self) -> bool {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).lines().filter(|line| line.ends_with(self.mark)).count() == 1
    }

    /// Has the call begun, of a command that is still running?
    pub(super) fn has_come(&self, call: &Call) -> bool {
        let log = fs::read(&self.log).unwrap_or_default();
        calls(&String::from_utf8_lossy(&log)).contains(call)
    }

    /// All calls of the run, each name and number once.
    pub(super) fn calls(&self) -> Vec<Call> {
        let log = fs::read(&self.log).unwrap_or_default();
        calls(&String::from_utf8_lossy(&log))
    }
}

fn calls(log: &str) -> Vec<Call> {
    let mut counts: HashMap<(&str, &str), u32> = HashMap::new();
    let mut seen = BTreeSet::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((name, arguments)) = rest.trim_start().split_once('(') else { continue };
        if !CALLS.contains(&name) {
            continue;
        }
        let count = counts.entry((thread, name)).or_default();
        *count += 1;
        // What is opened to be read changes nothing.
        let changes = name != "openat"
            || ["O_CREAT", "O_TRUNC", "O_WRONLY"].iter().any(|flag| arguments.contains(flag));
        let is_into_pack = name == "write" && arguments.contains(".pack");
        let call = Call { name: name.to_owned(), nth: *count, is_into_pack };
        if changes && seen.insert(call.clone()) {
            calls.push(call);
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_in_their_threads() {
        let log = "7 openat(AT_FDCWD, \"a\", O_RDONLY) = 3\n\
                   7 openat(AT_FDCWD, \"b\", O_WRONLY|O_CREAT, 0600) = 4\n\
                   8 write(4, \"\"..., 12 <unfinished ...>\n\
                   7 write(4, \"\"..., 2) = 2\n\
                   8 <... write resumed>) = 12\n\
                   8 write(4, \"\"..., 2) = 2\n\
                   7 +++ exited with 0 +++\n";
        let calls: Vec<String> = calls(log).iter().map(Call::to_string).collect();
        assert_eq!(calls, ["openat 2", "write 1", "write 2"]);
    }
}
