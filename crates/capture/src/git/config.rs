//! git's configuration, read from its files without git.
//!
//! git itself acts on what a configuration says: it follows includes to wherever they lead and runs the programs
//! it names. Here the files are only read, and the few harmless settings that matter are looked up by name.

use std::env;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Repository;
use crate::{Error, Result, bounded};

/// The settings of every level, in the order in which git reads them: a later one wins.
#[derive(Debug, Default)]
pub(super) struct Config {
    settings: Vec<Setting>,
    /// A file has includes that depend on a condition. Those are not followed.
    pub(super) has_conditions: bool,
    n_files: usize,
}

/// A key, with section and name in lower case, and its value.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    key: String,
    value: Vec<u8>,
}

const MOST_BYTES: u64 = 4 << 20;
/// Includes can include, and each other.
const MOST_FILES: usize = 50;

impl Config {
    /// The user's settings, and then the repository's.
    pub(super) fn read(repository: Option<&Repository>) -> Result<Self> {
        let mut config = Self::default();
        for file in user_files() {
            // One that cannot be read is the user's to mend, and is not about this repository.
            let _missing_or_broken = config.add(&file);
        }
        if let Some(repository) = repository {
            config.add_repository(repository)?;
        }
        Ok(config)
    }

    /// The repository's settings alone.
    pub(super) fn of_repository(repository: &Repository) -> Result<Self> {
        let mut config = Self::default();
        config.add_repository(repository)?;
        Ok(config)
    }

    fn add_repository(&mut self, repository: &Repository) -> Result<()> {
        self.add(&repository.common_dir.join("config"))?;
        if self.is_set("extensions.worktreeconfig") {
            self.add(&repository.git_dir.join("config.worktree"))?;
        }
        Ok(())
    }

    /// The last value of a key.
    pub(super) fn last(&self, key: &str) -> Option<&[u8]> {
        self.all(key).last()
    }

    pub(super) fn all(&self, key: &str) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.settings.iter().filter(move |it| it.key == key).map(|it| it.value.as_slice())
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        std::str::from_utf8(self.last(key)?).ok()
    }

    pub(super) fn is_set(&self, key: &str) -> bool {
        let value = self.last(key).unwrap_or_default().to_ascii_lowercase();
        matches!(value.as_slice(), b"true" | b"yes" | b"on" | b"1")
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.settings.iter().map(|it| it.key.as_str())
    }

    fn add(&mut self, file: &Path) -> Result<()> {
        self.n_files += 1;
        if self.n_files > MOST_FILES {
            return Ok(());
        }
        let text = match bounded::read(file, MOST_BYTES) {
            Err(error) if bounded::is_absent(&error) => return Ok(()),
            text => text.map_err(Error::io(file))?,
        };
        let malformed = || std::io::Error::other("it is not a configuration that git understands");
        let settings = parse(&text).ok_or_else(malformed).map_err(Error::io(file))?;
        for setting in settings {
            if setting.key == "include.path" {
                let folder = file.parent().unwrap_or(Path::new("/"));
                self.add(&folder.join(expand(&setting.value)))?;
            }
            self.has_conditions |= setting.key.starts_with("includeif.");
            self.settings.push(setting);
        }
        Ok(())
    }
}

/// Where the user's settings are, and those of the whole machine.
fn user_files() -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/gitconfig")];
    files.extend(user_folder().map(|folder| folder.join("config")));
    files.extend(env::var_os("HOME").map(|home| PathBuf::from(home).join(".gitconfig")));
    files
}

/// The folder of git's files below the user's configuration.
pub(super) fn user_folder() -> Option<PathBuf> {
    let folder = match env::var_os("XDG_CONFIG_HOME").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::var_os("HOME")?).join(".config"),
    };
    Some(folder.join("git"))
}

/// A path as settings have it, in which `~/` is the home folder.
pub(super) fn expand(value: &[u8]) -> PathBuf {
    let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
    match (value.strip_prefix(b"~/"), env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(path(rest)),
        _ => path(value),
    }
}

/// `None` where git would refuse the file, too.
fn parse(text: &[u8]) -> Option<Vec<Setting>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut rest = Rest(text);
    let mut section = String::new();
    let mut settings = Vec::new();
    loop {
        rest.skip(|byte| byte.is_ascii_whitespace());
        match rest.0.first() {
            None => return Some(settings),
            Some(b'#' | b';') => rest.skip(|byte| byte != b'\n'),
            Some(b'[') => section = rest.section()?,
            Some(byte) if byte.is_ascii_alphabetic() && !section.is_empty() => {
                let name = rest.take(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
                let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
                let value = rest.value()?;
                settings.push(Setting { key: format!("{section}.{name}"), value });
            }
            Some(_) => return None,
        }
    }
}

