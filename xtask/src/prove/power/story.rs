//! From calls to what they did to the disk. What this does not know it refuses, and whether it knew all is seen
//! when everything it understood is done to a copy of the beginning: that has to be the end, byte for byte.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::disk::{Disk, Ino, Name, Node, Op, What};
use super::record::{Call, shown_path};
use crate::Result;

/// What happened, in the order in which it came back.
pub(super) struct Story {
    pub(super) ops: Vec<Op>,
    /// The disk at the end.
    pub(super) end: Disk,
    /// What was made, as it was when it was new. Nodes that were there before are not among them.
    pub(super) born: Vec<Node>,
}

/// Files of a program are made with this taken away.
const UMASK: u32 = 0o022;

/// An open file. Descriptors that were made from one another share it.
struct Open {
    ino: Option<Ino>,
    at: u64,
    appends: bool,
}

struct Teller<'t> {
    top: &'t Path,
    disk: Disk,
    ops: Vec<Op>,
    born: Vec<Node>,
    /// The number of ops there were when each call had come back.
    reached: Vec<usize>,
    open: HashMap<(u32, u64), Rc<RefCell<Open>>>,
    /// Threads share the descriptors of the process they belong to.
    process_of: HashMap<u32, u32>,
    first: Option<u32>,
    folder: &'t Path,
    folders: HashMap<u32, PathBuf>,
}

/// The folder is the one the command was started in.
pub(super) fn tell(start: Disk, (top, folder): (&Path, &Path), calls: &[Call]) -> Result<Story> {
    let mut teller = Teller {
        top,
        disk: start,
        ops: Vec::new(),
        born: Vec::new(),
        reached: Vec::new(),
        open: HashMap::new(),
        process_of: HashMap::new(),
        first: None,
        folder,
        folders: HashMap::new(),
    };
    // Whose child a thread or a process is may be told after its first call.
    for call in calls.iter().filter(|call| !call.failed()) {
        let is_thread = call.args.iter().any(|arg| arg.contains("CLONE_THREAD"));
        if call.name.starts_with("clone") && is_thread {
            teller.process_of.insert(call.answered() as u32, call.pid);
        }
    }
    for call in calls {
        if !call.failed() {
            teller
                .call(call)
                .map_err(|what| format!("{}({}): {what}", call.name, call.args.join(", ")))?;
        }
        teller.reached.push(teller.ops.len());
    }
    Ok(Story { ops: teller.ops, end: teller.disk, born: teller.born })
}

/// What cannot be told.
type Told = std::result::Result<(), String>;

