//! tmux, through its own command line. What a session looks like is read in `read`, and made again in
//! `rebuild`.

mod read;
mod rebuild;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::agents::restore::Launch;
use crate::process::Program;
use crate::{Error, Result};

pub use rebuild::Start;

/// A tmux server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tmux {
    /// Where it listens; `None` is where tmux looks by itself.
    socket: Option<PathBuf>,
}

/// The pane an agent was started in is marked with this option of tmux's.
const AGENT_MARK: &str = "@biv-agent";
/// What nobody has looked at yet gets this size, until someone does.
const SIZE: (u32, u32) = (200, 50);
const PATIENCE: Duration = Duration::from_secs(10);

impl Tmux {
    /// The server we run in, and the pane; or the session, for what tmux itself started.
    pub fn here() -> Option<(Self, String)> {
        let (socket, session) = own_server()?;
        let pane = std::env::var("TMUX_PANE").ok().filter(|pane| pane.starts_with('%'));
        Some((Self { socket: Some(socket) }, pane.unwrap_or(session)))
    }

    /// The server we run in, else the one tmux finds.
    pub fn standard() -> Self {
        Self { socket: own_server().map(|(socket, _)| socket) }
    }

    /// Is there a tmux that can do all this?
    pub fn is_installed() -> bool {
        let answer = Program::tmux().args(["-V"]).within(PATIENCE).output();
        answer.is_ok_and(|answer| is_new_enough(&String::from_utf8_lossy(&answer)))
    }

    pub fn has(&self, session: &str) -> bool {
        self.ask(["has-session", "-t", &exactly(session)]).is_ok()
    }

    /// Starts a session with one pane, in which a command runs; nobody looks at it yet.
    pub fn new_session(
        &self,
        name: &str,
        folder: &Path,
        command: &[String],
        environment: &[(&str, String)],
    ) -> Result<()> {
        let start = Start { name, folder, command, environment };
        let pane = self.first_pane(&start, SIZE, &start.words())?;
        self.mark_agent(&pane)
    }

    /// Has a command run, out of sight, whenever someone detaches from the session.
    pub fn at_detach(&self, session: &str, command: &[OsString]) -> Result<()> {
        let word = |word: &OsString| word.to_str().map(shell_word).ok_or(Error::NotText);
        let words: Vec<String> = command.iter().map(word).collect::<Result<_>>()?;
        // What the command says, tmux would show over what the person looks at next.
        let line = format!("{} >/dev/null 2>&1; exit 0", words.join(" "));
        let hook = format!("run-shell -b {}", tmux_word(&line.replace('#', "##")));
        self.tell(["set-hook", "-t", &within(session), "client-detached", &hook])
    }

    /// How to look at a session from this terminal.
    pub fn attach(&self, session: &str) -> Launch {
        let verb = if own_server().is_some() { "switch-client" } else { "attach-session" };
        let socket = self.socket.iter().map(|it| it.to_string_lossy().into_owned());
        let command = ["tmux".to_owned()]
            .into_iter()
            .chain(socket.flat_map(|it| ["-S".to_owned(), it]))
            .chain([verb.to_owned(), "-t".to_owned(), exactly(session)])
            .collect();
        Launch { before: Vec::new(), command }
    }

    /// How many look at a session.
    pub fn n_clients(&self, session: &str) -> Result<usize> {
        let clients = self.ask(["list-clients", "-t", &exactly(session), "-F", "client"])?;
        Ok(clients.lines().count())
    }

    /// Detaches everyone who looks at a session.
    pub fn detach(&self, session: &str) -> Result<()> {
        self.tell(["detach-client", "-s", &exactly(session)])
    }

    fn mark_agent(&self, pane: &str) -> Result<()> {
        self.tell(["set-option", "-p", "-t", pane, AGENT_MARK, "1"])
    }

    fn tell<W: AsRef<str>>(&self, words: impl IntoIterator<Item = W>) -> Result<()> {
        self.ask(words).map(drop)
    }

    fn ask<W: AsRef<str>>(&self, words: impl IntoIterator<Item = W>) -> Result<String> {
        Self::answer(self.program(words).within(PATIENCE))
    }

