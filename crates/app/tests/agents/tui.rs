//! A released agent as people see it: its screen in tmux, under supervision; left, killed, and brought back

use std::fs;
use std::time::{Duration, Instant};

use bivouac_testkit::{left_out, until};
use serde_json::json;

use crate::lab::{Lab, agent};

/// tmux of this lab alone.
struct Screen<'l> {
    lab: &'l Lab,
}

impl Screen<'_> {
    fn ask(&self, words: &[&str]) -> String {
        self.lab.try_run("tmux", &[&["-u"], words].concat())
    }

    fn shows(&self, session: &str, words: &str) -> bool {
        self.ask(&["capture-pane", "-p", "-t", session]).contains(words)
    }

    fn await_words(&self, session: &str, words: &str) {
        let started = Instant::now();
        while !self.shows(session, words) {
            let shown = self.ask(&["capture-pane", "-p", "-t", session]);
            assert!(started.elapsed() < Duration::from_secs(60), "no `{words}` in:\n{shown}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn type_in(&self, session: &str, words: &str) {
        self.ask(&["send-keys", "-t", session, "-l", "--", words]);
        // As a person would: the screen takes a moment to see that it is no paste.
        std::thread::sleep(Duration::from_millis(500));
        self.ask(&["send-keys", "-t", session, "Enter"]);
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        self.ask(&["-L", "aside", "kill-server"]);
        self.ask(&["kill-server"]);
    }
}

#[test]
fn the_screen_of_an_agent_is_left_killed_and_brought_back() {
    let Some(agent) = agent("claude-code") else {
        return;
    };
    let lab = Lab::new(agent);
    if !lab.has_program("tmux") {
        return left_out("there is no tmux");
    }
    let projects = json!({ lab.work().to_str().unwrap(): { "hasTrustDialogAccepted": true } });
    let settings = json!({ "hasCompletedOnboarding": true, "theme": "dark", "projects": projects,
        "customApiKeyResponses": { "approved": ["test-key"], "rejected": [] } });
    fs::write(lab.home().join(".claude.json"), settings.to_string()).unwrap();
    let claude = ["claude", "--model", "claude-sonnet-4-5", "--allowedTools", "Write,Bash,Edit"];
    let words = ["run", "--detach", "--task", "BUILD it", "--interval", "60s", "--"];
    lab.biv(&[&words[..], &claude].concat());
    let session = lab.json(&["session", "list"])[0]["handle"].as_str().unwrap().to_owned();
    let screen = Screen { lab: &lab };
    let triggers = || {
        let list = lab.json(&["checkpoint", "list"]);
        let list = list.as_array().unwrap().iter();
        list.map(|it| it["trigger"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    screen.await_words(&session, "? for shortcuts");
    screen.type_in(&session, "BUILD it");
    screen.await_words(&session, "BUILD-DONE");
    until("the end of the turn", || triggers().iter().any(|it| it == "TURN"));
    assert_eq!(lab.read("hello.txt"), "hello two\n");
    // Someone looks at it, and leaves it as tmux is left.
    let look = format!("env -u TMUX tmux attach-session -t ={session}");
    screen.ask(&["-L", "aside", "new-session", "-d", "-s", "aside", &look]);
    until("a client", || screen.ask(&["list-clients", "-t", &session]).contains("attached"));
    lab.write("by-hand.txt", "written while looking\n");
    screen.ask(&["-L", "aside", "send-keys", "-t", "aside", "C-b"]);
    screen.ask(&["-L", "aside", "send-keys", "-t", "aside", "d"]);
    until("a checkpoint at detach", || triggers().iter().any(|it| it == "DETACH"));
    // The agent goes on.
    screen.await_words(&session, "? for shortcuts");
    // All of it dies at once, as with the machine.
    screen.ask(&["kill-server"]);
    lab.end_orphans();
    until("the end", || lab.json(&["session", "list"])[0]["status"] != "active");
    let status = lab.json(&["session", "show", &session])["status"].clone();
    assert!(status == "interrupted" || status == "failed", "{status}");
    lab.biv(&["resume", &session, "--tmux", "--", "--model", "claude-sonnet-4-5"]);
    screen.await_words(&session, "BUILD-DONE");
    screen.type_in(&session, "RECALL one");
    until("the next request", || {
        lab.last_request().conversation().last().is_some_and(|it| it == "user: RECALL one")
    });
    let said = lab.last_request().conversation();
    assert_eq!(said[..5], crate::BUILD, "{said:#?}");
    lab.biv(&["verify"]);
}
