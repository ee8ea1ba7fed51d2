//! What people see, and are asked. Answers go to stdout; talk goes to stderr. Colours and bars only
//! appear on a terminal, and `NO_COLOR` is honoured. Every word passes the redactor on its way out, so that
//! no command can forget to. A door that speaks otherwise has the words kept for it.

use std::fmt::{self, Display};
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::{Arc, Mutex};

use anstream::{AutoStream, ColorChoice};
use bivouac_core::progress::Progress;
use bivouac_core::redact::Redactor;
use indicatif::{ProgressBar, ProgressStyle};
use owo_colors::{OwoColorize, Style};
use serde::Serialize;
use serde_json::Value;

use crate::choice::{Press, press};
use crate::keyboard::Keyboard;

/// In which form answers are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Json,
}

pub struct Ui {
    form: Form,
    /// Someone else gives the answer.
    is_part: bool,
    redactor: Redactor,
    voice: Voice,
    answered: Answered,
}

/// What stdout has for programs. A document is printed when the command ends, so that it is the only one: an error
/// behind it takes its place.
enum Answered {
    Nothing,
    Document(Value),
    /// Something is on stdout already: a stream that was asked for, or the one document.
    Printed,
}

/// Where words go.
enum Voice {
    Streams { stdout: AutoStream<io::Stdout>, stderr: AutoStream<io::Stderr> },
    Kept(Kept),
}

/// What was said, for a door that says it in its own way, and who is told how far long work is.
pub struct Kept {
    pub answer: Answer,
    progress: Arc<dyn Progress + Send + Sync>,
}

#[derive(Debug, Default)]
pub struct Answer {
    /// The answer for people.
    pub text: String,
    /// The answer for programs.
    pub document: Option<Value>,
    /// What is worth knowing beside it.
    pub notes: Vec<String>,
}

impl Ui {
    pub fn new(form: Form) -> Self {
        let stdout = AutoStream::new(io::stdout(), colours(&io::stdout()));
        let stderr = AutoStream::new(io::stderr(), colours(&io::stderr()));
        let voice = Voice::Streams { stdout, stderr };
        Self {
            form,
            is_part: false,
            redactor: Redactor::default(),
            voice,
            answered: Answered::Nothing,
        }
    }

    /// One that prints nothing, and keeps what is said.
    pub fn keeping(form: Form, progress: Arc<dyn Progress + Send + Sync>) -> Self {
        let kept = Kept { answer: Answer::default(), progress };
        Self { voice: Voice::Kept(kept), ..Self::new(form) }
    }

    /// Does another door speak for us? What it passes on comes from a model.
    pub fn is_kept(&self) -> bool {
        matches!(self.voice, Voice::Kept(_))
    }

    /// What was said, where it was kept.
    pub fn into_answer(self) -> Answer {
        match self.voice {
            Voice::Kept(kept) => kept.answer,
            Voice::Streams { .. } => Answer::default(),
        }
    }

    /// The same, for what is only a part of something larger: its lines are talk, and it has no document.
    pub fn quiet(&self) -> Self {
        let mut quiet = match &self.voice {
            Voice::Streams { .. } => Self::new(self.form),
            Voice::Kept(kept) => Self::keeping(self.form, kept.progress.clone()),
        };
        quiet.is_part = true;
        quiet.redactor = self.redactor.clone();
        quiet
    }

    /// From here on, the values this one knows are taken out as well.
    pub fn redact_with(&mut self, redactor: Redactor) {
        self.redactor = redactor;
    }

    /// A line of the answer, for people.
    pub fn say(&mut self, line: impl Display) -> io::Result<()> {
        if self.form == Form::Json {
            return Ok(());
        }
        let line = self.redactor.redact(&line.to_string());
        match &mut self.voice {
            Voice::Streams { stderr, .. } if self.is_part => writeln!(stderr, "{line}"),
            Voice::Streams { stdout, .. } => writeln!(stdout, "{line}"),
            Voice::Kept(kept) => {
                kept.answer.text.push_str(&plain(&line));
                kept.answer.text.push('\n');
                Ok(())
            }
        }
    }

