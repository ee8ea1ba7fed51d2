//! Commands under strace: every call that could change a file, and whether that file was ours to change.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::prove::limit::within;
use crate::tools::command;

/// What a command said, and how it ended.
pub(super) struct Said {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

const LIMIT: Duration = Duration::from_secs(120);

/// The calls that change what a path leads to. No machine and no strace knows all of them.
const CALLS: &str = "trace=?open,?openat,?openat2,?creat,?rename,?renameat,?renameat2,?unlink,?unlinkat,?rmdir,?mkdir,?mkdirat,\
?chmod,?fchmod,?fchmodat,?fchmodat2,?chown,?fchown,?lchown,?fchownat,?link,?linkat,?symlink,\
?symlinkat,?truncate,?ftruncate,?fallocate,?utime,?utimes,?futimesat,?utimensat,?mknod,?mknodat,\
?setxattr,?lsetxattr,?fsetxattr,?removexattr,?lremovexattr,?fremovexattr";

/// Runs a command. `root` is where its small world is, if its calls are to be watched.
pub(super) fn run(asked: &Command, root: Option<&Path>) -> Result<Said, String> {
    let trace = root.map(|root| root.join("trace"));
    let mut started = match &trace {
        None => command(asked.get_program()),
        Some(trace) => {
            let mut strace = command("strace");
            strace.args(["-f", "--seccomp-bpf", "-y", "-z", "-qq", "-e", "signal=none"]);
            strace.args(["-e", CALLS, "-o"]).arg(trace).arg("--").arg(asked.get_program());
            strace
        }
    };
    let folder = asked.get_current_dir().unwrap_or(Path::new("."));
    started.args(asked.get_args()).current_dir(folder).env_clear();
    started.envs(asked.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let output = within(LIMIT, &mut started).map_err(|error| error.to_string())?;
    let output = output.ok_or_else(|| format!("{asked:?} did not end"))?;
    if let (Some(root), Some(trace)) = (root, &trace) {
        let lines = fs::read(trace).map_err(|error| error.to_string())?;
        check(&String::from_utf8_lossy(&lines), root, folder)?;
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    match output.status.code() {
        Some(code) if !stderr.contains("panicked at") => Ok(Said { code, stdout, stderr }),
        _ => Err(format!("{asked:?} crashed ({}): {stdout}{stderr}", output.status)),
    }
}

fn check(trace: &str, root: &Path, folder: &Path) -> Result<(), String> {
    // What descriptors were opened for, by their numbers: some are named by a path below `/proc`.
    let mut opened: HashMap<String, PathBuf> = HashMap::new();
    // Where each process is, as far as its calls tell: git goes elsewhere to make a fork.
    let mut places: HashMap<&str, PathBuf> = HashMap::new();
    for line in trace.lines() {
        let process = line.split(' ').next().unwrap_or_default();
        if let Some((_, place)) = line.split_once("AT_FDCWD<") {
            let (place, _) = unescaped(place.as_bytes(), 0, b'>');
            places.insert(process, PathBuf::from(OsString::from_vec(place)));
        }
        let folder = places.get(process).map_or(folder, PathBuf::as_path);
        if let Some((_, answer)) = line.rsplit_once(" = ") {
            let number = answer.split('<').next().unwrap_or_default();
            let path = tokens(&format!("{answer} = ")).into_iter().next();
            let path = path.map(|(Token::Descriptor(path) | Token::Text(path))| path);
            path.map(|path| opened.insert(format!("/proc/self/fd/{number}"), path));
        }
        let paths = changed(line, folder).into_iter();
        let mut paths =
            paths.map(|path| opened.get(&*path.to_string_lossy()).cloned().unwrap_or(path));
        let stray = paths.find(|path| !is_ours(path, root));
        if let Some(path) = stray {
            return Err(format!("wrote to {}: {line}", path.display()));
        }
    }
    Ok(())
}

/// The workspace without its repository, the store, and where a checkpoint was asked to be put.
fn is_ours(path: &Path, root: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(root) else {
        return path == Path::new("/dev/null") || path == Path::new("/dev/tty");
    };
    let mut parts = inside.components();
    let first = parts.next().map(|it| it.as_os_str().to_string_lossy().into_owned());
    match first.as_deref() {
        Some("project") => parts.next() != Some(Component::Normal(".git".as_ref())),
        Some("home") => {
            let rest = parts.as_path();
            [".local/share/bivouac", ".local/state/bivouac"].iter().any(|own| {
                let is_above = Path::new(own).starts_with(rest) && rest.components().count() > 0;
                rest.starts_with(own) || is_above
            })
        }
        Some(name) => name.starts_with("into-"),
        None => false,
    }
}

/// The paths that a line of the trace says are changed.
fn changed(line: &str, folder: &Path) -> Vec<PathBuf> {
    let Some((call, args)) = line.split_once('(') else { return Vec::new() };
    let call = call.rsplit(' ').next().unwrap_or(call);
    let for_reading = call.starts_with("open")
        && !["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|it| args.contains(it));
    if for_reading || !line.contains(" = ") {
        return Vec::new();
    }
    let mut paths = Vec::new();
    let mut last: Option<PathBuf> = None;
    let mut is_told = false;
    // What a link says is no path that is written to.
    let mut is_text = call.starts_with("symlink");
    for token in tokens(args) {
        match token {
            Token::Descriptor(path) => {
                paths.extend(last.take().filter(|_| !is_told));
                (last, is_told) = (Some(path), false);
            }
            Token::Text(_) if is_text => is_text = false,
            Token::Text(text) => {
                let start = last.clone().unwrap_or_else(|| folder.to_owned());
                paths.push(plain(&start.join(text)));
                is_told = true;
            }
        }
    }
    // A call that has a descriptor and no name is about the descriptor; an open answers one.
    if !is_told && !call.starts_with("open") {
        paths.extend(last);
    }
    paths
}

enum Token {
    /// `3</some/path>`
    Descriptor(PathBuf),
    /// `"name"`
    Text(PathBuf),
}

fn tokens(args: &str) -> Vec<Token> {
    // What comes behind the arguments is the answer.
    let args = args.rsplit_once(" = ").map_or(args, |(args, _)| args).as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < args.len() {
        let end = match args[at] {
            b'"' => b'"',
            b'<' => b'>',
            _ => {
                at += 1;
                continue;
            }
        };
        let (bytes, behind) = unescaped(args, at + 1, end);
        let path = PathBuf::from(OsString::from_vec(bytes));
        tokens.push(if end == b'"' { Token::Text(path) } else { Token::Descriptor(path) });
        at = behind;
    }
    tokens
}

/// The bytes up to `end`, and where it goes on.
fn unescaped(text: &[u8], mut at: usize, end: u8) -> (Vec<u8>, usize) {
    let mut bytes = Vec::new();
    while at < text.len() && text[at] != end {
        let (byte, length) = match text[at] {
            b'\\' => escape(&text[at + 1..]),
            byte => (byte, 1),
        };
        bytes.push(byte);
        at += length;
    }
    (bytes, at + 1)
}

/// The byte that is meant by what follows a backslash, and how long both are.
fn escape(text: &[u8]) -> (u8, usize) {
    let n_digits = text.iter().take(3).take_while(|it| (b'0'..=b'7').contains(it)).count();
    let octal =
        text[..n_digits].iter().fold(0u8, |sum, it| sum.wrapping_mul(8).wrapping_add(it - b'0'));
    let hex =
        text.get(1..3).and_then(|it| u8::from_str_radix(std::str::from_utf8(it).ok()?, 16).ok());
    match (text.first(), hex) {
        (Some(b'x'), Some(byte)) => (byte, 4),
        (Some(b'n'), _) => (b'\n', 2),
        (Some(b't'), _) => (b'\t', 2),
        (Some(b'r'), _) => (b'\r', 2),
        (Some(b'v'), _) => (0x0b, 2),
        (Some(b'f'), _) => (0x0c, 2),
        (Some(b'0'..=b'7'), _) => (octal, 1 + n_digits),
        (Some(byte), _) => (*byte, 2),
        (None, _) => (b'\\', 1),
    }
}

/// Without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &[&str]) {
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(changed(line, Path::new("/w")), expected, "{line}");
    }

    #[test]
    fn what_a_call_changes_is_read_from_its_line() {
        check(r#"7 openat(AT_FDCWD</w>, "a", O_RDONLY) = 3</w/a>"#, &[]);
        check(
            r#"7 openat(AT_FDCWD</w>, "../x\303\251", O_RDWR|O_CREAT, 0600) = 3</x>"#,
            &["/x\u{e9}"],
        );
        check(r#"7 renameat2(4</w/d>, "a", 5</s>, "b", RENAME_EXCHANGE) = 0"#, &["/w/d/a", "/s/b"]);
        check(r#"7 symlinkat("/etc/passwd", 4</w/d>, "l") = 0"#, &["/w/d/l"]);
        check("7 fchmod(4</w/d>, 0644) = 0", &["/w/d"]);
        check("7 utimensat(4</w/d>, NULL, [UTIME_OMIT], 0) = 0", &["/w/d"]);
        check(r#"7 unlink("rel\n") = 0"#, &["/w/rel\n"]);
        check(r#"7 mkdir("/w/x", 0700) = 0"#, &["/w/x"]);
    }

    #[test]
    fn only_what_is_ours_may_be_changed() {
        for (path, expected) in [
            ("/r/project/a", true),
            ("/r/project/.git/index", false),
            ("/r/project/sub/.gitx", true),
            ("/r/home/.local/share", true),
            ("/r/home/.local/share/bivouac/sessions.db", true),
            ("/r/home/.profile", false),
            ("/r/home", false),
            ("/r/outside/mine", false),
            ("/r/into-1/a", true),
            ("/etc/passwd", false),
            ("/dev/null", true),
        ] {
            assert_eq!(is_ours(Path::new(path), Path::new("/r")), expected, "{path}");
        }
    }
}
