//! Watching a workspace, so that a checkpoint costs what changed and not what is there. One process does it,
//! whoever has the lock: `biv watch`, or a supervisor. All others ask it.
//!
//! - `known`: what it knows
//! - `wire`: how it is spoken to
//! - `ask`: those who ask

mod ask;
mod known;
mod wire;

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bivouac_core::path::RelPath;
use bivouac_snapshot::private;
use bivouac_snapshot::stat_cache::{StatCache, Token};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

pub(crate) use ask::{News, is_watched};
pub use ask::{ask_status, ask_to_stop};
use known::{Answer, Known, Remembered, Rescan, Told};

use crate::home::Home;
use crate::lock::{Hold, Lock};
use crate::{Error, Result};

/// What a watcher is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ask {
    /// What changed since?
    Since {
        token: Option<Token>,
    },
    /// A scan is remembered; its folders follow.
    Remembered {
        token: Token,
        /// All folders follow, not only new ones.
        is_all: bool,
        /// The scan looked at everything. Earlier versions do not say.
        #[serde(default)]
        is_full: bool,
        session: String,
    },
    Status,
    Stop,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    /// Everything may have.
    Everything {
        token: Option<Token>,
    },
    /// Only what follows: paths, then whole trees.
    Only {
        token: Token,
    },
    Done {
        is_good: bool,
    },
    Status(WatchStatus),
}

/// How a watcher is doing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WatchStatus {
    pub process: u32,
    pub n_folders: usize,
    /// Why it cannot tell what changed, if so: then everything is looked at, more rarely.
    pub trouble: Option<String>,
    /// The session it saves; none yet if it is empty.
    pub session: Option<String>,
    pub interval_seconds: u64,
    pub n_saves: u64,
    /// How many saves failed since the last that did not, and why.
    pub n_failures: u64,
    pub last_failure: Option<String>,
    /// Everything is looked at this often, because inotify does not report every change.
    #[serde(default)]
    pub rescan_seconds: u64,
    /// How long ago that was done.
    #[serde(default)]
    pub last_rescan_seconds: Option<u64>,
    /// May it be told to stop? A supervisor's may not: it ends with its command.
    pub may_stop: bool,
}

/// What the one who watches and the one who saves tell each other.
#[derive(Default)]
struct Shared {
    status: WatchStatus,
    last_change: Option<Instant>,
    rescan: Option<Rescan>,
    /// When the question was asked whose answer is remembered now: what came later is not saved yet.
    saved_until: Option<Instant>,
    /// When that was said to be saved.
    last_saved: Option<Instant>,
    /// The last questions, by what the clock said.
    asked: VecDeque<(u64, Instant)>,
    is_stop_asked: bool,
}

impl Shared {
    fn note_question(&mut self, tick: u64, asked: Instant) {
        const MANY: usize = 64;
        self.asked.push_back((tick, asked));
        if self.asked.len() > MANY {
            self.asked.pop_front();
        }
    }

    /// What another session saved is not saved for ours.
    fn note_saved(&mut self, tick: u64, session: &str) {
        if self.status.session.as_deref().is_some_and(|own| own != session) {
            return;
        }
        let asked = self.asked.iter().find(|(own, _)| *own == tick);
        self.saved_until = asked.map(|(_, at)| *at).max(self.saved_until);
        self.last_saved = Some(Instant::now());
    }
}

/// A watcher at work, in a thread of its own. Ends when this is dropped.
pub struct Watch {
    shared: Arc<Mutex<Shared>>,
    waker: UnixStream,
    thread: Option<JoinHandle<()>>,
    socket: PathBuf,
    _lock: Lock,
}

/// After news, so long the file system is left to itself: what happens together is told together.
const PACE: Duration = Duration::from_millis(100);

impl Watch {
    /// Starts watching. `None` when someone else does.
    pub fn start(home: &Home) -> Result<Option<Self>> {
        let Some(lock) = Lock::attempt(&home.watch_lock(), Hold::Alone)? else {
            return Ok(None);
        };
        let socket = home.watch_socket();
        let own = home.own_state().iter().map(|path: &RelPath| path.as_bytes().into()).collect();
        let known = Known::new(&home.workspace, own, rescan_every());
        let listener = wire::listen(&socket).map_err(Error::io(&socket))?;
        let (waker, sleeper) = UnixStream::pair().map_err(Error::io(&socket))?;
        let shared = Arc::new(Mutex::new(Shared::default()));
        held(&shared).status.process = std::process::id();
        let server = Server { known, listener, sleeper, shared: Arc::clone(&shared) };
        let cache = home.stat_cache();
        let thread = thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || server.run(&cache))
            .map_err(Error::io(&socket))?;
        Ok(Some(Self { shared, waker, thread: Some(thread), socket, _lock: lock }))
    }

    /// Has anything changed that no checkpoint was asked for since? Where nobody can tell, it may have, and so it
    /// may when everything is to be looked at again.
    pub(crate) fn is_dirty(&self) -> bool {
        let shared = held(&self.shared);
        let rescan_at = shared.rescan.and_then(|rescan| rescan.due());
        shared.status.trouble.is_some()
            || rescan_at.is_some_and(|at| at <= Instant::now())
            || match (shared.last_change, shared.saved_until) {
                (Some(change), Some(saved)) => change >= saved,
                (None, Some(_)) => false,
                (_, None) => true,
            }
    }

    /// How long nothing has changed.
    pub(crate) fn quiet_for(&self) -> Option<Duration> {
        held(&self.shared).last_change.map(|at| at.elapsed())
    }

    /// When anyone last saved this workspace.
    pub(crate) fn last_saved(&self) -> Option<Instant> {
        held(&self.shared).last_saved
    }

    pub(crate) fn is_stop_asked(&self) -> bool {
        held(&self.shared).is_stop_asked
    }

    pub fn status(&self) -> WatchStatus {
        held(&self.shared).status.clone()
    }

    /// Changes what others are told about the one who saves.
    pub(crate) fn tell(&self, change: impl FnOnce(&mut WatchStatus)) {
        change(&mut held(&self.shared).status);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _wakes_it = self.waker.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
        let _gone = private::remove_file(&self.socket);
    }
}