    /// Bytes of the answer. On a terminal what could command it is made harmless.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Voice::Streams { stdout, .. } = &mut self.voice else {
            return self.say(String::from_utf8_lossy(bytes).trim_end());
        };
        match self.form {
            Form::Json => Ok(()),
            Form::Text if io::stdout().is_terminal() => {
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    let text = line.strip_suffix(b"\n").unwrap_or(line);
                    let parts: Vec<String> = text
                        .split(|byte| *byte == b'\t')
                        .map(bivouac_core::text::printable_bytes)
                        .collect();
                    let text = parts.join("\t");
                    let style = match text.as_bytes().first() {
                        Some(b'+') => Style::new().green(),
                        Some(b'-') => Style::new().red(),
                        Some(b'@') => Style::new().cyan(),
                        _ => Style::new(),
                    };
                    writeln!(stdout, "{}", text.style(style))?;
                }
                Ok(())
            }
            Form::Text => stdout.as_inner().lock().write_all(bytes),
        }
    }

    /// The whole answer, for programs. A command that has a second one gave a better answer.
    pub fn data(&mut self, document: &impl Serialize) -> io::Result<()> {
        if self.form == Form::Text || self.is_part {
            return Ok(());
        }
        let document = self.redacted(document)?;
        match (&mut self.voice, &self.answered) {
            (Voice::Kept(kept), _) => kept.answer.document = Some(document),
            (Voice::Streams { .. }, Answered::Printed) => {}
            (Voice::Streams { .. }, _) => self.answered = Answered::Document(document),
        }
        Ok(())
    }

    /// Prints the document, if there is one. Called at the end of a command, and before another program takes over.
    pub fn finish(&mut self) -> io::Result<()> {
        let Voice::Streams { stdout, .. } = &mut self.voice else {
            return Ok(());
        };
        if self.form == Form::Text {
            return Ok(());
        }
        match std::mem::replace(&mut self.answered, Answered::Printed) {
            Answered::Document(document) => {
                writeln!(stdout, "{document:#}")?;
                stdout.flush()
            }
            // Whoever asked for a document gets one, also from a command that has nothing to say.
            Answered::Nothing => writeln!(stdout, "{{}}"),
            Answered::Printed => Ok(()),
        }
    }

    /// From here on the answer is a document.
    pub fn as_json(&mut self) {
        self.form = Form::Json;
    }

    pub fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    /// One of many answers, for programs: a document on a line, printed at once.
    pub fn line(&mut self, document: &impl Serialize) -> io::Result<()> {
        if self.form == Form::Text {
            return Ok(());
        }
        let document = self.redacted(document)?;
        match &mut self.voice {
            Voice::Streams { stdout, .. } => {
                self.answered = Answered::Printed;
                writeln!(stdout, "{document}")?;
                stdout.flush()
            }
            Voice::Kept(kept) => {
                kept.answer.document = Some(document);
                Ok(())
            }
        }
    }

    /// Something else is on stdout, because it was asked for: the answer is a stream, not a document.
    pub fn streams(&mut self) {
        self.answered = Answered::Printed;
    }

    fn redacted(&self, document: &impl Serialize) -> io::Result<Value> {
        let mut document = serde_json::to_value(document).map_err(io::Error::other)?;
        self.redactor.redact_json(&mut document);
        Ok(document)
    }

    /// Something worth knowing that is not the answer.
    pub fn note(&mut self, line: impl Display) {
        let line = self.redactor.redact(&line.to_string());
        match &mut self.voice {
            Voice::Streams { stderr, .. } => {
                let note = "note:".style(Style::new().bold());
                let _nobody_listens = writeln!(stderr, "{note} {line}");
            }
            Voice::Kept(kept) => kept.answer.notes.push(plain(&line)),
        }
    }

    /// Where the words are kept, the document of an error has all of it.
    pub fn error(&mut self, message: &str, causes: &[String], hint: Option<&str>) {
        let Voice::Streams { stderr, .. } = &mut self.voice else {
            return;
        };
        let message = self.redactor.redact(message);
        let _nobody_listens =
            writeln!(stderr, "{} {message}", "error:".style(Style::new().red().bold()));
        for cause in causes {
            let cause = self.redactor.redact(cause);
            let _nobody_listens = writeln!(stderr, "cause: {cause}");
        }
        if let Some(hint) = hint.map(|hint| self.redactor.redact(hint)) {
            let _nobody_listens = writeln!(stderr, "{} {hint}", "hint:".style(Style::new().cyan()));
        }
    }

    /// Can someone answer a question?
    pub fn can_ask(&self) -> bool {
        let is_heard = matches!(self.voice, Voice::Streams { .. });
        is_heard
            && self.form == Form::Text
            && io::stdin().is_terminal()
            && io::stderr().is_terminal()
    }

    /// Asks on stderr. Anything but yes is no.
    pub fn ask(&mut self, question: &str) -> io::Result<bool> {
        let question = self.redactor.redact(question);
        write!(io::stderr(), "{question} [y/N] ")?;
        io::stderr().flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Asks on stderr for one of several choices, each known by its number and a letter. The number in
    /// brackets is the one that Enter takes. `None` when none is wanted.
    pub fn choose(&mut self, question: &str, letters: &[char]) -> io::Result<Option<usize>> {
        let keyboard = Keyboard::open()?;
        let mut shown = 0;
        let mut stderr = io::stderr();
        write!(stderr, "{question} [{}]: ", shown + 1)?;
        loop {
            stderr.flush()?;
            match press(keyboard.key()?, shown, letters) {
                Press::Show(other) => {
                    shown = other;
                    write!(stderr, "\r{question} [{}]: ", shown + 1)?;
                }
                Press::Take(taken) => {
                    writeln!(stderr, "{}", taken + 1)?;
                    return Ok(Some(taken));
                }
                Press::Leave => {
                    writeln!(stderr)?;
                    return Ok(None);
                }
                Press::Nothing => {}
            }
        }
    }

    /// Bars where someone looks.
    pub fn progress(&self) -> Box<dyn Progress> {
        match &self.voice {
            Voice::Kept(kept) => Box::new(kept.progress.clone()),
            Voice::Streams { .. } if io::stderr().is_terminal() => Box::new(Bar::default()),
            Voice::Streams { .. } => Box::new(bivouac_core::progress::Silent),
        }
    }
}