    /// The same, standing in a folder: that is where new panes begin.
    fn ask_in<W: AsRef<str>>(
        &self,
        folder: &Path,
        words: impl IntoIterator<Item = W>,
    ) -> Result<String> {
        Self::answer(self.program(words).within(PATIENCE).in_folder(folder))
    }

    fn answer(program: Program) -> Result<String> {
        let answer = program.output()?;
        Ok(String::from_utf8_lossy(&answer).trim_end_matches('\n').to_owned())
    }

    fn program<W: AsRef<str>>(&self, words: impl IntoIterator<Item = W>) -> Program {
        let socket = self.socket.iter().flat_map(|it| ["-S".as_ref(), it.as_os_str()]);
        Program::tmux().args(socket).args(words.into_iter().map(|word| argument(word.as_ref())))
    }
}

/// Where the server we run in listens, and the session.
fn own_server() -> Option<(PathBuf, String)> {
    let told = std::env::var("TMUX").ok().filter(|told| !told.is_empty())?;
    let mut parts = told.rsplitn(3, ',');
    let (session, _pid, socket) = (parts.next()?, parts.next()?, parts.next()?);
    Some((PathBuf::from(socket), format!("${session}")))
}

/// What a session looks like is only told in full from 3.0 on.
fn is_new_enough(answer: &str) -> bool {
    let digits: String = answer
        .chars()
        .skip_while(|letter| !letter.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    // A version without a number is one that is being worked on.
    digits.parse().map_or(!answer.trim().is_empty(), |major: u32| major >= 3)
}

/// A session by its whole name.
fn exactly(session: &str) -> String {
    format!("={session}")
}

/// What is in front in a session.
fn within(session: &str) -> String {
    format!("={session}:")
}

/// A word on tmux's command line: there, one that ends in `;` ends a command.
fn argument(word: &str) -> String {
    match word.strip_suffix(';') {
        Some(word) => format!("{word}\\;"),
        None => word.to_owned(),
    }
}

/// A word as a shell reads it back.
fn shell_word(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./=:@%+,".contains(it);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A word as tmux reads it back in a command.
fn tmux_word(word: &str) -> String {
    let mut quoted = String::from('"');
    for letter in word.chars() {
        if matches!(letter, '"' | '\\' | '$') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use bivouac_core::terminal::{Pane, Terminal};

    use super::*;

    #[test]
    fn words_are_read_back_as_they_were() {
        assert_eq!(argument("make;"), "make\\;");
        assert_eq!(argument("a;b"), "a;b");
        let word = shell_word("it's $HOME");
        assert_eq!(word, r"'it'\''s $HOME'");
        assert_eq!(tmux_word(&word), r#""'it'\\''s \$HOME'""#);
    }

    #[test]
    fn old_versions_are_told_from_new_ones() {
        let check = |answer: &str, expected: bool| {
            assert_eq!(is_new_enough(answer), expected, "{answer}");
        };
        check("tmux 3.3a\n", true);
        check("tmux 2.9a\n", false);
        check("tmux next-3.6\n", true);
        check("tmux master\n", true);
        check("", false);
    }

    /// A server of its own, which goes with the test.
    struct Alone {
        folder: tempfile::TempDir,
        tmux: Tmux,
    }

    impl Alone {
        fn new() -> Option<Self> {
            let folder = tempfile::tempdir().unwrap();
            let tmux = Tmux { socket: Some(folder.path().join("socket")) };
            Tmux::is_installed().then_some(Self { folder, tmux })
        }

        fn folder(&self, name: &str) -> PathBuf {
            let folder = self.folder.path().canonicalize().unwrap().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            folder
        }

        /// Waits for something that tmux does in its own time.
        fn until(&self, session: &str, is_there: impl Fn(&Terminal) -> bool) -> Terminal {
            let look = || self.tmux.read(&within(session)).unwrap();
            for _ in 0..500 {
                let terminal = look();
                if is_there(&terminal) {
                    return terminal;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            panic!("tmux did not get there: {:#?}", look());
        }
    }

    impl Drop for Alone {
        fn drop(&mut self) {
            let _none_was_started = self.tmux.tell(["kill-server"]);
        }
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn panes(terminal: &Terminal) -> Vec<&Pane> {
        terminal.windows.iter().flat_map(|it| &it.panes).collect()
    }

    /// All but what runs in it, and the numbers of panes that layouts end in.
    fn described(terminal: &Terminal) -> Vec<String> {
        let mut lines = Vec::new();
        for window in &terminal.windows {
            let parts = window.layout.split([',', '{', '[', '}', ']']);
            let sizes: Vec<&str> = parts.filter(|it| it.contains('x')).collect();
            lines.push(format!("{} {} {} {sizes:?}", window.index, window.name, window.is_active));
            let pane = |it: &Pane| format!("{} {} {}", it.cwd, it.is_active, it.scroll_position);
            lines.extend(window.panes.iter().map(pane));
        }
        lines
    }

    #[test]
    fn a_session_is_made_again_as_it_was() {
        let Some(alone) = Alone::new() else { return };
        let (tmux, here, there) = (&alone.tmux, alone.folder("a #{b}"), alone.folder("c;"));
        let busy = ["sh".to_owned(), "-c".to_owned(), "seq 500; sleep 60".to_owned()];
        tmux.new_session("first", &here, &busy, &[]).unwrap();
        assert!(tmux.has("first") && !tmux.has("firs"));
        let split = ["split-window", "-h", "-d", "-l", "30", "-t", "=first:", "sleep", "61"];
        tmux.ask_in(&there, split).unwrap();
        let edit = ["new-window", "-n", "##e;", "-t", "=first:4", "sleep", "62"];
        tmux.ask_in(&there, edit).unwrap();
        alone.until("first", |it| panes(it)[0].history_size > 400);
        tmux.tell(["copy-mode", "-t", "=first:0.0"]).unwrap();
        tmux.tell(["send-keys", "-X", "-t", "=first:0.0", "goto-line", "123"]).unwrap();
        let before = alone.until("first", |it| {
            it.n_panes() == 3 && panes(it).iter().skip(1).all(|it| it.command[0] == "sleep")
        });
        assert_eq!(panes(&before)[0].scroll_position, 123);

        let environment = [("BIV_SESSION", "abc".to_owned())];
        let start =
            Start { name: "again", folder: &here, command: &busy, environment: &environment };
        assert_eq!(tmux.rebuild(&before, &start).unwrap(), Vec::<String>::new());
        let after = alone.until("again", |it| described(it) == described(&before));
        let is_agent: Vec<bool> = panes(&after).iter().map(|it| it.is_agent).collect();
        assert_eq!(is_agent, [true, false, false]);
        // What else ran is there to be run again, if someone presses Enter.
        alone.until("again", |_| {
            let shown = tmux.ask(["capture-pane", "-p", "-t", "=again:4"]).unwrap();
            shown.contains("sleep 62")
        });
        let now = tmux.read("=again:4").unwrap();
        assert!(panes(&now).iter().skip(1).all(|it| it.program().is_none()), "{now:#?}");
    }

    #[test]
    fn a_layout_that_tmux_refuses_is_told() {
        let Some(alone) = Alone::new() else { return };
        let (tmux, here) = (&alone.tmux, alone.folder("here"));
        tmux.new_session("first", &here, &words("sleep 60"), &[]).unwrap();
        let mut before = tmux.read("=first:").unwrap();
        before.windows[0].name = "work".to_owned();
        before.windows[0].layout = "0000,80x24,0,0,0".to_owned();
        let start =
            Start { name: "again", folder: &here, command: &words("sleep 60"), environment: &[] };
        assert_eq!(
            tmux.rebuild(&before, &start).unwrap(),
            ["tmux does not take the layout of window 0 (`work`), so its panes are tiled"]
        );
        assert!(tmux.rebuild(&before, &start).is_err());
        assert!(tmux.has("again"));
    }

    #[test]
    fn what_is_to_be_done_at_detach_is_run_as_it_was_told() {
        let Some(alone) = Alone::new() else { return };
        let (tmux, here) = (&alone.tmux, alone.folder("it's #{here} $HOME"));
        tmux.new_session("first", &here, &words("sleep 60"), &[]).unwrap();
        let mark = here.join("mark;");
        let command = ["touch".into(), mark.clone().into_os_string()];
        tmux.at_detach("first", &command).unwrap();
        assert_eq!(tmux.n_clients("first").unwrap(), 0);
        // A hook can be set off by hand.
        tmux.tell(["set-hook", "-R", "-t", "=first:", "client-detached"]).unwrap();
        alone.until("first", |_| mark.exists());
    }
}
