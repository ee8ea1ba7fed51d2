//! Passwords on command lines, where only the program says which word is one: `curl -u user:password`,
//! `mysql -psecret`, `sshpass -p secret`, `echo secret | sudo -S`.
//!
//! A line that names one of these programs is read once, word by word. Quotes, commas and brackets only
//! separate words, so that `["curl", "-u", "user:password"]` and `sh -c "curl -u user:password"` are read alike.

use std::ops::Range;

use super::LONG;
use super::assigned::{is_placeholder, quote_at, quoted_end};
use super::names::is_telling;

/// Lines with one of these are read.
pub(super) const PROGRAMS: [&str; 38] = [
    "curl",
    "mysql",
    "mariadb",
    "mycli",
    "sshpass",
    "docker",
    "podman",
    "nerdctl",
    "buildah",
    "skopeo",
    "helm ",
    "oras",
    "twine",
    "redis-cli",
    "valkey-cli",
    "mongo",
    "sqlcmd",
    "sqlplus",
    "ldap",
    "smbclient",
    "rpcclient",
    "unzip",
    "zip ",
    "7z",
    "openssl",
    "htpasswd",
    "chpasswd",
    "sudo",
    "password-stdin",
    "with-token",
    "configure set",
    "config set",
    "http -a",
    "https -a",
    "SecureString",
    "nmcli",
    "az login",
    "oc login",
];

/// Shorter values are rather names of options.
const LEAST: usize = 3;

/// What a program takes as a secret.
struct Rule {
    /// The program's name starts with this.
    program: &'static str,
    options: &'static [&'static str],
    value: Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// All of the next word, or what is glued to the option.
    Whole,
    /// Only what is glued to the option: alone it asks for the password.
    Glued,
    /// What follows the first colon.
    AfterColon,
    /// What follows the first `%`.
    AfterPercent,
    /// The same as [`Value::Whole`], once `login` was said.
    AtLogin,
    /// A list of `name=value`.
    Pairs,
}

use Value::{AfterColon, AfterPercent, AtLogin, Glued, Pairs, Whole};

#[rustfmt::skip]
const RULES: &[Rule] = &[
    Rule { program: "curl", options: &["-u", "--user", "-U", "--proxy-user", "-E", "--cert"], value: AfterColon },
    Rule { program: "curl", options: &["--pass", "--proxy-pass", "--oauth2-bearer"], value: Whole },
    Rule { program: "curl", options: &["-b"], value: Pairs },
    Rule { program: "http", options: &["-a", "--auth"], value: AfterColon },
    Rule { program: "mysql", options: &["-p"], value: Glued },
    Rule { program: "mariadb", options: &["-p"], value: Glued },
    Rule { program: "mycli", options: &["-p"], value: Glued },
    Rule { program: "7z", options: &["-p"], value: Glued },
    Rule { program: "sshpass", options: &["-p"], value: Whole },
    Rule { program: "docker", options: &["-p"], value: AtLogin },
    Rule { program: "podman", options: &["-p"], value: AtLogin },
    Rule { program: "nerdctl", options: &["-p"], value: AtLogin },
    Rule { program: "buildah", options: &["-p"], value: AtLogin },
    Rule { program: "skopeo", options: &["-p"], value: AtLogin },
    Rule { program: "helm", options: &["-p"], value: AtLogin },
    Rule { program: "oras", options: &["-p"], value: AtLogin },
    Rule { program: "az", options: &["-p"], value: AtLogin },
    Rule { program: "oc", options: &["-p"], value: AtLogin },
    Rule { program: "podman", options: &["--creds"], value: AfterColon },
    Rule { program: "buildah", options: &["--creds"], value: AfterColon },
    Rule { program: "skopeo", options: &["--creds", "--src-creds", "--dest-creds"], value: AfterColon },
    Rule { program: "twine", options: &["-p"], value: Whole },
    Rule { program: "redis-cli", options: &["-a", "--pass"], value: Whole },
    Rule { program: "valkey-cli", options: &["-a", "--pass"], value: Whole },
    Rule { program: "mongo", options: &["-p"], value: Whole },
    Rule { program: "sqlcmd", options: &["-P"], value: Whole },
    Rule { program: "ldap", options: &["-w"], value: Whole },
    Rule { program: "smbclient", options: &["-U", "--user"], value: AfterPercent },
    Rule { program: "rpcclient", options: &["-U", "--user"], value: AfterPercent },
    Rule { program: "zip", options: &["-P"], value: Whole },
    Rule { program: "unzip", options: &["-P"], value: Whole },
    Rule { program: "openssl", options: &["-k"], value: Whole },
    Rule { program: "nmcli", options: &["password"], value: Whole },
    Rule { program: "ConvertTo-SecureString", options: &["-String", "ConvertTo-SecureString"], value: Whole },
];

