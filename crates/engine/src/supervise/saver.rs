//! Saving once in a while, as long as something changes. Each save is a process of its own: what goes wrong
//! in one neither ends us nor stays with us.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use bivouac_capture::process::Started;
use bivouac_capture::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use bivouac_capture::supervised::{Fate, fate_of};
use bivouac_core::checkpoint::Trigger;
use bivouac_core::id::SessionId;
use bivouac_core::progress::Silent;
use rustix::process::Pid;

use crate::home::{Home, Wishes};
use crate::open::Need;
use crate::watch::Watch;
use crate::{Engine, Result};

/// What changes together is saved together: so long nothing has to happen first.
const CALM: Duration = Duration::from_millis(300);
/// And so long a save is put off for that, at most: a tenth of the time between two.
const PATIENCE: u32 = 10;
/// Where nobody can tell what changed, looking takes at most a hundredth of the time.
const SHARE: u32 = 100;
/// But it is not put off for longer than so many intervals.
const RARELY: u32 = 10;

/// Saves every interval, when something changed.
pub(crate) struct Saver {
    home: Home,
    pub(crate) session: Option<SessionId>,
    /// `None` when nobody wants to be saved.
    interval: Option<Duration>,
    environment: Vec<(String, String)>,
    watch: Option<Watch>,
    under_way: Option<Save>,
    last_try: Instant,
    /// How long the last one took.
    last_cost: Duration,
    /// What the agents' own files looked like.
    marks: Vec<(u64, i64)>,
    pub(crate) n_failures: u64,
    pub(crate) last_failure: Option<String>,
}

struct Save {
    started: Started,
    at: Instant,
}

impl Saver {
    pub(crate) fn new(home: &Home, session: Option<SessionId>, interval: Option<Duration>) -> Self {
        let mut saver = Self {
            home: home.clone(),
            session,
            interval,
            environment: Vec::new(),
            watch: None,
            under_way: None,
            last_try: Instant::now(),
            last_cost: Duration::ZERO,
            marks: Vec::new(),
            n_failures: 0,
            last_failure: None,
        };
        if let Some(interval) = interval {
            saver.environment = overrides(Some(interval));
            saver.take_watch();
        }
        saver
    }

    /// The session that is saved from now on.
    pub(crate) fn take_session(&mut self, session: SessionId) {
        if self.session != Some(session) {
            self.session = Some(session);
            self.publish();
        }
    }

    pub(crate) fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// Watches the workspace, if nobody else does.
    fn take_watch(&mut self) {
        if self.watch.is_some() {
            return;
        }
        match Watch::start(&self.home) {
            Ok(watch) => self.watch = watch,
            Err(error) => self.last_failure = Some(crate::error::in_one_line(&error)),
        }
        self.publish();
    }

    fn publish(&self) {
        let Some(watch) = &self.watch else { return };
        watch.tell(|status| {
            status.session = self.session.map(|id| id.to_string());
            status.interval_seconds = self.interval.unwrap_or_default().as_secs();
            status.n_failures = self.n_failures;
            status.last_failure.clone_from(&self.last_failure);
        });
    }

