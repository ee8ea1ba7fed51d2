//! A tmux server that belongs to one test.

use crate::processes::{is_gone, until};
use crate::{TestEnv, left_out};

/// Ends the server when the test ends.
pub struct TmuxServer<'e> {
    env: &'e TestEnv,
}

impl TestEnv {
    /// The server that all commands of this small world find, once one of them has started it. `None` on a
    /// machine without tmux.
    pub fn tmux_server(&self) -> Option<TmuxServer<'_>> {
        match self.command("tmux", &self.work()).arg("-V").output() {
            Ok(_) => Some(TmuxServer { env: self }),
            Err(_) => {
                left_out("there is no tmux");
                None
            }
        }
    }
}

impl TmuxServer<'_> {
    /// Says something to tmux, and answers what it said.
    pub fn ask(&self, args: &[&str]) -> String {
        let output =
            self.env.command("tmux", &self.env.work()).arg("-u").args(args).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).trim_end().to_owned()
    }

    /// Runs a command line on a terminal of its own, which is a pane of a second server.
    pub fn run_aside(&self, line: &str) {
        let line = format!("env -u TMUX -u TMUX_PANE {line}");
        self.ask(&["-L", ASIDE, "new-session", "-d", "-s", ASIDE, &line]);
    }

    /// Ends the server, and waits until all that ran for this test has ended as well: a supervisor that loses its
    /// terminal saves first.
    pub fn end(self) {
        let running = self.env.processes();
        drop(self);
        until("the end of all that ran in tmux", || running.iter().all(|(pid, _)| is_gone(*pid)));
    }

    /// Presses keys there.
    pub fn press_aside(&self, keys: &[&str]) {
        self.ask(&[&["-L", ASIDE, "send-keys", "-t", ASIDE], keys].concat());
    }
}

const ASIDE: &str = "aside";

impl Drop for TmuxServer<'_> {
    fn drop(&mut self) {
        self.ask(&["-L", ASIDE, "kill-server"]);
        self.ask(&["kill-server"]);
    }
}
