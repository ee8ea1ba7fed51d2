//! Signals sent to us, as something that can be waited for together with everything else.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use signal_hook::consts::{
    SIGABRT, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGSEGV, SIGTERM, SIGUSR1,
    SIGUSR2, SIGWINCH, SIGXFSZ,
};

/// Where files may not grow (`ulimit -f`), a write that is too much ends the process. From here on it fails instead,
/// and whoever writes deals with that.
pub fn survive_file_size_limit() {
    let came = Arc::new(AtomicBool::new(false));
    let _ends_as_before = signal_hook::flag::register(SIGXFSZ, came);
}

/// Signals that no longer do what they would by themselves: they wait here to be looked at.
pub struct Signals {
    pipe: UnixStream,
    came: BTreeMap<i32, Arc<AtomicBool>>,
    ids: Vec<signal_hook::SigId>,
}

impl Signals {
    pub fn catch(signals: &[i32]) -> io::Result<Self> {
        let (pipe, waker) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let mut caught = Self { pipe, came: BTreeMap::new(), ids: Vec::new() };
        for signal in signals {
            let flag = Arc::new(AtomicBool::new(false));
            caught.ids.push(signal_hook::flag::register(*signal, Arc::clone(&flag))?);
            let waker = waker.try_clone()?;
            caught.ids.push(signal_hook::low_level::pipe::register(*signal, waker)?);
            caught.came.insert(*signal, flag);
        }
        Ok(caught)
    }

    /// Those that came since this was last asked.
    pub fn take(&mut self) -> Vec<i32> {
        let mut wakes = [0; 256];
        while matches!(self.pipe.read(&mut wakes), Ok(1..)) {}
        let came = self.came.iter().filter(|(_, flag)| flag.swap(false, Ordering::SeqCst));
        came.map(|(signal, _)| *signal).collect()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