/// A thread that failed leaves the numbers as they were; they are only numbers.
fn held(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often everything is looked at. A variable shortens that for tests.
fn rescan_every() -> Duration {
    let seconds = std::env::var("BIV_WATCH_RESCAN_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok());
    seconds.map_or(known::RESCAN_EVERY, Duration::from_secs)
}

/// What a wait ended with.
struct Woken {
    is_over: bool,
    /// Something was mounted or unmounted.
    has_mounts: bool,
    /// Something happened in a folder.
    has_news: bool,
}

struct Server {
    known: Known,
    listener: UnixListener,
    sleeper: UnixStream,
    shared: Arc<Mutex<Shared>>,
}

impl Server {
    fn run(mut self, cache: &std::path::Path) {
        // Folders of the last scan are watched before anyone asks, so that one full scan is enough.
        let folders = StatCache::load(cache).map(|cache| cache.folders()).unwrap_or_default();
        self.known.begin(folders.into_iter());
        self.publish();
        let mut rest_until = Instant::now();
        loop {
            let rest = rest_until.saturating_duration_since(Instant::now());
            let Ok(woken) = self.wait(rest) else { return };
            if woken.is_over {
                return;
            }
            if woken.has_mounts {
                self.known.look_at_mounts();
            }
            if woken.has_news {
                self.known.take_in();
                rest_until = Instant::now() + PACE;
            }
            while let Ok((stream, _)) = self.listener.accept() {
                // Whoever asks and does not listen gets no answer; the next one may.
                let _theirs_to_notice = self.answer(&stream);
            }
            self.publish();
        }
    }

    /// Waits until there is something to do. While the file system rests, only questions count.
    fn wait(&self, rest: Duration) -> io::Result<Woken> {
        let mut waits = vec![
            PollFd::new(&self.sleeper, PollFlags::IN),
            PollFd::new(&self.listener, PollFlags::IN),
        ];
        let mounts_at = waits.len();
        waits.extend(self.known.mount_table().map(|table| PollFd::new(table, PollFlags::PRI)));
        let news_at = waits.len();
        let notifier = self.known.notifier().filter(|_| rest.is_zero());
        waits.extend(notifier.map(|notifier| PollFd::new(notifier, PollFlags::IN)));
        let timeout = (!rest.is_zero()).then(|| Timespec {
            tv_sec: rest.as_secs() as i64,
            tv_nsec: i64::from(rest.subsec_nanos()),
        });
        match poll(&mut waits, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_woken = |it: &PollFd<'_>| !it.revents().is_empty();
        Ok(Woken {
            is_over: is_woken(&waits[0]),
            has_mounts: waits[mounts_at..news_at].iter().any(is_woken),
            has_news: waits[news_at..].iter().any(|it| it.revents().contains(PollFlags::IN)),
        })
    }

    fn publish(&self) {
        let mut shared = held(&self.shared);
        shared.status.n_folders = self.known.n_folders();
        shared.status.trouble = self.known.trouble().map(str::to_owned);
        shared.last_change = self.known.last_change();
        let rescan = self.known.rescan();
        shared.status.rescan_seconds = rescan.every().as_secs();
        shared.rescan = Some(rescan);
    }

    fn answer(&mut self, stream: &UnixStream) -> io::Result<()> {
        wire::be_patient(stream)?;
        let (ask, mut lists) = wire::receive::<Ask>(stream)?;
        match ask {
            Ask::Since { token } => {
                let answer = self.known.since(token);
                // What is in the answer was taken in before this moment.
                let asked = Instant::now();
                if let Answer::Everything { token: Some(token) } | Answer::Only { token, .. } =
                    &answer
                {
                    held(&self.shared).note_question(token.tick, asked);
                }
                match answer {
                    Answer::Everything { token } => {
                        wire::send(stream, Reply::Everything { token }, &[])
                    }
                    Answer::Only { token, paths, trees } => {
                        wire::send(stream, Reply::Only { token }, &[&paths, &trees])
                    }
                }
            }
            Ask::Remembered { token, is_all, is_full, session } => {
                let told = if is_all { Told::All } else { Told::New };
                let folders = lists.pop().unwrap_or_default();
                let scan = Remembered { token, told, is_full: is_full || is_all };
                let is_good = self.known.remembered(scan, folders);
                held(&self.shared).note_saved(token.tick, &session);
                wire::send(stream, Reply::Done { is_good }, &[])
            }
            Ask::Status => {
                let mut status = held(&self.shared).status.clone();
                let done = self.known.rescan().done();
                status.last_rescan_seconds = done.map(|at| at.elapsed().as_secs());
                wire::send(stream, Reply::Status(status), &[])
            }
            Ask::Stop => {
                let mut shared = held(&self.shared);
                let is_good = shared.status.may_stop;
                shared.is_stop_asked = is_good;
                drop(shared);
                wire::send(stream, Reply::Done { is_good }, &[])
            }
        }
    }
}