/// The secrets of the line around `at`, but not before `from`, and where the line ends.
pub(super) fn in_line(text: &str, at: usize, from: usize) -> (Vec<Range<usize>>, usize) {
    let is_end = |letter: char| matches!(letter, '\n' | '\r');
    let start = text[from..at].rfind(is_end).map_or(from, |end| from + end + 1);
    let mut line = Line { text, end: at, program: "", ..Line::default() };
    let mut place = start;
    loop {
        line.end = place + text[place..].find('\n').map_or(text.len() - place, |end| end + 1);
        // A backslash at its end continues the line.
        let is_continued = text[place..line.end].trim_end_matches(['\n', '\r']).ends_with('\\');
        line.read(place);
        place = line.end;
        if !is_continued || place >= text.len() {
            break;
        }
    }
    line.found.sort_by_key(|range| range.start);
    line.found.dedup_by(|next, before| next.start < before.end);
    (line.found, line.end)
}

/// What was read of a line so far.
#[derive(Default)]
struct Line<'t> {
    text: &'t str,
    end: usize,
    /// The program at hand, without its folder.
    program: &'t str,
    has_login: bool,
    /// Words that are neither options nor the program, for programs that count them.
    n_plain: usize,
    /// The last option of `htpasswd` had a `b`: the password stands on the line.
    is_batch: bool,
    word_before: &'t str,
    /// What `echo` or `printf` says to the next program.
    said: Option<Range<usize>>,
    found: Vec<Range<usize>>,
}

impl<'t> Line<'t> {
    fn read(&mut self, start: usize) {
        let mut at = start;
        while let Some(word) = self.next_word(at) {
            at = self.take(&word).max(word.end);
        }
    }