/// What is still to be read.
struct Rest<'t>(&'t [u8]);

impl<'t> Rest<'t> {
    fn take(&mut self, is_part: impl Fn(u8) -> bool) -> &'t [u8] {
        let length = self.0.iter().position(|byte| !is_part(*byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn skip(&mut self, is_part: impl Fn(u8) -> bool) {
        self.take(is_part);
    }

    fn next(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// `[name]` or `[name "any text"]`.
    fn section(&mut self) -> Option<String> {
        self.next();
        let name = self.take(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.');
        let mut section = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        self.skip(|byte| byte == b' ' || byte == b'\t');
        if self.0.first() == Some(&b'"') {
            self.next();
            let mut within = Vec::new();
            loop {
                match self.next()? {
                    b'"' => break,
                    b'\n' => return None,
                    b'\\' => within.push(self.next()?),
                    byte => within.push(byte),
                }
            }
            section = format!("{section}.{}", String::from_utf8_lossy(&within));
        }
        (self.next()? == b']' && !section.is_empty()).then_some(section)
    }

    /// What follows a name. A name alone is true.
    fn value(&mut self) -> Option<Vec<u8>> {
        self.skip(|byte| byte == b' ' || byte == b'\t');
        match self.0.first() {
            Some(b'=') => self.next(),
            None | Some(b'\n' | b'\r' | b'#' | b';') => return Some(b"true".to_vec()),
            Some(_) => return None,
        };
        self.skip(|byte| byte == b' ' || byte == b'\t');
        let mut value = Vec::new();
        let mut length = 0; // without the blanks at the end
        let mut is_quoted = false;
        loop {
            match self.next() {
                None | Some(b'\n') if is_quoted => return None,
                None | Some(b'\n') => break,
                Some(b'#' | b';') if !is_quoted => {
                    self.skip(|byte| byte != b'\n');
                    continue;
                }
                Some(byte) if byte.is_ascii_whitespace() && !is_quoted => {
                    value.push(byte);
                    continue;
                }
                Some(b'"') => is_quoted = !is_quoted,
                Some(b'\\') => match self.next()? {
                    b'\n' => {}
                    b'\r' if self.0.first() == Some(&b'\n') => self.skip(|byte| byte == b'\n'),
                    b't' => value.push(b'\t'),
                    b'n' => value.push(b'\n'),
                    b'b' => value.push(8),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                Some(byte) => value.push(byte),
            }
            length = value.len();
        }
        value.truncate(length);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<(String, String)>> {
        let text_of = |it: Setting| (it.key, String::from_utf8(it.value).unwrap());
        Some(parse(text.as_bytes())?.into_iter().map(text_of).collect())
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let expected: Vec<_> =
                expected.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            assert_eq!(read(text), Some(expected), "{text}");
        };
        check("", &[]);
        check("[Core]\n\tFileMode = true # so\n", &[("core.filemode", "true")]);
        check("[core] bare\n", &[("core.bare", "true")]);
        check("[core] a=1\nb = 2", &[("core.a", "1"), ("core.b", "2")]);
        check("[branch \"A b\\\"c\"]\nremote = x\r\n", &[("branch.A b\"c.remote", "x")]);
        check("[a.B]\nc = \"x # y \" ; z\n", &[("a.b.c", "x # y ")]);
        check("[a]\nb = one \\\n  two\n", &[("a.b", "one   two")]);
        check("[a]\nb = \\\"\\\\\\t|\n", &[("a.b", "\"\\\t|")]);
        check("[a]\nb =\nc = 1", &[("a.b", ""), ("a.c", "1")]);
    }

    #[test]
    fn what_git_refuses_is_refused() {
        for text in ["a = 1", "[a\nb = 1", "[a]\n= 1", "[a]\nb = \"x\n", "[a]\nb = \\x\n", "[a]\n!"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn includes_are_followed_and_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("one"), "[include]\npath = two\n[a]\nb = 1\n").unwrap();
        std::fs::write(
            file("two"),
            "[include]\npath = one\n[includeIf \"x\"]\npath = y\n[a]\nb = 2",
        )
        .unwrap();
        let mut config = Config::default();
        config.add(&file("one")).unwrap();
        assert_eq!(config.last("a.b"), Some(b"1".as_slice()));
        assert!(config.has_conditions);
    }
}
