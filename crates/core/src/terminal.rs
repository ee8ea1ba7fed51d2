//! What an agent's terminal looks like: the windows and panes of its tmux session.

use serde::{Deserialize, Serialize};

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
}