    /// The next word, after the separators. Signs that end a command are looked at on the way.
    fn next_word(&mut self, from: usize) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let mut at = from;
        while at < self.end && is_separator(bytes[at]) {
            match bytes[at] {
                b';' | b'&' => self.begin_command(None),
                b'|' => {
                    let said = self.said.take().filter(|_| bytes.get(at + 1) != Some(&b'|'));
                    self.begin_command(said);
                }
                b'<' if self.text[at..self.end].starts_with("<<<") => {
                    let value =
                        value_after(self.text, at + 3, "").filter(|value| value.end <= self.end);
                    if let Some(value) = value.filter(|_| self.reads_password()) {
                        self.keep(value);
                    }
                    at += 2;
                }
                // The escaped end of a line, in a JSON string.
                b'\\' if matches!(bytes.get(at + 1), Some(b'n' | b'r')) => {
                    self.begin_command(None);
                    at += 1;
                }
                _ => {}
            }
            at += 1;
        }
        if at >= self.end {
            return None;
        }
        let length = bytes[at..self.end].iter().take_while(|byte| !is_separator(**byte)).count();
        Some(at..at + length)
    }

    fn begin_command(&mut self, said: Option<Range<usize>>) {
        self.program = "";
        self.has_login = false;
        self.is_batch = false;
        self.n_plain = 0;
        self.word_before = "";
        self.said = said;
    }

    /// Looks at a word; where the next one may start.
    fn take(&mut self, range: &Range<usize>) -> usize {
        let text = self.text;
        let word = &text[range.clone()];
        let name = word.rsplit('/').next().unwrap_or(word);
        if matches!(name, "echo" | "printf") && self.said.is_none() {
            self.program = name;
            self.said = value_of_echo(text, range.end, self.end);
            return self.said.as_ref().map_or(range.end, |said| said.end);
        }
        if self.reads_said(word) {
            self.keep_said();
        }
        if self.program != "nmcli" && is_program(name) {
            self.program = name;
        }
        self.has_login |= word == "login";
        let next = self.secret_of(range);
        if let Some(value) = &next {
            self.keep(value.clone());
        } else {
            self.count(range);
        }
        self.word_before = word;
        next.map_or(range.end, |value| value.end)
    }

    /// Does this word say that the password comes from another program?
    fn reads_said(&self, word: &str) -> bool {
        let is_sudo = self.program == "sudo" && word.starts_with('-') && !word.starts_with("--");
        matches!(word, "--password-stdin" | "--with-token" | "chpasswd")
            || is_sudo && word.contains('S')
            || self.program == "sudo" && word == "--stdin"
            || self.program == "passwd" && word == "--stdin"
    }

    fn reads_password(&self) -> bool {
        self.program == "sudo"
            || matches!(self.word_before, "--password-stdin" | "--with-token" | "chpasswd")
    }

    fn keep_said(&mut self) {
        if let Some(said) = self.said.take() {
            // `chpasswd` reads `user:password`.
            let value = &self.text[said.clone()];
            let rest = &self.text[said.end..self.end];
            let is_pair = rest[..rest.floor_char_boundary(LONG)].contains("chpasswd");
            let colon = value.find(':').filter(|_| is_pair).map_or(0, |colon| colon + 1);
            self.keep(said.start + colon..said.end);
        }
    }

    /// The secret that an option of the program at hand takes.
    fn secret_of(&self, word: &Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        let it = &text[word.clone()];
        if self.program == "openssl" && it.starts_with("pass:") {
            return Some(word.start + "pass:".len()..word.end);
        }
        if self.program == "sqlplus" {
            let (user, rest) = it.split_once('/')?;
            let password = &rest[..rest.find('@').unwrap_or(rest.len())];
            let start = word.start + user.len() + 1;
            return (!user.is_empty() && rest.contains('@')).then(|| start..start + password.len());
        }
        let is_set = self.word_before == "set" && is_telling(it) && !it.contains('=');
        if is_set {
            return value_after(text, word.end, quote_before(text, word.start))
                .filter(|value| value.end <= self.end);
        }
        let rules = RULES.iter().filter(|rule| self.program.starts_with(rule.program));
        { rules }.find_map(|rule| self.value_of(rule, word))
    }

    fn value_of(&self, rule: &Rule, word: &Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        let it = &text[word.clone()];
        if rule.value == AtLogin && !self.has_login {
            return None;
        }
        let is_option = |option: &&&str| it.starts_with(**option) || is_cluster(it, option);
        let option = rule.options.iter().find(is_option)?;
        let glued =
            it.strip_prefix(*option).filter(|_| !is_cluster(it, option)).unwrap_or_default();
        let value = match (glued, option.starts_with("--")) {
            // `--user=name:password` and `--user="name:password"`.
            (glued, true) if glued.starts_with('=') => glued_value(text, word, option.len() + 1),
            (glued, false) if !glued.is_empty() && option.starts_with('-') => {
                glued_value(text, word, option.len())
            }
            ("", _) if rule.value == Glued => {
                let quote = quote_at(text, word.end);
                let is_closed = !quote.is_empty() && quote == quote_before(text, word.start);
                (!quote.is_empty() && !is_closed).then(|| quoted(text, word.end, quote))
            }
            ("", _) => value_after(text, word.end, quote_before(text, word.start)),
            _ => None,
        }?;
        self.part_of(rule.value, value)
    }

    fn part_of(&self, kind: Value, value: Range<usize>) -> Option<Range<usize>> {
        let text = &self.text[value.clone()];
        let after = |sign: char| {
            let (before, after) = text.split_once(sign)?;
            match after.is_empty() {
                // Some take a key for the user's name, and no password.
                true => (before.len() >= 16).then(|| value.start..value.start + before.len()),
                false => Some(value.end - after.len()..value.end),
            }
        };
        let is_option = text.starts_with('-');
        match kind {
            AfterColon => after(':'),
            AfterPercent => after('%'),
            Pairs => text.contains('=').then_some(value),
            Whole | Glued | AtLogin => (!is_option).then_some(value),
        }
        .filter(|value| value.end <= self.end)
    }

    /// `htpasswd -b file user password`.
    fn count(&mut self, range: &Range<usize>) {
        let word = &self.text[range.clone()];
        if self.program != "htpasswd"
            || word.ends_with("htpasswd") && self.n_plain == 0 && !self.is_batch
        {
            return;
        }
        if let Some(options) = word.strip_prefix('-') {
            self.is_batch |= options.contains('b');
            // Without a file, the user comes first.
            self.n_plain += usize::from(options.contains('n'));
            return;
        }
        self.n_plain += 1;
        if self.is_batch && self.n_plain == 3 {
            self.keep(range.clone());
        }
    }

    fn keep(&mut self, range: Range<usize>) {
        let value = &self.text[range.clone()];
        if value.chars().count() >= LEAST && !is_placeholder(value) {
            self.found.push(range);
        }
    }
}

