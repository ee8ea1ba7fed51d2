//! What an agent's terminal looks like: the windows and panes of its tmux session.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A tmux session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    pub session: String,
    pub windows: Vec<Window>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub index: u32,
    pub name: String,
    /// How its panes are arranged, in tmux's own words.
    pub layout: String,
    pub is_active: bool,
    pub panes: Vec<Pane>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pane {
    pub index: u32,
    pub cwd: String,
    /// What runs in it.
    pub command: Vec<String>,
    /// So many lines above the newest are looked at.
    pub scroll_position: u64,
    /// So many lines can be scrolled back to.
    pub history_size: u64,
    pub is_active: bool,
    /// The agent works in it.
    pub is_agent: bool,
}

impl Terminal {
    pub fn n_panes(&self) -> usize {
        self.windows.iter().map(|it| it.panes.len()).sum()
    }

    /// Where the agent goes: its own pane, else the one that was looked at, as places in the lists.
    pub fn agent_place(&self) -> (usize, usize) {
        let panes = || {
            let windows = self.windows.iter().enumerate();
            windows.flat_map(|(window, it)| {
                it.panes.iter().enumerate().map(move |(pane, it)| ((window, pane), it))
            })
        };
        let own = panes().find(|(_, it)| it.is_agent);
        let active = || panes().find(|((at, _), it)| self.windows[*at].is_active && it.is_active);
        own.or_else(active).map(|(place, _)| place).unwrap_or_default()
    }
}

/// A line that a terminal cannot be read from.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0} is no part of a terminal")]
pub struct BadTerminal(usize);

/// Nobody has more panes than this.
const MOST_PANES: usize = 500;

/// One line for the session, each window and each pane, for people to read.
impl fmt::Display for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let marks = |marks: &[(bool, &'static str)]| {
            let marks = marks.iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| *mark);
            Some(marks.collect::<Vec<_>>().join(",")).filter(|it| !it.is_empty())
        };
        let marked = |list: &[(bool, &'static str)]| marks(list).unwrap_or_else(|| "-".to_owned());
        writeln!(f, "session {}", json!(self.session))?;
        for window in &self.windows {
            let mark = marked(&[(window.is_active, "active")]);
            let (name, layout) = (json!(window.name), json!(window.layout));
            writeln!(f, "window {} {mark} {name} {layout}", window.index)?;
            for pane in &window.panes {
                let mark = marked(&[(pane.is_active, "active"), (pane.is_agent, "agent")]);
                let (scroll, history) = (pane.scroll_position, pane.history_size);
                let (cwd, command) = (json!(pane.cwd), json!(pane.command));
                writeln!(f, "pane {} {mark} {scroll}/{history} {cwd} {command}", pane.index)?;
            }
        }
        Ok(())
    }
}

impl Terminal {
    /// Reads what was written for people. `None` if nothing was.
    pub fn read(text: &str) -> Result<Option<Self>, BadTerminal> {
        let mut terminal = None;
        let lines = text.lines().enumerate();
        for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            read_line(line, &mut terminal)
                .filter(|()| terminal.as_ref().is_none_or(|it| it.n_panes() <= MOST_PANES))
                .ok_or(BadTerminal(at + 1))?;
        }
        Ok(terminal)
    }
}

fn read_line(line: &str, terminal: &mut Option<Terminal>) -> Option<()> {
    let (what, rest) = line.split_once(' ')?;
    if what == "session" {
        let session = serde_json::from_str(rest).ok()?;
        *terminal = Some(Terminal { session, windows: Vec::new() });
        return Some(());
    }
    let (index, rest) = rest.split_once(' ')?;
    let (marks, rest) = rest.split_once(' ')?;
    let index = index.parse().ok()?;
    let is = |mark: &str| marks.split(',').any(|it| it == mark);
    let windows = &mut terminal.as_mut()?.windows;
    match what {
        "window" => {
            let [name, layout] = two(rest)?;
            let (name, layout) =
                (serde_json::from_value(name).ok()?, serde_json::from_value(layout).ok()?);
            let is_active = is("active");
            windows.push(Window { index, name, layout, is_active, panes: Vec::new() });
        }
        "pane" => {
            let (lines, rest) = rest.split_once(' ')?;
            let (scroll, history) = lines.split_once('/')?;
            let [cwd, command] = two(rest)?;
            windows.last_mut()?.panes.push(Pane {
                index,
                cwd: serde_json::from_value(cwd).ok()?,
                command: serde_json::from_value(command).ok()?,
                scroll_position: scroll.parse().ok()?,
                history_size: history.parse().ok()?,
                is_active: is("active"),
                is_agent: is("agent"),
            });
        }
        _ => return None,
    }
    Some(())
}