/// Without colours.
fn plain(line: &str) -> String {
    anstream::adapter::strip_str(line).to_string()
}

fn colours(stream: &impl IsTerminal) -> ColorChoice {
    let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if stream.is_terminal() && !is_unwanted && !is_dumb {
        ColorChoice::Always
    } else {
        ColorChoice::Never
    }
}

/// Short work shows nothing.
#[derive(Default)]
struct Bar {
    bar: Mutex<Option<ProgressBar>>,
}

impl Bar {
    const WORTH_SHOWING: u64 = 200;

    fn with(&self, act: impl FnOnce(&mut Option<ProgressBar>)) {
        if let Ok(mut bar) = self.bar.lock() {
            act(&mut bar);
        }
    }
}

impl Progress for Bar {
    fn begin(&self, what: &str, total: u64) {
        if total < Self::WORTH_SHOWING {
            return;
        }
        let style =
            ProgressStyle::with_template("{msg:16} {bar:32.cyan} {human_pos} of {human_len}");
        let bar = ProgressBar::new(total).with_message(what.to_owned());
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.with(|slot| *slot = Some(bar));
    }

    fn add(&self, steps: u64) {
        self.with(|bar| {
            if let Some(bar) = bar {
                bar.inc(steps);
            }
        });
    }

    fn end(&self) {
        self.with(|bar| {
            if let Some(bar) = bar.take() {
                bar.finish_and_clear();
            }
        });
    }
}

/// Text in columns. A column is as wide as its widest cell, and no narrower than it is told.
pub struct Table {
    columns: Vec<(&'static str, usize)>,
    rows: Vec<Vec<Cell>>,
}

/// A cell's text and how it looks on a terminal.
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub fn new(text: impl Display) -> Self {
        Self { text: text.to_string(), style: Style::new() }
    }

    pub fn styled(text: impl Display, style: Style) -> Self {
        Self { text: text.to_string(), style }
    }
}

impl Table {
    /// Headings with the least width of each column.
    pub fn new(columns: impl IntoIterator<Item = (&'static str, usize)>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, (title, least))| {
                let cells = self
                    .rows
                    .iter()
                    .filter_map(|row| row.get(at))
                    .map(|cell| cell.text.chars().count());
                cells.chain([title.len(), *least]).max().unwrap_or(0)
            })
            .collect();
        let heading = self
            .columns
            .iter()
            .map(|(title, _)| Cell::styled(title, Style::new().bold()))
            .collect();
        for (n, row) in std::iter::once(&heading).chain(&self.rows).enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write_row(f, row, &widths)?;
        }
        Ok(())
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, row: &[Cell], widths: &[usize]) -> fmt::Result {
    let last = row.iter().rposition(|cell| !cell.text.is_empty()).unwrap_or(0);
    for (at, (cell, width)) in row.iter().zip(widths).enumerate().take(last + 1) {
        write!(f, "{}", cell.text.style(cell.style))?;
        if at < last {
            let gap = width - cell.text.chars().count() + 2;
            write!(f, "{:gap$}", "")?;
        }
    }
    Ok(())
}

/// A word as a shell reads it back.
pub fn quote(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:@%+,".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The same of a path, which need not be text.
pub fn quote_bytes(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) => quote(text),
        Err(_) => format!("$'{}'", path.escape_ascii()),
    }
}

/// The looks of things people copy or look for.
pub mod looks {
    use owo_colors::Style;

    pub fn handle() -> Style {
        Style::new().cyan()
    }

    pub fn new() -> Style {
        Style::new().green()
    }

    pub fn changed() -> Style {
        Style::new().yellow()
    }

    pub fn gone() -> Style {
        Style::new().red()
    }

    pub fn faint() -> Style {
        Style::new().dimmed()
    }

    pub fn heading() -> Style {
        Style::new().bold()
    }
}
