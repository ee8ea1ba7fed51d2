//! Being there while a command runs: signs of life, saves, and its end, or ending it when its time has come.

use std::time::{Duration, Instant};

use bivouac_capture::signals::SIGTERM;
use bivouac_capture::tmux::Tmux;
use bivouac_core::checkpoint::Trigger;
use bivouac_core::run::Ending;

use super::saver::Saver;
use super::stage::Stage;
use crate::lock::Lock;

/// How long a last save is waited for before a command is told to end: whoever ends us may be in a hurry.
const FAREWELL_SAVE: Duration = Duration::from_secs(3);

/// What is kept in mind while a command runs.
pub(super) struct Watching<'w> {
    pub(super) lock: &'w Lock,
    /// How long a command that is told to end may take for it.
    pub(super) grace: Duration,
    pub(super) deadline: Option<Instant>,
    pub(super) onlookers: Option<Onlookers>,
}

/// Those who look at our tmux session. tmux has a hook for when one leaves, but cannot always tell which session
/// it was that they left.
pub(super) struct Onlookers {
    session: String,
    n_clients: usize,
    next_look: Instant,
}

impl Onlookers {
    const EVERY: Duration = Duration::from_secs(2);

    pub(super) fn new(session: &str) -> Self {
        Self { session: session.to_owned(), n_clients: 0, next_look: Instant::now() + Self::EVERY }
    }

    /// Has anyone left since this was last asked?
    fn have_left(&mut self) -> bool {
        if Instant::now() < self.next_look {
            return false;
        }
        self.next_look = Instant::now() + Self::EVERY;
        let before = self.n_clients;
        self.n_clients = Tmux::standard().n_clients(&self.session).unwrap_or(before);
        self.n_clients < before
    }
}

/// Why a command is being ended.
struct Farewell {
    ending: Ending,
    /// When it is told to end, if the last save is not through before.
    tell_at: Instant,
    /// When it is ended, if it did not by itself.
    kill_at: Option<Instant>,
}

/// Signs of life come this often.
const BEAT: Duration = Duration::from_secs(10);

impl Watching<'_> {
    pub(super) fn until_the_end(
        &mut self,
        stage: &mut Stage,
        saver: &mut Saver,
        timeout: Duration,
    ) -> Ending {
        let mut farewell: Option<Farewell> = None;
        let mut next_beat = Instant::now();
        loop {
            let now = Instant::now();
            if now >= next_beat {
                self.lock.beat();
                next_beat = now + BEAT;
            }
            let seen = stage.wait(self.next_moment(saver, farewell.as_ref(), next_beat));
            for (process, fate) in &seen.fates {
                saver.ended(*process, *fate);
            }
            if let Some(ending) = seen.ending {
                // What it did by itself is not what was done to it.
                let is_told = farewell.as_ref().is_some_and(|it| it.kill_at.is_some());
                return farewell.filter(|_| is_told).map_or(ending, |it| it.ending);
            }
            let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let timed_out = Ending::TimedOut { after_seconds: timeout.as_secs() };
            let wish = seen.shutdown.map(|signal| Ending::ShutDown { signal });
            match (&mut farewell, wish.or(is_late.then_some(timed_out))) {
                (None, Some(ending)) => farewell = Some(begin_farewell(ending, saver)),
                // Told twice, somebody means it.
                (Some(farewell), Some(_)) if wish.is_some() => farewell.tell_at = Instant::now(),
                (None, None) if self.onlookers.as_mut().is_some_and(Onlookers::have_left) => {
                    saver.save_beside(Trigger::Detach);
                }
                (None, None) => saver.tick(),
                _ => {}
            }
            if let Some(farewell) = &mut farewell {
                self.go_on_with(farewell, stage, saver);
            }
        }
    }

    fn next_moment(
        &self,
        saver: &Saver,
        farewell: Option<&Farewell>,
        next_beat: Instant,
    ) -> Instant {
        let farewell = farewell.map(|it| it.kill_at.unwrap_or(it.tell_at));
        let deadline = self.deadline.filter(|_| farewell.is_none());
        let save = saver.next_look().filter(|_| farewell.is_none());
        let onlookers = self.onlookers.as_ref().map(|it| it.next_look);
        let onlookers = onlookers.filter(|_| farewell.is_none());
        [Some(next_beat), farewell, deadline, save, onlookers]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(next_beat)
    }

    fn go_on_with(&self, farewell: &mut Farewell, stage: &mut Stage, saver: &Saver) {
        let now = Instant::now();
        match farewell.kill_at {
            None if now >= farewell.tell_at || !saver.is_busy() => {
                let signal = match farewell.ending {
                    Ending::ShutDown { signal } => signal,
                    _ => SIGTERM,
                };
                stage.signal(signal);
                farewell.kill_at = Some(now + self.grace);
            }
            Some(kill_at) if now >= kill_at => {
                stage.kill();
                farewell.kill_at = Some(now + self.grace);
            }
            _ => {}
        }
    }
}

/// Saves what there is before the command hears of its end: it may not get far afterwards.
fn begin_farewell(ending: Ending, saver: &mut Saver) -> Farewell {
    saver.begin_last(ending.trigger(), ending.reason().as_deref());
    Farewell { ending, tell_at: Instant::now() + FAREWELL_SAVE, kill_at: None }
}
