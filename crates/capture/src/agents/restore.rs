//! Giving a conversation back to its agent, under a new id: the recipes are the agents' own, what they
//! have in common is here.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bivouac_core::conversation::NativeId;

use crate::{Error, Result, folder};

/// A conversation as a checkpoint holds it, its files written into a folder of their own.
#[derive(Clone, Debug)]
pub struct Kept {
    pub id: NativeId,
    pub folder: PathBuf,
    /// The files below it, the main one first.
    pub parts: Vec<String>,
    /// The workspace they speak of.
    pub workspace: String,
}

/// Where the conversation is to go on.
#[derive(Clone, Debug)]
pub struct Order {
    pub home: PathBuf,
    pub workspace: String,
    /// A fresh UUID for the conversation.
    pub new_id: String,
    /// `YYYY-MM-DDTHH-MM-SS`.
    pub now: String,
    /// A folder of ours that outlives this command.
    pub scratch: PathBuf,
    /// What the person adds to the agent's command line.
    pub extra: Vec<String>,
}

/// A command line, and what has to run before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    pub before: Vec<Vec<String>>,
    pub command: Vec<String>,
}

impl Launch {
    pub fn new<A: Into<String>>(command: impl IntoIterator<Item = A>) -> Self {
        Self { before: Vec::new(), command: command.into_iter().map(Into::into).collect() }
    }
}

impl Kept {
    pub fn main(&self) -> PathBuf {
        self.folder.join(self.parts.first().map_or("main.jsonl", String::as_str))
    }
}

/// What changes in a conversation that moves: the workspace's path, wherever it stands as a whole, and
/// ids, wherever they stand.
pub struct Rewrite {
    folder: Option<(String, String)>,
    ids: Vec<(String, String)>,
}

impl Rewrite {
    /// Paths stand in JSON strings, so they are replaced as they are written there.
    pub fn new(kept: &Kept, order: &Order) -> Self {
        // Only an absolute path is replaced: a `/` stands in JSON strings alone, so the line stays JSON. A
        // workspace that is called `1` or `{` could stand anywhere, and `/` stands in every path.
        let is_path = kept.workspace.starts_with('/') && kept.workspace != "/";
        let moves = is_path && kept.workspace != order.workspace;
        let folder = moves.then(|| (in_json(&kept.workspace), in_json(&order.workspace)));
        Self { folder, ids: Vec::new() }
    }

    pub fn id(mut self, from: &str, to: &str) -> Self {
        self.ids.push((from.to_owned(), to.to_owned()));
        self
    }

    pub fn apply(&self, line: &str) -> String {
        let line = match &self.folder {
            Some((from, to)) => replace_whole(line, from, to),
            None => line.to_owned(),
        };
        self.ids.iter().fold(line, |line, (from, to)| line.replace(from.as_str(), to))
    }
}

/// Replaces a folder wherever it stands as a whole: `/code/app` is neither part of `/code/apple` nor
/// of `/my/code/app`.
fn replace_whole(line: &str, from: &str, to: &str) -> String {
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-');
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        // The letter after a backslash is an escape, not part of a name.
        let is_escape = before.len() >= 2 && before.as_bytes()[before.len() - 2] == b'\\';
        let begins = !before.ends_with(is_name) || is_escape;
        let is_full_stop = after.starts_with('.') && !after[1..].starts_with(is_name);
        let ends = !after.starts_with(is_name) || is_full_stop;
        out.push_str(before);
        out.push_str(if begins && ends { to } else { from });
        rest = after;
    }
    out.push_str(rest);
    out
}

fn in_json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let bare = quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    bare.unwrap_or(text).to_owned()
}