fn is_program(name: &str) -> bool {
    let is_known = |known: &str| {
        name.strip_prefix(known).is_some_and(|rest| {
            rest.len() <= 8
                && rest.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'.'))
        })
    };
    matches!(name, "sudo" | "htpasswd" | "sqlplus" | "passwd")
        || name.len() <= 24
            && RULES.iter().any(|rule| match rule.program {
                // Short names are words of other languages, too.
                short @ ("az" | "oc" | "http" | "zip" | "oras" | "helm") => {
                    name == short || short == "http" && name == "https"
                }
                known => is_known(known),
            })
}

/// `-sSu`: several options of one letter, of which the last takes the value.
fn is_cluster(word: &str, option: &str) -> bool {
    let Some(letter) = option.strip_prefix('-').filter(|letter| letter.len() == 1) else {
        return false;
    };
    let letters = word.strip_prefix('-').unwrap_or_default();
    option == "-u"
        && (2..=6).contains(&letters.len())
        && letters.ends_with(letter)
        && letters.bytes().all(|byte| b"sSkLfivIgGu".contains(&byte))
}

fn is_separator(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'`\\,;|&<>()[]{}".contains(&byte)
}

/// The quote before a word, with its backslashes.
fn quote_before(text: &str, at: usize) -> &str {
    let before = &text[..at];
    let quote = before.strip_suffix(['"', '\'', '`']).unwrap_or(before);
    let n = quote.bytes().rev().take(15).take_while(|byte| *byte == b'\\').count();
    match quote.len() < before.len() {
        true => &before[quote.len() - n..],
        false => "",
    }
}

/// A value that is glued to its option, with or without quotes.
fn glued_value(text: &str, word: &Range<usize>, length: usize) -> Option<Range<usize>> {
    let start = word.start + length;
    let quote = if start == word.end { quote_at(text, start) } else { "" };
    Some(match quote {
        "" => start..bare_end(text, start),
        quote => quoted(text, start, quote),
    })
}

/// The value after an option: the next word, or the next element of a list.
fn value_after(text: &str, at: usize, own_quote: &str) -> Option<Range<usize>> {
    let is_closed = !own_quote.is_empty() && text[at..].starts_with(own_quote);
    let rest = &text[at..];
    let rest = &rest[..rest.floor_char_boundary(LONG)];
    let rest = if is_closed { &rest[own_quote.len()..] } else { rest };
    let after = match is_closed {
        true => rest.trim_start_matches([' ', '\t', '\n', '\r', ',']),
        false => rest.trim_start_matches([' ', '\t']),
    };
    let start = at + if is_closed { own_quote.len() } else { 0 } + rest.len() - after.len();
    let quote = quote_at(text, start);
    match quote {
        "" if is_closed || after.is_empty() => None,
        "" => Some(start..bare_end(text, start)),
        // The string around the whole command ends here.
        quote if !is_closed && start == at && quote == own_quote => None,
        quote => Some(quoted(text, start, quote)),
    }
}

fn quoted(text: &str, at: usize, quote: &str) -> Range<usize> {
    let start = at + quote.len();
    start..quoted_end(text, start, quote)
}

fn bare_end(text: &str, start: usize) -> usize {
    let is_end = |letter: char| letter.is_whitespace() || "\"'`\\;|&<>()".contains(letter);
    let end = start + text[start..].find(is_end).unwrap_or(text.len() - start);
    start + text[start..end].trim_end_matches([',', '.']).len()
}

/// The last word that `echo` or `printf` prints.
fn value_of_echo(text: &str, at: usize, end: usize) -> Option<Range<usize>> {
    let mut last = None;
    let mut at = at;
    while let Some(value) =
        value_after(text, at, "").filter(|value| value.end <= end && value.end > at)
    {
        let word = &text[value.clone()];
        let is_form = word.starts_with('-') || word.starts_with('%');
        if !word.is_empty() && !is_form {
            let length = word.trim_end_matches("\\n").len();
            last = Some(value.start..value.start + length);
        }
        let quote = quote_at(text, value.end);
        at = value.end + quote.len();
        if !text[at..].starts_with([' ', '\t']) {
            break;
        }
    }
    last
}
