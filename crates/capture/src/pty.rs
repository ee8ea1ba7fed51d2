//! A terminal for a program that runs under supervision, and our own terminal while it does.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

/// The end of a terminal that its user would hold: what is written here is typed, what is read was shown.
pub struct Pty {
    master: OwnedFd,
    /// Where a program finds its own end.
    pub path: PathBuf,
}

impl Pty {
    /// Makes a terminal of the same size as ours, if ours is known.
    pub fn open() -> io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        // A program that does not listen must not keep us from hearing what it says.
        rustix::fs::fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK)?;
        let name = ptsname(&master, Vec::new())?;
        let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
        let pty = Self { master, path };
        pty.fit();
        Ok(pty)
    }

    /// Takes on the size of our own terminal.
    pub fn fit(&self) {
        let own = tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stdin()));
        let usual = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let size = own.ok().filter(|it| it.ws_row > 0 && it.ws_col > 0).unwrap_or(usual);
        let _stays_as_it_is = tcsetwinsize(&self.master, size);
    }

    /// What the program showed; `None` if nothing more just now. None at all once the last program has
    /// closed its end.
    pub fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        match rustix::io::read(&self.master, buffer) {
            Ok(n) => Some(n),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => None,
            Err(_) => Some(0),
        }
    }

    /// Types as much as the program's end takes now. Answers how much that was.
    pub fn write(&self, bytes: &[u8]) -> usize {
        match rustix::io::write(&self.master, bytes) {
            Ok(n) => n,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => 0,
            // Nobody is there any more to read it.
            Err(_) => bytes.len(),
        }
    }
}

impl AsFd for Pty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

/// Opens the program's end of a terminal and makes it ours: what we read, write, and are controlled by.
pub(crate) fn take_over(path: &Path) -> io::Result<()> {
    rustix::process::setsid()?;
    // Without NOCTTY, and leading a session, opening it makes it the one that controls us.
    let terminal: File = rustix::fs::open(path, OFlags::RDWR, Mode::empty())?.into();
    rustix::stdio::dup2_stdin(&terminal)?;
    rustix::stdio::dup2_stdout(&terminal)?;
    // What was sent elsewhere stays there.
    if io::stderr().is_terminal() || io::stderr().as_fd().try_clone_to_owned().is_err() {
        rustix::stdio::dup2_stderr(&terminal)?;
    }
    Ok(())
}

/// Our own terminal, handing on every key as it is. As before once this is dropped.
pub struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// `None` where our input is no terminal.
    pub fn enter() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let own = Self { before };
        own.resume();
        Some(own)
    }

    /// As it was, for a while.
    pub fn leave(&self) {
        let _gone_with_its_terminal = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
    }

    pub fn resume(&self) {
        let mut raw = self.before.clone();
        raw.make_raw();
        let _gone_with_its_terminal = tcsetattr(io::stdin(), OptionalActions::Drain, &raw);
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        self.leave();
    }
}