/// Copies JSON lines from one file to a new one, changing each as `change` says; `None` leaves it out, and
/// so does being torn. Memory stays at one line, whatever the file's size.
pub fn copy_lines(
    from: &Path,
    to: &Path,
    mut change: impl FnMut(String) -> Option<String>,
) -> Result<()> {
    let source = File::open(from).map_err(Error::io(from))?;
    let mut writer = create(to)?;
    for line in BufReader::new(source).lines() {
        let line = match line {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
            other => other.map_err(Error::io(from))?,
        };
        let line = line.trim_start_matches('\0').to_owned();
        let is_whole = serde_json::from_str::<serde::de::IgnoredAny>(&line).is_ok();
        if let Some(line) = Some(line).filter(|_| is_whole).and_then(&mut change) {
            writeln!(writer, "{line}").map_err(Error::io(to))?;
        }
    }
    finish(writer, to)
}

/// A new file of the agent's, private to the user. One that is there is never overwritten.
pub fn create(path: &Path) -> Result<BufWriter<File>> {
    if let Some(folder) = path.parent() {
        folder::make(folder).map_err(Error::io(folder))?;
    }
    let file = File::options().write(true).create_new(true).mode(0o600).open(path);
    Ok(BufWriter::new(file.map_err(Error::io(path))?))
}

pub fn finish(writer: BufWriter<File>, path: &Path) -> Result<()> {
    let file = writer.into_inner().map_err(|error| Error::io(path)(error.into_error()))?;
    let folder = path.parent().map_or(Ok(()), folder::sync);
    file.sync_all().and(folder).map_err(Error::io(path))
}

/// `-p PROMPT` among further arguments, for agents that call it otherwise: the prompt, and the rest.
pub fn headless(extra: &[String]) -> Option<(&str, Vec<String>)> {
    let at = extra.iter().position(|arg| arg == "-p" || arg == "--print" || arg == "--prompt")?;
    let prompt = extra.get(at + 1)?;
    let rest = extra[..at].iter().chain(&extra[at + 2..]).cloned().collect();
    Some((prompt, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_replaced_as_a_whole_and_nowhere_else() {
        let folder = Some(("/code/app".to_owned(), "/else/where".to_owned()));
        let rewrite = Rewrite { folder, ids: Vec::new() };
        let check = |line: &str, expected: &str| assert_eq!(rewrite.apply(line), expected);
        check(r#"{"cwd":"/code/app"}"#, r#"{"cwd":"/else/where"}"#);
        check("/code/app/src and /code/apple", "/else/where/src and /code/apple");
        check("/code/app-two /code/app_2 /code/app.old", "/code/app-two /code/app_2 /code/app.old");
        check("It is in /code/app.", "It is in /else/where.");
        check("/code/app\\n/code/app", "/else/where\\n/else/where");
        check("/my/code/app", "/my/code/app");
    }

    #[test]
    fn only_an_absolute_path_is_replaced() {
        let rewrite = |workspace: &str| {
            let folder = PathBuf::from("/kept");
            let (id, parts) = ("old".parse().unwrap(), Vec::new());
            let kept = Kept { id, folder, parts, workspace: workspace.to_owned() };
            let order = Order {
                home: PathBuf::from("/home/me"),
                workspace: "/else/where".to_owned(),
                new_id: "new".to_owned(),
                now: "2026-01-21T14-30-00".to_owned(),
                scratch: PathBuf::from("/scratch"),
                extra: Vec::new(),
            };
            Rewrite::new(&kept, &order).apply(r#"{"cwd":"/a\"","more":"/b"}"#)
        };
        assert_eq!(rewrite(""), r#"{"cwd":"/a\"","more":"/b"}"#);
        assert_eq!(rewrite("/"), r#"{"cwd":"/a\"","more":"/b"}"#);
        assert_eq!(rewrite(":"), r#"{"cwd":"/a\"","more":"/b"}"#);
        assert_eq!(rewrite("/a\""), r#"{"cwd":"/else/where","more":"/b"}"#);
    }

    #[test]
    fn a_prompt_is_found_among_further_arguments() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(headless(&words("--json -p hello -m x")), Some(("hello", words("--json -m x"))));
        assert_eq!(headless(&words("-m x")), None);
    }
}