    /// When there may be something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        let interval = self.interval.filter(|_| self.under_way.is_none())?;
        let is_blind = self.watch.as_ref().is_none_or(|watch| watch.status().trouble.is_some());
        // One slow save, or one that had to wait, must not put off the next for hours.
        let rarely = interval.max(self.last_cost * SHARE).min(interval * RARELY);
        let pause = if is_blind { rarely } else { interval };
        let saved = self.watch.as_ref().and_then(Watch::last_saved);
        Some(saved.map_or(self.last_try, |saved| saved.max(self.last_try)) + pause)
    }

    /// Starts a save if it is time and something changed.
    pub(crate) fn tick(&mut self) {
        let now = Instant::now();
        let Some(due) = self.due().filter(|due| *due <= now) else { return };
        self.take_watch();
        let is_restless = |watch: &Watch| watch.quiet_for().is_some_and(|quiet| quiet < CALM);
        if self.watch.as_ref().is_some_and(is_restless)
            && now - due < self.interval.unwrap_or_default() / PATIENCE
        {
            return;
        }
        if !self.has_changed() {
            self.last_try = now;
            return;
        }
        self.start(Trigger::Periodic, None);
    }

    /// When to look again: in time, or soon where a save is put off.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.due().map(|due| due.max(Instant::now() + CALM / 3))
    }

    fn has_changed(&mut self) -> bool {
        let is_dirty = self.watch.as_ref().is_none_or(Watch::is_dirty);
        let marks = self.read_marks();
        let has_spoken = marks != self.marks;
        self.marks = marks;
        is_dirty || has_spoken
    }

    /// Size and time of what the agents write down, and of the journal's own news.
    fn read_marks(&self) -> Vec<(u64, i64)> {
        let wishes = self.wishes();
        let transcripts = || -> Result<Vec<std::path::PathBuf>> {
            let engine = Engine::prepare(&wishes, Need::Read, Box::new(Silent))?;
            let Some(session) = self.session else { return Ok(Vec::new()) };
            engine.transcripts(session)
        };
        let paths = transcripts().unwrap_or_default();
        let mark = |path: std::path::PathBuf| {
            path.metadata().map_or((0, 0), |it| (it.size(), it.mtime_nsec() ^ it.mtime() << 30))
        };
        paths.into_iter().map(mark).collect()
    }

    pub(crate) fn wishes(&self) -> Wishes {
        Wishes {
            folder: Some(self.home.workspace.clone()),
            workspace: Some(self.home.workspace.clone()),
            store: Some(self.home.store.clone()),
        }
    }

    /// Starts a save beside us. What keeps it from starting counts as a failure of it.
    pub(crate) fn start(&mut self, trigger: Trigger, message: Option<&str>) {
        self.last_try = Instant::now();
        match self.command(trigger, message).and_then(|program| Ok(program.start()?)) {
            Ok(started) => self.under_way = Some(Save { started, at: self.last_try }),
            Err(error) => self.note_failure(crate::error::in_one_line(&error)),
        }
    }

    fn command(
        &self,
        trigger: Trigger,
        message: Option<&str>,
    ) -> Result<bivouac_capture::process::Program> {
        let mut words: Vec<OsString> = vec!["checkpoint".into(), "create".into()];
        words.extend(self.session.map(|id| id.to_string().into()));
        words.extend(["--trigger".into(), trigger.as_str().to_lowercase().into()]);
        if let Some(message) = message {
            words.extend(["--message".into(), message.into()]);
        }
        let mut program = self.home.own_command(words)?;
        for (name, value) in &self.environment {
            program = program.env(name, value);
        }
        Ok(program)
    }

    /// Saves beside whatever goes on, unless that is being done.
    pub(crate) fn save_beside(&mut self, trigger: Trigger) {
        if self.interval.is_some() && !self.is_busy() {
            self.start(trigger, None);
        }
    }

    /// Starts the save before the end, whatever is under way.
    pub(crate) fn begin_last(&mut self, trigger: Trigger, message: Option<&str>) {
        const MOMENT: Duration = Duration::from_secs(1);
        self.wait(MOMENT, None);
        if self.interval.is_some() && !self.is_busy() {
            self.start(trigger, message);
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    /// Takes note of a process that ended, if it was the save.
    pub(crate) fn ended(&mut self, process: Pid, fate: Fate) {
        let is_it = |save: &Save| {
            i32::try_from(save.started.number).ok() == Some(process.as_raw_nonzero().get())
        };
        if fate != Fate::Stopped && self.under_way.as_ref().is_some_and(is_it) {
            self.settle(fate);
        }
    }

    fn settle(&mut self, fate: Fate) {
        let Some(save) = self.under_way.take() else { return };
        self.last_cost = save.at.elapsed();
        match fate {
            Fate::Exited(0) => {
                self.n_failures = 0;
                self.last_failure = None;
                if let Some(watch) = &self.watch {
                    watch.tell(|status| status.n_saves += 1);
                }
            }
            _ => self.note_failure(save.started.complaint()),
        }
        self.publish();
    }

    fn note_failure(&mut self, why: String) {
        self.n_failures += 1;
        self.last_failure = Some(why);
        self.publish();
    }

    /// Saves what there is at the end, and waits for it, unless someone is in a hurry.
    pub(crate) fn save_last(
        &mut self,
        trigger: Trigger,
        message: Option<&str>,
        signals: &mut Signals,
    ) {
        const PATIENCE: Duration = Duration::from_secs(600);
        self.wait(PATIENCE, Some(signals));
        if self.interval.is_none() || self.is_busy() {
            return;
        }
        self.start(trigger, message);
        self.wait(PATIENCE, Some(signals));
    }

    /// Waits for the save that is under way, and for nobody else.
    fn wait(&mut self, within: Duration, mut signals: Option<&mut Signals>) {
        let started = Instant::now();
        while let Some(save) = &self.under_way
            && started.elapsed() < within
        {
            if let Some(fate) = fate_of(save.started.number) {
                self.settle(fate);
                return;
            }
            let came = signals.as_mut().map(|it| it.take()).unwrap_or_default();
            if came.iter().any(|signal| matches!(*signal, SIGTERM | SIGHUP | SIGINT)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Settings that differ from those everyone finds, as variables.
pub(crate) fn overrides(interval: Option<Duration>) -> Vec<(String, String)> {
    let pair = |name: &str, value: String| vec![(name.to_owned(), value)];
    match interval {
        Some(interval) => {
            pair("BIV_CHECKPOINT_AUTO_INTERVAL_SECONDS", interval.as_secs().max(1).to_string())
        }
        None => pair("BIV_CHECKPOINT_TRIGGERS", String::new()),
    }
}