/// Two JSON values with a blank between them.
fn two(text: &str) -> Option<[Value; 2]> {
    let values: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_str(text).into_iter().collect();
    values.ok()?.try_into().ok()
}

impl Window {
    /// The width and height its layout was made for.
    pub fn size(&self) -> Option<(u32, u32)> {
        let (width, height) = self.layout.split(',').nth(1)?.split_once('x')?;
        Some((width.parse().ok()?, height.parse().ok()?))
    }
}

impl Pane {
    /// The program that runs in it, unless that is a shell that waits.
    pub fn program(&self) -> Option<&str> {
        const SHELLS: [&str; 11] =
            ["sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "tcsh", "csh", "nu", "elvish"];
        let (program, args) = self.command.split_first()?;
        let name = program.rsplit('/').next().unwrap_or(program).trim_start_matches('-');
        let is_waiting =
            SHELLS.contains(&name) && args.iter().all(|word| word.starts_with('-') && word != "-c");
        (!is_waiting && !name.is_empty()).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pane(command: &[&str], is_active: bool, is_agent: bool) -> Pane {
        Pane {
            index: 0,
            cwd: "/project".to_owned(),
            command: command.iter().map(ToString::to_string).collect(),
            scroll_position: 0,
            history_size: 0,
            is_active,
            is_agent,
        }
    }

    fn window(is_active: bool, panes: Vec<Pane>) -> Window {
        let layout = "b25d,80x24,0,0,0".to_owned();
        Window { index: 0, name: "work".to_owned(), layout, is_active, panes }
    }

    #[test]
    fn the_agent_goes_to_its_own_pane_or_to_where_someone_looked() {
        let quiet = || pane(&["bash"], false, false);
        let looked_at = || pane(&["bash"], true, false);
        let check = |windows: Vec<Window>, place: (usize, usize)| {
            let terminal = Terminal { session: "task-abc12345".to_owned(), windows };
            assert_eq!(terminal.agent_place(), place);
        };
        let first = || window(false, vec![quiet(), looked_at()]);
        check(vec![first(), window(true, vec![quiet(), looked_at()])], (1, 1));
        check(
            vec![first(), window(true, vec![pane(&["claude"], false, true), looked_at()])],
            (1, 0),
        );
        check(Vec::new(), (0, 0));
        assert_eq!(first().size(), Some((80, 24)));
    }

    #[test]
    fn a_shell_that_waits_is_no_program() {
        let check = |command: &[&str], program: Option<&str>| {
            assert_eq!(pane(command, false, false).program(), program, "{command:?}");
        };
        check(&["-bash"], None);
        check(&["/usr/bin/zsh", "-l"], None);
        check(&[], None);
        check(&["bash", "-c", "make"], Some("bash"));
        check(&["/usr/bin/vim", "notes.md"], Some("vim"));
    }

    #[test]
    fn a_terminal_is_read_back_from_what_people_read() {
        let mut odd = pane(&["sh", "-c", "a \"b\"\n c"], false, true);
        (odd.scroll_position, odd.history_size) = (3, 120);
        let windows = vec![window(true, vec![pane(&["vim"], true, false), odd])];
        let terminal = Terminal { session: "task-abc12345".to_owned(), windows };
        let text = terminal.to_string();
        let expected = concat!(
            "session \"task-abc12345\"\n",
            "window 0 active \"work\" \"b25d,80x24,0,0,0\"\n",
            "pane 0 active 0/0 \"/project\" [\"vim\"]\n",
            r#"pane 0 agent 3/120 "/project" ["sh","-c","a \"b\"\n c"]"#,
            "\n"
        );
        assert_eq!(text, expected);
        assert_eq!(Terminal::read(&text), Ok(Some(terminal)));
        assert_eq!(Terminal::read("# nothing\n"), Ok(None));
        assert_eq!(Terminal::read("pane 0 - 0/0 \"/\" []"), Err(BadTerminal(1)));
        let many = format!(
            "session \"s\"\nwindow 0 - \"w\" \"l\"\n{}",
            "pane 0 - 0/0 \"/\" []\n".repeat(501)
        );
        assert_eq!(Terminal::read(&many), Err(BadTerminal(503)));
    }
}
