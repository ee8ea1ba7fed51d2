//! Watching a command from outside: every call that changes files, with all that it wrote, as `strace` tells it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Result;
use crate::tools::command;

/// What changes files or folders or makes them durable, and what moves descriptors about. `read` is left out:
/// a write behind a read in the same descriptor would be misplaced, and be found when the whole is compared.
const CALLS: &str = "open,openat,openat2,creat,close,dup,dup2,dup3,fcntl,lseek,write,pwrite64,writev,pwritev,\
    pwritev2,ftruncate,truncate,fallocate,copy_file_range,sendfile,splice,rename,renameat,renameat2,link,linkat,\
    symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,mknod,mknodat,rmdir,chmod,fchmod,fchmodat,fchmodat2,fsync,\
    fdatasync,sync_file_range,syncfs,sync,clone,clone3,fork,vfork,chdir,fchdir";

/// One call that came back.
pub(super) struct Call {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) args: Vec<String>,
    /// Everything behind the equals sign.
    pub(super) answer: String,
    /// How many calls had come back when this one began.
    pub(super) began: usize,
}

/// What a command did, and how it ended.
pub(super) struct Recording {
    pub(super) calls: Vec<Call>,
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs a command as it is, under `strace`.
pub(super) fn record(watched: &Command, input: &[u8]) -> Result<Recording> {
    let log = tempfile::NamedTempFile::new()?;
    let mut strace = command("strace");
    strace.args(["-f", "-q", "-y", "-xx", "-s", "33554432", "-e", "signal=none", "-o"]);
    // Which calls there are depends on the machine, which of them are known on the version of strace.
    strace.arg(log.path()).arg("-e").arg(format!("trace=?{}", CALLS.replace(',', ",?")));
    strace.arg(watched.get_program()).args(watched.get_args()).env_clear();
    for (name, value) in watched.get_envs() {
        strace.env(name, value.unwrap_or(OsStr::new("")));
    }
    strace.current_dir(watched.get_current_dir().unwrap_or(Path::new("/")));
    strace.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = strace.spawn().map_err(|error| format!("strace: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may have seen enough before it has read all.
        let _seen_enough = stdin.write_all(input);
    }
    let output = child.wait_with_output()?;
    Ok(Recording {
        calls: read(&fs::read_to_string(log.path())?)?,
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

fn read(log: &str) -> Result<Vec<Call>> {
    let mut calls = Vec::new();
    let mut waiting: HashMap<u32, (String, usize)> = HashMap::new();
    for line in log.lines() {
        let (pid, rest) = line.split_once(' ').ok_or("a line of strace without a process")?;
        let (pid, rest) = (pid.parse::<u32>()?, rest.trim_start());
        if rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        }
        if let Some(begun) = rest.strip_suffix(" <unfinished ...>") {
            waiting.insert(pid, (begun.to_owned(), calls.len()));
            continue;
        }
        let (text, began) = match rest.strip_prefix("<... ") {
            None => (rest.to_owned(), calls.len()),
            Some(resumed) => {
                let (begun, at) =
                    waiting.remove(&pid).ok_or("strace resumes what it never began")?;
                let (_, rest) = resumed.split_once(" resumed>").ok_or("a torn line of strace")?;
                (begun + rest, at)
            }
        };
        calls.push(call(pid, &text, began).ok_or_else(|| format!("what is this call: {text}"))?);
    }
    Ok(calls)
}

fn call(pid: u32, text: &str, began: usize) -> Option<Call> {
    let (name, rest) = text.split_once('(')?;
    let (inside, answer) = rest.rsplit_once(" = ")?;
    let inside = inside.trim_end().strip_suffix(')')?;
    let (name, answer) = (name.to_owned(), answer.to_owned());
    Some(Call { pid, name, args: split(inside), answer, began })
}

/// Cuts at the commas that are not inside of anything. Strings are in hexadecimal, so that nothing in them counts.
fn split(inside: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for part in inside.split_inclusive([',', '{', '}', '[', ']', '(', ')']) {
        let last = parts.last_mut().expect("it begins with one");
        match part.as_bytes().last() {
            Some(b'{' | b'[' | b'(') => depth += 1,
            Some(b'}' | b']' | b')') => depth -= 1,
            Some(b',') if depth == 0 => {
                last.push_str(&part[..part.len() - 1]);
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        last.push_str(part);
    }
    parts.into_iter().map(|part| part.trim().to_owned()).collect()
}

impl Call {
    pub(super) fn failed(&self) -> bool {
        self.answer.starts_with("-1") || self.answer.starts_with('?')
    }

    pub(super) fn arg(&self, n: usize) -> &str {
        self.args.get(n).map_or("", String::as_str)
    }

    /// The number an argument is: decimal, octal for modes, hexadecimal.
    pub(super) fn number(&self, n: usize) -> u64 {
        number(self.arg(n))
    }

    /// What the call answered, as a number.
    pub(super) fn answered(&self) -> u64 {
        number(&self.answer)
    }

    /// A path in quotes, or what was written.
    pub(super) fn bytes(&self, n: usize) -> Vec<u8> {
        let quoted = self.arg(n).split('"').skip(1).step_by(2);
        quoted.flat_map(unescaped).collect()
    }
}

/// The number at the beginning, such as of `7<path>` or `-1 ENOENT`.
fn number(text: &str) -> u64 {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(&leading(digits, 16), 16).unwrap_or(0);
    }
    let radix = if text.starts_with('0') { 8 } else { 10 };
    u64::from_str_radix(&leading(text, radix), radix).unwrap_or(0)
}

fn leading(text: &str, radix: u32) -> String {
    text.chars().take_while(|it| it.is_digit(radix)).collect()
}

/// The path that `strace` shows with a descriptor. One that was deleted has none.
pub(super) fn shown_path(text: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once('<')?;
    let (path, behind) = rest.split_once('>')?;
    let path = if path.contains("\\x") { unescaped(path) } else { path.into() };
    (!behind.starts_with("(deleted)") && path.starts_with(b"/")).then_some(path)
}

fn unescaped(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    text.as_bytes()
        .chunks(4)
        .filter(|it| it.len() == 4)
        .map(|it| digit(it[2]) << 4 | digit(it[3]))
        .collect()
}
