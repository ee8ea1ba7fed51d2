//! What a tmux session looks like, in one question.

use std::time::Duration;

use bivouac_core::terminal::{Pane, Terminal, Window};

use super::{AGENT_MARK, Tmux};
use crate::running;
use crate::{Error, Result};

/// A checkpoint waits no longer for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// tmux writes out tabs and line breaks in names, so that tabs can stand between them. A path comes last, and
/// none has two slashes in a row.
const FIELDS: [&str; 13] = [
    "session_name",
    "window_index",
    "window_name",
    "window_layout",
    "window_active",
    "pane_index",
    "pane_id",
    "pane_pid",
    "pane_active",
    "scroll_position",
    "history_size",
    AGENT_MARK,
    "pane_current_command",
];
const PATH: &str = "pane_current_path";
const END: &str = "//";

impl Tmux {
    /// The session a pane is in.
    pub fn read(&self, pane: &str) -> Result<Terminal> {
        let fields: String = FIELDS.map(|field| format!("#{{{field}}}\t")).concat();
        let form = format!("{fields}#{{{PATH}}}{END}");
        let target = if pane.starts_with('$') { format!("{pane}:") } else { pane.to_owned() };
        let words = ["list-panes", "-s", "-t", &target, "-F", &form];
        let answer = self.program(words).within(PATIENCE).output()?;
        let answer = String::from_utf8_lossy(&answer);
        terminal(&answer, pane).ok_or_else(|| Error::Unexpected {
            program: "tmux".to_owned(),
            what: "panes in a form that is not known",
        })
    }
}

fn terminal(answer: &str, own: &str) -> Option<Terminal> {
    let mut terminal: Option<Terminal> = None;
    let mut is_own = Vec::new();
    let mut is_marked = false;
    for line in answer.split_terminator(&format!("{END}\n")) {
        let fields: Vec<&str> = line.splitn(FIELDS.len() + 1, '\t').collect();
        let [session, window, name, layout, active_window, index, id, pid, active, ..] = fields[..]
        else {
            return None;
        };
        let [scroll, history, mark, program, path] = fields[9..] else {
            return None;
        };
        let (command, cwd) = running::in_foreground(pid.parse().ok()?)
            .unwrap_or_else(|| (vec![program.to_owned()], path.to_owned()));
        is_marked |= mark == "1";
        is_own.push(id == own);
        let pane = Pane {
            index: index.parse().ok()?,
            cwd,
            command,
            scroll_position: scroll.parse().unwrap_or(0),
            history_size: history.parse().unwrap_or(0),
            is_active: active == "1",
            is_agent: mark == "1",
        };
        let terminal = terminal
            .get_or_insert_with(|| Terminal { session: session.to_owned(), windows: Vec::new() });
        let window: u32 = window.parse().ok()?;
        match terminal.windows.last_mut().filter(|it| it.index == window) {
            Some(known) => known.panes.push(pane),
            None => terminal.windows.push(Window {
                index: window,
                name: name.to_owned(),
                layout: layout.to_owned(),
                is_active: active_window == "1",
                panes: vec![pane],
            }),
        }
    }
    let mut terminal = terminal?;
    // Where we did not start the agent ourselves, it is what called us.
    if !is_marked {
        let panes = terminal.windows.iter_mut().flat_map(|it| &mut it.panes);
        panes.zip(is_own).for_each(|(pane, is_own)| pane.is_agent = is_own);
    }
    Some(terminal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No process has the number 0.
    fn line(window: u32, pane: &str, mark: &str, path: &str) -> String {
        format!(
            "task-abc12345\t{window}\tedit\tb25d,80x24,0,0,0\t1\t0\t{pane}\t0\t1\t\t7\t{mark}\tvim\t{path}//\n"
        )
    }

    fn agents(answer: &str) -> Vec<bool> {
        let terminal = terminal(answer, "%2").unwrap();
        terminal.windows.iter().flat_map(|it| &it.panes).map(|it| it.is_agent).collect()
    }

    #[test]
    fn paths_may_hold_anything() {
        let answer = [line(0, "%1", "", "/a\n\tb"), line(1, "%2", "", "/")].concat();
        let terminal = terminal(&answer, "%2").unwrap();
        let panes: Vec<&Pane> = terminal.windows.iter().flat_map(|it| &it.panes).collect();
        assert_eq!(panes.iter().map(|it| it.cwd.as_str()).collect::<Vec<_>>(), ["/a\n\tb", "/"]);
        assert_eq!((panes[0].scroll_position, panes[0].history_size), (0, 7));
        assert_eq!(panes[0].command, ["vim"]);
    }

    #[test]
    fn the_agent_is_in_the_pane_we_started_it_in_or_in_our_own() {
        let answer = [line(0, "%1", "", "/a"), line(0, "%2", "", "/a")].concat();
        assert_eq!(agents(&answer), [false, true]);
        let answer = [line(0, "%1", "1", "/a"), line(0, "%2", "", "/a")].concat();
        assert_eq!(agents(&answer), [true, false]);
        assert_eq!(terminal("nonsense", "%1"), None);
    }
}
