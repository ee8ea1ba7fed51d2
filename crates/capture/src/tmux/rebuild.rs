//! A tmux session, made again as it was. Commands of others are typed for the person, never run.

use std::path::Path;
use std::thread;
use std::time::Duration;

use bivouac_core::terminal::{Pane, Terminal, Window};

use super::{SIZE, Tmux, exactly, shell_word, within};
use crate::Result;

/// A session to be, and the agent in it.
#[derive(Clone, Copy, Debug)]
pub struct Start<'s> {
    pub name: &'s str,
    pub folder: &'s Path,
    pub command: &'s [String],
    pub environment: &'s [(&'s str, String)],
}

/// How long an agent may take to fill its pane, until where it was scrolled to can be shown again.
const FILLING: Duration = Duration::from_millis(500);
const A_MOMENT: Duration = Duration::from_millis(20);

impl Start<'_> {
    /// tmux runs several words as they are, without a shell; one alone it would give to a shell.
    pub(super) fn words(&self) -> Vec<String> {
        let variables = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let env = ["env".to_owned()].into_iter().chain(variables);
        env.chain(self.command.iter().cloned()).collect()
    }
}

impl Tmux {
    /// Makes the session of a checkpoint again under a new name, with the agent in its pane. Answers what
    /// could not be made as it was.
    pub fn rebuild(&self, terminal: &Terminal, start: &Start<'_>) -> Result<Vec<String>> {
        let was_there = self.has(start.name);
        self.rebuild_all(terminal, start).inspect_err(|_| {
            // Half a session would only be in the way.
            if !was_there {
                let _may_not_be_there = self.tell(["kill-session", "-t", &exactly(start.name)]);
            }
        })
    }

    fn rebuild_all(&self, terminal: &Terminal, start: &Start<'_>) -> Result<Vec<String>> {
        let (agent_window, agent_pane) = terminal.agent_place();
        let mut notes = Vec::new();
        let mut made = Vec::new();
        for (at, window) in terminal.windows.iter().enumerate() {
            let agent = (at == agent_window).then_some(agent_pane);
            made.push(self.rebuild_window(window, (at == 0, agent), start, &mut notes)?);
        }
        if made.is_empty() {
            let pane = self.first_pane(start, SIZE, &start.words())?;
            self.mark_agent(&pane)?;
        }
        for (window, panes) in terminal.windows.iter().zip(&made) {
            for (pane, id) in window.panes.iter().zip(panes) {
                self.scroll(pane, id)?;
            }
        }
        for (window, panes) in terminal.windows.iter().zip(&made) {
            let looked_at = window.panes.iter().position(|it| it.is_active).unwrap_or(0);
            if let Some(pane) = panes.get(looked_at) {
                self.tell(["select-pane", "-t", pane])?;
            }
        }
        let in_front = terminal.windows.iter().position(|it| it.is_active);
        if let Some(pane) = in_front.and_then(|at| made[at].first()) {
            self.tell(["select-window", "-t", pane])?;
        }
        Ok(notes)
    }

    /// The first pane of a session of its own.
    pub(super) fn first_pane(
        &self,
        start: &Start<'_>,
        (width, height): (u32, u32),
        command: &[String],
    ) -> Result<String> {
        let (width, height) = (width.to_string(), height.to_string());
        let words = ["new-session", "-d", "-P", "-F", "#{pane_id}", "-s", start.name];
        let size = ["-x", &width, "-y", &height];
        self.ask_in(start.folder, all(&[&words, &size], command))
    }

    /// A window with its panes, in their order.
    fn rebuild_window(
        &self,
        window: &Window,
        (is_first, agent): (bool, Option<usize>),
        start: &Start<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>> {
        let mut made: Vec<String> = Vec::new();
        for (at, pane) in window.panes.iter().enumerate() {
            let is_agent = agent == Some(at);
            // The agent goes where it is sent, which may be another folder than before.
            let folder = Some(Path::new(&pane.cwd)).filter(|it| !is_agent && it.is_dir());
            let start = Start { folder: folder.unwrap_or(start.folder), ..*start };
            let command = if is_agent { start.words() } else { Vec::new() };
            let id = match made.last() {
                None if is_first => {
                    self.first_pane(&start, window.size().unwrap_or(SIZE), &command)?
                }
                None => {
                    let target = within(start.name);
                    let words = ["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", &target];
                    self.ask_in(start.folder, all(&[&words], &command))?
                }
                Some(before) => {
                    let words = ["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", before];
                    let id = self.ask_in(start.folder, all(&[&words], &command))?;
                    // Halved again and again, the last one would have no room.
                    self.tell(["select-layout", "-t", &id, "tiled"])?;
                    id
                }
            };
            match is_agent {
                true => self.mark_agent(&id)?,
                false => self.retype(pane, &id)?,
            }
            made.push(id);
        }
        if let Some(first) = made.first() {
            self.name_window(window, first, start)?;
            if self.tell(["select-layout", "-t", first, &window.layout]).is_err() {
                notes.push(format!(
                    "tmux does not take the layout of window {} (`{}`), so its panes are tiled",
                    window.index, window.name
                ));
            }
        }
        Ok(made)
    }

    fn name_window(&self, window: &Window, pane: &str, start: &Start<'_>) -> Result<()> {
        let place = format!("{}:{}", exactly(start.name), window.index);
        let now = self.ask(["display-message", "-p", "-t", pane, "#{window_index}"])?;
        if now != window.index.to_string() {
            self.tell(["move-window", "-s", pane, "-t", &place])?;
        }
        self.tell(["rename-window", "-t", pane, "--", &window.name.replace('#', "##")])
    }

    /// Types what ran in a pane. What would press a key by itself is left out.
    fn retype(&self, pane: &Pane, id: &str) -> Result<()> {
        let line = pane.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
        if pane.program().is_none() || line.chars().any(char::is_control) {
            return Ok(());
        }
        self.tell(["send-keys", "-l", "-t", id, "--", &line])
    }

    /// Scrolls back to where a pane was, once there is as much to scroll.
    fn scroll(&self, pane: &Pane, id: &str) -> Result<()> {
        if pane.scroll_position == 0 {
            return Ok(());
        }
        let mut waited = Duration::ZERO;
        loop {
            let size = self.ask(["display-message", "-p", "-t", id, "#{history_size}"])?;
            if size.parse().is_ok_and(|size: u64| size >= pane.scroll_position) {
                break;
            }
            if waited >= FILLING {
                return Ok(());
            }
            thread::sleep(A_MOMENT);
            waited += A_MOMENT;
        }
        let line = pane.scroll_position.to_string();
        self.tell(["copy-mode", "-t", id])?;
        self.tell(["send-keys", "-X", "-t", id, "goto-line", &line])
    }
}

fn all(words: &[&[&str]], command: &[String]) -> Vec<String> {
    let words = words.iter().flat_map(|it| it.iter()).map(ToString::to_string);
    words.chain(command.iter().cloned()).collect()
}
