//! The screen of a released agent as people see it: in tmux, with someone who reads it and presses keys.

use std::fs;
use std::time::{Duration, Instant};

use bivouac_testkit::agents::Lab;
use bivouac_testkit::left_out;
use serde_json::json;

/// tmux of one lab alone. All that runs in it ends with it.
pub(crate) struct Screen<'l> {
    pub(crate) lab: &'l Lab,
}

impl<'l> Screen<'l> {
    /// `None` on a machine without tmux.
    pub(crate) fn of(lab: &'l Lab) -> Option<Self> {
        if !lab.has_program("tmux") {
            left_out("there is no tmux");
            return None;
        }
        Some(Self { lab })
    }

    pub(crate) fn ask(&self, words: &[&str]) -> String {
        self.lab.try_run("tmux", &[&["-u"], words].concat())
    }

    /// Starts a program on a screen of its own.
    pub(crate) fn start(&self, session: &str, program: &[&str]) {
        let words = ["new-session", "-d", "-s", session, "-x", "140", "-y", "50", "--"];
        let said = self.ask(&[&words[..], program].concat());
        assert_eq!(said, "", "{program:?}");
    }

    pub(crate) fn shows(&self, session: &str, words: &str) -> bool {
        self.ask(&["capture-pane", "-p", "-t", session]).contains(words)
    }

    pub(crate) fn await_words(&self, session: &str, words: &str) {
        let started = Instant::now();
        while !self.shows(session, words) {
            let shown = self.ask(&["capture-pane", "-p", "-t", session]);
            assert!(started.elapsed() < Duration::from_secs(60), "no `{words}` in:\n{shown}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn type_in(&self, session: &str, words: &str) {
        self.ask(&["send-keys", "-t", session, "-l", "--", words]);
        self.press(session, "Enter");
    }

    pub(crate) fn press(&self, session: &str, key: &str) {
        // As a person would: the screen takes a moment to see that it is no paste, and what it shows is not yet
        // what it listens to.
        std::thread::sleep(Duration::from_millis(500));
        self.ask(&["send-keys", "-t", session, key]);
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        self.ask(&["-L", "aside", "kill-server"]);
        self.ask(&["kill-server"]);
        self.lab.end_orphans();
    }
}

/// What Claude Code would ask on its first screen.
pub(crate) fn greet_claude(lab: &Lab) {
    let projects = json!({ lab.work().to_str().unwrap(): { "hasTrustDialogAccepted": true } });
    let settings = json!({ "hasCompletedOnboarding": true, "theme": "dark", "projects": projects,
        "customApiKeyResponses": { "approved": ["test-key"], "rejected": [] } });
    fs::write(lab.home().join(".claude.json"), settings.to_string()).unwrap();
}
