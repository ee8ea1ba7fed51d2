//! How far long work is, told to a client that asked, and whether the client still wants it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bivouac_core::progress::Progress;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// Not more often than people can read.
const PAUSE: Duration = Duration::from_millis(100);

/// Told by the worker's threads.
pub(super) struct Teller {
    is_cancelled: Box<dyn Fn() -> bool + Send + Sync>,
    /// Where nobody asked, nothing is told.
    to_client: Option<UnboundedSender<Reached>>,
    n_done: AtomicU64,
    stretch: Mutex<Stretch>,
}

struct Stretch {
    what: String,
    /// What all stretches so far and this one add up to.
    total: u64,
    told_at: Option<Instant>,
}

struct Reached {
    n_done: u64,
    total: u64,
    what: String,
}

/// Hands on what a teller tells, in order, until it is gone.
pub(super) struct Listener {
    told: UnboundedReceiver<Reached>,
    token: ProgressToken,
    peer: Peer<RoleServer>,
}

impl Teller {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> (Self, Option<Listener>) {
        let (to_client, told) = mpsc::unbounded_channel();
        let listener = context.meta.get_progress_token().map(|token| Listener {
            told,
            token,
            peer: context.peer.clone(),
        });
        let stretch = Stretch { what: String::new(), total: 0, told_at: None };
        let cancelled = context.ct.clone();
        let teller = Self {
            is_cancelled: Box::new(move || cancelled.is_cancelled()),
            to_client: listener.is_some().then_some(to_client),
            n_done: AtomicU64::new(0),
            stretch: Mutex::new(stretch),
        };
        (teller, listener)
    }

    /// Tells how far it is, if there is someone to tell and it is not too soon again.
    fn tell(&self, pause: Duration) {
        let (Some(to_client), Ok(mut stretch)) = (&self.to_client, self.stretch.lock()) else {
            return;
        };
        if stretch.told_at.is_some_and(|at| at.elapsed() < pause) {
            return;
        }
        stretch.told_at = Some(Instant::now());
        let n_done = self.n_done.load(Ordering::Relaxed);
        let reached = Reached { n_done, total: stretch.total, what: stretch.what.clone() };
        let _nobody_listens = to_client.send(reached);
    }
}

impl Progress for Teller {
    fn begin(&self, what: &str, total: u64) {
        if let Ok(mut stretch) = self.stretch.lock() {
            what.clone_into(&mut stretch.what);
            stretch.total = self.n_done.load(Ordering::Relaxed) + total;
        }
    }

    fn add(&self, steps: u64) {
        self.n_done.fetch_add(steps, Ordering::Relaxed);
        self.tell(PAUSE);
    }

    fn end(&self) {
        self.tell(Duration::ZERO);
    }

    fn is_cancelled(&self) -> bool {
        (self.is_cancelled)()
    }
}

impl Listener {
    pub(super) async fn listen(mut self) {
        let mut last = 0;
        while let Some(Reached { n_done, total, what }) = self.told.recv().await {
            // The protocol wants every number to be larger than the one before.
            if n_done <= last {
                continue;
            }
            last = n_done;
            let mut notice = ProgressNotificationParam::new(self.token.clone(), n_done as f64);
            notice.total = (total >= n_done).then_some(total as f64);
            notice.message = Some(what);
            if self.peer.notify_progress(notice).await.is_err() {
                return;
            }
        }
    }
}