impl Teller<'_> {
    fn call(&mut self, call: &Call) -> Told {
        let process = self.process(call.pid);
        self.first.get_or_insert(process);
        match call.name.as_str() {
            "clone" | "clone3" | "fork" | "vfork" => self.fork(process, call),
            "open" | "openat" | "openat2" | "creat" => return self.open(process, call),
            "close" => drop(self.open.remove(&(process, call.number(0)))),
            "dup" | "dup2" | "dup3" => self.dup(process, call),
            "fcntl" if call.arg(1).starts_with("F_DUPFD") => self.dup(process, call),
            "lseek" => self.with_open(process, call, |open| open.at = call.answered()),
            "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => self.write(process, call),
            "ftruncate" | "truncate" => {
                if let Some(ino) = self.node(process, call)? {
                    self.push(Op::Cut { ino, length: call.number(1) });
                }
            }
            "fsync" | "fdatasync" => self.sync(process, call)?,
            "syncfs" | "sync" => {
                let since = self.since(call);
                self.push(Op::SyncAll { since });
            }
            "chdir" => {
                let folder = self.folder_of(process).join(OsString::from_vec(call.bytes(0)));
                self.folders.insert(process, folder);
            }
            "fchdir" => {
                let folder = shown_path(call.arg(0)).ok_or("which folder")?;
                self.folders.insert(process, OsString::from_vec(folder).into());
            }
            "fcntl" => {}
            "sync_file_range" => {}
            _ => return self.names(process, call),
        }
        Ok(())
    }

    fn names(&mut self, process: u32, call: &Call) -> Told {
        let folder = |n: usize| call.arg(n).starts_with("AT_FDCWD") || call.arg(n).contains('<');
        let first = usize::from(folder(0));
        match call.name.as_str() {
            "mkdir" | "mkdirat" => {
                let mode = call.number(first + 1) as u32 & !UMASK;
                self.create(call, first, What::Folder(Default::default()), mode);
            }
            "symlink" | "symlinkat" => {
                let target = What::Link(call.bytes(0));
                self.create(call, call.args.len() - 1, target, 0o777);
            }
            "unlink" | "unlinkat" | "rmdir" => {
                if let Some((folder, name)) = self.place(call, first) {
                    self.push(Op::Remove { folder, name });
                }
            }
            "rename" | "renameat" | "renameat2" => return self.rename(call),
            "chmod" | "fchmod" | "fchmodat" | "fchmodat2" => {
                let mode = call.args.iter().skip(1).rev().find(|arg| arg.starts_with('0'));
                let mode =
                    u32::from_str_radix(mode.ok_or("no mode")?, 8).map_err(|it| it.to_string())?;
                if let Some(ino) = self.node(process, call)? {
                    self.push(Op::Mode { ino, mode });
                }
            }
            "link" | "linkat" => {
                let (from, to) = if call.args.len() == 2 { (0, 1) } else { (1, 3) };
                let ino = self.path(call, from).and_then(|path| self.disk.find(&path));
                if let (Some(ino), Some((folder, name))) = (ino, self.place(call, to)) {
                    self.push(Op::Name { folder, name, ino });
                }
            }
            _ if self.is_ours(call) => return Err("this is not known here".to_owned()),
            _ => {}
        }
        Ok(())
    }

    /// Is anything below our folder named?
    fn is_ours(&self, call: &Call) -> bool {
        let shown = |arg: &String| shown_path(arg).is_some_and(|path| self.inside(&path).is_some());
        let quoted = |n: usize| call.arg(n).contains('"') && self.path(call, n).is_some();
        call.args.iter().any(shown) || (0..call.args.len()).any(quoted)
    }

    fn process(&self, pid: u32) -> u32 {
        let mut pid = pid;
        while let Some(parent) = self.process_of.get(&pid) {
            pid = *parent;
        }
        pid
    }

    fn folder_of(&self, process: u32) -> PathBuf {
        self.folders.get(&process).map_or_else(|| self.folder.to_owned(), PathBuf::clone)
    }

    fn fork(&mut self, process: u32, call: &Call) {
        let child = call.answered() as u32;
        if self.process_of.contains_key(&child) {
            return;
        }
        let own = self.open.iter().filter(|((of, _), _)| *of == process);
        let inherited: Vec<_> = own.map(|((_, fd), open)| ((child, *fd), open.clone())).collect();
        for (key, open) in inherited {
            // What the child opened itself before we were told of it is newer.
            self.open.entry(key).or_insert(open);
        }
    }

    fn open(&mut self, process: u32, call: &Call) -> Told {
        let fd = call.answered();
        let flags = call.args.join(" ");
        if flags.contains("O_TMPFILE") {
            return Err("a file without a name is not known here".to_owned());
        }
        let found = shown_path(&call.answer).and_then(|path| self.inside(&path));
        let creates = flags.contains("O_CREAT") || call.name == "creat";
        let mut ino = found.as_ref().and_then(|names| self.disk.find(names));
        if let (None, Some(names), true) = (ino, &found, creates) {
            let mode = call.args.iter().rev().find_map(|arg| {
                let text = arg.split("mode=").nth(1).unwrap_or(arg);
                text.starts_with('0').then(|| leading_octal(text))
            });
            ino = self.create_at(names, What::File(Arc::default()), mode.unwrap_or(0o666) & !UMASK);
        } else if let (Some(ino), true) = (ino, flags.contains("O_TRUNC") || call.name == "creat") {
            self.push(Op::Cut { ino, length: 0 });
        }
        let appends = flags.contains("O_APPEND");
        self.open.insert((process, fd), Rc::new(RefCell::new(Open { ino, at: 0, appends })));
        Ok(())
    }

    fn dup(&mut self, process: u32, call: &Call) {
        let from = self.open.get(&(process, call.number(0))).cloned();
        let to = (process, call.answered());
        match from {
            Some(open) => self.open.insert(to, open),
            None => self.open.remove(&to),
        };
    }

    fn with_open(&mut self, process: u32, call: &Call, act: impl FnOnce(&mut Open)) {
        if let Some(open) = self.open.get(&(process, call.number(0))) {
            act(&mut open.borrow_mut());
        }
    }

    fn write(&mut self, process: u32, call: &Call) {
        let mut bytes = call.bytes(1);
        bytes.truncate(call.answered() as usize);
        let Some(open) = self.open.get(&(process, call.number(0))).cloned() else {
            if call.number(0) == 1 && Some(process) == self.first {
                self.push(Op::Said);
            }
            return;
        };
        let mut open = open.borrow_mut();
        let Some(ino) = open.ino else { return };
        let at = match call.name.as_str() {
            "pwrite64" | "pwritev" | "pwritev2" => call.number(3),
            _ => {
                if open.appends {
                    open.at = self.disk.content(ino).map_or(0, |content| content.len() as u64);
                }
                open.at += bytes.len() as u64;
                open.at - bytes.len() as u64
            }
        };
        self.push(Op::Write { ino, at, bytes: Arc::new(bytes) });
    }

    fn sync(&mut self, process: u32, call: &Call) -> Told {
        let since = self.since(call);
        if let Some(ino) = self.node(process, call)? {
            self.push(Op::Sync { ino, with_mode: call.name == "fsync", since });
        }
        Ok(())
    }

    /// What had been done when a call began.
    fn since(&self, call: &Call) -> usize {
        call.began.checked_sub(1).map_or(0, |last| self.reached[last])
    }

    fn rename(&mut self, call: &Call) -> Told {
        let (from, to) = if call.name == "rename" { (0, 1) } else { (1, 3) };
        let swaps = call.arg(4).contains("RENAME_EXCHANGE");
        match (self.place(call, from), self.place(call, to)) {
            (Some(from), Some(to)) => {
                self.push(Op::Rename { from, to, swaps });
                Ok(())
            }
            (None, None) => Ok(()),
            _ => Err("something is moved into or out of the folder".to_owned()),
        }
    }

    fn create(&mut self, call: &Call, at: usize, what: What, mode: u32) {
        if let Some(names) = self.path(call, at) {
            self.create_at(&names, what, mode);
        }
    }

    fn create_at(&mut self, names: &[Name], what: What, mode: u32) -> Option<Ino> {
        let (name, folder) = names.split_last()?;
        let (folder, name) = (self.disk.find(folder)?, name.clone());
        self.born.push(Node { what: what.clone(), mode });
        let ino = self.disk.add(what, mode);
        self.push(Op::Name { folder, name, ino });
        Some(ino)
    }

    fn push(&mut self, op: Op) {
        self.disk.apply(&op);
        self.ops.push(op);
    }

    /// The node a descriptor or a path is about.
    fn node(&mut self, process: u32, call: &Call) -> std::result::Result<Option<Ino>, String> {
        let quoted = (0..2).find(|n| call.arg(*n).contains('"'));
        let Some(quoted) = quoted else {
            let open = self.open.get(&(process, call.number(0)));
            return Ok(open.and_then(|open| open.borrow().ino));
        };
        let path = call.bytes(quoted);
        if let Some(fd) = path.strip_prefix(b"/proc/self/fd/") {
            let fd = String::from_utf8_lossy(fd).parse().map_err(|_| "what descriptor is this")?;
            let open = self.open.get(&(process, fd));
            return Ok(open.and_then(|open| open.borrow().ino));
        }
        Ok(self.path(call, quoted).and_then(|names| self.disk.find(&names)))
    }

    /// The folder and the name that an argument is about, if they are ours.
    fn place(&self, call: &Call, at: usize) -> Option<(Ino, Name)> {
        let names = self.path(call, at)?;
        let (name, folder) = names.split_last()?;
        Some((self.disk.find(folder)?, name.clone()))
    }

    /// A path argument, from the folder given before it, as names below our folder.
    fn path(&self, call: &Call, at: usize) -> Option<Vec<Name>> {
        let shown = at.checked_sub(1).and_then(|before| shown_path(call.arg(before)));
        let folder = match shown {
            Some(folder) => OsString::from_vec(folder).into(),
            None => self.folder_of(self.process(call.pid)),
        };
        let path = folder.join(OsString::from_vec(call.bytes(at)));
        self.inside(path.as_os_str().as_bytes())
    }

    fn inside(&self, path: &[u8]) -> Option<Vec<Name>> {
        let mut names: Vec<Name> = Vec::new();
        for name in path.split(|it| *it == b'/') {
            match name {
                b"" | b"." => {}
                b".." => drop(names.pop()),
                _ => names.push(name.to_vec()),
            }
        }
        let top: Vec<&[u8]> = self
            .top
            .as_os_str()
            .as_bytes()
            .split(|it| *it == b'/')
            .filter(|it| !it.is_empty())
            .collect();
        names.iter().take(top.len()).eq(top.iter()).then(|| names.split_off(top.len()))
    }
}

fn leading_octal(text: &str) -> u32 {
    let digits: String = text.chars().take_while(|it| it.is_digit(8)).collect();
    u32::from_str_radix(&digits, 8).unwrap_or(0)
}
